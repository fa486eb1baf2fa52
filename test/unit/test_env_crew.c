/* Threads that share a start: all is done before any leaves, and each sees what the caller did. */
#include "env_place.h"
#include <stdatomic.h>

#include "env/env_crew.h"

enum { PIECES = 1000 };

struct job {
    atomic_uint next;
    unsigned done[PIECES]; /* each written by who took it */
    unsigned sum;          /* the caller's, between wait and release */
    atomic_uint left_count;
    atomic_uint wrong_count;
};

static void take_pieces(void *context) {
    struct job *job = context;
    unsigned piece;

    while ((piece = atomic_fetch_add(&job->next, 1)) < PIECES) {
        job->done[piece]++;
    }
}

static void leave(void *context) {
    struct job *job = context;

    atomic_fetch_add(&job->wrong_count, job->sum != PIECES);
    atomic_fetch_add(&job->left_count, 1);
}

static void crew_play(unsigned thread_count) {
    struct job job = {.next = 0};
    const struct env_crew_options options = {
        .thread_count = thread_count, .work = take_pieces, .leave = leave, .context = &job};
    struct env_crew *crew;

    assert_int_equal(env_crew_new(&options, &crew), 0);
    take_pieces(&job);
    env_crew_wait(crew);
    assert_int_equal(atomic_load(&job.left_count), 0);
    for (unsigned i = 0; i < PIECES; i++) {
        assert_int_equal(job.done[i], 1);
        job.sum += job.done[i];
    }
    env_crew_release(crew);
    env_crew_free(crew);
    assert_int_equal(atomic_load(&job.left_count), thread_count);
    assert_int_equal(atomic_load(&job.wrong_count), 0);
}

static void test_all_work_is_done_before_any_leaves(void **state) {
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        crew_play(1 + i % 7);
    }
}

static void test_the_caller_alone(void **state) {
    (void)state;
    crew_play(0);
    env_crew_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_work_is_done_before_any_leaves),
        cmocka_unit_test(test_the_caller_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
