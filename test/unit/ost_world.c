/* See ost_world.h. */
#include "unit.h"
#include "base/crc32c.h"
#include "ost_world.h"
#include "store/chunk.h"
#include "store/fsck_format.h"
#include "store/store_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT_MAX = BLOCK_BYTES, FSCK_BYTES = 64 * 1024, TURNS_MAX = 200000 };

static void log_line(void *context, const char *line) {
    struct ost_world *world = context;

    world->log_lines++;
    (void)snprintf(world->last_line, sizeof world->last_line, "%s", line);
}

struct ost_world *ost_world_new(uint64_t seed) {
    struct ost_world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    prng_init(&world->prng, seed);
    assert_int_equal(memory_env_new(prng_next(&world->prng), &world->env), 0);
    struct kv_mem_options store = {
        .prng = &world->prng, .cold_numerator = 1, .cold_denominator = 6};
    assert_int_equal(kv_mem_store_new(&store, &world->store), 0);
    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        world->calls[i].world = world;
        world->calls[i].memory = aligned_alloc(BLOCK_BYTES, OST_CALL_BYTES_MAX + SHIFT_MAX);
        assert_non_null(world->calls[i].memory);
    }
    worker_init(&world->worker);
    worker_bind(&world->worker);
    world->next_sequence = 1;
    world->options = (struct ost_options){
        .env = memory_env_env(world->env),
        .kv = {.directory = "t",
               .shared_name = "ring",
               .base = &kv_mem_ops,
               .base_store = world->store,
               .owner_id = "an-ost-in-tests",
               .ring_bytes = 512 * KIB,
               .ring_data_bytes = 512 * KIB,
               .disk_log_bytes = 4 * MIB,
               .changes_bytes_max = 1 * MIB,
               .sync_interval_ns = NS_PER_S,
               .outcomes_max = 65664}, /* of one session, which raises no floor, 1,024 */
        .data_path = "data",
        .target = {5},
        .data_bytes_max = 8 * MIB,
        .grow_bytes = 1 * MIB,
        .reserve_bytes = 256 * KIB,
        .sync_bytes = 2 * MIB,
        .cache_bytes = 64 * BLOCK_BYTES,
        .requests_max = 16,
        .io_max = 40,
        .bounce_max = 3,
        .request_bytes_max = OST_CALL_BYTES_MAX,
        .sessions_max = 16,
        .freed_max = 1,
        .unsigned_allowed = true,
        .log = log_line,
        .log_context = world,
    };
    return world;
}

void ost_world_free(struct ost_world *world) {
    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        free(world->calls[i].memory);
    }
    ost_abandon(world->ost);
    kv_mem_store_free(world->store);
    memory_env_free(world->env);
    worker_bind(NULL);
    free(world);
}

int ost_world_open(struct ost_world *world, char problem[256]) {
    return ost_open(&world->options, &world->ost, problem);
}

void ost_world_crash(struct ost_world *world, bool power) {
    if (power) {
        memory_env_power(world->env);
    } else {
        memory_env_kill(world->env);
    }
    ost_abandon(world->ost);
    world->ost = NULL;
    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        world->calls[i].busy = false;
    }
}

void ost_world_turn(struct ost_world *world) {
    (void)memory_env_pump(world->env, 1 + prng_below(&world->prng, 4));
    if (prng_chance(&world->prng, 1, 4) || memory_env_pending(world->env) == 0) {
        memory_env_advance(world->env, prng_below(&world->prng, 40) * NS_PER_MS);
        ost_tick(world->ost);
    }
    while (worker_run_one(&world->worker)) {
    }
}

static void stopped(void *context, int result) {
    int *ret = context;

    *ret = result;
}

void ost_world_stop(struct ost_world *world) {
    int result = 1;

    ost_stop_start(world->ost, stopped, &result);
    for (int i = 0; i < TURNS_MAX && result == 1; i++) {
        ost_world_turn(world);
    }
    assert_int_equal(result, 0);
    while (memory_env_pending(world->env) > 0) {
        ost_world_turn(world);
    }
    ost_close(world->ost);
    world->ost = NULL;
}

static void replied(struct call *call) {
    struct ost_call *mine = CONTAINER_OF(call, struct ost_call, call);

    assert_true(mine->busy && !mine->answered);
    mine->answered = true;
    mine->answer_number = ++mine->world->answer_number;
    if (mine->world->answered) {
        mine->world->answered(mine->world, mine);
    }
}

struct ost_call *ost_call_get(struct ost_world *world, uint16_t opcode) {
    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        struct ost_call *call = &world->calls[i];

        if (call->busy) {
            continue;
        }
        call->busy = true;
        call->answered = false;
        call->note = NULL;
        memset(call->user, 0, sizeof call->user);
        call->call = (struct call){
            .message = {.kind = CALL_MESSAGE_KIND, .message_class = wire_class(opcode)},
            .header = {.opcode = opcode,
                       .message_class = wire_class(opcode),
                       .log = kv_log_id(ost_kv(world->ost)),
                       .session = {OST_SESSION},
                       .incarnation = OST_INCARNATION},
            .reply_to = replied,
        };
        return call;
    }
    return NULL;
}

void ost_call_start(struct ost_call *call) {
    struct ost_world *world = call->world;

    call->answered = false;
    if (wire_is_mutation(call->call.header.opcode) && call->call.header.sequence == 0) {
        call->call.header.sequence = world->next_sequence++;
    }
    actor_post(ost_actor(world->ost), &call->call.message);
}

int ost_call_run(struct ost_call *call) {
    ost_call_start(call);
    for (int i = 0; i < TURNS_MAX && !call->answered; i++) {
        ost_world_turn(call->world);
    }
    assert_true(call->answered);
    call->busy = false;
    return call->call.result;
}

static struct capability capability_of(const struct ost_place *place, uint32_t rights) {
    return (struct capability){
        .ino = place->ino,
        .generation = place->generation,
        .rights = rights,
        .max_offset = FILE_BYTES_MAX,
        .truncate_seq = place->truncate_seq,
        .truncate_size = place->truncate_size,
        .session = OST_SESSION,
        .session_incarnation = OST_INCARNATION,
    };
}

static uint32_t touched(const struct ost_place *place) {
    return (place->offset % BLOCK_BYTES + place->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

void ost_call_write(struct ost_call *call, const struct ost_place *place, const uint8_t *data) {
    uint8_t *memory = call->memory + call->shift;
    uint32_t skip = place->offset % BLOCK_BYTES;
    uint32_t at = 0;

    assert_true(place->size <= OST_CALL_BYTES_MAX);
    memcpy(memory, data, place->size);
    call->call.request.chunk_write =
        (struct chunk_write_request){.capability = capability_of(place, RIGHT_WRITE | RIGHT_READ),
                                     .chunk = place->chunk,
                                     .chunk_bytes = place->chunk_bytes,
                                     .offset = place->offset,
                                     .size = place->size};
    call->call.bulk_out[0] = (struct bytes){memory, place->size};
    call->call.bulk_out_count = 1;
    call->call.checksums = call->checksums;
    call->call.checksum_count = touched(place);
    for (uint32_t i = 0; i < touched(place); i++) {
        uint32_t size = MIN(place->size - at, BLOCK_BYTES - (i == 0 ? skip : 0));

        call->checksums[i] = crc32c(0, memory + at, size);
        at += size;
    }
}

void ost_call_read(struct ost_call *call, const struct ost_place *place) {
    call->call.request.chunk_read =
        (struct chunk_read_request){.capability = capability_of(place, RIGHT_READ),
                                    .chunk = place->chunk,
                                    .chunk_bytes = place->chunk_bytes,
                                    .offset = place->offset,
                                    .size = place->size};
    memset(call->memory + call->shift, 0xee, place->size);
    call->call.bulk_in = (struct buffer){call->memory + call->shift, 0, place->size};
    call->call.checksums = call->checksums;
    call->call.checksum_count = ARRAY_SIZE(call->checksums);
}

const uint8_t *ost_call_data(const struct ost_call *call) {
    const struct chunk_read_request *body = &call->call.request.chunk_read;
    const uint8_t *data = call->call.bulk_in.data;
    uint32_t skip = body->offset % BLOCK_BYTES;
    uint32_t at = 0;

    assert_int_equal(call->call.bulk_in.size, body->size);
    assert_int_equal(call->call.reply.chunk_read.size, body->size);
    for (uint32_t i = 0; i < call->call.checksum_count; i++) {
        uint32_t size = MIN(body->size - at, BLOCK_BYTES - (i == 0 ? skip : 0));

        assert_int_equal(call->checksums[i], crc32c(0, data + at, size));
        at += size;
    }
    assert_int_equal(at, body->size);
    return data;
}

int ost_world_write(struct ost_world *world, const struct ost_place *place, const uint8_t *data) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);

    ost_call_write(call, place, data);
    return ost_call_run(call);
}

int ost_world_read(struct ost_world *world, const struct ost_place *place, const void *want) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_READ);

    ost_call_read(call, place);
    int r = ost_call_run(call);
    if (r == 0 && want) {
        assert_memory_equal(ost_call_data(call), want, place->size);
    }
    return r;
}

int ost_world_ended(struct ost_world *world, uint64_t session) {
    struct ost_call *call = ost_call_get(world, OP_SESSIONS_ENDED);
    uint8_t name[8];

    store_le64(name, session);
    call->call.request.sessions_ended =
        (struct sessions_ended_request){.from = world->list_number,
                                        .number = world->list_number + 1,
                                        .names = {name, session ? sizeof name : 0}};
    int r = ost_call_run(call);
    if (r == 0) {
        assert_int_equal(call->call.reply.sessions_ended.number, ++world->list_number);
    }
    return r;
}

struct bytes ost_world_ticket(struct ost_world *world, uint64_t session,
                              const struct identity *identity) {
    struct signer signer;

    ticket_signer_init(&signer, world->options.keys);
    size_t size = ticket_make(&signer, (struct ticket_session){session, OST_INCARNATION}, identity,
                              world->ticket);
    signer_deinit(&signer);
    return (struct bytes){world->ticket, size};
}

void ost_world_attach(struct ost_world *world) {
    struct ost_call *call = ost_call_get(world, OP_SESSION_ATTACH);

    call->call.request.session_attach = (struct session_attach_request){
        .session = OST_SESSION, .incarnation = OST_INCARNATION, .node = 1, .known_term = 0};
    if (world->list_number == 0) {
        assert_int_equal(ost_world_ended(world, 0), 0);
    }
    if (world->options.keys) {
        call->call.request.session_attach.ticket =
            ost_world_ticket(world, OST_SESSION, &IDENTITY_OF_MEMBER);
    }
    assert_int_equal(ost_call_run(call), 0);
}

int ost_world_sync(struct ost_world *world) {
    return ost_call_run(ost_call_get(world, OP_SYNC));
}

void ost_world_delete(struct ost_world *world, struct ino ino, uint32_t generation) {
    uint64_t resume = 0;
    bool end = false;

    while (!end) {
        struct ost_call *call = ost_call_get(world, OP_CHUNK_DELETE);

        call->call.request.chunk_delete = (struct chunk_delete_request){ino, generation, resume};
        assert_int_equal(ost_call_run(call), 0);
        resume = call->call.reply.chunk_delete.resume_chunk;
        end = call->call.reply.chunk_delete.end;
    }
    assert_int_equal(ost_world_sync(world), 0);
}

struct fsck {
    uint8_t *used;   /* by chunks */
    uint8_t *marked; /* by the bitmap */
    uint64_t blocks;
    uint64_t chunk_count; /* blocks of the chunk at hand */
    uint64_t head_count;
    uint64_t promised; /* by heads; in all */
    uint64_t promised_total;
    struct kv_key head;
    uint64_t total;
};

static void fsck_head_end(struct fsck *fsck) {
    assert_int_equal(fsck->chunk_count, fsck->head_count);
    fsck->chunk_count = 0;
    fsck->head_count = 0;
}

static void fsck_row(struct fsck *fsck, const struct kv_key *key, struct bytes value) {
    struct kv_key_fields fields = kv_key_split(key);

    if (fields.type == STORE_ROW_BITMAP) {
        for (size_t i = 8; i < value.size; i++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                uint64_t block = fields.index * STORE_BITMAP_BITS + (i - 8) * 8 + bit;

                if (value.data[i] >> bit & 1) {
                    assert_true(block < fsck->blocks);
                    fsck->marked[block] = 1;
                }
            }
        }
    } else if (fields.type == STORE_ROW_PROMISED) {
        struct store_promised total;

        assert_int_equal(value.size, sizeof total);
        memcpy(&total, value.data, sizeof total);
        fsck->promised_total = total.block_count;
    } else if (fields.index % (1 << STORE_INDEX_BITS) == 0) {
        struct store_head head;

        fsck_head_end(fsck);
        assert_int_equal(chunk_head_check(value, &head), 0);
        fsck->head_count = head.block_count;
        fsck->promised += head.promised;
        fsck->head = *key;
    } else if (store_row_is_segment(fields.index % (1 << STORE_INDEX_BITS))) {
        struct store_segment segment = {0};
        struct kv_key_fields head = kv_key_split(&fsck->head);

        /* Behind its head: there is no orphan. */
        assert_int_equal(head.id, fields.id);
        assert_int_equal(head.generation, fields.generation);
        assert_int_equal(head.index >> STORE_INDEX_BITS, fields.index >> STORE_INDEX_BITS);
        memcpy(&segment, value.data, value.size);
        for (int i = 0; i < BLOCKS_PER_SEGMENT; i++) {
            uint64_t block = store_entry_block(&segment.entries[i]);

            if (block > 0) {
                assert_true(block < fsck->blocks);
                assert_int_equal(fsck->used[block], 0);
                fsck->used[block] = 1;
                fsck->chunk_count++;
                fsck->total++;
            }
        }
    }
}

static void fsck_list(struct ost_world *world, struct fsck *fsck, uint32_t what) {
    uint8_t cursor[KV_KEY_BYTES];
    size_t cursor_bytes = 0;
    bool end = false;

    while (!end) {
        struct ost_call *call = ost_call_get(world, OP_FSCK_LIST);
        size_t at = 0;

        call->call.request.fsck_list =
            (struct fsck_list_request){what, {cursor, cursor_bytes}, FSCK_BYTES};
        call->call.bulk_in = (struct buffer){call->memory, 0, FSCK_BYTES};
        assert_int_equal(ost_call_run(call), 0);
        end = call->call.reply.fsck_list.end;
        while (at < call->call.bulk_in.size) {
            struct store_fsck_row row;
            struct kv_key key;

            memcpy(&row, call->memory + at, sizeof row);
            memcpy(key.bytes, row.key, sizeof row.key);
            struct bytes value = {call->memory + at + sizeof row, row.value_bytes};
            if (what == FSCK_DATA) {
                assert_int_equal(load_le16(value.data), 0);
            } else {
                fsck_row(fsck, &key, value);
            }
            memcpy(cursor, row.key, sizeof cursor);
            cursor_bytes = sizeof cursor;
            at += row.row_bytes;
        }
    }
}

uint64_t ost_world_block(struct ost_world *world, uint32_t index) {
    struct store_segment segment = {0};
    uint8_t cursor[KV_KEY_BYTES];
    struct ost_call *call;
    size_t cursor_bytes = 0;

    do {
        call = ost_call_get(world, OP_FSCK_LIST);
        call->call.request.fsck_list =
            (struct fsck_list_request){FSCK_CHUNKS, {cursor, cursor_bytes}, FSCK_BYTES};
        call->call.bulk_in = (struct buffer){call->memory, 0, FSCK_BYTES};
        assert_int_equal(ost_call_run(call), 0);
        for (size_t at = 0; at < call->call.bulk_in.size;) {
            struct store_fsck_row row;
            struct kv_key key;

            memcpy(&row, call->memory + at, sizeof row);
            memcpy(key.bytes, row.key, sizeof row.key);
            if (kv_key_split(&key).index % (1 << STORE_INDEX_BITS) ==
                1 + index / BLOCKS_PER_SEGMENT) {
                memcpy(&segment, call->memory + at + sizeof row, row.value_bytes);
            }
            memcpy(cursor, row.key, sizeof cursor);
            cursor_bytes = sizeof cursor;
            at += row.row_bytes;
        }
    } while (!call->call.reply.fsck_list.end);
    return store_entry_block(&segment.entries[index % BLOCKS_PER_SEGMENT]);
}

uint64_t ost_world_fsck(struct ost_world *world) {
    struct ost_counters counters;
    struct fsck fsck = {0};

    ost_counters_get(world->ost, &counters);
    fsck.blocks = counters.block_count;
    fsck.used = calloc(1, fsck.blocks);
    fsck.marked = calloc(1, fsck.blocks);
    fsck_list(world, &fsck, FSCK_CHUNKS);
    fsck_head_end(&fsck);
    fsck_list(world, &fsck, FSCK_BLOCKS);
    fsck_list(world, &fsck, FSCK_DATA);
    fsck_list(world, &fsck, FSCK_PROMISED);
    assert_int_equal(fsck.promised, fsck.promised_total);
    assert_int_equal(fsck.promised, counters.promised_blocks);
    fsck.used[0] = 1; /* the label */
    assert_memory_equal(fsck.used, fsck.marked, fsck.blocks);
    free(fsck.used);
    free(fsck.marked);
    return fsck.total;
}
