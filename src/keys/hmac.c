/* OpenSSL's plain SHA-256. Its newer interface to the same code takes memory for each message, and
 * more than twice the time of one as short as ours; so the few lines of HMAC and HKDF are here, and
 * the tests hold them against the vectors of RFC 4231 and RFC 5869. */
#define OPENSSL_API_COMPAT 10101 /* from before SHA256_Init was called old */
#include "keys/hmac.h"
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

enum { HASH_BLOCK_BYTES = 64, INNER_PAD = 0x36, OUTER_PAD = 0x5c };

_Static_assert(sizeof(SHA256_CTX) == sizeof(((struct hmac_key *)0)->inner), "HMAC_STATE_WORDS");
_Static_assert(SHA256_DIGEST_LENGTH == TAG_BYTES && TAG_BYTES == SECRET_BYTES, "one block");

void secret_wipe(void *data, size_t size) {
    OPENSSL_cleanse(data, size);
}

void sha256(struct bytes bytes, uint8_t ret_digest[TAG_BYTES]) {
    SHA256_CTX state;

    (void)SHA256_Init(&state);
    (void)SHA256_Update(&state, bytes.data, bytes.size);
    (void)SHA256_Final(ret_digest, &state);
    secret_wipe(&state, sizeof state);
}

static void state_begin(uint64_t ret_state[HMAC_STATE_WORDS],
                        const uint8_t secret[HASH_BLOCK_BYTES], uint8_t pad) {
    uint8_t block[HASH_BLOCK_BYTES];
    SHA256_CTX state;

    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = (uint8_t)(secret[i] ^ pad);
    }
    (void)SHA256_Init(&state);
    (void)SHA256_Update(&state, block, sizeof block);
    memcpy(ret_state, &state, sizeof state);
    secret_wipe(&state, sizeof state);
    secret_wipe(block, sizeof block);
}

void hmac_key_init(struct hmac_key *key, struct bytes secret) {
    uint8_t block[HASH_BLOCK_BYTES] = {0};

    if (secret.size > sizeof block) {
        sha256(secret, block);
    } else if (secret.size > 0) {
        memcpy(block, secret.data, secret.size);
    }
    state_begin(key->inner, block, INNER_PAD);
    state_begin(key->outer, block, OUTER_PAD);
    secret_wipe(block, sizeof block);
}

void hmac_key_deinit(struct hmac_key *key) {
    secret_wipe(key, sizeof *key);
}

void hmac_sha256(const struct hmac_key *key, struct bytes message, uint8_t ret_tag[TAG_BYTES]) {
    uint8_t digest[TAG_BYTES];
    SHA256_CTX state;

    memcpy(&state, key->inner, sizeof state);
    (void)SHA256_Update(&state, message.data, message.size);
    (void)SHA256_Final(digest, &state);
    memcpy(&state, key->outer, sizeof state);
    (void)SHA256_Update(&state, digest, sizeof digest);
    (void)SHA256_Final(ret_tag, &state);
}

bool tag_is(const void *a, const void *b, size_t size) {
    return CRYPTO_memcmp(a, b, size) == 0;
}

void hkdf_extract(struct bytes salt, struct bytes secret, struct secret *ret_key) {
    struct hmac_key key;

    hmac_key_init(&key, salt);
    hmac_sha256(&key, secret, ret_key->bytes);
    hmac_key_deinit(&key);
}

void hkdf_expand(const struct secret *key, struct bytes info, struct secret *ret_secret) {
    uint8_t message[HKDF_INFO_BYTES_MAX + 1];
    struct hmac_key prepared;

    assert(info.size <= HKDF_INFO_BYTES_MAX);
    memcpy(message, info.data, info.size);
    message[info.size] = 1; /* the number of the block */
    hmac_key_init(&prepared, (struct bytes){key->bytes, sizeof key->bytes});
    hmac_sha256(&prepared, (struct bytes){message, info.size + 1}, ret_secret->bytes);
    hmac_key_deinit(&prepared);
}

void hkdf_sha256(const struct secret *from, const char *purpose, struct bytes context,
                 struct secret *ret_secret) {
    static const char salt[] = "shoal";
    size_t purpose_bytes = strlen(purpose) + 1;
    uint8_t info[HKDF_INFO_BYTES_MAX];
    struct secret key;

    assert(purpose_bytes <= HKDF_PURPOSE_BYTES_MAX && context.size <= HKDF_CONTEXT_BYTES_MAX);
    memcpy(info, purpose, purpose_bytes);
    memcpy(info + purpose_bytes, context.data, context.size);
    hkdf_extract((struct bytes){(const uint8_t *)salt, sizeof salt - 1},
                 (struct bytes){from->bytes, sizeof from->bytes}, &key);
    hkdf_expand(&key, (struct bytes){info, purpose_bytes + context.size}, ret_secret);
    secret_wipe(&key, sizeof key);
}
