/* Identities: a reader that takes nothing but what the printer prints. */
#include "keys/identity.h"
#include "base/err.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char member_word[] = "member";
static const char mount_word[] = "mount:";
static const char read_only_word[] = ":ro";
static const char squash_word[] = ":squash=root";

enum { SERIAL_DIGITS = 16 };

/* Whether the text goes on with the word; then it is behind it. */
static bool word_take(struct bytes *text, const char *word) {
    size_t size = strlen(word);

    if (text->size < size || memcmp(text->data, word, size) != 0) {
        return false;
    }
    *text = (struct bytes){text->data + size, text->size - size};
    return true;
}

static bool serial_take(struct bytes *text, uint64_t *ret_serial) {
    uint64_t serial = 0;

    if (text->size < SERIAL_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < SERIAL_DIGITS; i++) {
        uint8_t digit = text->data[i];

        if (digit >= '0' && digit <= '9') {
            serial = serial << 4 | (uint64_t)(digit - '0');
        } else if (digit >= 'a' && digit <= 'f') {
            serial = serial << 4 | (uint64_t)(digit - 'a' + 10);
        } else {
            return false;
        }
    }
    *text = (struct bytes){text->data + SERIAL_DIGITS, text->size - SERIAL_DIGITS};
    *ret_serial = serial;
    return serial != 0;
}

int identity_parse(struct bytes text, struct identity *ret_identity) {
    struct identity identity = {.kind = IDENTITY_MEMBER};

    if (text.size > IDENTITY_BYTES_MAX) {
        return -ERR_MALFORMED;
    }
    if (!word_take(&text, member_word)) {
        identity.kind = IDENTITY_MOUNT;
        if (!word_take(&text, mount_word) || !serial_take(&text, &identity.serial)) {
            return -ERR_MALFORMED;
        }
        identity.read_only = word_take(&text, read_only_word);
        identity.squash_root = word_take(&text, squash_word);
    }
    if (text.size > 0) {
        return -ERR_MALFORMED;
    }
    *ret_identity = identity;
    return 0;
}

size_t identity_print(const struct identity *identity, char ret_text[IDENTITY_BYTES_MAX + 1]) {
    int size;

    if (identity->kind == IDENTITY_MEMBER) {
        size = snprintf(ret_text, IDENTITY_BYTES_MAX + 1, "%s", member_word);
    } else {
        size = snprintf(ret_text, IDENTITY_BYTES_MAX + 1, "%s%016" PRIx64 "%s%s", mount_word,
                        identity->serial, identity->read_only ? read_only_word : "",
                        identity->squash_root ? squash_word : "");
    }
    return (size_t)size;
}

bool identity_is(const struct identity *a, const struct identity *b) {
    return a->kind == b->kind && a->serial == b->serial && a->read_only == b->read_only &&
           a->squash_root == b->squash_root;
}
