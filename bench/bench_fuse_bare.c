/* Mounts a file system that answers from a table in memory, through our own channel: the limit of
 * what a file system behind it can reach. Ends with SIGINT, SIGTERM or umount and prints, per kind
 * of request, how many there were and how long they took.
 *
 *     bench_fuse_bare MOUNT_POINT [threads=N] [requests=N] [timeout_ms=N] [mode=inline|job|thread]
 *                     [channel=any|dev|uring] [cached] */
#include "env/env_linux.h"
#include "front/fuse/fuse.h"
#include "memory_shoal.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <pthread.h>

struct arguments {
    struct fuse_options fuse;
    struct memory_shoal_options memory;
};

static bool number_parse(const char *word, const char *key, unsigned long *ret_number) {
    size_t key_bytes = strlen(key);
    char *end;

    if (strncmp(word, key, key_bytes) != 0 || word[key_bytes] != '=')
        return false;
    errno = 0;
    *ret_number = strtoul(word + key_bytes + 1, &end, 10);
    return errno == 0 && *end == 0 && end != word + key_bytes + 1;
}

static bool argument_parse(struct arguments *arguments, const char *word) {
    unsigned long number;

    if (number_parse(word, "threads", &number))
        arguments->fuse.thread_count = (unsigned)number;
    else if (number_parse(word, "requests", &number))
        arguments->fuse.requests_max = (uint32_t)number;
    else if (number_parse(word, "timeout_ms", &number))
        arguments->fuse.entry_timeout_ns = arguments->fuse.attributes_timeout_ns =
            number * NS_PER_MS;
    else if (strcmp(word, "mode=inline") == 0)
        arguments->memory.mode = MEMORY_SHOAL_INLINE;
    else if (strcmp(word, "mode=job") == 0)
        arguments->memory.mode = MEMORY_SHOAL_JOB;
    else if (strcmp(word, "mode=thread") == 0)
        arguments->memory.mode = MEMORY_SHOAL_THREAD;
    else if (strcmp(word, "channel=any") == 0)
        arguments->fuse.channel = FUSE_CHANNEL_ANY;
    else if (strcmp(word, "channel=dev") == 0)
        arguments->fuse.channel = FUSE_CHANNEL_DEV;
    else if (strcmp(word, "channel=uring") == 0)
        arguments->fuse.channel = FUSE_CHANNEL_URING;
    else if (strcmp(word, "cached") == 0)
        arguments->fuse.refuse_direct = true;
    else
        return false;
    return true;
}

static void statistics_print(struct fuse_mount *mount) {
    struct fuse_operation_statistics all[FUSE_OPERATIONS_MAX];
    unsigned count = fuse_mount_statistics(mount, all);

    for (unsigned i = 0; i < count; i++)
        printf("%-12s %10" PRIu64 " errors %8" PRIu64 " mean %8" PRIu64 " p50 %8" PRIu64
               " p99 %8" PRIu64 " p99.9 %8" PRIu64 " ns\n",
               all[i].name, all[i].count, all[i].error_count, all[i].mean_ns, all[i].p50_ns,
               all[i].p99_ns, all[i].p999_ns);
}

/* Detaches upon a signal; the mount's end by umount is seen by main. */
static void *signals_wait(void *context) {
    struct fuse_mount *mount = context;
    sigset_t signals;
    int number;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    do {
        if (sigwait(&signals, &number) != 0)
            break;
    } while (fuse_mount_detach(mount) < 0);
    return NULL;
}

static int serve(struct arguments *arguments) {
    struct fuse_mount *mount;
    struct fuse_problem problem;
    pthread_t thread;

    arguments->fuse.client = memory_shoal_new(&arguments->memory);
    if (fuse_mount_start(&arguments->fuse, &mount, &problem) < 0) {
        fprintf(stderr, "bench_fuse_bare: %s\n", problem.text);
        memory_shoal_free(arguments->fuse.client);
        return 1;
    }
    if (pthread_create(&thread, NULL, signals_wait, mount) == 0)
        pthread_detach(thread);
    printf("mounted\n");
    fflush(stdout);
    fuse_mount_wait(mount);
    statistics_print(mount);
    fflush(stdout);
    /* The thread of the signals may still look at the mount, so the process ends with it. */
    _exit(0);
}

int main(int argc, char **argv) {
    struct arguments arguments = {
        .fuse = {.entry_timeout_ns = NS_PER_S, .attributes_timeout_ns = NS_PER_S},
        .memory = {.root_mode = 0777},
    };
    const struct env_linux_options env_options = {.root = "/", .spin_ns = 5000};
    sigset_t signals;

    for (int i = 2; i < argc; i++)
        if (!argument_parse(&arguments, argv[i])) {
            fprintf(stderr, "bench_fuse_bare: no such argument: %s\n", argv[i]);
            return 2;
        }
    if (argc < 2) {
        fprintf(stderr, "usage: bench_fuse_bare MOUNT_POINT [threads=N] [requests=N] "
                        "[timeout_ms=N] [mode=inline|job|thread] "
                        "[channel=any|dev|uring] [cached]\n");
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    arguments.fuse.mount_point = argv[1];
    if (env_linux_new(&env_options, &arguments.fuse.env) < 0) {
        fprintf(stderr, "bench_fuse_bare: no threads\n");
        return 1;
    }
    arguments.memory.env = arguments.fuse.env;
    return serve(&arguments);
}
