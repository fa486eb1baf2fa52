/* The real env itself: clocks, randomness, the table, start and stop. */
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { RING_ENTRIES_DEFAULT = 128, READ_THREADS_DEFAULT = 2, FILE_THREADS_WITHOUT_URING = 4 };
enum { STREAM_LIMIT_DEFAULT = 8192 };

static uint64_t clock_ns(clockid_t clock_id) {
    struct timespec now;

    clock_gettime(clock_id, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t linux_now_ns(struct env *env) {
    (void)env;
    return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t linux_wall_ns(struct env *env) {
    (void)env;
    return clock_ns(CLOCK_REALTIME);
}

static void linux_random(struct env *env, void *data, size_t size_bytes) {
    uint8_t *to = data;

    (void)env;
    while (size_bytes > 0) {
        ssize_t got = getrandom(to, MIN(size_bytes, (size_t)256), 0);

        /* Up to 256 bytes getrandom fails only when a signal came before the pool was ready. */
        assert(got > 0 || errno == EINTR);
        if (got > 0) {
            to += got;
            size_bytes -= (size_t)got;
        }
    }
}

static int hex_digit(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The kernel prints a UUID; any other text, or none, leaves zeros where digits are missing. */
static void linux_boot_id(struct env *env, uint8_t ret_id[16]) {
    char text[64] = {0};
    unsigned digit_count = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

    (void)env;
    if (fd >= 0) {
        close(fd);
    }
    memset(ret_id, 0, 16);
    for (ssize_t i = 0; i < got && digit_count < 32; i++) {
        int value = hex_digit(text[i]);

        if (value >= 0) {
            ret_id[digit_count / 2] |= (uint8_t)(value << (digit_count % 2 ? 0 : 4));
            digit_count++;
        }
    }
}

static const struct env_ops linux_ops = {
    .now_ns = linux_now_ns,
    .wall_ns = linux_wall_ns,
    .random = linux_random,
    .file_open = linux_file_open,
    .file_close = linux_file_close,
    .file_size = linux_file_size,
    .file_space = linux_file_space,
    .file_ways = linux_file_ways,
    .io_run = linux_io_run,
    .directory_make = linux_directory_make,
    .file_remove = linux_file_remove,
    .file_rename = linux_file_rename,
    .io_submit = linux_io_submit,
    .job_submit = linux_job_submit,
    .shared_open = linux_shared_open,
    .shared_size = linux_shared_size,
    .shared_data = linux_shared_data,
    .shared_close = linux_shared_close,
    .shared_remove = linux_shared_remove,
    .shared_path = linux_shared_path,
    .boot_id = linux_boot_id,
    .tick_start = linux_tick_start,
    .tick_stop = linux_tick_stop,
};

static bool uring_works(void) {
    struct io_uring ring;

    if (io_uring_queue_init(2, &ring, 0) != 0) {
        return false;
    }
    /* Without these a wait can't have a timeout of its own, and completions could be dropped. */
    unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;
    bool works = (ring.features & needed) == needed;
    io_uring_queue_exit(&ring);
    return works;
}

static int root_open(struct env_linux *env, const char *root) {
    env->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return env->root_fd < 0 ? err_from_errno(errno) : 0;
}

static int lanes_start(struct env_linux *env, unsigned read_threads) {
    const struct {
        const char *name;
        unsigned thread_count;
    } lanes[LANE_COUNT] = {
        [ENV_LANE_WRITE] = {"shoal-write", 1},
        [ENV_LANE_READ] = {"shoal-read", read_threads},
        [LANE_FILE] = {"shoal-file", env->uring ? 1 : FILE_THREADS_WITHOUT_URING},
    };

    for (unsigned i = 0; i < LANE_COUNT; i++) {
        int r = lane_init(&env->lanes[i], env, lanes[i].thread_count, lanes[i].name);

        if (r) {
            return r;
        }
    }
    return 0;
}

int env_linux_new(const struct env_linux_options *options, struct env **ret_env) {
    struct env_linux *env = calloc(1, sizeof *env);
    int r;

    if (!env) {
        return -ERR_NO_MEMORY;
    }
    env->env.ops = &linux_ops;
    env->env.streams = &linux_stream_ops;
    sockets_init(&env->sockets,
                 options->stream_limit ? options->stream_limit : STREAM_LIMIT_DEFAULT);
    pthread_mutex_init(&env->room_mutex, NULL);
    env->ring_entries = options->ring_entries ? options->ring_entries : RING_ENTRIES_DEFAULT;
    env->spin_ns = options->spin_ns;
    env->refuse_fallocate = options->refuse_fallocate;
    env->uring = !options->refuse_uring && uring_works();
    unsigned read_threads = options->read_threads ? options->read_threads : READ_THREADS_DEFAULT;
    r = root_open(env, options->root);
    if (!r) {
        r = service_init(&env->service);
    }
    if (!r) {
        r = lanes_start(env, MIN(read_threads, (unsigned)LANE_THREADS_MAX));
    }
    if (r) {
        env_linux_free(&env->env);
        return r;
    }
    *ret_env = &env->env;
    return 0;
}

void env_linux_free(struct env *base) {
    if (!base) {
        return;
    }
    struct env_linux *env = env_linux_of(base);
    service_deinit(env);
    for (unsigned i = 0; i < LANE_COUNT; i++) {
        lane_deinit(&env->lanes[i]);
    }
    if (env->root_fd >= 0) {
        close(env->root_fd);
    }
    sockets_deinit(&env->sockets);
    pthread_mutex_destroy(&env->room_mutex);
    free(env);
}

bool env_linux_has_uring(struct env *env) {
    return env_linux_of(env)->uring;
}

int env_linux_root(struct env *env) {
    return env_linux_of(env)->root_fd;
}
