/* Key files, as text:
 *
 *     # Whoever can read this file may do in its cluster what its identity may: keep it secret.
 *     shoal-key 1
 *     identity member
 *     key 6ea2f3a1c8d09b54 64 hexadecimal digits
 *     check 0f8be2c3d4a59617
 *
 * A members' key file holds the members' key, from which every other key is derived; one of a mount
 * holds the key that is derived for its identity. Each line "key" names the members' key that it
 * is, or is derived from, by the first 8 bytes of that key's SHA-256; there are one or two, the
 * newest first. check: the first 8 bytes of the SHA-256 of all that stands above its line.
 * Empty lines and lines that begin with # mean nothing.
 *
 * Pure functions over bytes. Thread: any.  Memory: the caller's; key_file_wipe ends a file. */
#pragma once
#include "base/types.h"
#include "keys/hmac.h"
#include "keys/identity.h"

enum { KEY_FILE_VERSION = 1, KEY_FILE_KEYS_MAX = 2, KEY_FILE_BYTES_MAX = 4096 };
enum { KEY_PROBLEM_BYTES = 128 };

/* The first 8 bytes of the SHA-256 of a members' key, the first of them on the left. */
struct key_name {
    uint64_t value;
};
struct key_name key_name_of(const struct secret *members_key);

struct key_file_key {
    struct key_name name;
    struct secret secret;
};
struct key_file {
    struct identity identity;
    uint32_t key_count;
    struct key_file_key keys[KEY_FILE_KEYS_MAX]; /* newest first */
};

/* A members' file with this one key. */
void key_file_make(const struct secret *members_key, struct key_file *ret_file);
void key_file_wipe(struct key_file *file);

/* -ERR_MALFORMED, -ERR_CORRUPT (its check is another), -ERR_NEWER_FORMAT: ret_problem says in words
 * what is wrong, and never what the file holds. */
MUST_CHECK int key_file_parse(struct bytes text, struct key_file *ret_file,
                              char ret_problem[KEY_PROBLEM_BYTES]);
/* Answers the length. A secret is in the text: wipe it. */
size_t key_file_print(const struct key_file *file, char ret_text[KEY_FILE_BYTES_MAX]);

/* The file of a mount: a key of each in the members' file. identity: not a member's. */
void key_file_derive(const struct key_file *members, const struct identity *identity,
                     struct key_file *ret_mount);
/* Puts the one key of newer, a file of the same identity, before the one of file. -ERR_INVALID: one
 * of them has two, or another identity, or they have one key; ret_problem says which. */
MUST_CHECK int key_file_add(struct key_file *file, const struct key_file *newer,
                            char ret_problem[KEY_PROBLEM_BYTES]);
/* The key by which a link of this identity proves itself (a TLS PSK); a member's likewise. */
void key_derive_psk(const struct secret *members_key, const struct identity *identity,
                    struct secret *ret_psk);
