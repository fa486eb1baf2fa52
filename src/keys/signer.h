/* Tags of one purpose, made and checked by keys of a ring. What was derived is kept for the two
 * newest numbers of each members' key, so a tag costs one HMAC.
 *
 * Who checks knows number n: tags of n and of age_max numbers below are good, and of any number
 * above, as only a member can have made one.
 *
 * Thread: one at a time, the owner's.  Memory: the owner's; deinit wipes it. */
#pragma once
#include "keys/key_ring.h"

/* Purposes. */
#define SIGNER_OF_CAPABILITIES "capability"

enum { SIGNER_KEPT = 2 * KEY_FILE_KEYS_MAX };
#define SIGNER_ANY_AGE UINT32_MAX

struct signer {
    const struct key_ring *ring; /* NULL: there are no keys */
    const char *purpose;
    uint32_t age_max; /* how many numbers below the ring's are still good */
    struct {
        struct key_use use; /* number 0: free */
        struct hmac_key key;
    } kept[SIGNER_KEPT];
};

/* ring: borrowed, may be NULL; purpose: a string that stays. */
void signer_init(struct signer *signer, const struct key_ring *ring, const char *purpose,
                 uint32_t age_max);
void signer_deinit(struct signer *signer);
static inline bool signer_has_keys(const struct signer *signer) {
    return signer->ring != NULL;
}

/* The key that signs now: of the members' key that the ring signs by, and the ring's number. There
 * must be keys. */
struct key_use signer_use(const struct signer *signer);
/* By this one, which signer_use has answered. */
void signer_sign(struct signer *signer, struct key_use use, struct bytes message,
                 uint8_t ret_tag[TAG_BYTES]);
/* Whether the ring still takes tags of this key: a look that costs nothing. */
bool signer_takes(const struct signer *signer, struct key_use use);
/* tag: the first bytes of one, 16 at least. -ERR_ACCESS: not by a key that is good here. */
MUST_CHECK int signer_check(struct signer *signer, struct key_use use, struct bytes message,
                            struct bytes tag);
