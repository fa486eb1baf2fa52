/* Which cluster a verb means: one named by its directory, one by a path in its mount, one by
 * addresses of its nodes and the members' key, else that of SHOAL_CLUSTER (a directory, or
 * addresses) and SHOAL_KEY, else the only one that runs on this machine. */
#pragma once
#include "cmd/verb.h"
#include <stdint.h>

enum { FIND_PATH_BYTES = 4096, FIND_ADDRESSES_BYTES = 512 };

/* As it was typed; NULL: not. */
struct find_words {
    const char *what; /* a directory or path */
    const char *join; /* addresses */
    const char *key;  /* file */
};

/* Where it is asked: at the control socket in the directory, or at the addresses, with the key. */
struct find_place {
    char directory[FIND_PATH_BYTES]; /* empty: by addresses */
    char addresses[FIND_ADDRESSES_BYTES];
    char key[FIND_PATH_BYTES];
};

/* --join and --key. What a verb that shares them reads words into begins with a find_words. */
extern const struct verb_option find_options[];
/* Takes a word as what; a second one is refused with a usage line. */
int find_noun(const struct verb *verb, const char *word, void *words);
/* Fills the place, or prints one line that says what is wrong and answers an exit status other than
 * 0. */
int find_place(const struct verb *verb, const struct find_words *words,
               struct find_place *ret_place);
/* As find_and_call, at such a place. */
int find_and_ask(const struct verb *verb, const struct find_words *words, size_t argument_count,
                 const char *const *arguments);
/* Asks at addresses. The exit status, with a line where nobody could be asked. */
struct find_request {
    size_t argument_count;
    const char *const *arguments;
    uint64_t patience_ns; /* for the answer; 0: as long as it takes */
    void (*output)(void *context, const char *text, size_t size);
    void *context;
};
int find_ask_afar(const struct verb *verb, const struct find_place *place,
                  const struct find_request *request);
/* To standard output what is an answer, else to standard error, as the verb's. Takes the text. */
int find_print(const struct verb *verb, int status, char *text);
/* The directory of what, or, where that is in a mount by addresses, these. Likewise. */
int find_cluster_or_addresses(const struct verb *verb, const char *what,
                              char ret_directory[FIND_PATH_BYTES],
                              char ret_addresses[FIND_ADDRESSES_BYTES]);

/* what may be NULL. Fills the directory, or prints one line that says what is wrong and answers an
 * exit status other than 0. */
int find_cluster(const struct verb *verb, const char *what, char ret_directory[FIND_PATH_BYTES]);
/* The absolute path, for the caller to free; likewise. A mount that doesn't answer is not asked. */
int find_path(const struct verb *verb, const char *what, char **ret_path);
/* Sends the request to the daemon of the directory; its text goes to standard output, or to
 * standard error (behind "shoal VERB: ") when it failed. Answers the exit status. */
int find_and_call(const struct verb *verb, const char *what, size_t argument_count,
                  const char *const *arguments);
/* The same for a directory that is known already. */
int call_daemon(const struct verb *verb, const char *directory, size_t argument_count,
                const char *const *arguments);
/* What the table of mounts says is mounted there, where the daemon itself serves it: this and the
 * directory. A path alone, or addresses, are of a mount by a process of its own, which may live
 * when its daemon does not. */
#define FIND_SERVED_INSIDE "shoal@"
/* Whether what is mounted somewhere is a cluster that is known by addresses. */
bool find_is_addresses(const char *source);
/* Whether its daemon runs, and no mount is there; nothing is printed. */
bool find_is_unmounted(const char *directory);
/* Whether its daemon serves the mount at this path itself; nothing is printed. */
bool find_is_mounted_at(const char *directory, const char *path);
/* Whether its daemon waits for its cluster to mount it at this path, or has a mount there that has
 * died; nothing is printed. */
bool find_waits_at(const char *directory, const char *path);
/* Says why a daemon could not be asked; answers the exit status. */
int call_failed(const struct verb *verb, const char *directory, int error);
