/* A storage target: its rows as a start finds them, and what it is asked.
 *
 * store_rows: edits (row_edits.h) of the rows of a target that had a file, a promise, a session and
 * a fence. It does not serve, says why and has changed no row; or it answers whatever it is asked,
 * stops, and starts once more.
 *
 * store_calls: requests to a sound one, each u8 opcode, u8 of enum asker, u16 size, body, and of a
 * write u8 what the data are. Bodies are those that decode. Behind all of them no row contradicts
 * another one, and what is read matches its checksums; also behind a kill. */
#include "base/crc32c.h"
#include "answers.h"
#include "kv/ended_list.h"
#include "ost_world.h"
#include "row_edits.h"
#include "store/store_format.h"

enum {
    CHUNK = 4 * SEGMENT_BYTES,
    INO = 17,
    FILLED = SEGMENT_BYTES + 3 * BLOCK_BYTES,
    FENCED = 9,
    CALLS_MAX = 16,
    TIGHT_BYTES = 100,
    CALL_SECONDS = 5
};

static uint8_t data[OST_CALL_BYTES_MAX];
static char problem[256];

static const struct ost_place filled = {
    .ino = {INO}, .generation = 1, .chunk_bytes = CHUNK, .size = FILLED};

static const struct capability good = {.ino = {INO},
                                       .generation = 1,
                                       .rights = RIGHT_READ | RIGHT_WRITE,
                                       .max_offset = FILE_BYTES_MAX,
                                       .session = OST_SESSION,
                                       .session_incarnation = OST_INCARNATION};

static struct bytes fence_bytes(void) {
    static uint8_t fence[WIRE_FENCE_BYTES];

    store_le64(fence, FENCED);
    store_le64(fence + 8, 2);
    return (struct bytes){fence, sizeof fence};
}

/* It is answered, in its time. */
static int ask(struct ost_call *call) {
    struct env *env = memory_env_env(call->world->env);

    call->call.deadline_ns = env_now_ns(env) + CALL_SECONDS * NS_PER_S;
    int r = ost_call_run(call);
    assert(r <= 0 && call->call.bulk_in.size <= call->call.bulk_in.capacity);
    return r;
}

static struct ost_call *space_call(struct ost_world *world, uint32_t what, uint64_t name) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_SPACE);

    call->call.request.chunk_space = (struct chunk_space_request){.capability = good,
                                                                  .chunk_bytes = CHUNK,
                                                                  .offset = 2 * BLOCK_BYTES,
                                                                  .size = 3 * SEGMENT_BYTES,
                                                                  .what = what,
                                                                  .call = name};
    return call;
}

static struct ost_call *length_call(struct ost_world *world) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_LENGTH);

    call->call.request.chunk_length = (struct chunk_length_request){
        .ino = {INO}, .generation = 1, .chunk_bytes = CHUNK, .fences = fence_bytes()};
    return call;
}

static struct ost_call *cut_call(struct ost_world *world, uint32_t seq, uint64_t size) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);

    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = {INO},
                                                              .generation = 1,
                                                              .chunk_bytes = CHUNK,
                                                              .truncate_seq = seq,
                                                              .truncate_size = size};
    return call;
}

/* One that is sound, with rows of each type. */
static struct ost_world *world_begin(void) {
    const struct ost_place cut_away = {
        .ino = {INO + 1}, .generation = 1, .chunk_bytes = CHUNK, .size = BLOCK_BYTES};
    struct ost_world *world = ost_world_new(1);
    struct ost_call *call;

    world->options.verify_on_arrival = true;
    int r = ost_world_open(world, problem);
    assert(r == 0);
    ost_world_attach(world);
    r = ost_world_write(world, &filled, data);
    assert(r == 0);
    r = ask(space_call(world, SPACE_PROMISE, 5));
    assert(r == 0);
    r = ask(length_call(world));
    assert(r == 0);
    r = ost_world_write(world, &cut_away, data);
    assert(r == 0);
    call = cut_call(world, 4, 0);
    call->call.request.chunk_cut.ino.value++;
    r = ask(call);
    assert(r == 0);
    r = ost_world_ended(world, 2);
    assert(r == 0);
    r = ost_world_sync(world);
    assert(r == 0);
    return world;
}

static void wake(void *context) {
    (void)context;
}

/* By an engine that dies at once. */
static struct kv *engine_open(struct ost_world *world) {
    struct kv_options options = world->options.kv;
    struct kv *kv;

    options.env = world->options.env;
    options.sessions_max = world->options.sessions_max;
    options.hooks.wake = wake;
    int r = kv_open(&options, &kv, problem);
    assert(r == 0);
    return kv;
}

static void engine_die(struct ost_world *world, struct kv *kv) {
    memory_env_kill(world->env);
    kv_abandon(kv);
}

static uint32_t rows_sum(struct ost_world *world) {
    struct kv *kv = engine_open(world);
    uint32_t sum = row_edits_sum(world->env, kv);

    engine_die(world, kv);
    return sum;
}

/* Whatever it answers. A read of whole blocks is not looked at here: who asks does that. */
static void data_ask(struct ost_world *world, uint32_t offset, uint32_t size) {
    struct ost_place place = filled;
    struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);

    place.offset = offset;
    place.size = size;
    ost_call_write(call, &place, data);
    (void)ask(call);
    call = ost_call_get(world, OP_CHUNK_READ);
    ost_call_read(call, &place);
    int r = ask(call);
    assert(r < 0 || call->call.bulk_in.size == size);
}

static void seek_ask(struct ost_world *world, uint32_t what) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_SEEK);

    call->call.request.chunk_seek = (struct chunk_seek_request){
        .capability = good, .chunk_bytes = CHUNK, .offset = 10, .stride = 1, .what = what};
    int r = ask(call);
    assert(r < 0 || !call->call.reply.chunk_seek.found ||
           call->call.reply.chunk_seek.offset <= FILE_BYTES_MAX);
}

static void list_ask(struct ost_world *world, uint32_t what) {
    struct ost_call *call = ost_call_get(world, OP_FSCK_LIST);

    call->call.request.fsck_list = (struct fsck_list_request){what, {NULL, 0}, OST_CALL_BYTES_MAX};
    call->call.bulk_in = (struct buffer){call->memory, 0, OST_CALL_BYTES_MAX};
    (void)ask(call);
}

static void delete_ask(struct ost_world *world, uint64_t ino) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_DELETE);

    call->call.request.chunk_delete = (struct chunk_delete_request){.ino = {ino}, .generation = 1};
    (void)ask(call);
}

/* The list of the ended as a whole: the first ten by their bits, then that all below have. */
static void ended_ask(struct ost_world *world) {
    static const uint8_t bits[] = {0xff, 0x03};
    struct ost_call *call = ost_call_get(world, OP_SESSIONS_ENDED);

    call->call.request.sessions_ended = (struct sessions_ended_request){
        .number = 4, .lowest = 5, .first = 8, .names = {bits, sizeof bits}};
    (void)ask(call);
}

static bool serves(struct ost_world *world) {
    return ask(ost_call_get(world, OP_STATFS)) == 0;
}

/* One of each that it knows. */
static void all_ask(struct ost_world *world) {
    static const uint32_t kinds[] = {FSCK_CHUNKS,   FSCK_BLOCKS, FSCK_PROMISED,
                                     FSCK_SESSIONS, FSCK_ENDED,  FSCK_DATA};
    struct ost_call *call = ost_call_get(world, OP_SESSION_ATTACH);

    call->call.request.session_attach = (struct session_attach_request){
        .session = OST_SESSION, .incarnation = OST_INCARNATION, .node = 1};
    (void)ask(call);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        list_ask(world, kinds[i]);
    }
    data_ask(world, 0, FILLED);
    data_ask(world, 2 * SEGMENT_BYTES - 700, 900);
    seek_ask(world, WIRE_SEEK_DATA);
    seek_ask(world, WIRE_SEEK_HOLE);
    seek_ask(world, WIRE_SEEK_ANY);
    (void)ask(space_call(world, SPACE_UNDO, 5));
    (void)ask(space_call(world, SPACE_PROMISE, 6));
    (void)ask(length_call(world));
    (void)ask(cut_call(world, 1, BLOCK_BYTES + 77));
    (void)ask(space_call(world, SPACE_PUNCH, 0));
    ended_ask(world);
    (void)ask(ost_call_get(world, OP_SYNC));
    delete_ask(world, INO);
    delete_ask(world, INO + 1);
}

void fuzz_store_rows(struct bytes in) {
    struct ost_world *world = world_begin();
    struct wire_cursor cursor = fuzz_cursor(in);
    struct kv *kv;

    ost_world_stop(world);
    kv = engine_open(world);
    row_edits_play(world->env, kv, &cursor);
    engine_die(world, kv);
    uint32_t before = rows_sum(world);
    int r = ost_world_open(world, problem);
    assert(r == 0 || (problem[0] && memchr(problem, '\0', sizeof problem)));
    if (r == 0 && serves(world)) {
        all_ask(world);
        ost_world_stop(world);
        r = ost_world_open(world, problem);
        assert(r == 0 && serves(world));
    } else if (r == 0) {
        ost_world_crash(world, false);
        assert(rows_sum(world) == before);
    } else {
        memory_env_kill(world->env);
        assert(rows_sum(world) == before);
    }
    ost_world_free(world);
}

static void give_own(struct buffer *out, enum store_row type, uint64_t id, struct bytes value) {
    const struct kv_key key = store_owner_key(type, id, 0);

    row_edit_put(out, &key, value);
}

static struct kv_key chunk_row(uint64_t row) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT,
                                              .slot = store_bucket((struct ino){INO}),
                                              .type = STORE_ROW_CHUNK,
                                              .id = INO,
                                              .generation = 1,
                                              .index = row});
}

/* Rows of the target's own that are whole, each by itself. */
static void seed_own_rows(const struct fuzz_seeds *seeds, struct buffer *out) {
    const struct store_session session = {.format = STORE_FORMAT, .incarnation = 3};
    const struct store_fence fence = {.format = STORE_FORMAT, .incarnation = 3};
    const struct store_mark mark = {.format = STORE_FORMAT, .truncate_seq = 9};
    const struct store_promised promised = {.format = STORE_FORMAT, .block_count = 7};
    const struct ended_row ended = {.format = ENDED_FORMAT, .number = 9, .lowest = 4};

    out->size = 0;
    wire_give_number(out, 5, 1);
    give_own(out, STORE_ROW_SESSION, 3, (struct bytes){(const void *)&session, sizeof session});
    give_own(out, STORE_ROW_FENCE, 7, (struct bytes){(const void *)&fence, sizeof fence});
    give_own(out, STORE_ROW_MARK, INO, (struct bytes){(const void *)&mark, sizeof mark});
    give_own(out, STORE_ROW_PROMISED, 0, (struct bytes){(const void *)&promised, sizeof promised});
    give_own(out, STORE_ROW_ENDED, 0, (struct bytes){(const void *)&ended, sizeof ended});
    fuzz_seed(seeds, (struct bytes){out->data, out->size});
}

/* Likewise of the file. */
static void seed_chunk_rows(const struct fuzz_seeds *seeds, struct buffer *out) {
    const struct store_bitmap bitmap = {.format = STORE_FORMAT, .bits = {0xff}};
    const struct store_head head = {.format = STORE_FORMAT_PROMISING,
                                    .promise = STORE_PROMISE_ALL,
                                    .chunk_bytes = CHUNK,
                                    .length = 5};
    const struct store_segment segment = {.format = STORE_FORMAT, .entries = {{{1}, 7}, {{2}, 8}}};
    const struct store_promise promise = {.format = STORE_FORMAT, .has_before = 1, .bits = {0xff}};
    const size_t promise_bytes =
        offsetof(struct store_promise, bits) + 2 * (CHUNK / BLOCK_BYTES / 8);
    const struct kv_key head_key = chunk_row(0), segment_key = chunk_row(2);
    const struct kv_key promise_key = chunk_row(STORE_INDEX_PROMISE);

    out->size = 0;
    wire_give_number(out, 4, 1);
    row_edit_put(out, &head_key, (struct bytes){(const void *)&head, sizeof head});
    row_edit_put(out, &segment_key, (struct bytes){(const void *)&segment, sizeof segment});
    row_edit_put(out, &promise_key, (struct bytes){(const void *)&promise, promise_bytes});
    give_own(out, STORE_ROW_BITMAP, 0, (struct bytes){(const void *)&bitmap, sizeof bitmap});
    fuzz_seed(seeds, (struct bytes){out->data, out->size});
}

void seed_store_rows(const struct fuzz_seeds *seeds) {
    static uint8_t space[8192];
    struct buffer out = {space, 0, sizeof space};
    const uint8_t one = 1;

    wire_give_number(&out, 1, 1);
    row_edit_patch(&out, 3, 8, (struct bytes){&one, 1});
    fuzz_seed(seeds, (struct bytes){space, out.size});
    seed_own_rows(seeds, &out);
    seed_chunk_rows(seeds, &out);
}

/* SAME_NUMBER: as the mutation before. TIGHT: room for few bytes. WRONG: a byte of the data is not
 * as its checksum has it, or their count differs. OF_ANOTHER: a session that is not attached. */
enum asker { SAME_NUMBER = 1, TIGHT = 2, WRONG = 4, OF_ANOTHER = 8, AFTER_A_KILL = 16 };

static const uint16_t opcodes[] = {
    OP_CHUNK_WRITE,  OP_CHUNK_READ,   OP_CHUNK_SPACE,    OP_CHUNK_SEEK,    OP_CHUNK_CUT,
    OP_CHUNK_DELETE, OP_CHUNK_LENGTH, OP_SESSION_ATTACH, OP_SESSION_FLOOR, OP_SESSIONS_ENDED,
    OP_SYNC,         OP_STATFS,       OP_FSCK_LIST,
};

/* What a write brings, as much as it says; sums are those of its blocks. */
static void data_give(struct ost_call *call, uint8_t fill, uint32_t asker) {
    const struct chunk_write_request *body = &call->call.request.chunk_write;
    uint32_t size = MIN(body->size, (uint32_t)OST_CALL_BYTES_MAX);
    uint32_t skip = body->offset % BLOCK_BYTES;
    uint32_t count = 0;

    size = asker & TIGHT ? MIN(size, (uint32_t)TIGHT_BYTES) : size;
    memset(call->memory, fill, size);
    for (uint32_t at = 0; at < size; count++) {
        uint32_t part = MIN(size - at, BLOCK_BYTES - (at == 0 ? skip : 0));

        assert(count < ARRAY_SIZE(call->checksums));
        call->checksums[count] = crc32c(0, call->memory + at, part);
        at += part;
    }
    if (asker & WRONG && size > 0) {
        call->memory[fill % size] ^= 1;
        count -= fill % 2;
    }
    call->call.bulk_out[0] = (struct bytes){call->memory, size};
    call->call.bulk_out_count = size > 0;
    call->call.checksums = call->checksums;
    call->call.checksum_count = count;
}

static void call_fill(struct ost_call *call, uint32_t asker, struct wire_cursor *cursor) {
    struct ost_world *world = call->world;

    if (call->call.header.opcode == OP_CHUNK_WRITE) {
        data_give(call, (uint8_t)wire_take_number(cursor, 1), asker);
    } else {
        size_t room = asker & TIGHT ? (size_t)TIGHT_BYTES : OST_CALL_BYTES_MAX;

        call->call.bulk_in = (struct buffer){call->memory, 0, room};
        call->call.checksums = call->checksums;
        call->call.checksum_count = asker & WRONG ? 1 : ARRAY_SIZE(call->checksums);
    }
    if (asker & OF_ANOTHER) {
        call->call.header.session.value++;
    }
    if (asker & SAME_NUMBER && wire_is_mutation(call->call.header.opcode)) {
        call->call.header.sequence = MAX(world->next_sequence, UINT64_C(2)) - 1;
    }
}

static void killed(struct ost_world *world) {
    ost_world_crash(world, false);
    int r = ost_world_open(world, problem);
    assert(r == 0 && serves(world));
}

/* False: it is none that the inlet would hand over. */
static bool one_ask(struct ost_world *world, struct wire_cursor *cursor) {
    static uint32_t scratch[WIRE_GROUPS_MAX];
    uint16_t opcode = opcodes[wire_take_number(cursor, 1) % ARRAY_SIZE(opcodes)];
    uint32_t asker = (uint32_t)wire_take_number(cursor, 1);
    size_t size = MIN((size_t)wire_take_number(cursor, 2), cursor->size);
    const uint8_t *body = wire_take(cursor, size);

    if (asker & AFTER_A_KILL) {
        killed(world);
    }
    struct ost_call *call = ost_call_get(world, opcode);
    if (!body ||
        wire_decode_request(opcode, (struct bytes){body, size}, scratch, &call->call.request) < 0) {
        call->busy = false;
        return false;
    }
    call_fill(call, asker, cursor);
    int r = ask(call);
    if (r == 0 && opcode == OP_CHUNK_READ) {
        (void)ost_call_data(call);
    }
    return true;
}

void fuzz_store_calls(struct bytes in) {
    struct ost_world *world = world_begin();
    struct wire_cursor cursor = fuzz_cursor(in);

    for (int i = 0; i < CALLS_MAX && cursor.size > 0 && !cursor.bad; i++) {
        (void)one_ask(world, &cursor);
    }
    (void)ost_world_fsck(world);
    killed(world);
    (void)ost_world_fsck(world);
    ost_world_stop(world);
    ost_world_free(world);
}

static void give_call(struct buffer *out, uint16_t opcode, uint8_t asker,
                      const union request_body *body) {
    uint8_t at = 0;

    while (opcodes[at] != opcode) {
        at++;
    }
    wire_give_number(out, at, 1);
    give_request(out, opcode, asker, body);
    if (opcode == OP_CHUNK_WRITE) {
        wire_give_number(out, 'd', 1);
    }
}

static void give_ended(struct buffer *out, const struct sessions_ended_request *news) {
    give_call(out, OP_SESSIONS_ENDED, 0, &(const union request_body){.sessions_ended = *news});
}

static void seed_data(const struct fuzz_seeds *seeds, struct buffer *out) {
    const union request_body write = {
        .chunk_write = {
            .capability = good, .chunk = 1, .chunk_bytes = CHUNK, .offset = 700, .size = 9000}};
    const union request_body read = {
        .chunk_read = {
            .capability = good, .chunk = 1, .chunk_bytes = CHUNK, .offset = 4000, .size = 5000}};
    const union request_body cut = {.chunk_cut = {.ino = {INO},
                                                  .generation = 1,
                                                  .chunk_bytes = CHUNK,
                                                  .truncate_seq = 1,
                                                  .truncate_size = CHUNK + 3000}};
    const union request_body space = {
        .chunk_space = {
            .capability = good, .chunk_bytes = CHUNK, .size = CHUNK, .what = SPACE_PUNCH}};
    const union request_body seek = {
        .chunk_seek = {
            .capability = good, .chunk_bytes = CHUNK, .stride = 1, .what = WIRE_SEEK_HOLE}};

    out->size = 0;
    give_call(out, OP_CHUNK_WRITE, 0, &write);
    give_call(out, OP_CHUNK_WRITE, SAME_NUMBER, &write);
    give_call(out, OP_CHUNK_READ, AFTER_A_KILL, &read);
    give_call(out, OP_CHUNK_CUT, 0, &cut);
    give_call(out, OP_CHUNK_WRITE, WRONG, &write);
    give_call(out, OP_CHUNK_SPACE, 0, &space);
    give_call(out, OP_CHUNK_SEEK, 0, &seek);
    fuzz_seed(seeds, (struct bytes){out->data, out->size});
}

static void seed_sessions(const struct fuzz_seeds *seeds, struct buffer *out) {
    static const uint8_t bits[20] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3};
    static const uint8_t names[16] = {OST_SESSION, 0, 0, 0, 0, 0, 0, 0, 40};
    const struct bytes whole = {bits, sizeof bits}, few = {names, sizeof names};
    const union request_body attach = {
        .session_attach = {.session = 8, .incarnation = 1, .node = 2, .ended = 3}};
    const union request_body length = {.chunk_length = {.ino = {INO},
                                                        .generation = 1,
                                                        .fence_session = OST_SESSION,
                                                        .fence_incarnation = 2,
                                                        .fences = fence_bytes(),
                                                        .fences_row_bytes = WIRE_FENCE_BYTES}};
    const union request_body list = {.fsck_list = {.what = FSCK_ENDED, .bytes_max = 5000}};
    const union request_body whole_delete = {.chunk_delete = {.ino = {INO}, .generation = 1}};

    out->size = 0;
    give_call(out, OP_SESSION_ATTACH, 0, &attach);
    give_ended(out, &(const struct sessions_ended_request){.from = 2, .number = 3, .names = few});
    give_ended(out, &(const struct sessions_ended_request){
                        .number = 9, .lowest = 30, .first = 100, .names = whole});
    give_call(out, OP_CHUNK_LENGTH, 0, &length);
    give_call(out, OP_FSCK_LIST, AFTER_A_KILL, &list);
    give_call(out, OP_CHUNK_DELETE, 0, &whole_delete);
    give_call(out, OP_SESSION_FLOOR, 0, &(const union request_body){0});
    give_call(out, OP_SYNC, 0, &(const union request_body){.sync = {.position = 3}});
    fuzz_seed(seeds, (struct bytes){out->data, out->size});
}

void seed_store_calls(const struct fuzz_seeds *seeds) {
    static uint8_t space[8192];
    struct buffer out = {space, 0, sizeof space};

    seed_data(seeds, &out);
    seed_sessions(seeds, &out);
}
