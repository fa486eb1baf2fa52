/* What the rows of posix.def are written with.
 *
 * Each row runs in a process of its own, as root, with umask 0, in a new directory there
 * under test that everybody may write to; `here` tells its row. The first expectation that doesn't
 * hold prints one line and ends the process. */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

enum { NOBODY = 65534, SOMEBODY = 1234, SOMEGROUP = 4321 };

enum row_kind { ROW_ORDINARY, ROW_FULL, ROW_DAMAGED, ROW_SLOW, ROW_CANNOT };

struct row {
    const char *operation;
    const char *error_name; /* "" when it is no error that is tested */
    int error;
    enum row_kind kind;
    const char *what; /* the test's name, or the reason why it cannot occur */
    void (*run)(void);
};

extern const struct row *here;

/* The call must succeed: its result. */
#define WORKS(call)                                                                                \
    __extension__({ (__typeof__(call))posix_works((int64_t)(call), __FILE__, __LINE__, #call); })
/* The call must fail with this errno. */
#define FAILS(error_wanted, call)                                                                  \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if ((call) != (__typeof__(call))-1)                                                        \
            posix_fail(__FILE__, __LINE__, #call " succeeds", 0);                                  \
        if (errno != (error_wanted))                                                               \
            posix_fail(__FILE__, __LINE__, #call " fails", errno);                                 \
    } while (0)
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            posix_fail(__FILE__, __LINE__, #condition " does not hold", 0);                        \
    } while (0)

/* Answers the result, unless it is -1. */
int64_t posix_works(int64_t result, const char *file, int line, const char *call);
_Noreturn void posix_fail(const char *file, int line, const char *what, int error);
/* What the row needs is not on this machine: it is skipped, with the reason. */
_Noreturn void posix_skip(const char *what_is_missing);

/* A new file with this mode and text. */
void make_file(const char *name, mode_t mode, const char *text);
void make_directory(const char *name, mode_t mode);
/* The effective user and group, without supplementary groups but the one given (0: none). Back to
 * root with (0, 0, 0). */
void become(uid_t user, gid_t group, gid_t supplementary);
mode_t mode_of(const char *name); /* permission bits */
off_t size_of(const char *name);
bool is_there(const char *name);
/* What the file holds is this text. */
bool holds_text(const char *name, const char *text);
/* A copy of this directory, read only, in a mount namespace of this process's own; the process is
 * in it afterwards. */
void enter_read_only(void);
/* A signal with a handler comes soon, and again and again. */
void interrupt_soon(void);
/* A program that waits. */
void make_program(const char *name);
/* Starts the program and answers when it runs; the process is ended by program_end. */
pid_t program_start(const char *name);
void program_end(pid_t process);
/* Blocks that nobody has. */
uint64_t blocks_free(void);
/* A removed file's space is there once its removal is on disk, and that of whatever was removed
 * before, too: within some seconds. */
void wait_for_space(uint64_t blocks);
/* As many bytes as said, in one string. */
const char *long_text(size_t size);

/* An empty file, open for reading and writing. */
int new_file(const char *name);
/* Blocks that nobody has. */
fsblkcnt_t blocks_free(void);
/* A removed file's space is there once its removal is on disk, and that of whatever was removed
 * before, too: within some seconds. */
void wait_for_space(fsblkcnt_t blocks);

/* The tests, as the table names them. */
#define ROW(operation, error, test) void posix_##test(void);
#define DOES(operation, test) void posix_##test(void);
#define FULL(operation, error, test) void posix_##test(void);
#define FULL_DOES(operation, test) void posix_##test(void);
#define DAMAGED(operation, error, test) void posix_##test(void);
#define SLOW(operation, test) void posix_##test(void);
#define CANNOT(operation, error, reason)
#include "posix.def"
#undef ROW
#undef DOES
#undef FULL
#undef FULL_DOES
#undef DAMAGED
#undef SLOW
#undef CANNOT
