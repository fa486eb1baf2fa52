/* The OST when things go wrong: full disks, damaged blocks, parts that are lost or do not belong
 * together, starts cut short, and requests that no honest client sends. */
#include "unit.h"
#include "base/crc32c.h"
#include "ost_chunk.h"
#include "store/fsck_format.h"
#include "store/store_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct statfs_reply statfs(struct ost_world *world) {
    struct ost_call *call = ost_call_get(world, OP_STATFS);

    assert_int_equal(ost_call_run(call), 0);
    return call->call.reply.statfs;
}

/* What other threads are told a second later, or at once where nothing was told yet. */
static struct ost_space space_told(struct ost_world *world) {
    struct ost_space space = {UINT64_MAX, UINT64_MAX};

    memory_env_advance(world->env, NS_PER_S);
    ost_tick(world->ost);
    for (int i = 0; i < 100; i++) {
        ost_world_turn(world);
    }
    assert_true(ost_space_get(world->ost, &space));
    return space;
}

/* Any thread may ask what is used and what is left, and is told the same as by statfs. */
static void test_space_is_told(void **state) {
    struct ost_world *world = world_start(8);
    struct ost_place place = place_of(0, CHUNK);
    struct ost_space before = space_told(world);
    struct statfs_reply asked = statfs(world);

    (void)state;
    assert_int_equal(before.used_bytes, asked.bytes_total - asked.bytes_free);
    assert_int_equal(before.available_bytes, asked.bytes_available);
    fill(1, CHUNK);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    struct ost_space after = space_told(world);
    assert_int_equal(after.used_bytes, before.used_bytes + CHUNK);
    assert_int_equal(after.available_bytes, before.available_bytes - CHUNK);
    ost_world_stop(world);
    ost_world_free(world);
}

/* New blocks stop at the reserve; overwriting, cutting and deleting go on, and make room. */
static void test_full(void **state) {
    struct ost_world *world = ost_world_new(9);
    struct ost_place place = place_of(0, CHUNK);
    int r = 0;

    (void)state;
    world->options.data_bytes_max = 3 * MIB;
    world->options.reserve_bytes = 256 * KIB;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    fill(1, CHUNK);
    place.chunk = 0;
    for (; r == 0; place.chunk++) {
        r = ost_world_write(world, &place, data);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    uint64_t last = place.chunk - 1;
    /* All but label, reserve and less than a chunk. */
    assert_true(last >= (3 * MIB - 256 * KIB) / CHUNK - 1);
    assert_true(statfs(world).bytes_available < CHUNK);
    assert_int_equal(statfs(world).bytes_total, 3 * MIB);
    for (int i = 0; i < 40; i++) {
        place.chunk = (uint64_t)i % last;
        fill((uint32_t)i, CHUNK);
        assert_int_equal(ost_world_write(world, &place, data), 0);
        assert_int_equal(ost_world_read(world, &place, data), 0);
    }
    place.chunk = last;
    assert_int_equal(ost_world_write(world, &place, data), -ERR_NO_SPACE);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);
    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = {17},
                                                              .generation = 1,
                                                              .chunk_bytes = CHUNK,
                                                              .truncate_seq = 1,
                                                              .truncate_size = 4 * CHUNK + 1};
    assert_int_equal(ost_call_run(call), 0);
    place.truncate_seq = 1;
    place.truncate_size = 4 * CHUNK + 1;
    assert_int_equal(ost_world_write(world, &place, data), 0);
    ost_world_delete(world, (struct ino){17}, 1);
    assert_int_equal(ost_world_fsck(world), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

/* An overwrite may take the last block that is free. */
static void test_last_blocks(void **state) {
    struct ost_world *world = ost_world_new(13);
    struct ost_place place = place_of(0, BLOCK_BYTES);
    struct ost_counters counters;
    int r = 0;

    (void)state;
    world->options.data_bytes_max = 2 * MIB;
    world->options.reserve_bytes = CHUNK;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    fill(1, CHUNK);
    for (uint32_t block = 0; r == 0; block++) {
        place.chunk = block / (CHUNK / BLOCK_BYTES);
        place.offset = block % (CHUNK / BLOCK_BYTES) * BLOCK_BYTES;
        r = ost_world_write(world, &place, data);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_int_equal(ost_world_sync(world), 0);
    ost_counters_get(world->ost, &counters);
    assert_int_equal(counters.free_blocks, CHUNK / BLOCK_BYTES);
    place = place_of(0, CHUNK);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    assert_int_equal(ost_world_read(world, &place, data), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

/* The file system below is full: as much as there is is used, and more once there is more. */
static void test_growth_fails(void **state) {
    struct ost_world *world = ost_world_new(10);
    struct ost_place place = place_of(0, CHUNK);
    int r = 0;

    (void)state;
    world->options.grow_bytes = 512 * KIB;
    memory_env_capacity(world->env, 8 * MIB);
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    fill(1, CHUNK);
    for (place.chunk = 0; r == 0; place.chunk++) {
        r = ost_world_write(world, &place, data);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_true(place.chunk > 10);
    assert_true(world->log_lines > 0);
    assert_int_equal(statfs(world).bytes_available, 0);
    memory_env_capacity(world->env, UINT64_MAX);
    memory_env_advance(world->env, 11 * NS_PER_S);
    ost_tick(world->ost);
    ost_world_turn(world);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

/* The data file leaves some space to others: it is refused while that is untouched. */
static void test_growth_keeps_free(void **state) {
    enum { KEEP_BYTES = 2 * MIB, CAPACITY_BYTES = 12 * MIB };
    struct ost_world *world = ost_world_new(10);
    struct ost_place place = place_of(0, CHUNK);
    struct env_file *file;
    int r = 0;

    (void)state;
    world->options.grow_bytes = 512 * KIB;
    world->options.keep_free_bytes = KEEP_BYTES;
    memory_env_capacity(world->env, CAPACITY_BYTES);
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    assert_true(statfs(world).bytes_available <=
                CAPACITY_BYTES - KEEP_BYTES - world->options.kv.disk_log_bytes);
    fill(1, CHUNK);
    for (place.chunk = 0; r == 0; place.chunk++) {
        r = ost_world_write(world, &place, data);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_true(place.chunk > 10);
    assert_true(world->log_lines > 0);
    struct env *env = memory_env_env(world->env);
    assert_int_equal(env->ops->file_open(env, "filler", ENV_FILE_CREATE, &file), 0);
    struct env_io io = {.kind = ENV_IO_ALLOCATE, .file = file, .size = KEEP_BYTES};
    assert_int_equal(env->ops->io_run(env, &io), 0);
    /* An overwrite and a removal still do. */
    place.chunk = 0;
    assert_int_equal(ost_world_write(world, &place, data), 0);
    ost_world_delete(world, (struct ino){17}, 1);
    ost_world_stop(world);
    ost_world_free(world);
}

/* The place of a chunk's block in the data file, as fsck sees it. */
static uint64_t block_at(struct ost_world *world, uint32_t index) {
    return ost_world_block(world, index);
}

static uint16_t damaged_mask(struct ost_world *world) {
    struct ost_call *call = ost_call_get(world, OP_FSCK_LIST);

    call->call.request.fsck_list = (struct fsck_list_request){FSCK_DATA, {NULL, 0}, 64 * 1024};
    call->call.bulk_in = (struct buffer){call->memory, 0, 64 * 1024};
    assert_int_equal(ost_call_run(call), 0);
    assert_true(call->call.bulk_in.size > 0);
    return load_le16(call->memory + sizeof(struct store_fsck_row));
}

/* A damaged block is found by whoever looks at it, and by nobody taken for data. */
static void test_damage(void **state) {
    struct ost_world *world = world_start(11);
    struct ost_place all = place_of(0, SEGMENT_BYTES);
    struct ost_place few = place_of(0, 4 * BLOCK_BYTES);
    struct ost_place part = place_of(3 * BLOCK_BYTES + 10, 100);
    struct ost_place block = place_of(3 * BLOCK_BYTES, BLOCK_BYTES);
    struct ost_call *call;

    (void)state;
    fill(1, all.size);
    assert_int_equal(ost_world_write(world, &all, data), 0);
    assert_int_equal(ost_world_sync(world), 0);
    assert_int_equal(damaged_mask(world), 0);
    uint64_t place = block_at(world, 3) * BLOCK_BYTES;
    assert_int_equal(memory_env_flip(world->env, "data", place + 77), 0);
    /* What goes into the cache is checked here. */
    call = ost_call_get(world, OP_CHUNK_READ);
    ost_call_read(call, &few);
    assert_int_equal(ost_call_run(call), -ERR_CORRUPT);
    assert_int_equal(world->log_lines, 1);
    assert_int_equal(ost_world_read(world, &part, NULL), -ERR_CORRUPT);
    assert_int_equal(ost_world_write(world, &part, data), -ERR_CORRUPT);
    assert_int_equal(world->log_lines, 3);
    assert_int_equal(damaged_mask(world), 1 << 3);
    all.size = 3 * BLOCK_BYTES;
    assert_int_equal(ost_world_read(world, &all, data), 0);
    /* Overwriting it makes it whole. */
    assert_int_equal(ost_world_write(world, &block, data), 0);
    assert_int_equal(ost_world_sync(world), 0);
    assert_int_equal(ost_world_read(world, &part, data + 10), 0);
    assert_int_equal(damaged_mask(world), 0);
    ost_world_free(world);
}

/* Blocks that the client checks itself are not delayed by a second check: it sees the mismatch. */
static void test_damage_in_large_read(void **state) {
    struct ost_world *world = world_start(12);
    struct ost_place all = place_of(0, CHUNK);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_READ);

    (void)state;
    fill(1, CHUNK);
    assert_int_equal(ost_world_write(world, &all, data), 0);
    assert_int_equal(memory_env_flip(world->env, "data", block_at(world, 20) * BLOCK_BYTES), 0);
    ost_call_read(call, &all);
    assert_int_equal(ost_call_run(call), 0);
    uint32_t got = crc32c(0, call->memory + call->shift + 20 * BLOCK_BYTES, BLOCK_BYTES);

    assert_int_not_equal(got, call->checksums[20]);
    assert_int_equal(world->log_lines, 0);
    /* Then it asks for a look at each block, and the damage is counted and named. */
    call = ost_call_get(world, OP_CHUNK_READ);
    ost_call_read(call, &all);
    call->call.request.chunk_read.verify = 1;
    assert_int_equal(ost_call_run(call), -ERR_CORRUPT);
    assert_int_equal(world->log_lines, 1);
    ost_world_free(world);
}

struct bad {
    const char *what;
    void (*spoil)(struct call *call);
    int want;
};

static void spoil_chunk_bytes(struct call *call) {
    call->request.chunk_write.chunk_bytes = CHUNK + 1;
}
static void spoil_chunk_bytes_small(struct call *call) {
    call->request.chunk_write.chunk_bytes = 4096;
}
static void spoil_other_chunk_bytes(struct call *call) {
    call->request.chunk_write.chunk_bytes = 2 * CHUNK;
}
static void spoil_end(struct call *call) {
    call->request.chunk_write.offset = CHUNK - 100;
}
static void spoil_offset_wraps(struct call *call) {
    call->request.chunk_write.offset = UINT32_MAX - 10;
}
static void spoil_size_zero(struct call *call) {
    call->request.chunk_write.size = 0;
}
static void spoil_size_large(struct call *call) {
    call->request.chunk_write.size = UINT32_MAX;
}
static void spoil_chunk(struct call *call) {
    call->request.chunk_write.chunk = UINT64_MAX / 2;
}
static void spoil_bulk_size(struct call *call) {
    call->bulk_out[0].size -= 1;
}
static void spoil_bulk_count(struct call *call) {
    call->bulk_out_count = 9;
}
static void spoil_checksum_count(struct call *call) {
    call->checksum_count += 1;
}
static void spoil_checksums(struct call *call) {
    call->checksums = NULL;
}
static void spoil_edge(struct call *call) {
    call->checksums[0] ^= 1;
}
static void spoil_session(struct call *call) {
    call->header.session.value = 999;
}
static void spoil_both_sessions(struct call *call) {
    call->header.session.value = 999;
    call->request.chunk_write.capability.session = 999;
}
static void spoil_rights(struct call *call) {
    call->request.chunk_write.capability.rights = RIGHT_READ;
}
static void spoil_max_offset(struct call *call) {
    call->request.chunk_write.capability.max_offset = 2 * CHUNK + 1000;
}
static void spoil_key(struct call *call) {
    call->request.chunk_write.capability.key_number = 1;
}
static void spoil_opcode(struct call *call) {
    call->header.opcode = OP_LOOKUP;
}
static void spoil_opcode_beyond(struct call *call) {
    call->header.opcode = 60000;
}
static void spoil_class(struct call *call) {
    call->header.message_class = 77;
}

static void test_bad_writes(void **state) {
    static const struct bad table[] = {
        {"chunk size", spoil_chunk_bytes, -ERR_INVALID},
        {"small chunk size", spoil_chunk_bytes_small, -ERR_INVALID},
        {"another chunk size", spoil_other_chunk_bytes, -ERR_INVALID},
        {"end", spoil_end, -ERR_INVALID},
        {"offset", spoil_offset_wraps, -ERR_INVALID},
        {"no size", spoil_size_zero, -ERR_INVALID},
        {"size", spoil_size_large, -ERR_INVALID},
        {"chunk", spoil_chunk, -ERR_INVALID},
        {"data size", spoil_bulk_size, -ERR_MALFORMED},
        {"part count", spoil_bulk_count, -ERR_MALFORMED},
        {"checksum count", spoil_checksum_count, -ERR_MALFORMED},
        {"no checksums", spoil_checksums, -ERR_MALFORMED},
        {"checksum of an edge", spoil_edge, -ERR_CORRUPT},
        {"another's capability", spoil_session, -ERR_BAD_CAPABILITY},
        {"unknown session", spoil_both_sessions, -ERR_UNKNOWN_SESSION},
        {"rights", spoil_rights, -ERR_BAD_CAPABILITY},
        {"beyond the allowed", spoil_max_offset, -ERR_BAD_CAPABILITY},
        {"a key", spoil_key, -ERR_BAD_CAPABILITY},
        {"a message of others", spoil_opcode, -ERR_NOT_SUPPORTED},
        {"no message", spoil_opcode_beyond, -ERR_NOT_SUPPORTED},
        {"no class", spoil_class, -ERR_NOT_SUPPORTED},
    };
    struct ost_world *world = world_start(13);
    struct ost_place place = place_of(100, 9000);
    struct ost_counters before;
    struct ost_counters after;

    (void)state;
    fill(1, place.size);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    ost_counters_get(world->ost, &before);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);

        call->call.header.sequence = world->next_sequence++;
        ost_call_write(call, &place, data);
        table[i].spoil(&call->call);
        int r = ost_call_run(call);
        if (r != table[i].want) {
            printf("%s: %d\n", table[i].what, r);
        }
        assert_int_equal(r, table[i].want);
    }
    ost_counters_get(world->ost, &after);
    assert_int_equal(before.writes, after.writes);
    assert_int_equal(before.free_blocks, after.free_blocks);
    assert_int_equal(ost_world_read(world, &place, data), 0);
    ost_world_free(world);
}

static void test_bad_queries(void **state) {
    struct ost_world *world = world_start(14);
    struct ost_place place = place_of(100, 9000);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_READ);

    (void)state;
    ost_call_read(call, &place);
    call->call.bulk_in.capacity--;
    assert_int_equal(ost_call_run(call), -ERR_TOO_SMALL);
    call = ost_call_get(world, OP_CHUNK_READ);
    ost_call_read(call, &place);
    call->call.checksum_count = 2;
    assert_int_equal(ost_call_run(call), -ERR_TOO_SMALL);
    call = ost_call_get(world, OP_CHUNK_READ);
    ost_call_read(call, &place);
    call->call.request.chunk_read.capability.rights = RIGHT_WRITE;
    assert_int_equal(ost_call_run(call), -ERR_BAD_CAPABILITY);
    call = ost_call_get(world, OP_CHUNK_CUT);
    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = {17}, .chunk_bytes = 5};
    assert_int_equal(ost_call_run(call), -ERR_INVALID);
    call = ost_call_get(world, OP_CHUNK_DELETE);
    call->call.request.chunk_delete = (struct chunk_delete_request){{17}, 1, UINT64_MAX};
    assert_int_equal(ost_call_run(call), -ERR_INVALID);
    call = ost_call_get(world, OP_FSCK_LIST);
    call->call.request.fsck_list = (struct fsck_list_request){FSCK_CHUNKS, {data, 3}, 4096};
    call->call.bulk_in = (struct buffer){call->memory, 0, 4096};
    assert_int_equal(ost_call_run(call), -ERR_MALFORMED);
    call = ost_call_get(world, OP_FSCK_LIST);
    call->call.request.fsck_list = (struct fsck_list_request){FSCK_INODES, {NULL, 0}, 4096};
    call->call.bulk_in = (struct buffer){call->memory, 0, 4096};
    assert_int_equal(ost_call_run(call), -ERR_NOT_SUPPORTED);
    assert_true(ost_world_sync(world) == 0);
    ost_world_free(world);
}

/* A data file and an index that do not belong together are refused, with a line that says so. */
static void test_mixed_up(void **state) {
    struct ost_world *world = world_start(15);
    struct env *env = memory_env_env(world->env);
    struct ost_place place = place_of(0, CHUNK);
    struct env_file *file;

    (void)state;
    fill(1, CHUNK);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    ost_world_stop(world);
    world->options.target.value++;
    assert_int_equal(ost_world_open(world, problem), -ERR_NOT_OURS);
    world->options.target.value--;
    world->options.kv.directory = "elsewhere";
    world->options.kv.shared_name = "another ring";
    kv_mem_store_free(world->store);
    struct kv_mem_options store = {0};
    struct kv_mem_store *kept = world->store;
    (void)kept;
    assert_int_equal(kv_mem_store_new(&store, &world->store), 0);
    world->options.kv.base_store = world->store;
    assert_int_equal(ost_world_open(world, problem), -ERR_CORRUPT);
    assert_non_null(strstr(problem, "index"));
    world->options.data_path = "other data";
    assert_int_equal(env->ops->file_open(env, "other data", ENV_FILE_CREATE, &file), 0);
    struct env_io io = {.kind = ENV_IO_WRITE, .file = file, .buffer = data, .size = BLOCK_BYTES};
    assert_int_equal(env->ops->io_run(env, &io), 0);
    assert_int_equal(ost_world_open(world, problem), -ERR_NOT_OURS);
    world->options.kv.ring_data_bytes = 4096;
    assert_int_equal(ost_world_open(world, problem), -ERR_INVALID);
    ost_world_free(world);
}

/* A data file that is gone, however often one tries; and one that is there again, but empty. */
static void test_lost_data_file(void **state) {
    struct ost_world *world = world_start(16);
    struct env *env = memory_env_env(world->env);
    struct ost_place place = place_of(0, CHUNK);

    (void)state;
    fill(1, CHUNK);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    assert_int_equal(ost_world_sync(world), 0);
    for (int i = 0; i < 20; i++) {
        ost_world_turn(world);
    }
    ost_world_stop(world);
    assert_int_equal(env->ops->file_remove(env, "data"), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ost_world_open(world, problem), -ERR_CORRUPT);
        assert_non_null(strstr(problem, "data"));
    }
    ost_world_free(world);
}

/* However often the first start is cut short, the next one works. */
static void test_countdown_of_format(void **state) {
    bool passed = false;

    (void)state;
    for (uint64_t n = 0; !passed; n++) {
        struct ost_world *world = ost_world_new(17 + n);
        struct ost_place place = place_of(5, 70000);

        assert_true(n < 100);
        memory_env_crash_after(world->env, n);
        passed = ost_world_open(world, problem) == 0 && !memory_env_is_crashed(world->env);
        if (passed) {
            memory_env_crash_after(world->env, UINT64_MAX);
        }
        ost_world_crash(world, n % 2);
        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        fill(1, place.size);
        assert_int_equal(ost_world_write(world, &place, data), 0);
        ost_world_stop(world);
        assert_int_equal(ost_world_open(world, problem), 0);
        assert_int_equal(ost_world_read(world, &place, data), 0);
        ost_world_free(world);
    }
}

/* The blocks that one write frees are held back by the merges that others are at: nobody waits for
 * himself. */
static void test_full_with_merges(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct ost_world *world = ost_world_new(seed);
        struct ost_place place = place_of(0, CHUNK);
        int r = 0;

        world->options.data_bytes_max = 2 * MIB;
        world->options.reserve_bytes = 256 * KIB;
        world->options.cache_bytes = 0;
        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        fill(1, CHUNK);
        for (place.chunk = 0; r == 0; place.chunk++) {
            r = ost_world_write(world, &place, data);
        }
        uint64_t last = place.chunk - 1;
        assert_int_equal(ost_world_sync(world), 0);
        for (uint32_t i = 0; i < OST_CALLS_MAX; i++) {
            struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);

            place.chunk = i % last;
            place.offset = i % 2 ? 4096 * i + 7 : 0;
            place.size = i % 2 ? 100 : CHUNK;
            ost_call_write(call, &place, data);
            ost_call_start(call);
        }
        for (uint32_t i = 0; i < OST_CALLS_MAX; i++) {
            struct ost_call *call = &world->calls[i];

            for (int turn = 0; turn < 100000 && !call->answered; turn++) {
                ost_world_turn(world);
            }
            assert_true(call->answered);
            assert_int_equal(call->call.result, 0);
            call->busy = false;
        }
        (void)ost_world_fsck(world);
        ost_world_free(world);
    }
}

/* A limit below what the file has grown to stops it and takes nothing away: all is read, the room
 * in the file is used, and more than that there is not. */
static void test_smaller_limit(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct ost_world *world = ost_world_new(23);
        struct ost_place place = place_of(0, CHUNK);
        struct ost_counters counters;
        int r = 0;

        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        fill(1, CHUNK);
        for (place.chunk = 0; place.chunk < 48; place.chunk++) {
            assert_int_equal(ost_world_write(world, &place, data), 0);
        }
        assert_int_equal(ost_world_sync(world), 0);
        uint64_t size = memory_env_size(world->env, "data");
        if (how == 0) {
            ost_world_stop(world);
        } else {
            ost_world_crash(world, how == 2);
        }
        world->options.data_bytes_max = MIB;
        assert_int_equal(ost_world_open(world, problem), 0);
        for (place.chunk = 0; place.chunk < 48; place.chunk++) {
            assert_int_equal(ost_world_read(world, &place, data), 0);
            assert_int_equal(ost_world_write(world, &place, data), 0);
        }
        for (; r == 0; place.chunk++) {
            r = ost_world_write(world, &place, data);
        }
        assert_int_equal(r, -ERR_NO_SPACE);
        assert_int_equal(memory_env_size(world->env, "data"), size);
        ost_counters_get(world->ost, &counters);
        assert_int_equal(counters.block_count, size / BLOCK_BYTES);
        (void)ost_world_fsck(world);
        ost_world_delete(world, place.ino, place.generation);
        place.chunk = 0;
        assert_int_equal(ost_world_write(world, &place, data), 0);
        ost_world_free(world);
    }
}

/* A record of the index that is gone, as by a bug or a bad disk: what it was about is found out
 * before two chunks come to share a block. */
static void test_lost_bitmap(void **state) {
    struct ost_world *world = ost_world_new(19);
    struct ost_place place = place_of(0, CHUNK);
    struct kv_key first = store_owner_key(STORE_ROW_BITMAP, 0, 0);
    struct kv_key second = store_owner_key(STORE_ROW_BITMAP, 0, 1);

    (void)state;
    world->options.data_bytes_max = 40 * MIB;
    world->options.grow_bytes = 40 * MIB;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    fill(1, CHUNK);
    for (place.chunk = 0; place.chunk < 280; place.chunk++) {
        assert_int_equal(ost_world_write(world, &place, data), 0);
    }
    ost_world_stop(world);
    assert_int_equal(kv_mem_store_drop(world->store, &second), 0);
    assert_int_equal(ost_world_open(world, problem), 0);
    place.chunk = 279;
    assert_int_equal(ost_world_write(world, &place, data), -ERR_CORRUPT);
    assert_int_equal(ost_world_read(world, &place, data), 0);
    ost_world_stop(world);
    assert_int_equal(kv_mem_store_drop(world->store, &first), 0);
    while (ost_world_open(world, problem) == 0) { /* a row was not in memory: it would go on */
        ost_world_crash(world, false);
    }
    assert_non_null(strstr(problem, "bitmap"));
    ost_world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_space_is_told),        cmocka_unit_test(test_full),
        cmocka_unit_test(test_last_blocks),          cmocka_unit_test(test_growth_fails),
        cmocka_unit_test(test_growth_keeps_free),    cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damage_in_large_read), cmocka_unit_test(test_bad_writes),
        cmocka_unit_test(test_bad_queries),          cmocka_unit_test(test_mixed_up),
        cmocka_unit_test(test_lost_data_file),       cmocka_unit_test(test_countdown_of_format),
        cmocka_unit_test(test_full_with_merges),     cmocka_unit_test(test_smaller_limit),
        cmocka_unit_test(test_lost_bitmap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
