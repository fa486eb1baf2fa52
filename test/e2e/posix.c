/* Runs the table of posix.def on a directory.
 *
 *     posix DIRECTORY [ordinary|full|damaged|slow|list] [OPERATION]
 *
 * ordinary runs what needs nothing special; full, what needs a file system to fill, damaged, what
 * needs one whose file "damaged" has lost its data; slow, what takes minutes. Prints a line for
 * each row that fails, and how many passed; list prints the table. */
#include "posix.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROW_LIMIT_S = 600, EXIT_SKIPPED = 77 };

static const struct row rows[] = {
#define ROW(operation, error, test) {#operation, #error, error, ROW_ORDINARY, #test, posix_##test},
#define DOES(operation, test) {#operation, "", 0, ROW_ORDINARY, #test, posix_##test},
#define FULL(operation, error, test) {#operation, #error, error, ROW_FULL, #test, posix_##test},
#define FULL_DOES(operation, test) {#operation, "", 0, ROW_FULL, #test, posix_##test},
#define SLOW(operation, test) {#operation, "", 0, ROW_SLOW, #test, posix_##test},
#define DAMAGED(operation, error, test)                                                            \
    {#operation, #error, error, ROW_DAMAGED, #test, posix_##test},
#define CANNOT(operation, error, reason) {#operation, #error, error, ROW_CANNOT, reason, NULL},
#include "posix.def"
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

const struct row *here;

static void say(const char *verdict, const char *what) {
    printf("%s: %s %s (%s): %s\n", verdict, here->operation, here->error_name, here->what, what);
    fflush(stdout);
}

void posix_fail(const char *file, int line, const char *what, int error) {
    const char *name = strrchr(file, '/');
    char text[512];

    snprintf(text, sizeof text, "%s:%d: %s%s%s", name ? name + 1 : file, line, what,
             error ? " with " : "", error ? strerrorname_np(error) : "");
    say("FAILED", text);
    _exit(1);
}

int64_t posix_works(int64_t result, const char *file, int line, const char *call) {
    char text[256];

    if (result == -1) {
        int error = errno;

        snprintf(text, sizeof text, "%s fails", call);
        posix_fail(file, line, text, error);
    }
    return result;
}

void posix_skip(const char *what_is_missing) {
    say("skipped", what_is_missing);
    _exit(EXIT_SKIPPED);
}

static _Noreturn void run_here(const struct row *row, const char *directory) {
    bool ready = row->kind == ROW_DAMAGED || mkdir(directory, 0777) == 0;

    if (!ready || chdir(directory) != 0) {
        posix_fail(__FILE__, __LINE__, "no directory to work in", errno);
    }
    alarm(ROW_LIMIT_S);
    row->run();
    _exit(0);
}

/* 0 passed, 1 failed, EXIT_SKIPPED. */
static int run_row(const struct row *row, const char *top, size_t index) {
    char directory[4096 + 64];
    char what[64];
    int status;

    here = row;
    snprintf(directory, sizeof directory, "%s/%zu-%s", top, index, row->operation);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        run_here(row, row->kind == ROW_DAMAGED ? top : directory);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        say("FAILED", "no process");
        return 1;
    }
    if (WIFSIGNALED(status)) {
        snprintf(what, sizeof what, "%s",
                 WTERMSIG(status) == SIGALRM ? "hangs" : sigdescr_np(WTERMSIG(status)));
        say("FAILED", what);
        return 1;
    }
    return WEXITSTATUS(status);
}

static void print_rows(void) {
    static const char *const kinds[] = {"tested", "tested, full", "tested, damaged", "tested, slow",
                                        "cannot"};

    for (size_t i = 0; i < ROW_COUNT; i++) {
        printf("%-14s %-14s %-15s %s\n", rows[i].operation, rows[i].error_name, kinds[rows[i].kind],
               rows[i].what);
    }
}

static int run_rows(const char *top, enum row_kind kind, const char *operation) {
    size_t passed = 0;
    size_t failed = 0;
    size_t skipped = 0;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].kind != kind || (operation && strcmp(operation, rows[i].operation) != 0)) {
            continue;
        }
        int status = run_row(&rows[i], top, i);
        passed += status == 0;
        skipped += status == EXIT_SKIPPED;
        failed += status != 0 && status != EXIT_SKIPPED;
    }
    printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
    return failed > 0 ? 1 : 0;
}

int main(int argc, char **argv) {
    static const char *const kinds[] = {"ordinary", "full", "damaged", "slow"};
    const char *kind = argc > 2 ? argv[2] : kinds[0];
    char top[4096];

    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: posix DIRECTORY [ordinary|full|damaged|slow|list] [OPERATION]\n");
        return 2;
    }
    if (strcmp(kind, "list") == 0) {
        print_rows();
        return 0;
    }
    if (!realpath(argv[1], top)) {
        fprintf(stderr, "posix: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    umask(0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            return run_rows(top, (enum row_kind)i, argc > 3 ? argv[3] : NULL);
        }
    }
    fprintf(stderr, "posix: no rows are called %s\n", kind);
    return 2;
}
