/* The words of requests at the control socket, behind their frame: what verbs say, and what other
 * nodes pass on. words[0] is the verb. False: they are no such request, and nothing was written. */
#pragma once
#include "base/types.h"
#include <shoal/shoal.h>

/* stat INO [--json] */
bool control_words_stat(size_t count, char *const *words, uint64_t *ret_ino);

/* stripe get INO - - | stripe set INO COUNT|all|- BYTES|-, and --json */
struct control_stripe_words {
    bool sets;
    uint64_t ino;
    int32_t stripe_count; /* -1: all; 0: as it is */
    uint32_t chunk_bytes; /* 0: as it is */
};
bool control_words_stripe(size_t count, char *const *words, struct control_stripe_words *ret_words);

/* target lost ID check|ask|yes */
enum control_target_what { CONTROL_TARGET_CHECK, CONTROL_TARGET_ASK, CONTROL_TARGET_DO };
struct control_target_words {
    uint32_t target;
    enum control_target_what what;
};
bool control_words_target(size_t count, char *const *words, struct control_target_words *ret_words);

/* revoke SERIAL: 16 digits of a mount's key, as `key mount` has told them; not 0. */
bool control_words_serial(const char *word, uint64_t *ret_serial);
bool control_words_revoke(size_t count, char *const *words, uint64_t *ret_serial);
