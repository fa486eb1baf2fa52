/* The contract is in control_words.h. */
#include "cmd/control_words.h"
#include "cmd/verb.h"
#include "layout/layout.h"
#include <stdlib.h>
#include <string.h>

enum { SERIAL_DIGITS = 16 };

static bool ino_take(size_t count, char *const *words, size_t index, uint64_t *ret_ino) {
    unsigned long long ino;

    if (index >= count || !verb_parse_count(words[index], &ino)) {
        return false;
    }
    *ret_ino = ino;
    return true;
}

bool control_words_stat(size_t count, char *const *words, uint64_t *ret_ino) {
    return ino_take(count, words, 1, ret_ino);
}

static bool stripe_count_take(const char *word, int32_t *ret_count) {
    unsigned long long number = 0;

    if (strcmp(word, "all") == 0) {
        *ret_count = -1;
        return true;
    }
    if (strcmp(word, "-") != 0 &&
        (!verb_parse_count(word, &number) || number == 0 || number >= STRIPE_ALL)) {
        return false;
    }
    *ret_count = (int32_t)number;
    return true;
}

static bool chunk_bytes_take(const char *word, uint32_t *ret_bytes) {
    unsigned long long number = 0;

    if (strcmp(word, "-") != 0 && (!verb_parse_bytes(word, &number) || number < CHUNK_BYTES_MIN ||
                                   number > CHUNK_BYTES_MAX || number % CHUNK_BYTES_MIN != 0)) {
        return false;
    }
    *ret_bytes = (uint32_t)number;
    return true;
}

static bool has_word(size_t count, char *const *words, const char *word) {
    for (size_t i = 1; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

bool control_words_stripe(size_t count, char *const *words,
                          struct control_stripe_words *ret_words) {
    struct control_stripe_words said = {.sets = count > 1 && strcmp(words[1], "set") == 0};
    bool gets = count > 1 && strcmp(words[1], "get") == 0;

    if (count - has_word(count, words, "--json") != 5 || !(said.sets || gets) ||
        !ino_take(count, words, 2, &said.ino) || !stripe_count_take(words[3], &said.stripe_count) ||
        !chunk_bytes_take(words[4], &said.chunk_bytes) ||
        (gets && (said.stripe_count != 0 || said.chunk_bytes != 0))) {
        return false;
    }
    *ret_words = said;
    return true;
}

bool control_words_target(size_t count, char *const *words,
                          struct control_target_words *ret_words) {
    static const char *const whats[] = {[CONTROL_TARGET_CHECK] = "check",
                                        [CONTROL_TARGET_ASK] = "ask",
                                        [CONTROL_TARGET_DO] = "yes"};
    unsigned long long target = 0;

    if (count != 4 || strcmp(words[1], "lost") != 0 || !verb_parse_count(words[2], &target) ||
        target > UINT32_MAX) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(whats); i++) {
        if (strcmp(words[3], whats[i]) == 0) {
            *ret_words =
                (struct control_target_words){(uint32_t)target, (enum control_target_what)i};
            return true;
        }
    }
    return false;
}

bool control_words_serial(const char *word, uint64_t *ret_serial) {
    if (strlen(word) != SERIAL_DIGITS || strspn(word, "0123456789abcdef") != SERIAL_DIGITS ||
        strspn(word, "0") == SERIAL_DIGITS) {
        return false;
    }
    *ret_serial = strtoull(word, NULL, 16);
    return true;
}

bool control_words_revoke(size_t count, char *const *words, uint64_t *ret_serial) {
    return count == 2 && control_words_serial(words[1], ret_serial);
}
