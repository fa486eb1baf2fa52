/* The ring: keys that never change, a number that rises, a list that grows. */
#include "keys/key_ring.h"
#include "base/bug.h"
#include "base/endian.h"
#include "base/err.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_DIGITS = 16 };

struct key_ring {
    struct key_file file;
    _Atomic uint32_t number;
    _Atomic uint64_t sign_by; /* name of a key; 0: not told */
    _Atomic uint32_t revoked_count;
    _Atomic uint64_t revoked[KEY_REVOKED_MAX]; /* filled from the front; 0: free, as no serial is */
};

int key_ring_new(const struct key_file *members, struct key_ring **ret_ring) {
    struct key_ring *ring;

    if (members->identity.kind != IDENTITY_MEMBER || members->key_count == 0) {
        return -ERR_INVALID;
    }
    ring = calloc(1, sizeof *ring);
    if (!ring) {
        return -ERR_NO_MEMORY;
    }
    ring->file = *members;
    atomic_init(&ring->number, 1);
    *ret_ring = ring;
    return 0;
}

void key_ring_free(struct key_ring *ring) {
    if (ring) {
        key_file_wipe(&ring->file);
        free(ring);
    }
}

void key_ring_number_set(struct key_ring *ring, uint32_t number) {
    uint32_t old = atomic_load(&ring->number);

    while (old < number && !atomic_compare_exchange_weak(&ring->number, &old, number)) {
    }
}

uint32_t key_ring_number(const struct key_ring *ring) {
    return atomic_load_explicit(&ring->number, memory_order_relaxed);
}

int key_ring_revoke(struct key_ring *ring, uint64_t serial) {
    for (size_t i = 0; i < KEY_REVOKED_MAX && serial != 0; i++) {
        uint64_t there = 0;

        if (atomic_compare_exchange_strong(&ring->revoked[i], &there, serial)) {
            atomic_fetch_add(&ring->revoked_count, 1);
            return 0;
        }
        if (there == serial) {
            return 0;
        }
    }
    return serial == 0 ? -ERR_INVALID : -ERR_TOO_MANY_REVOKED;
}

uint32_t key_ring_revoked_count(const struct key_ring *ring) {
    return atomic_load(&ring->revoked_count);
}

bool key_ring_is_revoked(const struct key_ring *ring, uint64_t serial) {
    uint64_t there = 1;

    for (size_t i = 0; i < KEY_REVOKED_MAX && there != 0; i++) {
        there = atomic_load_explicit(&ring->revoked[i], memory_order_relaxed);
        if (there == serial && serial != 0) {
            return true;
        }
    }
    return false;
}

struct key_name key_ring_newest(const struct key_ring *ring) {
    return ring->file.keys[0].name;
}

uint32_t key_ring_names(const struct key_ring *ring, struct key_name ret_names[KEY_FILE_KEYS_MAX]) {
    for (uint32_t i = 0; i < ring->file.key_count; i++) {
        ret_names[i] = ring->file.keys[i].name;
    }
    return ring->file.key_count;
}

bool key_ring_sign_by(struct key_ring *ring, struct key_name name) {
    return atomic_exchange(&ring->sign_by, name.value) != name.value;
}

static const struct secret *secret_find(const struct key_ring *ring, struct key_name name) {
    for (uint32_t i = 0; i < ring->file.key_count; i++) {
        if (ring->file.keys[i].name.value == name.value) {
            return &ring->file.keys[i].secret;
        }
    }
    return NULL;
}

bool key_ring_has(const struct key_ring *ring, struct key_name name) {
    return secret_find(ring, name) != NULL;
}

struct key_name key_ring_signing(const struct key_ring *ring) {
    const struct key_name told = {atomic_load_explicit(&ring->sign_by, memory_order_relaxed)};

    if (BUG(EARLY_KEY)) {
        return key_ring_newest(ring);
    }
    if (told.value == 0) {
        return ring->file.keys[ring->file.key_count - 1].name;
    }
    return key_ring_has(ring, told) ? told : key_ring_newest(ring);
}

int key_ring_derive(const struct key_ring *ring, const char *purpose, struct key_use use,
                    struct hmac_key *ret_key) {
    const struct secret *members_key = secret_find(ring, use.name);
    uint8_t number[sizeof use.number];
    struct secret derived;

    if (!members_key) {
        return -ERR_NOT_FOUND;
    }
    store_le32(number, use.number);
    hkdf_sha256(members_key, purpose, (struct bytes){number, sizeof number}, &derived);
    hmac_key_init(ret_key, (struct bytes){derived.bytes, sizeof derived.bytes});
    secret_wipe(&derived, sizeof derived);
    return 0;
}

size_t psk_name_print(const struct identity *identity, struct key_name key,
                      char ret_name[PSK_NAME_BYTES_MAX + 1]) {
    char text[IDENTITY_BYTES_MAX + 1];

    (void)identity_print(identity, text);
    return (size_t)snprintf(ret_name, PSK_NAME_BYTES_MAX + 1, "%s@%016" PRIx64, text, key.value);
}

/* Of the keys that are here, the one whose name stands behind the '@'. */
static const struct key_file_key *key_named(const struct key_ring *ring, struct bytes digits) {
    for (uint32_t i = 0; i < ring->file.key_count; i++) {
        char name[NAME_DIGITS + 1];

        snprintf(name, sizeof name, "%016" PRIx64, ring->file.keys[i].name.value);
        if (digits.size == NAME_DIGITS && memcmp(name, digits.data, NAME_DIGITS) == 0) {
            return &ring->file.keys[i];
        }
    }
    return NULL;
}

int key_ring_psk(const struct key_ring *ring, struct bytes name, struct psk *ret_psk) {
    const uint8_t *at = name.size > 0 ? memchr(name.data, '@', name.size) : NULL;
    struct identity identity;

    if (!at) {
        return -ERR_MALFORMED;
    }
    size_t identity_bytes = (size_t)(at - name.data);
    int r = identity_parse((struct bytes){name.data, identity_bytes}, &identity);
    if (r < 0) {
        return r;
    }
    const struct key_file_key *key =
        key_named(ring, (struct bytes){at + 1, name.size - identity_bytes - 1});
    if (!key) {
        return -ERR_NOT_FOUND;
    }
    ret_psk->identity = identity;
    key_derive_psk(&key->secret, &identity, &ret_psk->secret);
    return 0;
}
