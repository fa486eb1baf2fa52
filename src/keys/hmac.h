/* SHA-256, and what is built on it: HMAC (RFC 2104) and HKDF (RFC 5869). Nothing here fails or
 * takes memory, so it can stand on the way of each request.
 *
 * Thread: any.  Memory: the caller's; what held a secret is wiped by the deinit or wipe of its
 * kind. */
#pragma once
#include "base/types.h"

enum { SECRET_BYTES = 32, TAG_BYTES = 32, HMAC_STATE_WORDS = 14 };

struct secret {
    uint8_t bytes[SECRET_BYTES];
};

/* So that the compiler doesn't leave it out, as it may a memset of what is not read again. */
void secret_wipe(void *data, size_t size);

void sha256(struct bytes bytes, uint8_t ret_digest[TAG_BYTES]);

/* A key that has been worked into the two hashes of HMAC: half of the work of a short message. */
struct hmac_key {
    uint64_t inner[HMAC_STATE_WORDS];
    uint64_t outer[HMAC_STATE_WORDS];
};
void hmac_key_init(struct hmac_key *key, struct bytes secret);
void hmac_key_deinit(struct hmac_key *key);
void hmac_sha256(const struct hmac_key *key, struct bytes message, uint8_t ret_tag[TAG_BYTES]);
/* In a time that says nothing of where they differ. */
bool tag_is(const void *a, const void *b, size_t size);

/* HKDF-SHA256 of one block: the salt is "shoal", the info purpose | 0 | context. context: at most
 * HKDF_CONTEXT_BYTES_MAX. */
enum { HKDF_CONTEXT_BYTES_MAX = 256, HKDF_PURPOSE_BYTES_MAX = 32 };
void hkdf_sha256(const struct secret *from, const char *purpose, struct bytes context,
                 struct secret *ret_secret);
/* The two halves of it, as RFC 5869 has them; info: at most HKDF_INFO_BYTES_MAX. */
enum { HKDF_INFO_BYTES_MAX = HKDF_PURPOSE_BYTES_MAX + 1 + HKDF_CONTEXT_BYTES_MAX };
void hkdf_extract(struct bytes salt, struct bytes secret, struct secret *ret_key);
void hkdf_expand(const struct secret *key, struct bytes info, struct secret *ret_secret);
