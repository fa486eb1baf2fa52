/* Lines about slow calls: what they tell, what is beyond ten in a second, and a sync that a disk
 * holds back. */
#include "unit.h"
#include "meta_bench.h"
#include "rpc/slow_log.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct lines {
    uint32_t count;
    char last[SLOW_LOG_LINE_BYTES];
};

static void keep(void *context, const char *line) {
    struct lines *lines = context;

    lines->count++;
    (void)snprintf(lines->last, sizeof lines->last, "%s", line);
}

static struct slow_log log_to(struct lines *lines) {
    return (struct slow_log){
        .limit_ns = NS_PER_S, .target = {7}, .log = keep, .log_context = lines};
}

static struct call call_at(uint64_t ms) {
    struct call call = {.header = {.opcode = OP_CHUNK_READ, .trace_id = 0xabc},
                        .started_ns = ms * NS_PER_MS,
                        .ran_ns = (ms + 200) * NS_PER_MS,
                        .disk_ns = (ms + 500) * NS_PER_MS};

    call.request.chunk_read.capability.ino.value = 4711;
    return call;
}

static void test_what_it_tells(void **state) {
    struct lines lines = {0};
    struct slow_log slow = log_to(&lines);
    struct call call = call_at(5000);

    (void)state;
    slow_log_answer(&slow, &call, 0, 6000 * NS_PER_MS);
    assert_int_equal(lines.count, 0);
    slow_log_answer(&slow, &call, -ERR_IO, 6500 * NS_PER_MS);
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.last,
                        "target 7: slow chunk_read of inode 4711, trace abc, IO: 1500 ms, of them "
                        "waiting 200, running 300, disk 1000");
    /* Never run, so all of it was waiting; never at the disk. */
    call.ran_ns = 0;
    call.disk_ns = 0;
    slow_log_answer(&slow, &call, 0, 7000 * NS_PER_MS);
    assert_non_null(strstr(lines.last, "2000 ms, of them waiting 2000, running 0, disk 0"));
    call.ran_ns = call.started_ns;
    slow_log_answer(&slow, &call, 0, 7000 * NS_PER_MS);
    assert_non_null(strstr(lines.last, "OK: 2000 ms, of them waiting 0, running 2000, disk 0"));
    slow.limit_ns = 0;
    slow_log_answer(&slow, &call, 0, 9000 * NS_PER_MS);
    assert_int_equal(lines.count, 3);
}

static void test_ten_a_second(void **state) {
    struct lines lines = {0};
    struct slow_log slow = log_to(&lines);
    struct call call = call_at(1000);
    uint64_t now_ns = 10 * NS_PER_S;

    (void)state;
    for (int i = 0; i < 100; i++) {
        slow_log_answer(&slow, &call, 0, now_ns + (uint64_t)i * NS_PER_MS);
    }
    assert_int_equal(lines.count, SLOW_LOG_LINES_MAX);
    slow_log_tick(&slow, now_ns + NS_PER_S / 2);
    assert_int_equal(lines.count, SLOW_LOG_LINES_MAX);
    slow_log_tick(&slow, now_ns + NS_PER_S);
    assert_int_equal(lines.count, SLOW_LOG_LINES_MAX + 1);
    assert_string_equal(lines.last, "target 7: slow: 90 more, without a line");
    slow_log_tick(&slow, now_ns + 3 * NS_PER_S);
    assert_int_equal(lines.count, SLOW_LOG_LINES_MAX + 1);
    slow_log_answer(&slow, &call, 0, now_ns + 3 * NS_PER_S);
    assert_int_equal(lines.count, SLOW_LOG_LINES_MAX + 2);
}

/* The sync's I/O doesn't end before two seconds are over, as nobody pumps it. */
static void test_sync_on_slow_disk(void **state) {
    const struct bench_options options = {.seed = 3, .slow_request_ns = NS_PER_S};
    struct meta_bench *bench = bench_new(&options);
    struct call call;

    (void)state;
    bench_prepare(bench, 0, OP_MKDIR, &call);
    call.request.mkdir =
        (struct mkdir_request){.parent = INO_ROOT, .name = {(const uint8_t *)"d", 1}, .mode = 0755};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(bench->slow_line_count, 0);
    bench_prepare(bench, 0, OP_SYNC, &call);
    call.header.trace_id = 0x60007;
    bench_post(bench, &call);
    memory_env_advance(bench->world, 2 * NS_PER_S);
    assert_false(bench_is_answered(&call));
    assert_int_equal(bench_finish(bench, &call), 0);
    assert_int_equal(bench->slow_line_count, 1);
    uint64_t total, waiting, running, disk;
    assert_int_equal(sscanf(bench->slow_line,
                            "target 1: slow sync of inode 0, trace 60007, OK: %" SCNu64
                            " ms, of them waiting %" SCNu64 ", running %" SCNu64 ", disk %" SCNu64,
                            &total, &waiting, &running, &disk),
                     4);
    assert_true(total >= 2000);
    assert_int_equal(waiting + running, 0);
    assert_int_equal(disk, total);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_tells),
        cmocka_unit_test(test_ten_a_second),
        cmocka_unit_test(test_sync_on_slow_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
