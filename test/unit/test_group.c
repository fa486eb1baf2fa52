#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "meta_bench.h"
#include <string.h>
#include <stdio.h>
static struct bytes B(const char *s) { return (struct bytes){(const uint8_t*)s, strlen(s)}; }
static void test_smoke(void **state) {
    (void)state;
    struct bench_options o = {.seed = 1, .cold_per_mille = 300};
    struct meta_bench *b = bench_new(&o);
    struct call c;
    bench_prepare(b, 0, OP_LOOKUP, &c);
    c.request.lookup.parent = INO_ROOT; c.request.lookup.name = B("a");
    assert_int_equal(bench_run(b, &c), -ERR_NOT_FOUND);
    bench_prepare(b, 0, OP_CREATE, &c);
    c.request.create.parent = INO_ROOT; c.request.create.name = B("a"); c.request.create.mode = 0644; c.request.create.open_flags = OPEN_READ|OPEN_WRITE;
    assert_int_equal(bench_run(b, &c), 0);
    struct ino ino = c.reply.create.attributes.ino;
    printf("ino %llx\n", (unsigned long long)ino.value);
    bench_prepare(b, 0, OP_INLINE_WRITE, &c);
    c.request.inline_write.ino = ino; c.request.inline_write.data = B("hello"); c.request.inline_write.offset = 3000;
    assert_int_equal(bench_run(b, &c), 0);
    assert_int_equal(c.reply.inline_write.attributes.size, 3005);
    bench_prepare(b, 0, OP_INLINE_READ, &c);
    c.request.inline_read.ino = ino;
    assert_int_equal(bench_run(b, &c), 0);
    assert_int_equal(c.bulk_in.size, 3005);
    assert_memory_equal(c.bulk_in.data + 3000, "hello", 5);
    bench_restart(b, false);
    bench_prepare(b, 0, OP_LOOKUP, &c);
    c.request.lookup.parent = INO_ROOT; c.request.lookup.name = B("a");
    assert_int_equal(bench_run(b, &c), -ERR_STALE_TERM);
    for (int i = 0; i < BENCH_SESSIONS; i++) bench_attach(b, i);
    bench_prepare(b, 0, OP_LOOKUP, &c);
    c.request.lookup.parent = INO_ROOT; c.request.lookup.name = B("a");
    assert_int_equal(bench_run(b, &c), 0);
    bench_prepare(b, 0, OP_READDIR, &c);
    c.request.readdir.ino = INO_ROOT; c.request.readdir.bytes_max = 4096; c.request.readdir.plus = 1;
    assert_int_equal(bench_run(b, &c), 0);
    printf("bulk %zu\n", c.bulk_in.size);
    bench_prepare(b, 0, OP_UNLINK, &c);
    c.request.unlink.parent = INO_ROOT; c.request.unlink.name = B("a");
    assert_int_equal(bench_run(b, &c), 0);
    bench_prepare(b, 0, OP_SYNC, &c);
    assert_int_equal(bench_run(b, &c), 0);
    bench_stop_and_start(b);
    bench_free(b);
}
int main(void) { const struct CMUnitTest t[] = {cmocka_unit_test(test_smoke)}; return cmocka_run_group_tests(t, NULL, NULL); }
