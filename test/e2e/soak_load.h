/* A process of the soak's load: it works in a directory of its own on the mount, knows outside of
 * it what was acknowledged, and compares. A daemon that dies under it is expected.
 *
 * Thread: one, which owns all of it. */
#pragma once
#include "base/prng.h"
#include <stdint.h>
#include <sys/types.h>

enum {
    LOAD_JOURNAL_CALLS = 4096,
    LOAD_PATH_BYTES = 4096,
    LOAD_PROBLEM_BYTES = 1024,
    /* What a call came to, if nothing better. */
    LOAD_DEAD = -1,  /* there is no daemon */
    LOAD_FULL = -2,  /* ENOSPC */
    LOAD_WRONG = -3, /* what may never be; problem says it */
};

struct load_call {
    uint64_t began_ns;
    uint64_t ended_ns; /* 0: not answered */
    int64_t result;    /* or -errno */
    uint64_t offset;
    uint64_t length;
    char what[88];
};

/* A file mapped in here and in the test, which looks for calls without an answer; it also stays
 * when something was found. */
struct load_state {
    uint64_t began_ns;     /* of the call in flight, 0: none */
    uint64_t acknowledged; /* changes */
    uint64_t checked;      /* of these, found again later */
    uint64_t refused;      /* ENOSPC */
    uint64_t calls;        /* the newest one is journal[(calls - 1) % LOAD_JOURNAL_CALLS] */
    struct load_call journal[LOAD_JOURNAL_CALLS];
};

struct load {
    const char *directory;
    struct load_state *state;
    struct prng prng;
    int ignored_error; /* that the call at hand may meet, 0: none */
    char problem[LOAD_PROBLEM_BYTES];
};

/* Around each call on the mount. call_end answers the result, or LOAD_DEAD, LOAD_FULL, LOAD_WRONG;
 * for the error that load_may_fail has named just before, LOAD_WRONG without a problem. */
__attribute__((format(printf, 4, 5))) void load_begin(struct load *load, uint64_t offset,
                                                      uint64_t length, const char *format, ...);
int64_t load_end(struct load *load, int64_t result);
void load_may_fail(struct load *load, int error);
/* The call at hand has changed something. */
void load_acknowledge(struct load *load);
/* Answers LOAD_WRONG. */
__attribute__((format(printf, 2, 3))) int load_complain(struct load *load, const char *format, ...);
/* The first bytes of all content of this number. */
void load_fill(uint8_t *bytes, size_t length, uint64_t number);

/* What a kind of load does. Both answer 0 or a LOAD_; step does one thing, or tries again what met
 * ENOSPC; check compares all, after which what was in flight is as it was found. */
struct load_work {
    void *context;
    int (*step)(void *context);
    int (*check)(void *context);
};

/* NULL's place: a kind that is unknown. `bytes` is how large files become. */
struct load_work data_load(struct load *load, const char *kind, uint64_t bytes);
struct load_work names_load(struct load *load, const char *kind, uint64_t bytes);
