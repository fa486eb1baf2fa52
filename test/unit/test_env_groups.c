/* Groups of processes, as /proc says. */
#include "unit.h"
#include "env/env_groups.h"
#include <grp.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_own_groups(void **state) {
    gid_t want[1024];
    uint32_t groups[1024];
    size_t count;
    int want_count = getgroups(1024, want);

    (void)state;
    assert_true(want_count >= 0);
    assert_int_equal(env_groups_get((int)getpid(), 1024, groups, &count), 0);
    assert_int_equal(count, want_count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(groups[i], want[i]);
}

static void test_no_more_than_asked_for(void **state) {
    static const gid_t many[] = {11, 4294967294, 33, 44};
    uint32_t groups[3] = {0, 0, 77};
    size_t count;
    int ready[2];
    char byte;
    pid_t child;
    int r;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        bool set = setgroups(4, many) == 0 && write(ready[1], "x", 1) == 1;

        (void)close(ready[1]);
        (void)pause();
        _exit(set ? 0 : 1);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    r = env_groups_get((int)child, 2, groups, &count);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(r, 0);
    assert_int_equal(count, 4);
    assert_int_equal(groups[0], 11);
    assert_int_equal(groups[1], 33);
    assert_int_equal(groups[2], 77);

    /* Gone by now. */
    assert_int_equal(env_groups_get((int)child, 2, groups, &count), -ERR_NOT_FOUND);
    assert_int_equal(env_groups_get(0, 2, groups, &count), -ERR_NOT_FOUND);
    (void)close(ready[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_groups),
        cmocka_unit_test(test_no_more_than_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
