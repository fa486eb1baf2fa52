/* The FUSE front-end: a mount, from its options to its end. */
#include "front/fuse/fuse.h"
#include "front/fuse/channel_memory.h"
#include "front/fuse/channel_mount.h"
#include "front/fuse/channel_thread.h"
#include "front/fuse/channel_uring.h"
#include "front/fuse/problem.h"
#include "front/fuse/request.h"
#include "front/fuse/ops.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>

enum {
    WRITE_BYTES_MIN = 64 << 10,
    WRITE_BYTES_MAX = 1 << 20,
    WRITE_BYTES_MANY = 256 << 10, /* with more threads than */
    THREADS_MANY = 32,
    REQUESTS_DEFAULT = 256,
    REQUESTS_A_THREAD = 8,
    REQUESTS_MAX = 65535,
    HANDLES_DEFAULT = 1 << 20,
    HANDLES_MAX = 1 << 26,
    THREADS_MAX = 1024,
    BACKGROUND_MAX = 64, /* that the kernel keeps in flight of reading ahead and writing back */
};

#define TIMEOUT_MAX_NS (3600 * NS_PER_S)

#define ENABLE_URING "/sys/module/fuse/parameters/enable_uring"
#define NO_URING_KERNEL                                                                            \
    "this kernel offers no FUSE over io_uring: it needs Linux 6.14 and " ENABLE_URING
#define NO_URING_DENIED                                                                            \
    "no FUSE over io_uring: " ENABLE_URING " is N, and this process may not set it"
#define NO_URING_LEFT "no FUSE over io_uring: " ENABLE_URING " is N, and tune=no leaves it as it is"
#define NO_URING_PROCESS                                                                           \
    "no FUSE over io_uring: this process gets no io_uring for it (%s), see "                       \
    "/proc/sys/kernel/io_uring_disabled"

struct fuse_mount {
    struct fuse_options options; /* defaults filled in */
    struct mount_place place;
    bool serving;
    bool tuned;                   /* the kernel's setting was changed for it */
    struct fuse_problem no_uring; /* why not, where it was not ruled out */
    struct channel_dev dev;
    struct channel_uring *uring;
    struct front front;
    struct channel_threads *threads;
};

int problem_set(struct fuse_problem *problem, int result, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(problem->text, sizeof(problem->text), format, arguments);
    va_end(arguments);
    return result;
}

static void options_complete(struct fuse_options *options) {
    if (!options->thread_count)
        options->thread_count = channel_threads_default();
    if (!options->write_bytes_max)
        options->write_bytes_max =
            options->thread_count > THREADS_MANY ? WRITE_BYTES_MANY : WRITE_BYTES_MAX;
    if (!options->requests_max)
        options->requests_max =
            MAX(options->thread_count * REQUESTS_A_THREAD, (unsigned)REQUESTS_DEFAULT);
    if (!options->handles_max)
        options->handles_max = HANDLES_DEFAULT;
}

/* The device is open, so the kernel's module is there. Where its setting can't be read, who wants
 * io_uring and nothing else hears from the kernel. */
static int channel_choose(struct fuse_mount *mount, struct fuse_problem *problem) {
    struct fuse_options *options = &mount->options;
    bool is_forced = options->channel == FUSE_CHANNEL_URING;
    bool is_known = channel_uring_is_known();

    if (options->channel == FUSE_CHANNEL_DEV || channel_uring_offered())
        return 0;
    mount->tuned = options->tune && channel_uring_offer(true);
    if (mount->tuned || (is_forced && !channel_uring_is_off()))
        return 0;
    (void)problem_set(is_forced ? problem : &mount->no_uring, 0, "%s",
                      !is_known       ? NO_URING_KERNEL
                      : options->tune ? NO_URING_DENIED
                                      : NO_URING_LEFT);
    options->channel = FUSE_CHANNEL_DEV;
    return is_forced ? -ERR_NOT_SUPPORTED : 0;
}

static int options_check(const struct fuse_options *options, struct fuse_problem *problem) {
    if (!options->client || !options->env || !options->mount_point)
        return problem_set(problem, -ERR_INVALID, "a mount needs a session and a mount point");
    if (options->thread_count > THREADS_MAX)
        return problem_set(problem, -ERR_INVALID, "FUSE threads: %u, at most %u",
                           options->thread_count, (unsigned)THREADS_MAX);
    if (options->write_bytes_max % ABI_PAGE_BYTES || options->write_bytes_max < WRITE_BYTES_MIN ||
        options->write_bytes_max > WRITE_BYTES_MAX)
        return problem_set(problem, -ERR_INVALID,
                           "FUSE write size: %u; multiples of 4096 from 65536 to 1048576",
                           options->write_bytes_max);
    if (options->requests_max <= options->thread_count || options->requests_max > REQUESTS_MAX)
        return problem_set(problem, -ERR_INVALID,
                           "FUSE requests: %u; more than the %u threads, at most %u",
                           options->requests_max, options->thread_count, (unsigned)REQUESTS_MAX);
    if (options->handles_max > HANDLES_MAX)
        return problem_set(problem, -ERR_INVALID, "FUSE handles: %u, at most %u",
                           options->handles_max, (unsigned)HANDLES_MAX);
    if (options->entry_timeout_ns > TIMEOUT_MAX_NS ||
        options->attributes_timeout_ns > TIMEOUT_MAX_NS)
        return problem_set(problem, -ERR_INVALID, "FUSE timeouts: at most an hour");
    return 0;
}

static void mount_lost(void *context) {
    struct fuse_mount *mount = context;

    mount_connection_abort(&mount->place);
}

/* A queue's, and one for the device. */
static unsigned mount_threads(const struct fuse_options *options) {
    unsigned of_queues = options->channel == FUSE_CHANNEL_DEV ? 0 : channel_threads_default() + 1;

    return MAX(options->thread_count, of_queues);
}

static void mount_wake(void *context) {
    struct fuse_mount *mount = context;

    channel_threads_wake(mount->threads);
}

static void mount_ahead(void *context, unsigned thread_index) {
    struct fuse_mount *mount = context;

    channel_threads_ahead(mount->threads, thread_index);
}

static int front_start(struct fuse_mount *mount, struct fuse_problem *problem) {
    const struct fuse_options *options = &mount->options;
    const struct front_options front = {
        .client = options->client,
        .env = options->env,
        .channel = &mount->dev.channel,
        .requests = {options->requests_max, options->write_bytes_max},
        .handles_max = options->handles_max,
        .entry_timeout_ns = options->entry_timeout_ns,
        .attributes_timeout_ns = options->attributes_timeout_ns,
        .thread_count = mount_threads(options),
        .memory_bytes = channel_memory_of_machine(),
    };
    int r = front_init(&mount->front, &front);

    if (r < 0)
        return problem_set(problem, r, "no memory for %u FUSE requests of %u bytes",
                           options->requests_max, options->write_bytes_max);
    return 0;
}

/* What io_uring needs is had before the kernel is told that it is taken; where it can't be had, or
 * is not offered, requests come by the device, unless the other was asked for. */
static int uring_prepare(struct fuse_mount *mount, struct fuse_problem *problem) {
    enum fuse_channel channel = mount->options.channel;
    int r = channel == FUSE_CHANNEL_DEV
                ? 0
                : channel_uring_new(&mount->front, &mount->dev, &mount->uring, problem);

    if (r < 0 && channel == FUSE_CHANNEL_ANY) {
        mount->no_uring = *problem;
        problem->text[0] = '\0';
        r = 0;
    }
    return r;
}

/* INIT is answered, and io_uring was not taken (result < 0), or not offered after all. */
static int uring_missed(struct fuse_mount *mount, int result, struct fuse_problem *problem) {
    bool is_forced = mount->options.channel == FUSE_CHANNEL_URING;
    struct fuse_problem *why = is_forced ? problem : &mount->no_uring;

    if (!mount->uring)
        return 0; /* That was told. */
    if (result < 0)
        (void)problem_set(why, result, NO_URING_PROCESS, err_text(result));
    else
        (void)problem_set(why, result, NO_URING_KERNEL);
    return is_forced ? -ERR_NOT_SUPPORTED : 0;
}

static int mount_negotiate(struct fuse_mount *mount, struct fuse_problem *problem) {
    int uring_result = channel_threads_uring_result(mount->threads);
    const struct negotiate_options negotiate = {
        .write_bytes_max = mount->options.write_bytes_max,
        .background_max = MIN(mount->options.requests_max, (uint32_t)BACKGROUND_MAX),
        .take_uring = mount->uring && uring_result == 0,
        .refuse_direct = mount->options.refuse_direct,
    };
    struct request_pool *pool = &mount->front.requests;
    struct fuse_request *request = request_pool_take(pool);
    int r;

    if (!request)
        return problem_set(problem, -ERR_NO_MEMORY, "no memory for a FUSE request");
    r = channel_dev_negotiate(&mount->dev, request, &negotiate, problem);
    request_pool_put(pool, request);
    if (r == 0 && !mount->front.features.uring)
        r = uring_missed(mount, uring_result, problem);
    return r;
}

/* From the mounted device to threads that serve. */
static int mount_serve(struct fuse_mount *mount, struct fuse_problem *problem) {
    struct channel_threads_options threads = {
        .front = &mount->front,
        .dev = &mount->dev,
        .fuse = &mount->options,
    };
    int r = uring_prepare(mount, problem);

    if (r < 0)
        return r;
    threads.uring = mount->uring;
    mount->threads = channel_threads_new(&threads);
    if (!mount->threads)
        return problem_set(problem, -ERR_NO_MEMORY, "no memory for the threads of the mount");
    r = channel_threads_start(mount->threads);
    if (r < 0)
        return problem_set(problem, r, "the threads of the mount could not be started: %s",
                           err_text(r));
    r = mount_negotiate(mount, problem);
    if (r < 0)
        return r;
    /* Its entries have requests of the pool. */
    if (!mount->front.features.uring)
        channel_uring_free(TAKE_PTR(mount->uring));
    channel_threads_go(mount->threads, mount->front.features.uring ? CHANNEL_URING : CHANNEL_DEV);
    return 0;
}

int fuse_mount_start(const struct fuse_options *options, struct fuse_mount **ret_mount,
                     struct fuse_problem *ret_problem) {
    struct fuse_mount *mount = calloc(1, sizeof(*mount));
    int r;

    if (!mount)
        return problem_set(ret_problem, -ERR_NO_MEMORY, "no memory for a mount");
    mount->dev.descriptor = -1;
    mount->place.spare_descriptor = -1;
    mount->dev.wake = mount_wake;
    mount->dev.ahead = mount_ahead;
    mount->dev.abort = mount_lost;
    mount->dev.context = mount;
    mount->options = *options;
    options_complete(&mount->options);
    mount->place.source = options->source ? options->source : "shoal";
    mount->place.read_only = options->read_only;
    mount->place.no_set_id = options->no_set_id;
    mount->place.no_devices = options->no_devices;
    mount->place.no_programs = options->no_programs;
    r = options_check(&mount->options, ret_problem);
    if (r == 0)
        r = mount_point_look_again(options->mount_point, &mount->place.path, ret_problem);
    if (r == 0)
        r = channel_dev_open(&mount->dev, ret_problem);
    if (r == 0)
        r = channel_choose(mount, ret_problem);
    if (r == 0)
        r = front_start(mount, ret_problem);
    if (r == 0)
        r = mount_attach(&mount->place, mount->dev.descriptor, mount->options.write_bytes_max,
                         ret_problem);
    if (r == 0)
        r = mount_serve(mount, ret_problem);
    if (mount->tuned && !mount->front.features.uring) /* It was in vain. */
        mount->tuned = !channel_uring_offer(false);
    if (r < 0) {
        fuse_mount_stop(mount);
        return r;
    }
    mount->serving = true;
    *ret_mount = mount;
    return 0;
}

int fuse_mount_check(const char *path, char **ret_path, struct fuse_problem *ret_problem) {
    struct channel_dev dev = {.descriptor = -1};
    char *place;
    int r = mount_may(path, ret_problem);

    r = r < 0 ? r : channel_dev_open(&dev, ret_problem);
    if (r < 0)
        return r;
    channel_dev_close(&dev);
    r = mount_point_look(path, &place, ret_problem);
    if (r == 0)
        *ret_path = place;
    return r;
}

/* While the connection lives its device number is ours alone; afterwards it can be anybody's. */
bool fuse_mount_is_there(struct fuse_mount *mount) {
    return channel_dev_connected(&mount->dev) && mount_is_there(&mount->place);
}

bool fuse_mount_has_died(struct fuse_mount *mount) {
    return !channel_dev_connected(&mount->dev);
}

bool fuse_mount_is_left_dead(struct fuse_mount *mount) {
    return fuse_mount_has_died(mount) && mount_is_there(&mount->place);
}

int fuse_mount_detach(struct fuse_mount *mount) {
    return channel_dev_connected(&mount->dev) ? mount_detach(&mount->place) : 0;
}

void fuse_mount_wait(struct fuse_mount *mount) {
    channel_threads_wait(mount->threads);
}

static int nobody_waits(struct shoal_request *request) {
    (void)request;
    return SHOAL_ABANDONED;
}

/* RELEASE is not waited for by close, so some may never have come. */
static void handles_release(struct fuse_mount *mount) {
    struct shoal_file *file;
    uint32_t at = 0;

    while (mount->front.handles.handles && handle_evict(&mount->front.handles, &at, &file)) {
        struct shoal_request request = {
            .operation = SHOAL_RELEASE, .file = file, .interrupted = nobody_waits};

        (void)shoal_run(mount->options.client, &request);
    }
}

void fuse_mount_stop(struct fuse_mount *mount) {
    if (!mount)
        return;
    /* One that never served can't be asked to write back; one that is mounted elsewhere too, or was
     * unmounted lazily, lives on after detach. */
    if (!mount->serving || fuse_mount_detach(mount) < 0 || channel_dev_connected(&mount->dev))
        mount_abort(&mount->place);
    channel_threads_free(mount->threads);
    channel_uring_free(mount->uring);
    handles_release(mount);
    channel_dev_close(&mount->dev);
    front_deinit(&mount->front);
    mount_place_deinit(&mount->place);
    free(mount);
}

bool fuse_mount_tuned(const struct fuse_mount *mount) {
    return mount->tuned;
}

enum fuse_channel fuse_mount_channel(const struct fuse_mount *mount) {
    return mount->front.features.uring ? FUSE_CHANNEL_URING : FUSE_CHANNEL_DEV;
}

const char *fuse_mount_channel_why(const struct fuse_mount *mount) {
    return mount->no_uring.text;
}

int fuse_mount_failure(const struct fuse_mount *mount) {
    return atomic_load(&mount->dev.failure);
}

bool fuse_mount_share_met(struct fuse_mount *mount, char ret_line[160]) {
    struct user_shares *shares = &mount->front.handles.shares;
    struct fair *fair = &mount->front.fair;
    uint32_t uid;

    if (fair_to_tell(fair, env_now_ns(mount->options.env), &uid)) {
        (void)snprintf(ret_line, 160,
                       "user %" PRIu32 " has as many requests at work as one may beside others, "
                       "%" PRIu32 " of %" PRIu32 " (mount_requests_max) or %" PRIu32
                       " large ones: more of his wait",
                       uid, fair_of_user(fair), fair->requests_max, fair->large_max);
        return true;
    }
    if (!user_shares_to_tell(shares, env_now_ns(mount->options.env), &uid))
        return false;
    (void)snprintf(ret_line, 160,
                   "user %" PRIu32 " has as many files open as one may, %" PRIu32 " of %" PRIu32
                   " (open_files_max): opens of his fail with ENFILE",
                   uid, user_shares_of_user(shares), shares->max);
    return true;
}

void fuse_mount_counters(const struct fuse_mount *mount, struct fuse_counters *ret_counters) {
    *ret_counters = (struct fuse_counters){
        .waited = atomic_load(&mount->front.fair.put_count),
        .held_back = atomic_load(&mount->front.fair.share_count),
        .listed_ahead = atomic_load(&mount->front.ahead.begun_count),
        .ahead_taken = atomic_load(&mount->front.ahead.taken_count),
    };
    channel_threads_count_aside(mount->threads, ret_counters);
}

bool fuse_mount_share_last(struct fuse_mount *mount, enum fuse_share share, uint32_t *ret_uid) {
    uint64_t last = share == FUSE_SHARE_FILES
                        ? atomic_load(&mount->front.handles.shares.last_refused)
                        : atomic_load(&mount->front.fair.last_met);

    if (last == 0)
        return false;
    *ret_uid = (uint32_t)(last - 1);
    return true;
}

unsigned fuse_mount_statistics(struct fuse_mount *mount,
                               struct fuse_operation_statistics ret_all[FUSE_OPERATIONS_MAX]) {
    unsigned count = 0;

    static_assert((int)OPERATION_COUNT <= (int)FUSE_OPERATIONS_MAX, "one for each kind");
    for (unsigned i = 0; i < OPERATION_COUNT; i++) {
        struct statistics sum = {0};

        for (unsigned t = 0; t < mount->front.thread_count; t++)
            statistics_merge(&sum, &mount->front.statistics[t][i]);
        if (sum.count == 0)
            continue;
        ret_all[count++] = (struct fuse_operation_statistics){
            .name = ops[i].name ? ops[i].name : "UNKNOWN",
            .count = sum.count,
            .error_count = sum.error_count,
            .mean_ns = sum.sum_ns / sum.count,
            .p50_ns = statistics_quantile_ns(&sum, 500),
            .p99_ns = statistics_quantile_ns(&sum, 990),
            .p999_ns = statistics_quantile_ns(&sum, 999),
        };
    }
    return count;
}
