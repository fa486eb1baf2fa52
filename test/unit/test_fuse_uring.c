/* FUSE over io_uring, before a kernel is asked: its CPUs, and the requests that entries take. */
#include "unit.h"
#include "front/fuse/channel_uring.h"
#include <string.h>
#include <sys/mman.h>

static void test_cpus(void **state) {
    static const struct {
        const char *list;
        unsigned count;
    } cases[] = {
        {"0", 1},   {"0\n", 1}, {"0-1\n", 2},  {"0-239\n", 240}, {"0-3,4-7\n", 8}, {"0,1,2\n", 3},
        {"", 0},    {"\n", 0},  {"1-3\n", 0},  {"0,2-3\n", 0},   {"0-3,8-11", 0},  {"0-70000", 0},
        {"3-0", 0}, {"x", 0},   {"0-3,\n", 0}, {"0-3,x", 0},     {"0,0-3\n", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(channel_uring_cpus(cases[i].list), cases[i].count);
}

/* With fewer requests than all needs nothing of the pool is touched, and the device serves; with
 * just enough the threads find theirs, and so does INIT. */
static void test_few_requests(void **state) {
    enum { THREADS_MORE = 3, REQUESTS_MANY = 4096 };
    struct fuse_problem problem = {""};
    struct channel_dev dev = {.descriptor = -1};
    bool is_had = false;

    (void)state;
    for (uint32_t count = 2; !is_had && count < REQUESTS_MANY; count++) {
        const struct front_options options = {
            .requests = {.requests_max = count, .write_bytes_max = 65536},
            .handles_max = 64,
            .thread_count = THREADS_MORE + count % 2};
        struct channel_uring *uring = NULL;
        struct front front;

        assert_int_equal(front_init(&front, &options), 0);
        int r = channel_uring_new(&front, &dev, &uring, &problem);
        is_had = r == 0;
        if (!is_had) {
            assert_int_equal(r, -ERR_NOT_SUPPORTED);
            assert_non_null(strstr(problem.text, "mount_requests_max"));
            assert_int_equal(index_pool_used(&front.requests.free), 0);
        } else {
            struct fuse_request *taken[THREADS_MORE + 2];

            for (unsigned i = 0; i < front.thread_count + 1; i++) {
                taken[i] = request_pool_take(&front.requests);
                assert_non_null(taken[i]);
            }
            for (unsigned i = 0; i < front.thread_count + 1; i++)
                request_pool_put(&front.requests, taken[i]);
        }
        channel_uring_free(uring);
        front_deinit(&front);
    }
    assert_true(is_had);
}

/* One whose memory is missing hides none that has its own. */
static void test_one_without_memory(void **state) {
    const struct request_pool_options options = {.requests_max = 3, .write_bytes_max = 65536};
    struct request_pool pool;

    (void)state;
    assert_int_equal(request_pool_init(&pool, &options), 0);
    struct fuse_request *first = request_pool_take(&pool);
    uint8_t *second_buffer = pool.buffers + pool.buffer_bytes;
    assert_non_null(first);
    assert_int_equal(munmap(second_buffer, pool.buffer_bytes), 0);
    bool is_missed = !request_pool_take(&pool);
    struct fuse_request *third = request_pool_take(&pool);
    bool is_missed_again = !request_pool_take(&pool);
    void *again = mmap(second_buffer, pool.buffer_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(again, second_buffer);
    assert_true(is_missed && is_missed_again);
    assert_non_null(third);
    assert_non_null(request_pool_take(&pool));
    request_pool_deinit(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_few_requests),
        cmocka_unit_test(test_one_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
