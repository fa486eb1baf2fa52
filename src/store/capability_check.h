/* Whether an MDT has signed a capability. What was found good is remembered, as a client comes with
 * the same one again and again: then it costs no hash.
 *
 * Thread: the owner's.  Memory: the owner's. */
#pragma once
#include "keys/signer.h"
#include "wire/capability.h"

enum { CAPABILITIES_KNOWN = 64 };

struct known_capability {
    uint8_t bytes[CAPABILITY_SIGNED_BYTES];
    uint64_t signature[2]; /* both 0: free */
};

struct capability_check {
    struct signer signer;
    bool unsigned_allowed;
    struct known_capability known[CAPABILITIES_KNOWN];
    uint64_t computed; /* signatures */
    uint64_t refused;
};

/* keys: borrowed; NULL: there is nothing to check signatures by, and without unsigned_allowed no
 * capability is good. With keys all must be signed. */
void capability_check_init(struct capability_check *check, const struct key_ring *keys,
                           bool unsigned_allowed);
void capability_check_deinit(struct capability_check *check);
/* -ERR_BAD_CAPABILITY: it is not signed, changed, or by a key that isn't good any more. */
MUST_CHECK int capability_check_signed(struct capability_check *check,
                                       const struct capability *capability);
