/* What a program's start needs: locks, whole files, listings, space, the background, signals. */
#include "env_place.h"
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "host/background.h"
#include "host/control_socket.h"
#include "host/plain_file.h"
#include "host/process.h"
#include "host/secret_file.h"

static void test_lock_is_exclusive(void **state) {
    struct place *place = *state;
    struct folder_lock *lock = NULL;
    struct folder_lock *second = NULL;
    int holder = 0;

    assert_int_equal(folder_lock_holder(place->env, "lock", &holder), -ERR_NOT_FOUND);
    assert_int_equal(folder_lock_open(place->env, "lock", &lock), 0);
    assert_int_equal(folder_lock_open(place->env, "lock", &second), -ERR_IN_USE);
    assert_null(second);
    assert_int_equal(folder_lock_holder(place->env, "lock", &holder), 0);
    assert_int_equal(holder, process_own_id());
    folder_lock_close(lock);
    assert_int_equal(folder_lock_holder(place->env, "lock", &holder), -ERR_NOT_FOUND);
    assert_int_equal(folder_lock_open(place->env, "lock", &lock), 0);
    folder_lock_close(lock);
    folder_lock_close(NULL);
    assert_int_equal(folder_lock_open(place->env, "nowhere/lock", &lock), -ERR_NOT_FOUND);
}

/* kill -9 of its holder frees a lock. */
static void test_lock_ends_with_its_process(void **state) {
    struct place *place = *state;
    struct folder_lock *lock;
    int ends[2];
    char letter;
    int holder = 0;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        int r = folder_lock_open(place->env, "lock", &lock);

        r = write(ends[1], r ? "n" : "y", 1) == 1;
        pause();
        _exit(r);
    }
    assert_int_equal(read(ends[0], &letter, 1), 1);
    assert_int_equal(letter, 'y');
    assert_int_equal(folder_lock_open(place->env, "lock", &lock), -ERR_IN_USE);
    assert_int_equal(folder_lock_holder(place->env, "lock", &holder), 0);
    assert_int_equal(holder, child);
    assert_int_equal(process_signal(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(process_signal(child, SIGKILL), -ERR_NOT_FOUND);
    assert_int_equal(process_signal(0, SIGKILL), -ERR_INVALID);
    assert_int_equal(folder_lock_open(place->env, "lock", &lock), 0);
    folder_lock_close(lock);
    close(ends[0]);
    close(ends[1]);
}

static int secret_read(const char *path, char ret_text[8]) {
    struct buffer buffer = {.data = (uint8_t *)ret_text, .capacity = 8};
    int r = secret_file_read(path, &buffer);

    return r < 0 ? r : (int)buffer.size;
}

/* A secret that group or others can read, or that took another's place, is lost in either way. */
static void test_secret_files_are_the_owners_alone(void **state) {
    struct place *place = *state;
    const struct bytes one = {(const uint8_t *)"one", 3};
    const struct bytes two = {(const uint8_t *)"two", 3};
    char path[PATH_MAX];
    char link_path[PATH_MAX];
    char left_path[PATH_MAX + 16];
    char text[8];
    struct stat status;

    snprintf(path, sizeof path, "%s/secret", place->root);
    snprintf(link_path, sizeof link_path, "%s/link", place->root);
    /* One that was killed had the same process id. */
    snprintf(left_path, sizeof left_path, "%s.%d.tmp", path, process_own_id());
    assert_int_equal(mknod(left_path, S_IFREG | 0600, 0), 0);
    assert_int_equal(secret_file_replace(path, one), -ERR_NOT_FOUND);
    mode_t mask = umask(0);
    assert_int_equal(secret_file_make(path, one), 0);
    assert_int_equal(secret_file_make(path, two), -ERR_EXISTS);
    assert_int_equal(secret_read(path, text), 3);
    assert_memory_equal(text, "one", 3);
    assert_int_equal(symlink("secret", link_path), 0);
    assert_int_equal(secret_file_make(link_path, two), -ERR_EXISTS);
    assert_int_equal(secret_file_replace(link_path, two), -ERR_NOT_FILE);
    assert_int_equal(secret_file_replace(path, two), 0);
    umask(mask);
    assert_int_equal(lstat(link_path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(secret_read(path, text), 3);
    assert_memory_equal(text, "two", 3);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    for (mode_t bit = 01; bit <= 040; bit <<= 1) {
        assert_int_equal(chmod(path, 0600 | bit), 0);
        assert_int_equal(secret_read(path, text), -ERR_NOT_PERMITTED);
    }
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, 9), 0);
    assert_int_equal(secret_read(path, text), -ERR_FILE_TOO_BIG);
    assert_int_equal(secret_read(place->root, text), -ERR_NOT_FILE);
}

static void test_whole_files(void **state) {
    struct place *place = *state;
    static const size_t sizes_bytes[] = {0, 1, 4095, 4096, 5000, 100000};
    char *content = malloc(100000);
    char *back = NULL;
    size_t size_bytes;

    memset(content, 'c', 100000);
    for (size_t i = 0; i < ARRAY_SIZE(sizes_bytes); i++) {
        assert_int_equal(folder_file_write(place->env, "file", content, sizes_bytes[i]), 0);
        assert_int_equal(folder_file_read(place->env, "file", 100000, &back, &size_bytes), 0);
        assert_int_equal(size_bytes, sizes_bytes[i]);
        assert_memory_equal(back, content, size_bytes);
        assert_int_equal(back[size_bytes], 0);
        free(back);
        back = NULL;
    }
    assert_int_equal(folder_file_read(place->env, "file", 99999, &back, &size_bytes),
                     -ERR_FILE_TOO_BIG);
    assert_int_equal(folder_file_read(place->env, "other", 100, &back, &size_bytes),
                     -ERR_NOT_FOUND);
    assert_int_equal(folder_file_read(place->env, ".", 100, &back, &size_bytes), -ERR_IS_DIRECTORY);
    assert_null(back);
    assert_int_equal(folder_file_write(place->env, "no/file", content, 1), -ERR_NOT_FOUND);
    free(content);
}

/* A replacement that fails leaves the old content, and nothing beside it. */
static void test_failed_replacement(void **state) {
    struct place *place = *state;
    char *back;
    size_t size_bytes;
    int r;

    assert_int_equal(place->env->ops->directory_make(place->env, "directory"), 0);
    assert_int_equal(folder_file_write(place->env, "directory/file", "x", 1), 0);
    r = folder_file_write(place->env, "directory", "y", 1);
    assert_true(r == -ERR_IS_DIRECTORY || r == -ERR_NOT_EMPTY || r == -ERR_EXISTS);
    assert_int_equal(folder_file_read(place->env, "directory/file", 10, &back, &size_bytes), 0);
    assert_string_equal(back, "x");
    free(back);
    assert_int_equal(folder_file_read(place->env, "directory.tmp", 10, &back, &size_bytes),
                     -ERR_NOT_FOUND);
}

/* What is there stays; nothing lies beside it afterwards, whichever way it went. */
static void test_new_file_replaces_none(void **state) {
    struct place *place = *state;
    char *back;
    size_t size_bytes;

    assert_int_equal(folder_file_write_new(place->env, "file", "first", 5), 0);
    assert_int_equal(folder_file_write_new(place->env, "file", "second", 6), -ERR_EXISTS);
    assert_int_equal(folder_file_read(place->env, "file", 10, &back, &size_bytes), 0);
    assert_string_equal(back, "first");
    free(back);
    assert_int_equal(
        folder_file_read(place->env, "file" FOLDER_FILE_NEW_SUFFIX, 10, &back, &size_bytes),
        -ERR_NOT_FOUND);
    assert_int_equal(folder_file_write_new(place->env, "no/file", "x", 1), -ERR_NOT_FOUND);
}

static void assert_content(struct place *place, const char *text) {
    char *back;
    size_t size_bytes;

    assert_int_equal(folder_file_read(place->env, "file", 10, &back, &size_bytes), 0);
    assert_string_equal(back, text);
    free(back);
}

/* Where a rename can't spare what is there, a cut leaves the file with two names. */
static void test_second_name_is_left(void **state) {
    struct place *place = *state;
    int root_fd = env_linux_root(place->env);
    const char *left = "file" FOLDER_FILE_NEW_SUFFIX;
    struct stat status;

    assert_int_equal(folder_file_write_new(place->env, "file", "first", 5), 0);
    assert_int_equal(linkat(root_fd, "file", root_fd, left, 0), 0);
    assert_int_equal(folder_file_write_new(place->env, "file", "second", 6), -ERR_EXISTS);
    assert_content(place, "first");
    assert_int_not_equal(faccessat(root_fd, left, F_OK, 0), 0);
    assert_int_equal(linkat(root_fd, "file", root_fd, left, 0), 0);
    assert_int_equal(folder_file_write(place->env, "file", "second", 6), 0);
    assert_content(place, "second");
    assert_int_equal(fstatat(root_fd, "file", &status, 0), 0);
    assert_int_equal(status.st_nlink, 1);
}

struct listing {
    unsigned counts[3];
    uint64_t size_bytes;
    int stop_with;
};

static int listing_add(void *context, const struct folder_entry *entry) {
    struct listing *listing = context;

    assert_true(strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0);
    listing->counts[entry->kind]++;
    listing->size_bytes += entry->size_bytes;
    return listing->stop_with;
}

static void test_listing_and_removal(void **state) {
    struct place *place = *state;
    struct listing listing = {0};
    struct listing stopping = {.stop_with = -ERR_CONFLICT};
    char path[128];

    assert_int_equal(place->env->ops->directory_make(place->env, "d"), 0);
    assert_int_equal(place->env->ops->directory_make(place->env, "d/d"), 0);
    assert_int_equal(folder_file_write(place->env, "d/d/file", "abc", 3), 0);
    assert_int_equal(folder_file_write(place->env, "file", "abcd", 4), 0);
    /* A link out of the tree is removed, what it names is not. */
    snprintf(path, sizeof path, "%s/d/link", place->root);
    assert_int_equal(symlink("../file", path), 0);
    snprintf(path, sizeof path, "%s/d/up", place->root);
    assert_int_equal(symlink("..", path), 0);
    assert_int_equal(folder_list(place->env, ".", listing_add, &listing), 0);
    assert_int_equal(listing.counts[FOLDER_KIND_DIRECTORY], 1);
    assert_int_equal(listing.counts[FOLDER_KIND_FILE], 1);
    assert_int_equal(listing.size_bytes, 4);
    assert_int_equal(folder_list(place->env, "d", listing_add, &listing), 0);
    assert_int_equal(listing.counts[FOLDER_KIND_OTHER], 2);
    assert_int_equal(folder_list(place->env, ".", listing_add, &stopping), -ERR_CONFLICT);
    assert_int_equal(folder_list(place->env, "no", listing_add, &listing), -ERR_NOT_FOUND);
    assert_int_equal(folder_list(place->env, "file", listing_add, &listing), -ERR_NOT_DIRECTORY);
    assert_int_equal(folder_tree_remove(place->env, "d"), 0);
    assert_int_equal(folder_tree_remove(place->env, "d"), -ERR_NOT_FOUND);
    memset(&listing, 0, sizeof listing);
    assert_int_equal(folder_list(place->env, ".", listing_add, &listing), 0);
    assert_int_equal(listing.counts[FOLDER_KIND_DIRECTORY], 0);
    assert_int_equal(listing.counts[FOLDER_KIND_FILE], 1);
}

static void test_space_and_paths(void **state) {
    struct place *place = *state;
    struct folder_space space;
    char path[128];
    char *resolved = NULL;

    assert_int_equal(folder_space_get(place->env, &space), 0);
    assert_true(space.total_bytes > 0 && space.free_bytes <= space.total_bytes);
    assert_non_null(space.fs_name);
    snprintf(path, sizeof path, "%s/a/b//c", place->root);
    assert_int_equal(plain_file_make_directories(path), 0);
    assert_int_equal(plain_file_make_directories(path), 0);
    snprintf(path, sizeof path, "%s/a/./b/../b/c", place->root);
    assert_int_equal(plain_file_resolve(path, &resolved), 0);
    snprintf(path, sizeof path, "%s/a/b/c", place->root);
    assert_string_equal(resolved + strlen(resolved) - strlen("/a/b/c"), "/a/b/c");
    free(resolved);
    resolved = NULL;
    assert_int_equal(folder_file_write(place->env, "a/file", "x", 1), 0);
    snprintf(path, sizeof path, "%s/a/file", place->root);
    assert_int_equal(plain_file_make_directories(path), -ERR_NOT_DIRECTORY);
    snprintf(path, sizeof path, "%s/a/file/below", place->root);
    assert_int_equal(plain_file_make_directories(path), -ERR_NOT_DIRECTORY);
    assert_int_equal(plain_file_make_directories(""), -ERR_NOT_FOUND);
    assert_int_equal(plain_file_resolve("/nowhere/at/all", &resolved), -ERR_NOT_FOUND);
    assert_null(resolved);
}

/* The part of the child that goes into the background; it never comes back here. */
enum { CALLERS_FD = 77 };

static void background_child(struct background *background, bool reports) {
    char letter = 'x';

    printf("words for the log\n");
    fflush(stdout);
    /* No terminal, nothing to read, standing in "/", and nothing of the caller's open. */
    bool right = read(0, &letter, 1) == 0 && getsid(0) == getpid() && access("proc", F_OK) == 0 &&
                 fcntl(CALLERS_FD, F_GETFD) < 0;
    if (reports) {
        background_report(background, right ? 7 : 8, "it works");
    }
    _exit(0);
}

static void background_round(struct place *place, bool reports, struct background *background) {
    char log_path[128];

    snprintf(log_path, sizeof log_path, "%s/log", place->root);
    assert_int_equal(background_enter(background, log_path), 0);
    if (!background->is_parent) {
        background_child(background, reports);
    }
    assert_true(waitpid(-1, NULL, 0) > 0);
}

static void test_background(void **state) {
    struct place *place = *state;
    struct background background;
    char *log = NULL;
    size_t size_bytes;

    assert_int_equal(dup2(0, CALLERS_FD), CALLERS_FD);
    background_round(place, true, &background);
    close(CALLERS_FD);
    assert_int_equal(background.status, 7);
    assert_string_equal(background.message, "it works");
    background_round(place, false, &background);
    assert_int_equal(background.status, -1);
    assert_true(strlen(background.message) > 0);
    assert_int_equal(folder_file_read(place->env, "log", 1000, &log, &size_bytes), 0);
    assert_string_equal(log, "words for the log\nwords for the log\n");
    free(log);
}

/* A log that can't be written is reported to who started it, not to nobody. */
static void test_background_without_log(void **state) {
    struct background background;

    (void)state;
    assert_int_equal(background_enter(&background, "/nowhere/at/all"), 0);
    assert_true(background.is_parent);
    assert_int_equal(background.status, 1);
    assert_non_null(strstr(background.message, "/nowhere/at/all"));
    assert_true(waitpid(-1, NULL, 0) > 0);
}

static void test_signals(void **state) {
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t before;
    struct sigaction pipe_before;
    int got = 0;

    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigaction(SIGPIPE, NULL, &pipe_before);
    process_signals_block();
    assert_int_equal(process_signal_wait(1000, &got), -ERR_TIMED_OUT);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        assert_int_equal(process_signal(process_own_id(), signals[i]), 0);
        assert_int_equal(process_signal_wait(UINT64_MAX, &got), 0);
        assert_int_equal(got, signals[i]);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGPIPE, &pipe_before, NULL);
}

struct control_asked {
    int threads_left; /* that may be entered */
    char text[128];
};

static int control_enter(void *context) {
    struct control_asked *asked = context;

    return asked->threads_left-- > 0 ? 0 : -ERR_TOO_MANY_OPEN;
}

static int control_handle(void *context, struct control_socket_connection *connection,
                          size_t argument_count, char **arguments) {
    (void)context;
    (void)argument_count;
    control_socket_write(connection, arguments[0], strlen(arguments[0]));
    return 0;
}

static bool control_is_long(size_t argument_count, char **arguments) {
    return argument_count == 1 && strcmp(arguments[0], "long") == 0;
}

static void control_output(void *context, const char *text, size_t size) {
    struct control_asked *asked = context;

    snprintf(asked->text, sizeof asked->text, "%.*s", (int)size, text);
}

/* A thread that cannot be had ends the start, or the request that it was for, and nothing else. */
static void test_control_without_threads(void **state) {
    struct place *place = *state;
    struct control_asked asked = {.threads_left = 0};
    const struct control_socket_options options = {.directory = place->root,
                                                   .name = "control",
                                                   .handle = control_handle,
                                                   .is_long = control_is_long,
                                                   .thread_enter = control_enter,
                                                   .context = &asked};
    const char *words[] = {"long"};
    const struct control_socket_request request = {.directory = place->root,
                                                   .name = "control",
                                                   .argument_count = 1,
                                                   .arguments = words,
                                                   .output = control_output,
                                                   .context = &asked};
    struct control_socket_server *server;
    int status = -1;

    assert_int_equal(control_socket_start(&options, &server), -ERR_TOO_MANY_OPEN);
    assert_int_equal(control_socket_call(&request, &status), -ERR_NOT_FOUND);
    asked.threads_left = 1;
    assert_int_equal(control_socket_start(&options, &server), 0);
    assert_int_equal(control_socket_call(&request, &status), 0);
    assert_int_equal(status, 1);
    assert_memory_equal(asked.text, err_text(-ERR_TOO_MANY_OPEN),
                        strlen(err_text(-ERR_TOO_MANY_OPEN)));
    assert_string_equal(asked.text + strlen(err_text(-ERR_TOO_MANY_OPEN)), "\n");
    words[0] = "short";
    assert_int_equal(control_socket_call(&request, &status), 0);
    assert_int_equal(status, 0);
    assert_string_equal(asked.text, "short");
    control_socket_stop(server);
}

/* One that has come otherwise than by the socket. */
struct asked_question {
    struct control_socket_question question; /* first */
    char request[16];
    char text[16];
    sem_t ended;
    int status;
};

static void question_write(struct control_socket_question *question, const char *text,
                           size_t size) {
    struct asked_question *asked = (struct asked_question *)(void *)question;

    snprintf(asked->text, sizeof asked->text, "%.*s", (int)size, text);
}

static void question_done(struct control_socket_question *question, int status) {
    struct asked_question *asked = (struct asked_question *)(void *)question;

    asked->status = status;
    sem_post(&asked->ended);
}

static void question_send(struct control_socket_server *server, struct asked_question *asked,
                          const char *words) {
    *asked = (struct asked_question){.question = {.request = asked->request,
                                                  .request_bytes = strlen(words) + 1,
                                                  .write = question_write,
                                                  .done = question_done}};
    snprintf(asked->request, sizeof asked->request, "%s", words);
    sem_init(&asked->ended, 0, 0);
    control_socket_ask(server, &asked->question);
}

static void question_end(struct asked_question *asked) {
    sem_wait(&asked->ended);
    sem_destroy(&asked->ended);
}

static void question_ask(struct control_socket_server *server, struct asked_question *asked,
                         const char *words) {
    question_send(server, asked, words);
    question_end(asked);
}

/* Handled as those of the socket, each on a thread that fits it, until no more are wanted. */
static void test_control_answers_other_questions(void **state) {
    struct place *place = *state;
    struct control_asked threads = {.threads_left = 2};
    const struct control_socket_options options = {.directory = place->root,
                                                   .name = "control",
                                                   .handle = control_handle,
                                                   .is_long = control_is_long,
                                                   .thread_enter = control_enter,
                                                   .context = &threads};
    struct control_socket_server *server;
    struct asked_question asked;

    assert_int_equal(control_socket_start(&options, &server), 0);
    question_ask(server, &asked, "short");
    assert_int_equal(asked.status, 0);
    assert_string_equal(asked.text, "short");
    assert_int_equal(threads.threads_left, 1);
    question_ask(server, &asked, "long");
    assert_int_equal(asked.status, 0);
    assert_string_equal(asked.text, "long");
    assert_int_equal(threads.threads_left, 0);
    question_ask(server, &asked, "long");
    assert_int_equal(asked.status, 1);
    control_socket_refuse_questions(server);
    question_ask(server, &asked, "short");
    assert_int_equal(asked.status, 1);
    assert_string_equal(asked.text, "");
    control_socket_stop(server);
}

/* Long questions that are at work, and go on when they are let. */
struct long_work {
    sem_t at_work, may_end;
};

static int control_work(void *context, struct control_socket_connection *connection,
                        size_t argument_count, char **arguments) {
    struct long_work *work = context;

    if (control_is_long(argument_count, arguments)) {
        sem_post(&work->at_work);
        sem_wait(&work->may_end);
    }
    control_socket_write(connection, arguments[0], strlen(arguments[0]));
    return 0;
}

/* Beside as many long ones as have threads others are answered; one more holds them up until it
 * ends itself. */
static void test_control_has_so_many_long_questions(void **state) {
    enum { HELD_MS = 100 };
    struct place *place = *state;
    struct long_work work;
    const struct control_socket_options options = {.directory = place->root,
                                                   .name = "control",
                                                   .handle = control_work,
                                                   .is_long = control_is_long,
                                                   .context = &work};
    struct control_socket_server *server;
    struct asked_question longs[CONTROL_SOCKET_LONG_MAX + 1], asked;
    struct timespec until;

    sem_init(&work.at_work, 0, 0);
    sem_init(&work.may_end, 0, 0);
    assert_int_equal(control_socket_start(&options, &server), 0);
    for (int i = 0; i <= CONTROL_SOCKET_LONG_MAX; i++) {
        question_ask(server, &asked, "short");
        assert_string_equal(asked.text, "short");
        question_send(server, &longs[i], "long");
        sem_wait(&work.at_work);
    }
    question_send(server, &asked, "short");
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += HELD_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    assert_int_equal(sem_timedwait(&asked.ended, &until), -1);
    for (int i = 0; i <= CONTROL_SOCKET_LONG_MAX; i++) {
        sem_post(&work.may_end);
    }
    question_end(&asked);
    assert_string_equal(asked.text, "short");
    for (int i = 0; i <= CONTROL_SOCKET_LONG_MAX; i++) {
        question_end(&longs[i]);
        assert_string_equal(longs[i].text, "long");
    }
    question_ask(server, &asked, "short");
    control_socket_stop(server);
    sem_destroy(&work.at_work);
    sem_destroy(&work.may_end);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lock_is_exclusive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lock_ends_with_its_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_secret_files_are_the_owners_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_whole_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failed_replacement, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_new_file_replaces_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_name_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_listing_and_removal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_space_and_paths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_background, set_up, tear_down),
        cmocka_unit_test(test_background_without_log),
        cmocka_unit_test_setup_teardown(test_control_without_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_control_answers_other_questions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_control_has_so_many_long_questions, set_up, tear_down),
        cmocka_unit_test(test_signals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
