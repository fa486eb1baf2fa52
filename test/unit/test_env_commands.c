/* Commands to drivers by a thread's ring, beside its I/O: as many as may be out, each answered
 * once, none counted as pending. /dev/null takes any command (Linux 6.2). */
#include "env/env_command.h"
#include "env_place.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdalign.h>
#include <unistd.h>

enum { ROUNDS = 3, IO_COUNT = 1000 };

struct tried {
    alignas(16) struct env_command command;
    unsigned done_count;
    int result;
};

struct try {
    struct place *place;
    struct env_file *file;
    struct tried *tried;
    struct env_io ios[IO_COUNT];
    unsigned io_done_count, io_wrong_count;
    bool refused;
};

static void command_done(struct env_command *command, int result) {
    struct tried *tried = CONTAINER_OF(command, struct tried, command);

    tried->done_count++;
    tried->result = result;
}

static void io_done(struct env_io *io, int result) {
    struct try *try = io->context;

    try->io_done_count++;
    try->io_wrong_count += result != 0 || io->ret_size != BLOCK_BYTES;
}

static bool all_done(const struct try *try, unsigned round) {
    for (unsigned i = 0; i < ENV_COMMANDS_MAX; i++) {
        if (try->tried[i].done_count != round) {
            return false;
        }
    }
    return try->io_done_count == round * IO_COUNT;
}

static void round_go(struct try *try, int null, unsigned round) {
    struct env *env = try->place->env;

    for (unsigned i = 0; i < ENV_COMMANDS_MAX; i++) {
        try->tried[i].command.fd = null;
        try->tried[i].command.operation = i;
        try->tried[i].command.done = command_done;
        env_command_submit(env, &try->tried[i].command);
    }
    assert_int_equal(env_loop_pending(env), 0);
    for (unsigned i = 0; i < IO_COUNT; i++) {
        try->ios[i] = (struct env_io){.kind = ENV_IO_READ,
                                      .file = try->file,
                                      .buffer = pages(BLOCK_BYTES, 0),
                                      .size = BLOCK_BYTES,
                                      .done = io_done,
                                      .context = try};
        env_io_submit(env, &try->ios[i]);
    }
    while (!all_done(try, round)) {
        (void)env_loop_wait(env, -1, LONG_NS);
    }
    for (unsigned i = 0; i < IO_COUNT; i++) {
        free(try->ios[i].buffer);
    }
}

static void *try_run(void *context) {
    struct try *try = context;
    struct env *env = try->place->env;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_true(null >= 0);
    assert_int_equal(env_thread_enter(env), 0);
    try->refused = env_commands_enable(env) < 0;
    for (unsigned round = 1; round <= ROUNDS && !try->refused; round++) {
        round_go(try, null, round);
    }
    env_thread_leave(env);
    close(null);
    return NULL;
}

static struct try *try_go(struct place *place) {
    struct try *try = calloc(1, sizeof *try);
    pthread_t thread;

    try->place = place;
    try->file = file_make(place, 0);
    try->tried = aligned_alloc(alignof(struct tried), ENV_COMMANDS_MAX * sizeof *try->tried);
    memset(try->tried, 0, ENV_COMMANDS_MAX * sizeof *try->tried);
    uint8_t *data = pages(BLOCK_BYTES, 1);
    struct env_io io = {
        .kind = ENV_IO_WRITE, .file = try->file, .buffer = data, .size = BLOCK_BYTES};
    assert_int_equal(io_finish(place, &io), 0);
    free(data);
    assert_int_equal(pthread_create(&thread, NULL, try_run, try), 0);
    pthread_join(thread, NULL);
    return try;
}

static void try_end(struct try *try) {
    try->place->env->ops->file_close(try->file);
    free(try->tried);
    free(try);
}

static void all_commands_are_answered_beside_io(void **state) {
    struct try *try = try_go(*state);

    if (try->refused) {
        print_message("this kernel takes no commands by io_uring\n");
        try_end(try);
        skip();
    }
    assert_int_equal(try->io_wrong_count, 0);
    for (unsigned i = 0; i < ENV_COMMANDS_MAX; i++) {
        assert_int_equal(try->tried[i].done_count, ROUNDS);
        assert_true(try->tried[i].result == 0 || try->tried[i].result == -EOPNOTSUPP);
    }
    try_end(try);
}

static void without_io_uring_they_are_refused(void **state) {
    struct try *try = try_go(*state);

    assert_true(try->refused);
    try_end(try);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_commands_are_answered_beside_io, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_io_uring_they_are_refused, set_up_blocking,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
