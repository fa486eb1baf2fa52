/* Key files: a reader of lines, and what is derived and added. */
#include "keys/key_file.h"
#include "base/endian.h"
#include "base/err.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char advice[] =
    "# Whoever can read this file may do in its cluster what its identity may: keep it secret.\n";
static const char version_word[] = "shoal-key ";
static const char identity_word[] = "identity ";
static const char key_word[] = "key ";
static const char check_word[] = "check ";

enum { NAME_DIGITS = 16, SECRET_DIGITS = 2 * SECRET_BYTES };

/* How far a reader has come, and what it has found. */
struct reader {
    struct bytes text;
    size_t offset;
    uint32_t line_number;
    struct bytes line;
    size_t line_offset;
    struct key_file file;
    bool has_version;
    bool has_identity;
    bool has_check;
    char *problem;
};

static int refuse(const struct reader *reader, int result, const char *what) {
    snprintf(reader->problem, KEY_PROBLEM_BYTES, "line %" PRIu32 ": %s", reader->line_number, what);
    return result;
}

struct key_name key_name_of(const struct secret *members_key) {
    uint8_t digest[TAG_BYTES];

    sha256((struct bytes){members_key->bytes, sizeof members_key->bytes}, digest);
    return (struct key_name){load_be64(digest)};
}

void key_file_make(const struct secret *members_key, struct key_file *ret_file) {
    *ret_file = (struct key_file){.identity = IDENTITY_OF_MEMBER,
                                  .key_count = 1,
                                  .keys = {{key_name_of(members_key), *members_key}}};
}

void key_file_wipe(struct key_file *file) {
    secret_wipe(file, sizeof *file);
}

/* -1: no digit. */
static int digit_value(uint8_t digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool digits_take(struct bytes *line, uint8_t *ret_bytes, size_t count) {
    if (line->size < 2 * count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        int high = digit_value(line->data[2 * i]);
        int low = digit_value(line->data[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        ret_bytes[i] = (uint8_t)(high << 4 | low);
    }
    *line = (struct bytes){line->data + 2 * count, line->size - 2 * count};
    return true;
}

static bool word_take(struct bytes *line, const char *word) {
    size_t size = strlen(word);

    if (line->size < size || memcmp(line->data, word, size) != 0) {
        return false;
    }
    *line = (struct bytes){line->data + size, line->size - size};
    return true;
}

/* The next line that means something. */
static bool line_next(struct reader *reader) {
    while (reader->offset < reader->text.size) {
        const uint8_t *from = reader->text.data + reader->offset;
        size_t left = reader->text.size - reader->offset;
        const uint8_t *end = memchr(from, '\n', left);

        reader->line_offset = reader->offset;
        reader->line = (struct bytes){from, end ? (size_t)(end - from) : left};
        reader->offset += reader->line.size + (end ? 1 : 0);
        reader->line_number++;
        if (reader->line.size > 0 && reader->line.data[0] != '#') {
            return true;
        }
    }
    return false;
}

static int version_read(struct reader *reader, struct bytes rest) {
    uint32_t version = 0;

    if (rest.size == 0 || rest.size > 9) {
        return refuse(reader, -ERR_MALFORMED, "the version is not a number");
    }
    for (size_t i = 0; i < rest.size; i++) {
        if (rest.data[i] < '0' || rest.data[i] > '9') {
            return refuse(reader, -ERR_MALFORMED, "the version is not a number");
        }
        version = 10 * version + (uint32_t)(rest.data[i] - '0');
    }
    if (version > KEY_FILE_VERSION) {
        return refuse(reader, -ERR_NEWER_FORMAT, "a newer version of Shoal has written it");
    }
    if (version < KEY_FILE_VERSION) {
        return refuse(reader, -ERR_MALFORMED, "there is no such version");
    }
    reader->has_version = true;
    return 0;
}

static int key_read(struct reader *reader, struct bytes rest) {
    struct key_file *file = &reader->file;
    uint8_t name[sizeof(uint64_t)];

    if (!reader->has_identity) {
        return refuse(reader, -ERR_MALFORMED, "a key stands before the identity");
    }
    if (file->key_count == KEY_FILE_KEYS_MAX) {
        return refuse(reader, -ERR_MALFORMED, "there are more than two keys");
    }
    struct key_file_key *key = &file->keys[file->key_count];
    if (rest.size != NAME_DIGITS + 1 + SECRET_DIGITS || !digits_take(&rest, name, sizeof name) ||
        !word_take(&rest, " ") || !digits_take(&rest, key->secret.bytes, SECRET_BYTES)) {
        return refuse(reader, -ERR_MALFORMED,
                      "a key is a name of 16 and a secret of 64 hexadecimal digits");
    }
    key->name.value = load_be64(name);
    if (file->identity.kind == IDENTITY_MEMBER &&
        key_name_of(&key->secret).value != key->name.value) {
        return refuse(reader, -ERR_CORRUPT, "the key is not the one that it is named for");
    }
    if (file->key_count > 0 && file->keys[0].name.value == key->name.value) {
        return refuse(reader, -ERR_MALFORMED, "both keys are the same");
    }
    file->key_count++;
    return 0;
}

static int check_read(struct reader *reader, struct bytes rest) {
    uint8_t digest[TAG_BYTES];
    uint8_t named[sizeof(uint64_t)];

    sha256((struct bytes){reader->text.data, reader->line_offset}, digest);
    if (rest.size != NAME_DIGITS || !digits_take(&rest, named, sizeof named)) {
        return refuse(reader, -ERR_MALFORMED, "a check has 16 hexadecimal digits");
    }
    if (memcmp(named, digest, sizeof named) != 0) {
        return refuse(reader, -ERR_CORRUPT, "the check does not fit what stands above it");
    }
    reader->has_check = true;
    return 0;
}

static int line_read(struct reader *reader) {
    struct bytes rest = reader->line;

    if (reader->has_check) {
        return refuse(reader, -ERR_MALFORMED, "something stands behind the check");
    }
    if (!reader->has_version) {
        return word_take(&rest, version_word)
                   ? version_read(reader, rest)
                   : refuse(reader, -ERR_MALFORMED, "this is not a key file of Shoal");
    }
    if (word_take(&rest, identity_word)) {
        if (reader->has_identity || identity_parse(rest, &reader->file.identity) < 0) {
            return refuse(reader, -ERR_MALFORMED,
                          reader->has_identity ? "there is a second identity"
                                               : "the identity is not one that is known");
        }
        reader->has_identity = true;
        return 0;
    }
    if (word_take(&rest, key_word)) {
        return key_read(reader, rest);
    }
    if (word_take(&rest, check_word)) {
        return check_read(reader, rest);
    }
    return refuse(reader, -ERR_MALFORMED, "the line is not understood");
}

static int text_read(struct reader *reader) {
    while (line_next(reader)) {
        int r = line_read(reader);

        if (r < 0) {
            return r;
        }
    }
    if (!reader->has_version) {
        return refuse(reader, -ERR_MALFORMED, "it is empty");
    }
    if (!reader->has_check) {
        return refuse(reader, -ERR_MALFORMED, "its end is missing");
    }
    return reader->file.key_count > 0 ? 0 : refuse(reader, -ERR_MALFORMED, "there is no key");
}

int key_file_parse(struct bytes text, struct key_file *ret_file,
                   char ret_problem[KEY_PROBLEM_BYTES]) {
    struct reader reader = {.text = text, .problem = ret_problem};
    int r;

    if (text.size > KEY_FILE_BYTES_MAX) {
        r = refuse(&reader, -ERR_MALFORMED, "it is too long");
    } else {
        r = text_read(&reader);
    }
    if (r == 0) {
        *ret_file = reader.file;
    }
    key_file_wipe(&reader.file);
    return r;
}

static size_t key_print(const struct key_file_key *key, char *to, size_t capacity) {
    static const char digits[] = "0123456789abcdef";
    char secret[SECRET_DIGITS + 1] = {0};

    for (size_t i = 0; i < SECRET_BYTES; i++) {
        secret[2 * i] = digits[key->secret.bytes[i] >> 4];
        secret[2 * i + 1] = digits[key->secret.bytes[i] & 15];
    }
    int size = snprintf(to, capacity, "%s%016" PRIx64 " %s\n", key_word, key->name.value, secret);

    secret_wipe(secret, sizeof secret);
    return (size_t)size;
}

size_t key_file_print(const struct key_file *file, char ret_text[KEY_FILE_BYTES_MAX]) {
    char identity[IDENTITY_BYTES_MAX + 1];
    uint8_t digest[TAG_BYTES];

    (void)identity_print(&file->identity, identity);
    size_t size = (size_t)snprintf(ret_text, KEY_FILE_BYTES_MAX, "%s%s%d\n%s%s\n", advice,
                                   version_word, KEY_FILE_VERSION, identity_word, identity);
    for (uint32_t i = 0; i < file->key_count; i++) {
        size += key_print(&file->keys[i], ret_text + size, KEY_FILE_BYTES_MAX - size);
    }
    sha256((struct bytes){(const uint8_t *)ret_text, size}, digest);
    size += (size_t)snprintf(ret_text + size, KEY_FILE_BYTES_MAX - size, "%s%016" PRIx64 "\n",
                             check_word, load_be64(digest));
    assert(size < KEY_FILE_BYTES_MAX);
    return size;
}

void key_derive_psk(const struct secret *members_key, const struct identity *identity,
                    struct secret *ret_psk) {
    char text[IDENTITY_BYTES_MAX + 1];
    size_t size = identity_print(identity, text);

    hkdf_sha256(members_key, "psk", (struct bytes){(const uint8_t *)text, size}, ret_psk);
}

void key_file_derive(const struct key_file *members, const struct identity *identity,
                     struct key_file *ret_mount) {
    assert(members->identity.kind == IDENTITY_MEMBER && identity->kind != IDENTITY_MEMBER);
    *ret_mount = (struct key_file){.identity = *identity, .key_count = members->key_count};
    for (uint32_t i = 0; i < members->key_count; i++) {
        ret_mount->keys[i].name = members->keys[i].name;
        key_derive_psk(&members->keys[i].secret, identity, &ret_mount->keys[i].secret);
    }
}

int key_file_add(struct key_file *file, const struct key_file *newer,
                 char ret_problem[KEY_PROBLEM_BYTES]) {
    const char *problem = NULL;

    if (!identity_is(&file->identity, &newer->identity)) {
        problem = "the new key is of another identity";
    } else if (file->key_count != 1) {
        problem = "it has two keys already: the older goes before a third comes";
    } else if (newer->key_count != 1) {
        problem = "the file of the new key has two";
    } else if (file->keys[0].name.value == newer->keys[0].name.value) {
        problem = "it has this key already";
    }
    if (problem) {
        snprintf(ret_problem, KEY_PROBLEM_BYTES, "%s", problem);
        return -ERR_INVALID;
    }
    file->keys[1] = file->keys[0];
    file->keys[0] = newer->keys[0];
    file->key_count = 2;
    return 0;
}
