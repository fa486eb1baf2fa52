/* A mount's life: refusals, stopping while in use, killed servers, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "env/env_linux.h"
#include "front/fuse/channel_way.h"
#include "front/fuse/fuse.h"
#include "fuse_server.h"

enum { EXIT_SKIP = 77 };

static const struct fuse_server_options plain = {.name = "plain", .mode = MEMORY_SHOAL_INLINE};
static struct fuse_server server;

static int tear_down(void **state) {
    (void)state;
    fuse_server_clean(&server);
    return 0;
}

static struct stat stat_of(const char *path) {
    struct stat attributes;

    assert_int_equal(stat(path, &attributes), 0);
    return attributes;
}

static void file_write(const char *folder, const char *name) {
    char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(close(fd), 0);
}

static void test_mount_and_unmount(void **state) {
    struct stat below;
    struct stat above;

    (void)state;
    server = fuse_server_start(&plain, NULL);
    above = stat_of(server.path);
    below = stat_of("/tmp");
    assert_true(above.st_dev != below.st_dev);
    assert_int_equal(above.st_ino, 1);
    file_write(server.path, "file");
    assert_true(fuse_server_ask(&server, SERVER_STATISTICS, 0, 0) > 3);
    fuse_server_stop(&server);
}

/* Detaching waits for nobody and takes nothing from anybody. */
static void test_detach_while_in_use(void **state) {
    char path[128];
    int fd;

    (void)state;
    server = fuse_server_start(&plain, NULL);
    file_write(server.path, "file");
    (void)snprintf(path, sizeof(path), "%s/file", server.path);
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fuse_server_ask(&server, SERVER_DETACH, 0, 0), ERR_IN_USE);
    assert_int_equal(pwrite(fd, "y", 1, 0), 1);
    assert_int_equal(close(fd), 0);
    assert_int_equal(fuse_server_ask(&server, SERVER_DETACH, 0, 0), 0);
    assert_true(stat_of(server.path).st_dev == stat_of("/tmp").st_dev);
    fuse_server_stop(&server);
}

/* What the kernel had open is released, and programs get errors instead of waiting. */
static void test_stop_while_in_use(void **state) {
    char path[128];
    int fd;

    (void)state;
    server = fuse_server_start(&plain, NULL);
    file_write(server.path, "file");
    (void)snprintf(path, sizeof(path), "%s/file", server.path);
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    fuse_server_stop(&server);
    assert_int_equal(pwrite(fd, "y", 1, 0), -1);
    assert_int_equal(errno, ENOTCONN);
    (void)close(fd);
}

/* umount -l hides a mount that lives on with its users; stopping ends it all the same. */
static void test_stop_after_lazy_unmount(void **state) {
    char path[128];
    int fd;

    (void)state;
    server = fuse_server_start(&plain, NULL);
    file_write(server.path, "file");
    (void)snprintf(path, sizeof(path), "%s/file", server.path);
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(umount2(server.path, MNT_DETACH), 0);
    assert_int_equal(pwrite(fd, "y", 1, 0), 1);
    fuse_server_stop(&server);
    assert_int_equal(pwrite(fd, "y", 1, 0), -1);
    assert_int_equal(errno, ENOTCONN);
    (void)close(fd);
}

/* What others mounted over ours isn't ours to take. */
static void test_stop_under_another_mount(void **state) {
    struct stat above;

    (void)state;
    server = fuse_server_start(&plain, NULL);
    assert_int_equal(umount2(server.path, 0), 0);
    assert_int_equal(mount("none", server.path, "tmpfs", 0, NULL), 0);
    above = stat_of(server.path);
    assert_int_equal(fuse_server_ask(&server, SERVER_STOP, 0, 0), 0);
    assert_true(stat_of(server.path).st_dev == above.st_dev);
    assert_int_equal(umount2(server.path, 0), 0);
}

/* A ring may hold the channel for a moment longer than its process lived: what is asked until then
 * is cut off under way, and by then the connection is over. */
static void assert_dead(const char *path) {
    struct stat attributes;
    int r;

    do {
        r = stat(path, &attributes);
    } while (r < 0 && (errno == ECONNABORTED || errno == ECANCELED));
    assert_int_equal(r, -1);
    assert_int_equal(errno, ENOTCONN);
}

/* Whoever mounts while a killed server's connection ends is told that it is there, or clears it,
 * whatever error the kernel has for what it asks in that moment. */
static void test_server_is_cleared_while_it_ends(void **state) {
    enum { ROUNDS = 40 };

    (void)state;
    server = fuse_server_start(&plain, NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct fuse_problem problem = {0};
        char *place = NULL;
        int r;

        assert_int_equal(kill(server.process, SIGKILL), 0);
        while ((r = fuse_mount_check(server.path, &place, &problem)) == -ERR_IN_USE)
            assert_non_null(strstr(problem.text, "is mounted there already"));
        if (r < 0)
            fail_msg("round %u: %s", i, problem.text);
        free(place);
        assert_int_equal(waitpid(server.process, NULL, 0), server.process);
        assert_int_equal(close(server.control), 0);
        server = fuse_server_start(&plain, server.path);
    }
    fuse_server_stop(&server);
}

/* Until the new one is there, nobody meets the directory beneath. */
static void test_killed_server_is_cleared(void **state) {
    struct fuse_problem problem = {0};
    struct fuse_server second;
    struct stat attributes;
    char *place;

    (void)state;
    server = fuse_server_start(&plain, NULL);
    file_write(server.path, "file");
    fuse_server_kill(&server);
    assert_dead(server.path);
    assert_int_equal(fuse_mount_check(server.path, &place, &problem), 0);
    assert_string_equal(place, server.path);
    free(place);
    assert_dead(server.path);
    second = fuse_server_start(&plain, server.path);
    assert_int_equal(stat_of(server.path).st_ino, 1);
    fuse_server_stop(&second);
    assert_int_equal(stat(server.path, &attributes), -1);
}

/* One on top of the other: all go, or none, if one of them isn't ours. */
static void test_killed_servers_are_cleared(void **state) {
    struct fuse_problem problem = {0};
    struct fuse_server second;
    char hidden[64];
    char *place;

    (void)state;
    server = fuse_server_start(&plain, NULL);
    fuse_server_kill(&server);
    assert_int_equal(mount(server.path, server.path, NULL, MS_BIND, NULL), 0);
    second = fuse_server_start(&plain, server.path);
    assert_int_equal(stat_of(server.path).st_ino, 1);
    fuse_server_kill(&second);
    (void)snprintf(hidden, sizeof(hidden), "/tmp/shoal-fuse-hidden-%d", getpid());
    assert_int_equal(mkdir(hidden, 0700), 0);
    assert_int_equal(mount(server.path, hidden, NULL, MS_BIND, NULL), 0);
    assert_int_equal(umount2(server.path, MNT_DETACH), 0);
    assert_int_equal(mount("none", server.path, "tmpfs", 0, NULL), 0);
    assert_int_equal(mount(hidden, server.path, NULL, MS_BIND, NULL), 0);
    assert_int_equal(umount2(hidden, MNT_DETACH), 0);
    assert_int_equal(rmdir(hidden), 0);
    assert_int_equal(fuse_mount_check(server.path, &place, &problem), -ERR_IN_USE);
    assert_non_null(strstr(problem.text, "tmpfs is mounted there already"));
    assert_dead(server.path);
    assert_int_equal(umount2(server.path, MNT_DETACH), 0);
    assert_int_equal(umount2(server.path, 0), 0);
}

/* The server's channel, as descriptor of ours. */
static int channel_borrow(pid_t process) {
    int handle = (int)syscall(SYS_pidfd_open, process, 0);
    int copy = -1;

    for (int fd = 3; fd < 256 && copy < 0; fd++) {
        char path[64];
        char target[64] = "";

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, fd);
        if (readlink(path, target, sizeof(target) - 1) > 0 && strcmp(target, "/dev/fuse") == 0)
            copy = (int)syscall(SYS_pidfd_getfd, handle, fd, 0);
    }
    return copy;
}

/* Until somebody has asked what only a server can answer, or the mount is gone. */
static void channel_watch(int fd) {
    enum { REQUEST_BYTES_MAX = 2 << 20 };
    struct fuse_in_header *request = malloc(REQUEST_BYTES_MAX);
    struct pollfd waiting = {.fd = fd, .events = POLLIN};

    while (request && poll(&waiting, 1, -1) == 1) {
        ssize_t got = read(fd, request, REQUEST_BYTES_MAX);

        if (got < 0 ? errno != EAGAIN
                    : request->opcode == FUSE_STATFS || request->opcode == FUSE_GETATTR)
            break;
    }
    free(request);
}

/* A process that holds the server's channel, as the kernel does until I/O of a killed process has
 * ended. Returns when it has it. */
static pid_t holder_start(pid_t process) {
    int pair[2];
    char got = 0;
    pid_t holder;

    assert_int_equal(pipe(pair), 0);
    holder = fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        int fd = channel_borrow(process);

        got = fd >= 0;
        if (write(pair[1], &got, 1) == 1 && got)
            channel_watch(fd);
        _exit(0);
    }
    assert_int_equal(read(pair[0], &got, 1), 1);
    assert_int_equal(close(pair[0]), 0);
    assert_int_equal(close(pair[1]), 0);
    assert_int_equal(got, 1);
    return holder;
}

/* A killed server's mount answers from the kernel's cache for a while; it is dead all the same. */
static void test_server_that_dies_late_is_cleared(void **state) {
    struct fuse_server_options cached = plain;
    struct fuse_server second;
    pid_t holder;

    (void)state;
    cached.timeout_ns = NS_PER_S;
    cached.channel = FUSE_CHANNEL_DEV; /* by which the holder is told that somebody asks */
    server = fuse_server_start(&cached, NULL);
    /* Before there is a holder: it would take the request away from the server. */
    (void)stat_of(server.path);
    holder = holder_start(server.process);
    fuse_server_kill(&server);
    second = fuse_server_start(&plain, server.path);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    assert_int_equal(stat_of(server.path).st_ino, 1);
    fuse_server_stop(&second);
}

/* Names with what mountinfo escapes. */
static void test_strange_mount_point(void **state) {
    struct stat attributes;
    char path[64];

    (void)state;
    (void)snprintf(path, sizeof(path), "/tmp/shoal fuse\\040\n\t%d", getpid());
    assert_int_equal(mkdir(path, 0700), 0);
    server = fuse_server_start(&plain, path);
    fuse_server_kill(&server);
    server = fuse_server_start(&plain, path);
    fuse_server_stop(&server);
    assert_int_equal(stat(path, &attributes), -1);
}

struct refusal {
    const char *path;
    int want;
    const char *text; /* in the line */
};

static void refuse(const struct fuse_options *options, int want, const char *text) {
    struct fuse_problem problem = {0};
    struct fuse_mount *mount = NULL;
    int r = fuse_mount_start(options, &mount, &problem);

    if (r != want || !strstr(problem.text, text) || strchr(problem.text, '\n'))
        fail_msg("%d instead of %d: %s", r, want, problem.text);
    assert_null(mount);
}

/* One line each; and nothing is mounted. */
static void test_refusals(void **state) {
    static const struct refusal refusals[] = {
        {"/tmp/shoal-fuse-that-is-missing", -ERR_NOT_FOUND, "mkdir"},
        {"/dev/null", -ERR_NOT_DIRECTORY, "/dev/null"},
        {"/dev/null/x", -ERR_NOT_DIRECTORY, "/dev/null/x"},
        {"/proc", -ERR_IN_USE, "proc"},
        {NULL, -ERR_INVALID, "mount point"},
    };
    const struct env_linux_options env_options = {.root = "/"};
    const struct memory_shoal_options memory = {.mode = MEMORY_SHOAL_INLINE};
    struct fuse_options options = {.client = memory_shoal_new(&memory),
                                   .channel = fuse_server_channel()};
    char folder[] = "/tmp/shoal-fuse-XXXXXX";
    struct stat before;
    struct stat after;

    (void)state;
    assert_int_equal(env_linux_new(&env_options, &options.env), 0);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        options.mount_point = refusals[i].path;
        refuse(&options, refusals[i].want, refusals[i].text);
    }

    assert_non_null(mkdtemp(folder));
    before = stat_of(folder);
    options.mount_point = folder;
    options.write_bytes_max = 65536 + 1;
    refuse(&options, -ERR_INVALID, "65537");
    options.write_bytes_max = 2 << 20;
    refuse(&options, -ERR_INVALID, "2097152");
    options.write_bytes_max = 0;
    options.thread_count = 4;
    options.requests_max = 4;
    refuse(&options, -ERR_INVALID, "4");
    options.requests_max = 1 << 20;
    refuse(&options, -ERR_INVALID, "1048576");
    options.requests_max = 0;
    options.entry_timeout_ns = 3600 * NS_PER_S + 1;
    refuse(&options, -ERR_INVALID, "hour");
    options.entry_timeout_ns = 0;
    options.thread_count = 5000;
    refuse(&options, -ERR_INVALID, "5000");
    after = stat_of(folder);
    assert_true(before.st_dev == after.st_dev && before.st_ino == after.st_ino);
    assert_int_equal(rmdir(folder), 0);
    env_linux_free(options.env);
    memory_shoal_free(options.client);
}

/* Whichever descriptor cannot be had, the start ends with its line, and nothing is mounted. */
static void test_few_descriptors(void **state) {
    const struct env_linux_options env_options = {.root = "/"};
    const struct memory_shoal_options memory = {.mode = MEMORY_SHOAL_INLINE};
    struct fuse_options options = {
        .client = memory_shoal_new(&memory), .channel = fuse_server_channel(), .thread_count = 2};
    char folder[] = "/tmp/shoal-fuse-XXXXXX";
    struct fuse_mount *mount = NULL;
    struct rlimit before;
    struct rlimit few;
    struct stat plain_folder;
    bool blind = false;

    (void)state;
    assert_int_equal(env_linux_new(&env_options, &options.env), 0);
    assert_non_null(mkdtemp(folder));
    plain_folder = stat_of(folder);
    options.mount_point = folder;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    for (few.rlim_cur = 3; !mount && few.rlim_cur < 100; few.rlim_cur++) {
        struct fuse_problem problem = {0};

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int r = fuse_mount_start(&options, &mount, &problem);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (r < 0) {
            if (!strcasestr(problem.text, "too many open files"))
                fail_msg("%d descriptors: %s", (int)few.rlim_cur, problem.text);
            assert_true(stat_of(folder).st_dev == plain_folder.st_dev);
            blind |= strstr(problem.text, "/proc/self/mountinfo cannot be read") != NULL;
        }
    }
    assert_non_null(mount);
    assert_true(blind);
    fuse_mount_stop(mount);
    assert_true(stat_of(folder).st_dev == plain_folder.st_dev);
    assert_int_equal(rmdir(folder), 0);
    env_linux_free(options.env);
    memory_shoal_free(options.client);
}

/* Whoever owns a directory on the way may lay a link there once it was looked at: nothing is
 * mounted or unmounted where that leads. */
static void test_links_on_the_way(void **state) {
    const struct env_linux_options env_options = {.root = "/"};
    const struct memory_shoal_options memory = {.mode = MEMORY_SHOAL_INLINE};
    struct fuse_options options = {.channel = fuse_server_channel()};
    char folder[] = "/tmp/shoal-fuse-XXXXXX";
    char link[64], mounted[128], beyond[128];
    struct channel_way way;
    const char *name;

    (void)state;
    server = fuse_server_start(&plain, NULL);
    options.client = memory_shoal_new(&memory); /* Not the server's, too. */
    name = strrchr(server.path, '/') + 1;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(link, sizeof(link), "%s-link", folder);
    (void)snprintf(beyond, sizeof(beyond), "%s/below", folder);
    assert_int_equal(mkdir(beyond, 0700), 0);
    assert_int_equal(symlink(folder, link), 0);
    assert_int_equal(env_linux_new(&env_options, &options.env), 0);
    options.mount_point = link;
    refuse(&options, -ERR_LOOP, "symbolic link");
    (void)snprintf(beyond, sizeof(beyond), "%s/below", link);
    options.mount_point = beyond;
    refuse(&options, -ERR_LOOP, "symbolic link");
    assert_int_equal(channel_way_open(link, &way), 0); /* The link itself is the last step. */
    assert_int_equal(channel_way_mount(&way, "none", "tmpfs", 0, NULL), -ENOTDIR);
    assert_int_equal(channel_way_unmount(&way, 0), -EINVAL);
    channel_way_close(&way);
    assert_int_equal(unlink(link), 0);

    assert_int_equal(symlink("/tmp", link), 0);
    (void)snprintf(mounted, sizeof(mounted), "%s/%s", link, name);
    assert_true(stat_of(mounted).st_dev == stat_of(server.path).st_dev);
    assert_int_equal(channel_path_unmount(mounted, 0), -ENOTDIR);
    assert_int_equal(channel_path_unmount("/tmp/../tmp", 0), -EINVAL);
    assert_int_equal(channel_path_unmount("tmp", 0), -EINVAL);
    file_write(server.path, "still-there");
    assert_int_equal(unlink(link), 0);
    (void)snprintf(beyond, sizeof(beyond), "%s/below", folder);
    assert_int_equal(rmdir(beyond), 0);
    assert_int_equal(rmdir(folder), 0);
    env_linux_free(options.env);
    memory_shoal_free(options.client);
    fuse_server_stop(&server);
}

static void test_busy_mount_point(void **state) {
    const struct env_linux_options env_options = {.root = "/"};
    const struct memory_shoal_options memory = {.mode = MEMORY_SHOAL_INLINE};
    struct fuse_options options = {.channel = fuse_server_channel()};

    (void)state;
    server = fuse_server_start(&plain, NULL);
    options.client = memory_shoal_new(&memory); /* Not the server's, too. */
    assert_int_equal(env_linux_new(&env_options, &options.env), 0);
    options.mount_point = server.path;
    refuse(&options, -ERR_IN_USE, "fuse.shoal");
    file_write(server.path, "still-there");
    env_linux_free(options.env);
    memory_shoal_free(options.client);
    fuse_server_stop(&server);
}

struct crowd {
    int root; /* of the mount, also when its name is gone */
    unsigned index;
    int error;
};

/* Each thread makes, fills, reads and removes files of its own and in common folders. */
static void *crowd_work(void *context) {
    enum { FILES = 60, BYTES = 150000 };
    struct crowd *member = context;
    uint8_t *data = malloc(2 * BYTES);
    char name[32];

    for (unsigned i = 0; i < FILES && !member->error; i++) {
        int fd;

        memset(data, (int)(member->index * FILES + i), BYTES);
        (void)snprintf(name, sizeof(name), "%u-%u", member->index, i);
        fd = openat(member->root, name, O_RDWR | O_CREAT | O_EXCL, 0644);
        if (fd < 0 || write(fd, data, BYTES) != BYTES || fsync(fd) < 0 ||
            pread(fd, data + BYTES, BYTES, 0) != BYTES || memcmp(data, data + BYTES, BYTES) != 0)
            member->error = errno ? errno : EIO;
        if (fd >= 0 && close(fd) < 0)
            member->error = errno;
        if (i % 2 && unlinkat(member->root, name, 0) < 0)
            member->error = errno;
    }
    free(data);
    return NULL;
}

static void crowd_run(const struct fuse_server_options *options) {
    enum { MEMBERS = 8, LEFT = 1 + MEMBERS * 30 };
    struct crowd members[MEMBERS];
    pthread_t threads[MEMBERS];
    int root;

    server = fuse_server_start(options, NULL);
    root = open(server.path, O_RDONLY | O_DIRECTORY);
    for (unsigned i = 0; i < MEMBERS; i++) {
        members[i] = (struct crowd){.root = root, .index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_work, &members[i]), 0);
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_int_equal(members[i].error, 0);
    assert_int_equal(close(root), 0);
    /* The kernel releases and forgets what was closed and unlinked behind the calls' backs. */
    for (int i = 0; i < 300 && fuse_server_ask(&server, SERVER_INODE_COUNT, 0, 0) != LEFT; i++)
        (void)poll(NULL, 0, 100);
    assert_int_equal(fuse_server_ask(&server, SERVER_INODE_COUNT, 0, 0), LEFT);
    fuse_server_stop(&server);
}

/* Fewer requests than callers, whoever completes them. */
static void test_crowd_with_few_requests(void **state) {
    const struct fuse_server_options all[] = {
        {.mode = MEMORY_SHOAL_INLINE, .thread_count = 2, .requests_max = 3},
        {.mode = MEMORY_SHOAL_JOB, .thread_count = 2, .requests_max = 3},
        {.mode = MEMORY_SHOAL_JOB, .thread_count = 1, .requests_max = 2},
        {.mode = MEMORY_SHOAL_THREAD, .thread_count = 2, .requests_max = 3},
        {.mode = MEMORY_SHOAL_THREAD, .thread_count = 1, .requests_max = 2},
        {.mode = MEMORY_SHOAL_THREAD, .thread_count = 8, .requests_max = 16},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        crowd_run(&all[i]);
}

/* As few as io_uring needs: entries of all CPUs, and those of threads and INIT. */
static void test_crowd_with_few_entries(void **state) {
    static const enum memory_shoal_mode modes[] = {MEMORY_SHOAL_INLINE, MEMORY_SHOAL_JOB,
                                                   MEMORY_SHOAL_THREAD};

    (void)state;
    if (fuse_server_channel() != FUSE_CHANNEL_URING)
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        const struct fuse_server_options options = {
            .mode = modes[i],
            .channel = FUSE_CHANNEL_URING,
            .requests_max = 5 * (uint32_t)sysconf(_SC_NPROCESSORS_CONF) + 3,
        };

        crowd_run(&options);
    }
}

/* Gone in the middle of it: everyone gets an error, nobody waits for ever, nothing stays open. */
static void test_stop_under_a_crowd(void **state) {
    enum { MEMBERS = 4 };
    static const enum memory_shoal_mode modes[] = {MEMORY_SHOAL_INLINE, MEMORY_SHOAL_JOB,
                                                   MEMORY_SHOAL_THREAD};

    (void)state;
    for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
        const struct fuse_server_options options = {.mode = modes[m]};
        struct crowd members[MEMBERS];
        pthread_t threads[MEMBERS];
        int root;

        server = fuse_server_start(&options, NULL);
        root = open(server.path, O_RDONLY | O_DIRECTORY);
        for (unsigned i = 0; i < MEMBERS; i++) {
            members[i] = (struct crowd){.root = root, .index = i};
            assert_int_equal(pthread_create(&threads[i], NULL, crowd_work, &members[i]), 0);
        }
        while (fuse_server_ask(&server, SERVER_COUNT, SHOAL_WRITE, 0) < 10)
            (void)sched_yield();
        fuse_server_stop(&server);
        for (unsigned i = 0; i < MEMBERS; i++)
            pthread_join(threads[i], NULL);
        (void)close(root);
    }
}

static bool has_ended(pid_t process, int *ret_status) {
    for (int i = 0; i < 300; i++) {
        if (waitpid(process, ret_status, WNOHANG) == process)
            return true;
        (void)poll(NULL, 0, 100);
    }
    return false;
}

/* The kernel keeps a request for as long as its entry is not answered, so where it takes no answer
 * any more the mount ends, and programs get an error instead of waiting for ever. */
static void test_refused_commands_end_the_mount(void **state) {
    struct fuse_server_options options = plain;
    int status = 0;

    (void)state;
    if (!fuse_server_uring_enable()) {
        print_message("skipped: no " FUSE_ENABLE_URING "\n");
        skip();
    }
    options.channel = FUSE_CHANNEL_URING;
    server = fuse_server_start(&options, NULL);
    file_write(server.path, "file");
    assert_int_equal(fuse_server_ask(&server, SERVER_FAILURE, 0, 0), 0);
    assert_int_equal(fuse_server_ask(&server, SERVER_REFUSE, 0, 0), 0);
    pid_t process = fork();
    if (process == 0) {
        char path[128];
        struct stat attributes;

        /* More than there are entries. */
        for (int i = 0; i < 100; i++) {
            (void)snprintf(path, sizeof(path), "%s/%d", server.path, i);
            if (stat(path, &attributes) < 0 && errno != ENOENT)
                _exit(0);
        }
        _exit(1);
    }
    if (!has_ended(process, &status)) {
        fuse_server_kill(&server);
        (void)waitpid(process, &status, 0);
        fail_msg("a program waits for a mount that nobody serves");
    }
    assert_int_equal(status, 0);
    assert_true(fuse_server_ask(&server, SERVER_FAILURE, 0, 0) > 0);
    fuse_server_stop(&server);
}

#define LIFE_TEST(test) cmocka_unit_test_teardown(test, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        LIFE_TEST(test_mount_and_unmount),
        LIFE_TEST(test_detach_while_in_use),
        LIFE_TEST(test_stop_while_in_use),
        LIFE_TEST(test_stop_after_lazy_unmount),
        LIFE_TEST(test_stop_under_another_mount),
        LIFE_TEST(test_killed_server_is_cleared),
        LIFE_TEST(test_server_is_cleared_while_it_ends),
        LIFE_TEST(test_killed_servers_are_cleared),
        LIFE_TEST(test_server_that_dies_late_is_cleared),
        LIFE_TEST(test_strange_mount_point),
        LIFE_TEST(test_refusals),
        LIFE_TEST(test_few_descriptors),
        LIFE_TEST(test_links_on_the_way),
        LIFE_TEST(test_busy_mount_point),
        LIFE_TEST(test_crowd_with_few_requests),
        LIFE_TEST(test_crowd_with_few_entries),
        LIFE_TEST(test_stop_under_a_crowd),
        LIFE_TEST(test_refused_commands_end_the_mount),
    };
    const char *missing = fuse_server_missing();

    server.control = -1;
    if (missing) {
        print_message("skipped: %s\n", missing);
        return EXIT_SKIP;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
