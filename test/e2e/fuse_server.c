/* A mount of the stand-in for libshoal, served by a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "env/env_linux.h"
#include "front/fuse/fuse.h"
#include "fuse_server.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct command {
    uint64_t question, first, second;
};

struct service {
    struct shoal_client *client;
    struct env *env;
    struct fuse_mount *mount;
    int control;
    _Atomic unsigned entered_count, left_count, idle_count; /* calls of the hooks */
};

static void thread_enter(void *context) {
    struct service *service = context;

    if (env_thread_loop(service->env))
        service->entered_count++;
}

static void thread_leave(void *context) {
    struct service *service = context;

    if (env_thread_loop(service->env))
        service->left_count++;
}

/* Says now and then that something ran, so that it is called again. */
static bool thread_idle(void *context) {
    struct service *service = context;

    return service->idle_count++ % 3 == 0;
}

/* In place of the descriptor that commands name, the first one of /dev/fuse, comes one whose driver
 * knows none; the clones keep the connection. */
static uint64_t refuse(void) {
    int other = eventfd(0, EFD_CLOEXEC);
    char path[64];
    char target[64];

    for (int fd = 0; fd < 64; fd++) {
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, target, sizeof(target));

        if (size == 9 && memcmp(target, "/dev/fuse", 9) == 0)
            return dup2(other, fd) == fd ? 0 : 1;
    }
    return 1;
}

static uint64_t answer(struct service *service, const struct command *command) {
    struct fuse_operation_statistics all[FUSE_OPERATIONS_MAX];

    switch ((enum fuse_server_question)command->question) {
    case SERVER_COUNT:
        return memory_shoal_count(service->client, (enum shoal_operation)command->first);
    case SERVER_OPEN_COUNT:
        return memory_shoal_open_count(service->client);
    case SERVER_INODE_COUNT:
        return memory_shoal_inode_count(service->client);
    case SERVER_MISALIGNMENT:
        return memory_shoal_write_misalignment(service->client);
    case SERVER_FAIL:
        memory_shoal_fail(service->client, (enum shoal_operation)command->first,
                          -(int)command->second, 1);
        return 0;
    case SERVER_DETACH:
        return (uint64_t)-fuse_mount_detach(service->mount);
    case SERVER_REFUSE:
        return refuse();
    case SERVER_FAILURE:
        return (uint64_t)-fuse_mount_failure(service->mount);
    case SERVER_STATISTICS:
        return fuse_mount_statistics(service->mount, all);
    case SERVER_STOP:
        fuse_mount_stop(service->mount);
        if (service->entered_count < 1 || service->left_count != service->entered_count ||
            service->idle_count < service->entered_count)
            return UINT64_MAX;
        return memory_shoal_open_count(service->client);
    }
    return UINT64_MAX;
}

enum fuse_channel fuse_server_channel(void) {
    const char *word = getenv("SHOAL_CHANNEL");

    return word && strcmp(word, "uring") == 0 ? FUSE_CHANNEL_URING : FUSE_CHANNEL_DEV;
}

static enum fuse_channel channel_of(const struct fuse_server_options *options) {
    if (options->channel != FUSE_CHANNEL_ANY)
        return options->channel;
    return options->requests_max > 0 ? FUSE_CHANNEL_DEV : fuse_server_channel();
}

/* The process: serves until it is told to stop, or nobody is there to tell it. */
static int serve(struct service *service, const struct fuse_server_options *options,
                 const char *path) {
    const struct env_linux_options env_options = {.root = "/", .spin_ns = 5000};
    struct memory_shoal_options memory = {.mode = options->mode, .root_mode = 0777};
    struct fuse_options fuse = {
        .mount_point = path,
        .refuse_direct = options->refuse_direct,
        .thread_count = options->thread_count,
        .requests_max = options->requests_max,
        .entry_timeout_ns = options->timeout_ns,
        .attributes_timeout_ns = options->timeout_ns,
        .thread_enter = thread_enter,
        .thread_leave = thread_leave,
        .thread_idle = thread_idle,
        .channel = channel_of(options),
        .context = service,
    };
    struct fuse_problem problem;
    struct command command;
    uint64_t reply;

    if (env_linux_new(&env_options, &service->env) < 0)
        return 1;
    memory.env = fuse.env = service->env;
    service->client = fuse.client = memory_shoal_new(&memory);
    if (fuse_mount_start(&fuse, &service->mount, &problem) < 0) {
        (void)fprintf(stderr, "%s\n", problem.text);
        return 1;
    }
    do {
        reply = 0;
        if (write(service->control, &reply, sizeof(reply)) < 0 ||
            read(service->control, &command, sizeof(command)) != sizeof(command))
            return 1;
        reply = answer(service, &command);
        if (write(service->control, &reply, sizeof(reply)) != sizeof(reply))
            return 1;
    } while (command.question != SERVER_STOP);
    memory_shoal_free(service->client);
    env_linux_free(service->env);
    return 0;
}

bool fuse_server_uring_enable(void) {
    int fd = open(FUSE_ENABLE_URING, O_RDWR | O_CLOEXEC);
    char is = 0;
    bool good = fd >= 0 && read(fd, &is, 1) == 1 && (is == 'Y' || pwrite(fd, "Y", 1, 0) == 1);

    if (fd >= 0)
        (void)close(fd);
    return good;
}

const char *fuse_server_missing(void) {
    if (access("/dev/fuse", F_OK) < 0)
        return "/dev/fuse is missing";
    if (geteuid() != 0)
        return "mounting needs root";
    if (fuse_server_channel() == FUSE_CHANNEL_URING && !fuse_server_uring_enable())
        return FUSE_ENABLE_URING ", which is Linux 6.14's, can't be set";
    return NULL;
}

struct fuse_server fuse_server_start(const struct fuse_server_options *options, const char *path) {
    struct fuse_server server = {.path = "/tmp/shoal-fuse-XXXXXX"};
    int ends[2];
    uint64_t ready;

    if (path)
        (void)snprintf(server.path, sizeof(server.path), "%s", path);
    else
        assert_non_null(mkdtemp(server.path));
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    server.process = fork();
    if (server.process == 0) {
        struct service service = {.control = ends[1]};

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[0]);
        exit(serve(&service, options, server.path));
    }
    (void)close(ends[1]);
    server.control = ends[0];
    if (read(server.control, &ready, sizeof(ready)) != sizeof(ready)) {
        fuse_server_clean(&server);
        fail_msg("the server did not mount");
    }
    return server;
}

uint64_t fuse_server_ask(struct fuse_server *server, enum fuse_server_question question,
                         uint64_t first, uint64_t second) {
    const struct command command = {question, first, second};
    uint64_t reply = UINT64_MAX;
    uint64_t ready;

    assert_int_equal(write(server->control, &command, sizeof(command)), sizeof(command));
    assert_int_equal(read(server->control, &reply, sizeof(reply)), sizeof(reply));
    if (question != SERVER_STOP)
        assert_int_equal(read(server->control, &ready, sizeof(ready)), sizeof(ready));
    return reply;
}

void fuse_server_stop(struct fuse_server *server) {
    int status = -1;

    if (server->process > 0) {
        assert_int_equal(fuse_server_ask(server, SERVER_STOP, 0, 0), 0);
        assert_int_equal(waitpid(server->process, &status, 0), server->process);
        server->process = 0;
        assert_int_equal(status, 0);
    }
    assert_int_equal(rmdir(server->path), 0);
    fuse_server_clean(server);
}

void fuse_server_kill(struct fuse_server *server) {
    assert_int_equal(kill(server->process, SIGKILL), 0);
    assert_int_equal(waitpid(server->process, NULL, 0), server->process);
    server->process = 0;
}

void fuse_server_clean(struct fuse_server *server) {
    if (server->process > 0) {
        (void)kill(server->process, SIGKILL);
        (void)waitpid(server->process, NULL, 0);
        server->process = 0;
    }
    if (server->control >= 0)
        (void)close(server->control);
    server->control = -1;
    (void)umount2(server->path, MNT_DETACH | UMOUNT_NOFOLLOW);
    (void)rmdir(server->path);
}

enum { EXIT_SKIP = 77, RUN_TESTS_MAX = 256 };

int fuse_server_run(const struct CMUnitTest *tests, size_t test_count,
                    const struct fuse_server_options *ways, size_t way_count) {
    static struct CMUnitTest all[RUN_TESTS_MAX];
    static char names[RUN_TESTS_MAX][64];
    const char *missing = fuse_server_missing();

    assert_true(test_count * way_count <= RUN_TESTS_MAX);
    if (missing) {
        print_message("skipped: %s\n", missing);
        return EXIT_SKIP;
    }
    for (size_t i = 0; i < test_count * way_count; i++) {
        all[i] = tests[i % test_count];
        all[i].initial_state = (void *)(uintptr_t)&ways[i / test_count];
        (void)snprintf(names[i], sizeof(names[i]), "%s: %s", ways[i / test_count].name,
                       tests[i % test_count].name);
        all[i].name = names[i];
    }
    return _cmocka_run_group_tests("tests", all, test_count * way_count, NULL, NULL);
}
