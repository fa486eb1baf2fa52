/* The verbs of `shoal`: one table row and one file each. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* PARTLY: there is an answer, but not of all nodes. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_PARTLY = 3 };

struct verb {
    const char *name;      /* "shoald" is a program of its own, the others are words of `shoal` */
    const char *arguments; /* as in the usage line */
    const char *summary;   /* one line */
    const char *options;   /* lines of help, or "" */
    const char *example;
    /* argv[0] is the verb; answers an exit status. */
    int (*run)(const struct verb *verb, int argc, char **argv);
    /* What --help prints; NULL: verb_help. */
    void (*help)(const struct verb *verb, int argc, char **argv);
};

/* One line on standard error, "shoal VERB: ..." or "shoald: ...". EXIT_USAGE or EXIT_FAILED. */
__attribute__((format(printf, 2, 3))) int verb_usage(const struct verb *verb, const char *format,
                                                     ...);
__attribute__((format(printf, 2, 3))) int verb_fail(const struct verb *verb, const char *format,
                                                    ...);
/* Likewise, behind "note: ", of what is no failure. */
__attribute__((format(printf, 2, 3))) void verb_note(const struct verb *verb, const char *format,
                                                     ...);
void verb_help(const struct verb *verb);
/* Whether one of the words asks for help. */
bool verb_is_help(int argc, char **argv);

/* A number with an optional unit K, M, G, T (powers of 1,024); false when it is none. */
bool verb_parse_bytes(const char *text, unsigned long long *ret_bytes);
bool verb_parse_count(const char *text, unsigned long long *ret_count);

extern const struct verb verb_up, verb_down, verb_mount, verb_umount, verb_status, verb_df,
    verb_stats, verb_sync, verb_stat, verb_stripe, verb_fsck, verb_target, verb_key, verb_doctor,
    verb_bench, verb_plan, verb_version;
