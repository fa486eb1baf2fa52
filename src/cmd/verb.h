/* The verbs of `shoal`: one table row and one file each. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* PARTLY: there is an answer, but not of all nodes. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_PARTLY = 3 };

struct verb;

/* One row is all there is of an option: by it words are read, help, completion and manual made. */
struct verb_option {
    const char *name;  /* "--size"; "-o ttl" is a word of -o; NULL ends a table */
    const char *value; /* as help names it: BYTES, on|off, [NAME], which may be left out where the
                          verb reads its words itself; NULL: it stands alone */
    const char *help;  /* one paragraph; lines are broken where they are printed */
    const char *of;    /* kinds of its verb that take it, with spaces between; NULL: all */
    size_t offset;     /* in what the verb reads words into, where take is NULL: a bool that becomes
                          true or, with a value, a const char * */
    /* An exit status; what is refused has been printed. value is "" where the row has none. */
    int (*take)(const struct verb *verb, const char *value, void *words);
};

/* Rows: a text, a flag of the words that a verb reads, and what a function takes. */
#define VERB_TEXT(text, shown, words, field, told)                                                 \
    {.name = (text), .value = (shown), .help = told, .offset = offsetof(words, field)}
#define VERB_FLAG(text, words, field, told)                                                        \
    {.name = (text), .help = told, .offset = offsetof(words, field)}
#define VERB_TAKE(text, shown, function, told)                                                     \
    {.name = (text), .value = (shown), .help = told, .take = (function)}

/* What the first word behind a verb may be. */
struct verb_kind {
    const char *name; /* NULL ends a table */
    const char *help; /* one paragraph */
};

/* What a verb's words without dashes are, for completion. */
enum verb_nouns { VERB_PATHS, VERB_FOLDERS, VERB_NO_NOUNS };

struct verb {
    const char *name;      /* "shoald" is a program of its own, the others are words of `shoal` */
    const char *arguments; /* as in the usage line; " | " stands between ways to say it */
    const char *summary;   /* one sentence */
    const struct verb_kind *kinds;     /* NULL: there are none */
    const struct verb_option *options; /* NULL: none */
    const struct verb_option *shared;  /* more, which other verbs have, too; NULL: none */
    const char *notes;                 /* paragraphs behind the options; NULL: none */
    const char *example;
    enum verb_nouns nouns;
    /* argv[0] is the verb; answers an exit status. */
    int (*run)(const struct verb *verb, int argc, char **argv);
    /* What --help prints; NULL: verb_help. */
    void (*help)(const struct verb *verb, int argc, char **argv);
};

/* The row of an option, or NULL. kind: only what that one takes; NULL: whatever any takes. */
const struct verb_option *verb_option_find(const struct verb *verb, const char *kind,
                                           const char *name, size_t name_size);
/* Puts the value where the row says. */
int verb_option_take(const struct verb *verb, const struct verb_option *option, const char *value,
                     void *words);
/* The i-th of a verb's rows, its own first; NULL behind the last. */
const struct verb_option *verb_option_at(const struct verb *verb, size_t index);

/* Reads words, up to a NULL, into what the rows of the verb speak of. noun gets each that does not
 * begin with a dash; NULL: there is to be none. EXIT_OK, or the first status that is another. */
int verb_parse(const struct verb *verb, const char *kind, char *const *argv,
               int (*noun)(const struct verb *verb, const char *word, void *words), void *words);

/* One line on standard error, "shoal VERB: ..." or "shoald: ...". EXIT_USAGE or EXIT_FAILED. */
__attribute__((format(printf, 2, 3))) int verb_usage(const struct verb *verb, const char *format,
                                                     ...);
__attribute__((format(printf, 2, 3))) int verb_fail(const struct verb *verb, const char *format,
                                                    ...);
/* Likewise, behind "note: ", of what is no failure. */
__attribute__((format(printf, 2, 3))) void verb_note(const struct verb *verb, const char *format,
                                                     ...);
void verb_help(const struct verb *verb);
/* A row of help: the head, and text from a column on, in lines of VERB_COLUMNS at most. */
enum { VERB_COLUMNS = 80, VERB_OPTION_COLUMN = 26, VERB_LIST_COLUMN = 14 };
void verb_print_line(const char *head, const char *text, size_t column);
/* A paragraph, from `column` on; its next lines begin at `indent`. A bracket stays whole. */
void verb_print_text(const char *text, size_t column, size_t indent);
/* Help of an option, behind the kinds that take it. */
enum { VERB_TEXT_BYTES = 1024 };
void verb_option_text(const struct verb_option *option, char ret_text[VERB_TEXT_BYTES]);
/* The next way to say it in a verb's arguments, with its size; NULL behind the last. */
const char *verb_way_next(const char *arguments, const char *way, size_t *ret_size);
/* Whether one of the words asks for help. */
bool verb_is_help(int argc, char **argv);
bool verb_is_version(const char *word);

/* A number with an optional unit K, M, G, T (powers of 1,024); false when it is none. */
bool verb_parse_bytes(const char *text, unsigned long long *ret_bytes);
bool verb_parse_count(const char *text, unsigned long long *ret_count);

extern const struct verb verb_up, verb_down, verb_mount, verb_umount, verb_status, verb_df,
    verb_stats, verb_sync, verb_stat, verb_stripe, verb_fsck, verb_target, verb_key, verb_doctor,
    verb_bench, verb_plan, verb_completion, verb_manual, verb_version, verb_shoald;

/* The words of `shoal`, as its help lists them; NULL is behind the last. */
extern const struct verb *const verb_list[];
/* NULL: there is none. */
const struct verb *verb_find(const char *name);
/* verb_shoald is found, too. */
const struct verb *verb_find_any(const char *name);
