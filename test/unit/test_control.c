/* The daemon's mount: its first thread ends it while requests at the control socket look at it. */
#include "cmd/control.h"
#include "local_place.h"
#include <pthread.h>
#include <sched.h>

enum { ROUNDS = 100, LOOKS = 200 };

/* Stands in for a mount: nobody looks into it here. */
struct stand_in {
    atomic_bool is_used;
};

struct desk {
    struct control control;
    atomic_bool has_it; /* the thread beside has got the mount */
};

/* Gets the mount, and is still at it long after it was taken from everybody else. */
static void *look(void *context) {
    struct desk *desk = context;
    struct fuse_mount *mount = control_mount_get(&desk->control);
    struct stand_in *stand_in = (void *)mount;

    atomic_store(&stand_in->is_used, true);
    atomic_store(&desk->has_it, true);
    while (atomic_load(&desk->control.mount)) {
        sched_yield();
    }
    for (int i = 0; i < LOOKS; i++) {
        sched_yield();
    }
    atomic_store(&stand_in->is_used, false);
    control_mount_put(&desk->control);
    return NULL;
}

static void test_taken_when_nobody_uses_it(void **state) {
    struct local_place place;
    struct desk desk = {0};

    (void)state;
    local_place_open(&place);
    desk.control.cluster = place.cluster;
    assert_null(control_mount_get(&desk.control));
    assert_null(control_mount_take(&desk.control));
    for (int round = 0; round < ROUNDS; round++) {
        struct stand_in *stand_in = calloc(1, sizeof *stand_in);
        pthread_t thread;

        assert_non_null(stand_in);
        atomic_store(&desk.control.mount, (struct fuse_mount *)(void *)stand_in);
        atomic_store(&desk.has_it, false);
        assert_int_equal(pthread_create(&thread, NULL, look, &desk), 0);
        while (!atomic_load(&desk.has_it)) {
            sched_yield();
        }
        assert_ptr_equal(control_mount_take(&desk.control), stand_in);
        assert_false(atomic_load(&stand_in->is_used));
        assert_null(control_mount_get(&desk.control));
        assert_int_equal(pthread_join(thread, NULL), 0);
        free(stand_in);
    }
    local_place_close(&place);
}

/* Requests come and go all the time, while it is taken away and made anew. */
static void *look_often(void *context) {
    struct desk *desk = context;

    while (!atomic_load(&desk->control.stop_wanted)) {
        struct stand_in *stand_in = (void *)control_mount_get(&desk->control);

        if (stand_in) {
            atomic_store(&stand_in->is_used, true);
            sched_yield();
            atomic_store(&stand_in->is_used, false);
            control_mount_put(&desk->control);
        }
    }
    return NULL;
}

static void test_taken_again_and_again(void **state) {
    struct local_place place;
    struct desk desk = {0};
    pthread_t thread;

    (void)state;
    local_place_open(&place);
    desk.control.cluster = place.cluster;
    assert_int_equal(pthread_create(&thread, NULL, look_often, &desk), 0);
    for (int round = 0; round < 10 * ROUNDS; round++) {
        struct stand_in *stand_in = calloc(1, sizeof *stand_in);

        assert_non_null(stand_in);
        atomic_store(&desk.control.mount, (struct fuse_mount *)(void *)stand_in);
        sched_yield();
        assert_ptr_equal(control_mount_take(&desk.control), stand_in);
        assert_false(atomic_load(&stand_in->is_used));
        free(stand_in);
    }
    atomic_store(&desk.control.stop_wanted, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    local_place_close(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_when_nobody_uses_it),
        cmocka_unit_test(test_taken_again_and_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
