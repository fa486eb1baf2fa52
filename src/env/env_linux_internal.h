/* What the files of the real env share. */
#pragma once
#include "base/list.h"
#include "env/env_linux.h"
#include "env/env_linux_socket.h"
#include "env/env_linux_watch.h"
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>

enum { LANE_FILE = ENV_LANE_COUNT, LANE_COUNT, LANE_THREADS_MAX = 16 };

/* A queue of blocking work and its threads. */
struct lane {
    struct env_linux *env;
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct env_work *first;
    struct env_work *last;
    bool stopping;
    unsigned thread_count;
    pthread_t threads[LANE_THREADS_MAX];
};

struct service {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    enum { SERVICE_OFF, SERVICE_STARTING, SERVICE_ON, SERVICE_FAILED } state;
    int start_result;
    bool stopping;
    struct env_service_hooks hooks;
    struct env_loop *loop;
    struct env_tick *ticks; /* in no order */
    struct env_tick *firing;
};

struct env_linux {
    struct env env;
    int root_fd;
    bool uring;
    bool refuse_fallocate;
    unsigned ring_entries;
    uint64_t spin_ns;
    pthread_mutex_t room_mutex; /* held from a look at the free space until some of it is taken */
    struct lane lanes[LANE_COUNT];
    struct service service;
    struct sockets sockets;
};

struct env_file {
    struct env_linux *env;
    int fd;
    bool direct_asked; /* alignment is the contract's, also where the medium refused O_DIRECT */
    bool read_only, block_device;
    bool in_memory; /* without a medium: reads are copies, done at once */
};

/* How far the loop's thread is on its way to sleep; see env_loop_wait. */
enum loop_state { LOOP_AWAKE, LOOP_ASLEEP, LOOP_WOKEN };
enum ring_state { RING_NONE, RING_READY, RING_REFUSED };

struct env_loop {
    struct env_linux *env;
    struct env_loop *next_of_thread;
    size_t pending_count;

    enum ring_state ring_state;
    struct io_uring ring;
    unsigned ring_limit;     /* I/O in the ring at most, so that it does not overflow the CQ */
    unsigned ring_count;     /* I/O in the ring */
    struct env_work *queued; /* I/O not yet in the ring, oldest first */
    struct env_work *queued_last;
    unsigned queued_count;

    int poll_fd;
    bool poll_armed, poll_ready;
    uint64_t poll_generation;
    int wake_fd;
    bool wake_armed;
    uint64_t wake_value;
    atomic_uint state; /* enum loop_state */
    struct watches watches;
    bool expects;
    bool wide;      /* the ring takes commands, or is to */
    int wide_errno; /* why it takes none, negative */
    struct queue commands;
    unsigned command_count; /* that are out */
    pthread_mutex_t returned_mutex;
    struct env_work *returned; /* finished on a lane, oldest first */
    struct env_work *returned_last;
    atomic_bool has_returned;
};

static inline struct env_linux *env_linux_of(struct env *env) {
    return (struct env_linux *)(void *)env;
}

/* env_linux_files.c */
int linux_file_open(struct env *env, const char *path, unsigned flags, struct env_file **ret_file);
void linux_file_close(struct env_file *file);
int linux_file_size(struct env_file *file, uint64_t *ret_size_bytes);
int linux_file_space(struct env_file *file, uint64_t *ret_free_bytes);
void linux_file_ways(const struct env_file *file, struct env_file_ways *ret_ways);
int linux_io_run(struct env *env, struct env_io *io);
int linux_directory_make(struct env *env, const char *path);
int linux_file_remove(struct env *env, const char *path);
int linux_file_rename(struct env *env, const char *from, const char *to);
/* 0 or why the request can't be right. */
int io_check(const struct env_io *io);
/* Takes the system's answer (>= 0 or -errno) to the rest of io. True: finished with
 * io->work.result; false: more is left to do. */
bool io_advance(struct env_io *io, int64_t answer);

/* env_linux_loop.c */
void linux_io_submit(struct env *env, struct env_io *io);
void linux_job_submit(struct env *env, struct env_job *job);
/* From a lane's thread: hands finished work back to its loop. */
void loop_return(struct env_loop *loop, struct env_work *work);
/* Makes the ring when there is none yet; false where io_uring is refused. */
bool loop_has_ring(struct env_loop *loop);
/* Room in the submission ring; NULL when the kernel takes nothing now. */
struct io_uring_sqe *loop_sqe(struct env_loop *loop);

/* env_linux_command.c; the low bits of what user_data says of a command, which the others are. */
enum { TAG_COMMAND = 11 };
void commands_fill(struct env_loop *loop);
unsigned command_complete(struct env_loop *loop, uint64_t user_data, int answer);

/* env_linux_lane.c */
int lane_init(struct lane *lane, struct env_linux *env, unsigned thread_count, const char *name);
void lane_deinit(struct lane *lane);
void lane_push(struct lane *lane, struct env_work *work);
/* Starts a thread with all signals blocked, so that they reach the program's own thread. */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *context);

/* env_linux_service.c */
int service_init(struct service *service);
void service_deinit(struct env_linux *env);
void linux_tick_start(struct env *env, struct env_tick *tick);
void linux_tick_stop(struct env *env, struct env_tick *tick);

/* env_linux_shared.c */
int linux_shared_open(struct env *env, const char *name, size_t size_bytes,
                      struct env_shared **ret_shared, bool *ret_created);
int linux_shared_size(struct env *env, const char *name, uint64_t *ret_size_bytes);
void *linux_shared_data(struct env_shared *shared);
void linux_shared_close(struct env_shared *shared);
int linux_shared_remove(struct env *env, const char *name);
void linux_shared_path(struct env *env, const char *name, size_t size_bytes, char *ret_path);
