/* FUSE over io_uring, before a kernel is asked: its CPUs, and the requests that entries take. */
#include "unit.h"
#include "front/fuse/channel_uring.h"
#include <string.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_few_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
