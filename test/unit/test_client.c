/* The client core against toy servers: routing, cutting, what is overlaid, order within a file,
 * conversion, limits. */
#include "client/client_internal.h"
#include "client_bench.h"
#include "wire/wire_blocks.h"

/* To a storage target when something is first asked there. */
static void test_session_begins_and_attaches_where_it_asks(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file;
    uint8_t *data = pattern(TOY_CHUNK_BYTES, 3);

    assert_int_equal(client_session(bench->client).value, TOY_SESSION);
    assert_int_equal(bench->cluster.mdt.seen[OP_SESSION_ATTACH], 1);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SESSION_ATTACH), 0);
    file = make(bench, "one chunk", RW);
    assert_int_equal(put(bench, file, 0, data, TOY_CHUNK_BYTES), TOY_CHUNK_BYTES);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SESSION_ATTACH), 1);
    assert_int_equal(put(bench, file, 0, data, TOY_CHUNK_BYTES), TOY_CHUNK_BYTES);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SESSION_ATTACH), 1);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    for (int i = 0; i < 5; i++) {
        tick(bench, 2 * NS_PER_S);
    }
    assert_int_equal(bench->cluster.manager.seen[OP_SESSION_RENEW], 5);
    assert_int_equal(bench->cluster.manager.seen[OP_MAP_GET], 1);
}

/* Of a path of any length the manager is told so much as it keeps, and two are told apart. */
static void test_origins_of_any_length(void **state) {
    enum { LONG = 5000 };
    static const size_t sizes[] = {0, 1, CLIENT_ORIGIN_BYTES, CLIENT_ORIGIN_BYTES + 1, LONG};
    struct bench *bench = *state;
    struct client_options options = {
        .env = bench->cluster.env, .incarnation = 10, .rpc = bench->client->options.rpc};
    char origin[LONG + 1];

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct shoal_client *clients[3]; /* the second is of the same origin */

        memset(origin, 'o', sizeof origin);
        origin[sizes[i]] = '\0';
        options.origin = origin;
        for (int k = 0; k < 3; k++) {
            origin[sizes[i] > 0 ? sizes[i] - 1 : 0] = sizes[i] == 0 ? '\0' : "aab"[k];
            assert_int_equal(client_new(&options, &clients[k]), 0);
            assert_int_equal(strlen(clients[k]->options.origin),
                             MIN(sizes[i], (size_t)CLIENT_ORIGIN_BYTES));
        }
        assert_string_equal(clients[0]->options.origin, clients[1]->options.origin);
        assert_true(sizes[i] == 0 ||
                    strcmp(clients[0]->options.origin, clients[2]->options.origin) != 0);
        for (int k = 0; k < 3; k++) {
            client_free(clients[k]);
        }
    }
}

static void test_small_file_stays_with_its_inode(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "small", RW);
    uint8_t back[5000];

    assert_int_equal(put(bench, file, 0, "hello", 5), 5);
    assert_int_equal(put(bench, file, 10, "world", 5), 5);
    memset(back, 1, sizeof back);
    assert_int_equal(get(bench, file, 0, back, sizeof back), 15);
    assert_memory_equal(back, "hello\0\0\0\0\0world", 15);
    assert_int_equal(get(bench, file, 3, back, 4), 4);
    assert_memory_equal(back, "lo\0\0", 4);
    assert_int_equal(get(bench, file, 15, back, 4), 0);
    assert_int_equal(get(bench, file, 1000000, back, 4), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_CHUNK_WRITE), 0);
    assert_int_equal(bench->cluster.mdt.seen[OP_INLINE_READ], 2);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* A file that an inode holds and whose size says more ends in a hole. */
static void test_inline_file_grown_by_truncation_reads_zeros(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "grown", RW);
    uint8_t back[9000];

    assert_int_equal(put(bench, file, 0, "abc", 3), 3);
    assert_int_equal(cut(bench, file, 8000), 0);
    memset(back, 1, sizeof back);
    assert_int_equal(get(bench, file, 0, back, sizeof back), 8000);
    assert_memory_equal(back, "abc\0\0", 5);
    assert_int_equal(back[7999], 0);
    assert_int_equal(get(bench, file, 6000, back, sizeof back), 2000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

static void test_conversion_keeps_what_was_there(void **state) {
    struct bench *bench = *state;
    uint8_t *data = pattern(6000, 1);
    uint8_t back[10000];

    for (int synced = 0; synced < 2; synced++) {
        struct shoal_file *file = make(bench, synced ? "second" : "first", RW);
        uint32_t syncs = toy_osts_seen(&bench->cluster, OP_SYNC);

        bench->cluster.inline_synced = synced;
        assert_int_equal(put(bench, file, 0, data, 3000), 3000);
        assert_int_equal(put(bench, file, 3500, data, 6000), 6000);
        assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC) - syncs, synced);
        assert_int_equal(get(bench, file, 0, back, sizeof back), 9500);
        assert_memory_equal(back, data, 3000);
        assert_int_equal(back[3200], 0);
        assert_memory_equal(back + 3500, data, 6000);
        assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    }
    free(data);
}

/* Every cut of a big write lands in the chunk, on the chain, that the layout says. */
static void test_big_write_is_cut_at_chunks(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "big", RW);
    uint64_t ino = ino_of(bench, file);
    size_t size = 300001;
    uint8_t *data = pattern(size, 3);
    uint8_t *back = malloc(size);
    struct pool_version pool;

    assert_true(cluster_map_pool(&bench->cluster.map, 0, &pool));
    assert_int_equal(put(bench, file, 12345, data, size), size);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_CHUNK_WRITE), 5);
    toy_chunks_read(&bench->cluster, ino, 12345, back, size);
    assert_memory_equal(back, data, size);
    for (int i = 0; i < TOY_CHUNKS; i++) {
        const struct toy_chunk *chunk = &bench->cluster.chunks[i];

        if (chunk->ino.value == ino) {
            assert_int_equal(
                chunk->target.value,
                layout_chain(&toy_file_find(&bench->cluster, ino)->layout, &pool, chunk->chunk));
        }
    }
    for (uint64_t offset = 12345; offset < 12345 + size; offset += 77777) {
        size_t left = size - (size_t)(offset - 12345);

        memset(back, 0xee, size);
        assert_int_equal(get(bench, file, offset, back, size), left);
        assert_memory_equal(back, data + (offset - 12345), left);
    }
    assert_int_equal(get(bench, file, 0, back, 12345), 12345);
    for (size_t i = 0; i < 12345; i++) {
        assert_int_equal(back[i], 0);
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* The one that all chunks of the last write came with. */
static uint64_t trace_of_write(struct bench *bench) {
    uint64_t trace = 0;

    for (int i = 0; i < TOY_OSTS; i++) {
        struct toy_server *ost = &bench->cluster.osts[i];

        if (ost->seen[OP_CHUNK_WRITE] > 0) {
            assert_true(trace == 0 || trace == ost->traces[OP_CHUNK_WRITE]);
            trace = ost->traces[OP_CHUNK_WRITE];
        }
    }
    return trace;
}

/* All calls of a request tell the same trace, those of another one another. */
static void test_calls_carry_the_trace_of_their_request(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "traced", RW);
    size_t size = 5 * TOY_CHUNK_BYTES;
    uint8_t *data = pattern(size, 3);

    assert_int_equal(put(bench, file, 0, data, size), size);
    uint64_t first = trace_of_write(bench);
    assert_int_equal(first >> 40, TOY_SESSION);
    assert_int_equal(put(bench, file, 0, data, size), size);
    uint64_t second = trace_of_write(bench);
    assert_int_equal(second >> 34, first >> 34);
    assert_true(second > first);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_true(bench->cluster.mdt.traces[OP_SETTLE] > second);
    assert_true(bench->cluster.mdt.traces[OP_CREATE] > 0);
    free(data);
}

static void test_holes_read_as_zeros(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "holes", RW);
    uint8_t *back = malloc(1000000);

    assert_int_equal(put(bench, file, 900000, "end", 3), 3);
    memset(back, 1, 1000000);
    assert_int_equal(get(bench, file, 0, back, 1000000), 900003);
    for (size_t i = 0; i < 900000; i++) {
        assert_int_equal(back[i], 0);
    }
    assert_memory_equal(back + 900000, "end", 3);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(back);
}

static int find_size(void *context, const struct shoal_entry *entry) {
    if (entry->name_bytes == 7 && memcmp(entry->name, "overlay", 7) == 0) {
        *(uint64_t *)context = entry->attributes ? entry->attributes->size : UINT64_MAX;
    }
    return 0;
}

static uint64_t size_by_readdir(struct bench *bench) {
    uint64_t size = 12345678;
    struct shoal_request open = {.operation = SHOAL_OPEN,
                                 .ino = SHOAL_INO_ROOT,
                                 .flags = SHOAL_OPEN_READ | SHOAL_OPEN_DIRECTORY};

    assert_int_equal(run(bench, &open), 0);
    struct shoal_request list = {.operation = SHOAL_READDIR,
                                 .file = open.file,
                                 .plus = 1,
                                 .entry = find_size,
                                 .entry_context = &size};
    assert_true(run(bench, &list) > 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, open.file), 0);
    return size;
}

static uint64_t blocks_by_stat(struct bench *bench, uint64_t ino) {
    struct shoal_request stat = {.operation = SHOAL_GETATTR, .ino = ino};

    assert_int_equal(run(bench, &stat), 0);
    return stat.attributes.bytes_used / BLOCK_BYTES;
}

/* One sum of what chunks have gained, told once, and shown until then. */
static void test_blocks_are_told(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "blocks", RW);
    uint64_t ino = ino_of(bench, file);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino);
    uint8_t *data = pattern(200000, 4);

    assert_int_equal(put(bench, file, 0, data, 200000), 200000);
    assert_int_equal(toy->blocks, 0);
    assert_int_equal(blocks_by_stat(bench, ino), 49);
    assert_int_equal(put(bench, file, 0, data, 100000), 100000);
    toy->attributes.bytes_used = UINT64_C(60) * BLOCK_BYTES;
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    assert_int_equal(toy->blocks, 49);
    assert_int_equal(toy->blocks_told, BLOCKS_SUM);
    assert_int_equal(put(bench, file, 200000, data, 5000), 5000);
    /* Beside an estimate, which may have counted these, too: what the size allows. */
    assert_int_equal(blocks_by_stat(bench, ino), 51);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy->blocks, 51);
    free(data);
}

/* What is not known to be all is told as that: a write that ended with an error, an older target;
 * and a truncation leaves nothing of the sums before it. */
static void test_blocks_are_unsure(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "unsure", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    uint8_t *data = pattern(200000, 4);

    assert_int_equal(put(bench, file, 0, data, 100000), 100000);
    assert_int_equal(cut(bench, file, 0), 0);
    assert_int_equal(put(bench, file, 0, data, 8192), 8192);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    assert_int_equal(toy->blocks, 2);
    assert_int_equal(toy->blocks_told, BLOCKS_SUM);
    bench->cluster.no_blocks = true;
    assert_int_equal(put(bench, file, 0, data, 8192), 8192);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy->blocks_told, BLOCKS_UNSURE);
    bench->cluster.no_blocks = false;
    file = make(bench, "failed", RW);
    toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    assert_int_equal(put(bench, file, 0, data, 8192), 8192);
    for (uint32_t i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].fail_opcode = OP_CHUNK_WRITE;
        bench->cluster.osts[i].fail_count = 1;
        bench->cluster.osts[i].fail_result = -ERR_IO;
    }
    assert_int_equal(put(bench, file, 0, data, 8192), -EIO);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy->blocks_told, BLOCKS_UNSURE);
    free(data);
}

static void test_answers_are_overlaid_until_settled(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "overlay", RW);
    uint64_t ino = ino_of(bench, file);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino);
    uint8_t *data = pattern(100000, 4);
    struct shoal_request stat = {.operation = SHOAL_GETATTR, .ino = ino};

    assert_int_equal(put(bench, file, 0, data, 100000), 100000);
    assert_int_equal(toy->attributes.size, 0);
    assert_int_equal(run(bench, &stat), 0);
    assert_int_equal(stat.attributes.size, 100000);
    assert_true(stat.attributes.mtime_ns > toy->attributes.mtime_ns);
    assert_int_equal(size_by_lookup(bench, "overlay"), 100000);
    assert_int_equal(size_by_readdir(bench), 100000);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    assert_int_equal(toy->attributes.size, 100000);
    assert_int_equal(toy->settled, 1);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    assert_int_equal(toy->settled, 1);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy->settled, 1);
    assert_int_equal(toy->write_opens, 0);
    free(data);
}

/* A lookup was answered before a size reached the server, and arrives after the file was closed:
 * it must not show the old size to somebody who has seen the write end before. */
static void test_late_answer_is_no_older_than_the_close(void **state) {
    struct bench *bench = *state;
    uint8_t *data = pattern(100000, 5);
    enum { FILES = 24 };

    for (int others = 0; others <= FILES; others += FILES) {
        char name[32];
        snprintf(name, sizeof name, "late%d", others);
        struct shoal_file *file = make(bench, name, RW);
        struct asked look;

        assert_int_equal(put(bench, file, 0, data, 100000), 100000);
        bench->cluster.mdt.hold_answers = true;
        start(bench, &look,
              (struct shoal_request){.operation = SHOAL_LOOKUP,
                                     .ino = SHOAL_INO_ROOT,
                                     .name = name,
                                     .name_bytes = strlen(name)});
        assert_false(look.done);
        bench->cluster.mdt.hold_answers = false;
        assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
        /* Others that are closed meanwhile push the first out of memory. */
        for (int i = 0; i < others * 40; i++) {
            struct shoal_request again = {
                .operation = SHOAL_OPEN, .ino = look.request.ino + 99, .flags = RW};

            assert_int_equal(run(bench, &again), 0);
            assert_int_equal(on_file(bench, SHOAL_RELEASE, again.file), 0);
        }
        toy_release(&bench->cluster.mdt, UINT32_MAX);
        assert_true(look.done);
        assert_int_equal(look.request.result, 0);
        assert_int_equal(look.request.attributes.size, 100000);
    }
    free(data);
}

static void test_explicit_time_survives_the_close(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "times", RW);
    uint64_t ino = ino_of(bench, file);
    uint8_t *data = pattern(10000, 6);
    struct shoal_request set = {.operation = SHOAL_SETATTR,
                                .file = file,
                                .set = SHOAL_SET_MTIME,
                                .attributes = {.mtime_ns = 42}};
    struct shoal_request stat = {.operation = SHOAL_GETATTR, .ino = ino};

    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    assert_int_equal(run(bench, &set), 0);
    assert_int_equal(set.attributes.mtime_ns, 42);
    assert_int_equal(set.attributes.size, 10000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(run(bench, &stat), 0);
    assert_int_equal(stat.attributes.mtime_ns, 42);
    assert_int_equal(stat.attributes.size, 10000);
    free(data);
}

static void hold_osts(struct bench *bench, bool hold) {
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].hold = hold;
    }
}

static void release_osts(struct bench *bench) {
    for (int i = 0; i < TOY_OSTS; i++) {
        toy_release(&bench->cluster.osts[i], UINT32_MAX);
    }
}

static uint32_t held_osts(struct bench *bench) {
    uint32_t sum = 0;

    for (int i = 0; i < TOY_OSTS; i++) {
        sum += bench->cluster.osts[i].held_count;
    }
    return sum;
}

static void test_appends_follow_one_another(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "append", RW | SHOAL_OPEN_APPEND);
    uint8_t *data = pattern(30000, 7);
    uint8_t back[20000];
    struct asked asked[2];

    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    hold_osts(bench, true);
    start(bench, &asked[0], write_of(file, 0, data + 10000, 5000));
    start(bench, &asked[1], write_of(file, 0, data + 15000, 5000));
    assert_int_equal(held_osts(bench), 1);
    hold_osts(bench, false);
    release_osts(bench);
    assert_true(asked[0].done && asked[1].done);
    assert_int_equal(get(bench, file, 0, back, sizeof back), 20000);
    assert_memory_equal(back, data, 20000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* Another mount truncates a small file that is written here: an append finds its end, though each
 * answer about the file came while a write was at work. */
static void test_a_small_file_is_as_short_as_others_make_it(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "short", RW);
    struct shoal_file *appending = make(bench, "short", RW | SHOAL_OPEN_APPEND);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    char back[30];

    assert_int_equal(put(bench, file, 1000, "old", 3), 3);
    toy->attributes.size = 0;
    toy->attributes.epoch = ++bench->cluster.epoch;
    assert_int_equal(put(bench, file, 0, "0123456789", 10), 10);
    assert_int_equal(put(bench, appending, 0, "abcdefghij", 10), 10);
    assert_int_equal(toy->attributes.size, 20);
    assert_int_equal(get(bench, file, 0, back, sizeof back), 20);
    assert_memory_equal(back, "0123456789abcdefghij", 20);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, appending), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

static void test_truncation_takes_its_turn(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "turn", RW);
    uint8_t *data = pattern(200000, 8);
    uint8_t *back = malloc(200000);
    struct asked before;
    struct asked truncation;
    struct asked after;

    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    hold_osts(bench, true);
    start(bench, &before, write_of(file, 0, data, 200000));
    start(bench, &truncation,
          (struct shoal_request){.operation = SHOAL_SETATTR,
                                 .file = file,
                                 .set = SHOAL_SET_SIZE,
                                 .attributes = {.size = 70000}});
    start(bench, &after, write_of(file, 100000, "after", 5));
    assert_int_equal(bench->cluster.mdt.seen[OP_SETATTR], 0);
    hold_osts(bench, false);
    release_osts(bench);
    assert_true(before.done && truncation.done && after.done);
    assert_int_equal(truncation.request.result, 0);
    assert_int_equal(get(bench, file, 0, back, 200000), 100005);
    assert_memory_equal(back, data, 70000);
    for (size_t i = 70000; i < 100000; i++) {
        assert_int_equal(back[i], 0);
    }
    assert_memory_equal(back + 100000, "after", 5);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

static void test_fsync_asks_only_where_something_was_written(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "fsync", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    uint8_t *data = pattern(200000, 9);

    assert_int_equal(put(bench, file, 0, data, 200000), 200000);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), TOY_OSTS);
    assert_int_equal(bench->cluster.mdt.seen[OP_SYNC], 1);
    assert_int_equal(toy->attributes.size, 200000);
    assert_int_equal(put(bench, file, 0, data, 10), 10);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), TOY_OSTS + 1);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), TOY_OSTS + 1);
    assert_int_equal(bench->cluster.mdt.seen[OP_SYNC], 3);

    /* What one could not sync the next one does. */
    assert_int_equal(put(bench, file, 0, data, 10), 10);
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].fail_opcode = OP_SYNC;
        bench->cluster.osts[i].fail_result = -ERR_IO;
        bench->cluster.osts[i].fail_count = 1;
    }
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), -EIO);
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].fail_count = 0;
    }
    uint32_t syncs = toy_osts_seen(&bench->cluster, OP_SYNC);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), syncs + 1);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* Whoever wrote it need not have synced it, and nobody remembers. */
static void test_fsync_after_an_open_is_about_the_whole_file(void **state) {
    struct bench *bench = *state;
    struct shoal_file *writer = make(bench, "reopened", RW);
    struct shoal_request open = {.operation = SHOAL_OPEN, .ino = ino_of(bench, writer)};
    uint8_t *data = pattern(200000, 10);

    assert_int_equal(put(bench, writer, 0, data, 200000), 200000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, writer), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), 0);
    open.flags = SHOAL_OPEN_READ;
    assert_int_equal(run(bench, &open), 0);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, open.file), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), TOY_OSTS);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, open.file), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), TOY_OSTS);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, open.file), 0);
    free(data);
}

/* The second one may not be answered before what the first one syncs is on disk. */
static void test_fsync_waits_for_what_another_syncs(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "twice", RW);
    uint8_t *data = pattern(200000, 11);
    struct asked first;
    struct asked second;

    assert_int_equal(put(bench, file, 0, data, 200000), 200000);
    hold_osts(bench, true);
    start(bench, &first, (struct shoal_request){.operation = SHOAL_FSYNC, .file = file});
    start(bench, &second, (struct shoal_request){.operation = SHOAL_FSYNC, .file = file});
    assert_false(first.done || second.done);
    hold_osts(bench, false);
    release_osts(bench);
    assert_true(first.done && second.done);
    assert_int_equal(first.request.result, 0);
    assert_int_equal(second.request.result, 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

static void test_sync_and_statfs_ask_everywhere(void **state) {
    struct bench *bench = *state;
    struct shoal_request sync = {.operation = SHOAL_SYNC};
    struct shoal_request statfs = {.operation = SHOAL_STATFS};

    assert_int_equal(run(bench, &sync), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), TOY_OSTS);
    assert_int_equal(bench->cluster.mdt.seen[OP_SYNC], 1);
    assert_int_equal(run(bench, &statfs), 0);
    assert_int_equal(statfs.statfs.bytes_total, TOY_OSTS << 20);
    assert_int_equal(statfs.statfs.files_total, 1000);
}

/* One piece for each shard: everything still gets through, in turns. */
static void test_few_pieces_suffice(void **state) {
    struct bench *bench = *state;
    uint8_t *data = pattern(1000000, 12);
    uint8_t *back = malloc(1000000);
    struct asked asked[4];
    struct client_counters counters;

    teardown(state);
    *state = bench = malloc(sizeof(struct bench));
    bench_open(bench, (struct client_options){.chunk_calls_max = 1, .readdir_buffers_max = 1});
    struct shoal_file *file = make(bench, "few", RW);
    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    hold_osts(bench, true);
    for (int i = 0; i < 4; i++) {
        start(bench, &asked[i], write_of(file, (uint64_t)i * 250000, data + i * 250000, 250000));
    }
    assert_int_equal(held_osts(bench), 1);
    while (held_osts(bench) > 0) {
        release_osts(bench);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(asked[i].done);
        assert_int_equal(asked[i].request.result, 250000);
    }
    hold_osts(bench, false);
    assert_int_equal(get(bench, file, 0, back, 1000000), 1000000);
    assert_memory_equal(back, data, 1000000);
    client_counters_get(bench->client, &counters);
    assert_true(counters.piece_waits > 4);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

static void test_allocate_raises_the_size(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "allocate", RW);
    struct shoal_request allocate = {
        .operation = SHOAL_ALLOCATE, .file = file, .offset = 10, .size = 100000};
    uint8_t *back = malloc(200000);

    assert_int_equal(put(bench, file, 0, "abc", 3), 3);
    assert_int_equal(run(bench, &allocate), 0);
    assert_int_equal(get(bench, file, 0, back, 200000), 100010);
    assert_memory_equal(back, "abc\0", 4);
    allocate.size = 50;
    assert_int_equal(run(bench, &allocate), 0);
    assert_int_equal(size_by_lookup(bench, "allocate"), 100010);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(back);
}

static int64_t allocate(struct bench *bench, struct shoal_file *file, uint32_t flags,
                        uint64_t offset, uint64_t size) {
    struct shoal_request request = {
        .operation = SHOAL_ALLOCATE, .file = file, .flags = flags, .offset = offset, .size = size};

    return run(bench, &request);
}

static int64_t seek(struct bench *bench, struct shoal_file *file, uint32_t flags, uint64_t offset) {
    struct shoal_request request = {
        .operation = SHOAL_SEEK, .file = file, .flags = flags, .offset = offset};

    return run(bench, &request);
}

enum {
    KEEP = SHOAL_KEEP_SIZE,
    PUNCH = SHOAL_KEEP_SIZE | SHOAL_PUNCH_HOLE,
    ZERO = SHOAL_ZERO_RANGE
};

static void test_ranges_are_punched_and_zeroed(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "holes", RW);
    uint8_t *data = pattern(300000, 21);
    uint8_t *back = malloc(400000);

    assert_int_equal(put(bench, file, 0, data, 3000), 3000);
    assert_int_equal(allocate(bench, file, PUNCH, 1000, 1 << 30), 0); /* with its inode */
    memset(data + 1000, 0, 2000);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_CHUNK_SPACE), 0);
    assert_int_equal(get(bench, file, 0, back, 4000), 3000);
    assert_memory_equal(back, data, 3000);
    assert_int_equal(put(bench, file, 3000, data + 3000, 297000), 297000);
    assert_int_equal(allocate(bench, file, PUNCH, 100000, 90000), 0);
    memset(data + 100000, 0, 90000);
    assert_int_equal(get(bench, file, 0, back, 400000), 300000);
    assert_memory_equal(back, data, 300000);
    assert_int_equal(allocate(bench, file, ZERO, 290000, 20000), 0);
    memset(data + 290000, 0, 10000);
    assert_int_equal(get(bench, file, 0, back, 400000), 310000);
    assert_memory_equal(back, data, 300000);
    assert_int_equal(back[305000], 0);
    assert_int_equal(size_by_lookup(bench, "holes"), 310000);
    assert_int_equal(allocate(bench, file, ZERO | KEEP, 300000, 50000), 0);
    assert_int_equal(size_by_lookup(bench, "holes"), 310000);
    assert_int_equal(allocate(bench, file, SHOAL_PUNCH_HOLE, 0, 1), -EOPNOTSUPP);
    assert_int_equal(allocate(bench, file, PUNCH | ZERO, 0, 1), -EOPNOTSUPP);
    assert_int_equal(allocate(bench, file, 8, 0, 1), -EOPNOTSUPP);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* A target that is full in the middle: what was promised before it is taken back. */
static void test_allocation_is_all_or_nothing(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "promised", RW);
    struct toy_server *full = &bench->cluster.osts[1];

    assert_int_equal(allocate(bench, file, KEEP, 0, 200000), 0);
    uint64_t before = bench->cluster.promised_bytes;
    assert_int_equal(before, 200000);
    assert_int_equal(size_by_lookup(bench, "promised"), 0);
    full->fail_opcode = OP_CHUNK_SPACE;
    full->fail_result = -ERR_NO_SPACE;
    full->fail_count = 1;
    assert_int_equal(allocate(bench, file, 0, 0, 600000), -ENOSPC);
    assert_int_equal(full->fail_count, 0);
    assert_int_equal(size_by_lookup(bench, "promised"), 0);
    /* The stand-in counts, and does not know what was promised twice; of the part that was refused
     * nothing was added. */
    assert_true(bench->cluster.promised_bytes < before);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

static void test_data_and_holes_are_found(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "sparse", RW);
    uint8_t *data = pattern(200000, 22);
    uint64_t far = 5 * TOY_CHUNK_BYTES;

    assert_int_equal(seek(bench, file, SHOAL_SEEK_DATA, 0), -ENXIO);
    assert_int_equal(put(bench, file, 0, data, 3000), 3000);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_DATA, 10), 10);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_HOLE, 10), 3000);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_DATA, 3000), -ENXIO);
    assert_int_equal(put(bench, file, far, data, 1000), 1000); /* not settled yet */
    assert_int_equal(seek(bench, file, SHOAL_SEEK_DATA, 0), 0);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_HOLE, 0), 3000);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_DATA, 3000), far);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_DATA, TOY_CHUNK_BYTES + 1), far);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_HOLE, far), far + 1000);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_HOLE, far + 1000), -ENXIO);
    assert_int_equal(put(bench, file, 0, data, 2 * TOY_CHUNK_BYTES), 2 * TOY_CHUNK_BYTES);
    assert_int_equal(seek(bench, file, SHOAL_SEEK_HOLE, 5), 2 * TOY_CHUNK_BYTES);
    assert_int_equal(seek(bench, file, 7, 5), -EINVAL);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

static void test_set_id_bits_go_with_a_write(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "setid", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    struct shoal_request mode = {.operation = SHOAL_SETATTR,
                                 .file = file,
                                 .set = SHOAL_SET_MODE,
                                 .attributes = {.mode = 06755}};
    uint8_t *data = pattern(10000, 16);

    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    assert_int_equal(run(bench, &mode), 0);
    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    assert_int_equal(toy->attributes.mode & 07777, 06755);
    struct shoal_request other = write_of(file, 0, data, 10000);
    other.identity.uid = 1000;
    assert_int_equal(run(bench, &other), 10000);
    assert_int_equal(toy->attributes.mode & 07777, 0755);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(session_begins_and_attaches_where_it_asks),
        TEST(origins_of_any_length),
        TEST(small_file_stays_with_its_inode),
        TEST(inline_file_grown_by_truncation_reads_zeros),
        TEST(conversion_keeps_what_was_there),
        TEST(big_write_is_cut_at_chunks),
        TEST(calls_carry_the_trace_of_their_request),
        TEST(holes_read_as_zeros),
        TEST(blocks_are_told),
        TEST(blocks_are_unsure),
        TEST(answers_are_overlaid_until_settled),
        TEST(late_answer_is_no_older_than_the_close),
        TEST(explicit_time_survives_the_close),
        TEST(appends_follow_one_another),
        TEST(a_small_file_is_as_short_as_others_make_it),
        TEST(truncation_takes_its_turn),
        TEST(fsync_asks_only_where_something_was_written),
        TEST(fsync_after_an_open_is_about_the_whole_file),
        TEST(fsync_waits_for_what_another_syncs),
        TEST(sync_and_statfs_ask_everywhere),
        TEST(few_pieces_suffice),
        TEST(allocate_raises_the_size),
        TEST(ranges_are_punched_and_zeroed),
        TEST(allocation_is_all_or_nothing),
        TEST(data_and_holes_are_found),
        TEST(set_id_bits_go_with_a_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
