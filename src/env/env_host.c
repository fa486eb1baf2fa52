/* Files and threads of this machine, for measuring. */
#include "env/env_host.h"
#include "env/errno_map.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MODE = 0644, DIRECTORY_MODE = 0755 };

static int result_of(int returned) {
    return returned < 0 ? err_from_errno(errno) : 0;
}

int env_host_open(const char *path, unsigned flags, int *ret_fd) {
    static const int access[] = {O_RDONLY, O_RDONLY, O_WRONLY, O_RDWR};
    int words = O_CLOEXEC | access[flags & (ENV_HOST_READ | ENV_HOST_WRITE)];

    words |= flags & ENV_HOST_CREATE ? O_CREAT : 0;
    words |= flags & ENV_HOST_DIRECT ? O_DIRECT : 0;
    int fd = open(path, words, FILE_MODE);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    *ret_fd = fd;
    return 0;
}

int env_host_close(int fd) {
    return result_of(close(fd));
}

int env_host_read(int fd, void *data, size_t size, uint64_t offset, size_t *ret_size) {
    size_t done = 0;

    while (done < size) {
        ssize_t got = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));

        if (got < 0 && errno == ESPIPE) {
            got = read(fd, (char *)data + done, size - done);
        }
        if (got < 0 && errno != EINTR) {
            return err_from_errno(errno);
        }
        if (got == 0) {
            break;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    *ret_size = done;
    return 0;
}

int env_host_write(int fd, const void *data, size_t size, uint64_t offset) {
    size_t done = 0;

    while (done < size) {
        ssize_t put = pwrite(fd, (const char *)data + done, size - done, (off_t)(offset + done));

        if (put < 0 && errno != EINTR) {
            return err_from_errno(errno);
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

int env_host_fsync(int fd) {
    return result_of(fsync(fd));
}

int env_host_stat(const char *path) {
    struct stat attributes;

    return result_of(lstat(path, &attributes));
}

int env_host_mkdir(const char *path) {
    return result_of(mkdir(path, DIRECTORY_MODE));
}

int env_host_rmdir(const char *path) {
    return result_of(rmdir(path));
}

int env_host_unlink(const char *path) {
    return result_of(unlink(path));
}

int env_host_rename(const char *from, const char *to) {
    return result_of(rename(from, to));
}

static bool is_dot(const char *name) {
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

int env_host_list(const char *path, uint64_t *ret_count) {
    DIR *directory = opendir(path);
    uint64_t count = 0;
    struct stat attributes;
    struct dirent *entry;
    int r = directory ? 0 : err_from_errno(errno);

    while (r == 0 && (errno = 0, entry = readdir(directory))) {
        if (!is_dot(entry->d_name)) {
            count++;
            r = result_of(
                fstatat(dirfd(directory), entry->d_name, &attributes, AT_SYMLINK_NOFOLLOW));
        }
    }
    if (r == 0 && errno != 0) {
        r = err_from_errno(errno);
    }
    if (directory) {
        closedir(directory);
    }
    if (r == 0) {
        *ret_count = count;
    }
    return r;
}

uint64_t env_host_clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

struct host_thread {
    pthread_t thread;
    bool started;
    unsigned index;
    void (*run)(void *context, unsigned index);
    void *context;
};

static void *thread_main(void *context) {
    struct host_thread *thread = context;

    thread->run(thread->context, thread->index);
    return NULL;
}

int env_host_threads(unsigned count, void (*run)(void *context, unsigned index), void *context) {
    struct host_thread *threads = calloc(count, sizeof *threads);
    int r = threads ? 0 : -ERR_NO_MEMORY;

    for (unsigned i = 0; r == 0 && i < count; i++) {
        threads[i] = (struct host_thread){.index = i, .run = run, .context = context};
        threads[i].started =
            pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]) == 0;
        r = threads[i].started ? 0 : -ERR_BUSY;
    }
    for (unsigned i = 0; threads && i < count; i++) {
        if (threads[i].started) {
            pthread_join(threads[i].thread, NULL);
        }
    }
    free(threads);
    return r;
}
