/* The members' keys of a process, and what is derived from them: the PSK of each identity, and the
 * keys numbered n of each purpose. The number and the revoked serials are the cluster's, the same
 * on all nodes sooner or later.
 *
 * Thread: any, but new and free.  Memory: the heap, wiped by key_ring_free. */
#pragma once
#include "keys/key_file.h"

enum { KEY_REVOKED_MAX = 1024 };

struct key_ring;

/* With number 1 and nothing revoked. -ERR_INVALID: not a members' file; -ERR_NO_MEMORY. */
MUST_CHECK int key_ring_new(const struct key_file *members, struct key_ring **ret_ring);
/* Takes NULL. */
void key_ring_free(struct key_ring *ring);

/* Whose keys of a purpose sign from now on, as the map says; it only rises, and a lower one does
 * nothing. */
void key_ring_number_set(struct key_ring *ring, uint32_t number);
uint32_t key_ring_number(const struct key_ring *ring);

/* For good. -ERR_INVALID: 0; -ERR_TOO_MANY_REVOKED above KEY_REVOKED_MAX. */
MUST_CHECK int key_ring_revoke(struct key_ring *ring, uint64_t serial);
bool key_ring_is_revoked(const struct key_ring *ring, uint64_t serial);
/* How many there are; rises when one comes that was not there. */
uint32_t key_ring_revoked_count(const struct key_ring *ring);

struct key_name key_ring_newest(const struct key_ring *ring);
/* The members' keys that are here, the newest first; answers how many. */
uint32_t key_ring_names(const struct key_ring *ring, struct key_name ret_names[KEY_FILE_KEYS_MAX]);
bool key_ring_has(const struct key_ring *ring, struct key_name name);

/* The cluster signs by this members' key, as its map says: all nodes have it. 0: it doesn't say.
 * True: that is another one than before. */
bool key_ring_sign_by(struct key_ring *ring, struct key_name name);
/* The members' key by which this process signs. That of the cluster; where the map doesn't say, the
 * oldest here, as others may have none that is newer; where it isn't here, the newest. */
struct key_name key_ring_signing(const struct key_ring *ring);
/* The key of this name, number and purpose. -ERR_NOT_FOUND: there is no key of the name. */
struct key_use {
    struct key_name name;
    uint32_t number;
};
MUST_CHECK int key_ring_derive(const struct key_ring *ring, const char *purpose, struct key_use use,
                               struct hmac_key *ret_key);

/* What a handshake names: IDENTITY@KEY, KEY being the name of the members' key as in a key file. */
enum { PSK_NAME_BYTES_MAX = IDENTITY_BYTES_MAX + 17 };
struct psk {
    struct identity identity;
    struct secret secret;
};
/* Ends in a NUL; answers the length without it. */
size_t psk_name_print(const struct identity *identity, struct key_name key,
                      char ret_name[PSK_NAME_BYTES_MAX + 1]);
/* Also of an identity that is revoked: who has proven it can be told so. -ERR_MALFORMED: not a name
 * of this kind, or an identity that isn't known; -ERR_NOT_FOUND: no key of this name. */
MUST_CHECK int key_ring_psk(const struct key_ring *ring, struct bytes name, struct psk *ret_psk);
