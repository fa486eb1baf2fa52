/* Kills daemons with SIGKILL right at an acknowledgement, starts them again and compares: what was
 * acknowledged is there, what was in flight happened or didn't, nothing else is there.
 *
 *     kill SHOAL DIRECTORY MOUNT SEED ROUNDS [THREADS]      a node that serves its mount itself
 *     kill SHOAL --roles ROLE SEED ROUNDS THREADS ...       several nodes (kill_roles.h)
 *
 * Of one node: each round, threads run operations of their own choosing until one of them, at an
 * acknowledgement chosen by chance, kills the daemon. Every third round it is killed again while it
 * starts; every eighth ends with `shoal down` instead. Nothing waits between the kill and the start
 * but for the process to be gone. Prints a line a round; exit status 1 and one line when something
 * broke. */
#include "kill_daemon.h"
#include "kill_roles.h"
#include "kill_threads.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct test {
    struct kill_threads threads;
    struct kill_daemon daemon;
    struct prng prng;
    uint64_t kill_at; /* this acknowledgement; 0: never */
    uint64_t stop_at;
    atomic_ullong answered;
    uint64_t operations;
};

/* The n-th acknowledgement of the round; the one that was chosen kills. */
static void acknowledged(struct kill_threads *threads, uint64_t began_ms) {
    struct test *test = threads->context;
    uint64_t count = atomic_fetch_add(&test->answered, 1) + 1;

    (void)began_ms;
    if (count == test->kill_at) {
        atomic_store(&threads->killed, true);
        kill(test->daemon.process, SIGKILL);
    } else if (count >= test->stop_at) {
        atomic_store(&threads->stopped, true);
    }
}

static void one_round(struct test *test, unsigned round) {
    bool clean = prng_chance(&test->prng, 1, 8);
    uint64_t most = prng_chance(&test->prng, 1, 4) ? 40 : 4000;
    uint64_t count = prng_between(&test->prng, 1, most);

    test->kill_at = clean ? 0 : count;
    test->stop_at = clean ? count : UINT64_MAX;
    atomic_store(&test->answered, 0);
    atomic_store(&test->threads.killed, false);
    atomic_store(&test->threads.stopped, false);
    kill_threads_begin(&test->threads);
    kill_threads_join(&test->threads, "at work");
    kill_threads_close(&test->threads);
    if (clean) {
        kill_daemon_stop(&test->daemon);
    }
    kill_daemon_wait(&test->daemon);
    unsigned kills = 0;
    while (!clean && prng_chance(&test->prng, 1, 3)) {
        kill_daemon_start_and_kill(&test->daemon, prng_below(&test->prng, KILL_START_MS_MAX));
        kills++;
    }
    uint64_t mounted_ms = kill_daemon_start(&test->daemon);
    kill_threads_compare(&test->threads, test->daemon.mount, "after the start");
    test->operations += atomic_load(&test->answered);
    printf("round %u: %s after %llu operations%s, mounted again in %llu ms\n", round,
           clean ? "stopped" : "killed", (unsigned long long)atomic_load(&test->answered),
           kills > 0 ? ", killed again at the start" : "", (unsigned long long)mounted_ms);
    fflush(stdout);
}

int main(int argc, char **argv) {
    static struct test test;

    umask(0);
    if (argc > 2 && strcmp(argv[2], "--roles") == 0) {
        return kill_roles_main(argc, argv);
    }
    if (argc < 6) {
        fprintf(stderr, "usage: kill SHOAL DIRECTORY MOUNT SEED ROUNDS [THREADS]\n");
        return 2;
    }
    test.daemon = (struct kill_daemon){.shoal = argv[1], .directory = argv[2], .mount = argv[3]};
    uint64_t seed = strtoull(argv[4], NULL, 0);
    unsigned rounds = (unsigned)strtoul(argv[5], NULL, 0);
    test.threads.count = argc > 6 ? (unsigned)strtoul(argv[6], NULL, 0) : 4;
    test.threads.count = MIN(test.threads.count, (unsigned)KILL_THREADS_MAX);
    test.threads.acknowledged = acknowledged;
    test.threads.context = &test;
    prng_init(&test.prng, seed);
    kill_take_along(&test.daemon.process);
    kill_daemon_start(&test.daemon);
    kill_threads_make(&test.threads, test.daemon.mount, &test.prng);
    for (unsigned round = 1; round <= rounds; round++) {
        one_round(&test, round);
    }
    kill_daemon_stop(&test.daemon);
    printf("seed %llu: %u rounds, %llu operations, all that was acknowledged is there\n",
           (unsigned long long)seed, rounds, (unsigned long long)test.operations);
    return 0;
}
