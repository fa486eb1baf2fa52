/* INIT: what is taken of what a kernel offers. */

#include "unit.h"
#include "front/fuse/negotiate.h"

static const struct negotiate_options options = {.write_bytes_max = 1 << 20, .background_max = 64};

static uint64_t flags_of(const struct abi_init_out *out) {
    return out->flags | (uint64_t)out->flags_high << 32;
}

static struct abi_init_in kernel(uint32_t minor, uint64_t flags) {
    return (struct abi_init_in){.major = 7,
                                .minor = minor,
                                .readahead_bytes_max = 131072,
                                .flags = (uint32_t)flags,
                                .flags_high = (uint32_t)(flags >> 32)};
}

static void test_a_kernel_that_offers_all(void **state) {
    struct abi_init_in in = kernel(45, UINT64_MAX);
    struct abi_init_out out;
    struct features features;

    (void)state;
    assert_int_equal(negotiate(&options, &in, sizeof(in), &out, &features), 0);
    assert_int_equal(out.major, 7);
    assert_int_equal(out.minor, 45);
    assert_int_equal(out.write_bytes_max, 1 << 20);
    assert_int_equal(out.pages_max, 256);
    assert_int_equal(out.readahead_bytes_max, 131072);
    assert_int_equal(out.background_max, 64);
    assert_int_equal(out.congestion_threshold, 48);
    assert_int_equal(flags_of(&out) & ABI_INIT_WRITEBACK_CACHE, 0);
    assert_int_equal(flags_of(&out) & (1 << 1 | 1 << 10), 0); /* locks */
    assert_int_equal(flags_of(&out) & 1 << 23, 0);            /* cached links */
    assert_true(flags_of(&out) & ABI_INIT_DIRECT_MMAP);
    assert_true(flags_of(&out) & ABI_INIT_EXPORT);
    assert_true(features.direct);
    assert_true(features.parallel_writes);

    in.minor = 99;
    assert_int_equal(negotiate(&options, &in, sizeof(in), &out, &features), 0);
    assert_int_equal(out.minor, 45);
}

/* Linux 6.1: no mapping of direct files, so no direct I/O; and nothing that wasn't offered. */
static void test_an_older_kernel(void **state) {
    uint64_t offered = (UINT64_C(1) << 36) - 1;
    struct abi_init_in in = kernel(37, offered & ~(uint64_t)ABI_INIT_READDIRPLUS_AUTO);
    struct abi_init_out out;
    struct features features;

    (void)state;
    assert_int_equal(negotiate(&options, &in, sizeof(in), &out, &features), 0);
    assert_int_equal(out.minor, 37);
    assert_false(features.direct);
    assert_false(features.parallel_writes);
    assert_int_equal(flags_of(&out) & ~(uint64_t)(in.flags | (uint64_t)in.flags_high << 32), 0);

    /* Kernels before 5.17 send 16 bytes; what lies behind is no offer. */
    in = kernel(34, UINT64_MAX & ~(uint64_t)ABI_INIT_EXTENDED);
    assert_int_equal(negotiate(&options, &in, 16, &out, &features), 0);
    assert_int_equal(out.flags_high, 0);
    in = kernel(34, UINT64_MAX);
    assert_int_equal(negotiate(&options, &in, 16, &out, &features), 0);
    assert_int_equal(out.flags_high, 0);
}

/* The kernel counts in its own pages, and wants of an entry of io_uring room for all of them. */
static void test_large_pages(void **state) {
    struct negotiate_options large = options;
    struct abi_init_in in = kernel(45, UINT64_MAX);
    struct abi_init_out out;
    struct features features;

    (void)state;
    large.page_bytes = 65536;
    assert_int_equal(negotiate(&large, &in, sizeof(in), &out, &features), 0);
    assert_int_equal(out.pages_max * large.page_bytes, features.write_bytes_max);
    large.write_bytes_max = 65536 + 4096;
    assert_int_equal(negotiate(&large, &in, sizeof(in), &out, &features), 0);
    assert_int_equal(out.pages_max, 1);
}

static void test_direct_can_be_refused(void **state) {
    struct negotiate_options cached = options;
    struct abi_init_in in = kernel(45, UINT64_MAX);
    struct abi_init_out out;
    struct features features;

    (void)state;
    cached.refuse_direct = true;
    assert_int_equal(negotiate(&cached, &in, sizeof(in), &out, &features), 0);
    assert_int_equal(flags_of(&out) & ABI_INIT_DIRECT_MMAP, 0);
    assert_false(features.direct);
}

static void test_refusals(void **state) {
    struct abi_init_in in = kernel(45, UINT64_MAX);
    struct abi_init_out out = {0};
    struct features features;

    (void)state;
    assert_int_equal(negotiate(&options, &in, 15, &out, &features), -ERR_MALFORMED);
    assert_int_equal(negotiate(&options, &in, 0, &out, &features), -ERR_MALFORMED);
    in.minor = 30;
    assert_int_equal(negotiate(&options, &in, sizeof(in), &out, &features), -ERR_NOT_SUPPORTED);
    in = kernel(45, UINT64_MAX & ~(uint64_t)ABI_INIT_ATOMIC_TRUNCATE);
    assert_int_equal(negotiate(&options, &in, sizeof(in), &out, &features), -ERR_NOT_SUPPORTED);
    in = kernel(45, UINT64_MAX);
    in.major = 6;
    assert_int_equal(negotiate(&options, &in, sizeof(in), &out, &features), -ERR_NOT_SUPPORTED);
    assert_int_equal(out.major, 0);

    /* A later protocol is told ours and asks again. */
    in.major = 8;
    assert_int_equal(negotiate(&options, &in, sizeof(in), &out, &features), -ERR_CONFLICT);
    assert_int_equal(out.major, 7);
    assert_int_equal(out.minor, 45);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kernel_that_offers_all),
        cmocka_unit_test(test_an_older_kernel),
        cmocka_unit_test(test_large_pages),
        cmocka_unit_test(test_direct_can_be_refused),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
