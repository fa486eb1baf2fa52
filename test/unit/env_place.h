/* A temporary directory with an env on it, for tests of the real outside. */
#pragma once
#include "unit.h"
#include "env/env_linux.h"
#include "host/folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_NS (50 * NS_PER_MS)
#define LONG_NS (60 * NS_PER_S) /* never reached but by a failure */

struct place {
    char root[64];
    struct env *env;
};

static inline int place_set_up(void **state, struct env_linux_options options) {
    struct place *place = calloc(1, sizeof *place);
    const char *parent = getenv("TMPDIR");

    snprintf(place->root, sizeof place->root, "%.30s/test_env_XXXXXX", parent ? parent : "/tmp");
    assert_non_null(mkdtemp(place->root));
    options.root = place->root;
    assert_int_equal(env_linux_new(&options, &place->env), 0);
    assert_int_equal(env_thread_enter(place->env), 0);
    *state = place;
    return 0;
}

static inline int set_up(void **state) {
    return place_set_up(state, (struct env_linux_options){.spin_ns = 0});
}

static inline int set_up_blocking(void **state) {
    return place_set_up(state, (struct env_linux_options){.refuse_uring = true});
}

static inline int entry_remove(void *context, const struct folder_entry *entry) {
    return folder_tree_remove(context, entry->name);
}

static inline int tear_down(void **state) {
    struct place *place = *state;

    assert_int_equal(folder_list(place->env, ".", entry_remove, place->env), 0);
    env_thread_leave(place->env);
    env_linux_free(place->env);
    assert_int_equal(rmdir(place->root), 0);
    free(place);
    return 0;
}

/* This program with these words, as threads may not be made behind a fork of one that has some. */
static inline void run_self(const char *word, const char *more) {
    int status;
    pid_t child = fork();

    if (child == 0) {
        execl("/proc/self/exe", "test", word, more, (char *)NULL);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline struct env_file *file_make(struct place *place, unsigned flags) {
    struct env_file *file;

    assert_int_equal(place->env->ops->file_open(place->env, "file", ENV_FILE_CREATE | flags, &file),
                     0);
    return file;
}

static inline uint8_t *pages(size_t size_bytes, uint8_t fill) {
    uint8_t *memory = aligned_alloc(BLOCK_BYTES, size_bytes);

    assert_non_null(memory);
    memset(memory, fill, size_bytes);
    return memory;
}

static inline void note_done(struct env_io *io, int result) {
    *(int *)io->context = result;
}

static inline void wait_until_idle(struct env *env) {
    while (env_loop_pending(env) > 0) {
        env_loop_wait(env, -1, LONG_NS);
    }
}

/* Submits, waits, answers what done() got. */
static inline int io_finish(struct place *place, struct env_io *io) {
    int result = 1;

    io->done = note_done;
    io->context = &result;
    env_io_submit(place->env, io);
    assert_int_equal(result, 1);
    wait_until_idle(place->env);
    return result;
}

#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down), {                                    \
        #test " (without io_uring)", test, set_up_blocking, tear_down, NULL                        \
    }
