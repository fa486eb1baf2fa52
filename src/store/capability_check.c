/* Remembered capabilities stand at a place that their signature names; the next one of that place
 * takes it. */
#include "store/capability_check.h"
#include "base/err.h"
#include <assert.h>
#include <string.h>

enum { CAPABILITY_NUMBERS_BELOW = 1 }; /* of keys that are good: that of now, and the one before */

static_assert(sizeof(((struct capability *)0)->signature) == CAPABILITY_SIGNATURE_BYTES, "one tag");

void capability_check_init(struct capability_check *check, const struct key_ring *keys,
                           bool unsigned_allowed) {
    *check = (struct capability_check){.unsigned_allowed = unsigned_allowed};
    signer_init(&check->signer, keys, SIGNER_OF_CAPABILITIES, CAPABILITY_NUMBERS_BELOW);
}

void capability_check_deinit(struct capability_check *check) {
    signer_deinit(&check->signer);
}

static bool is_good(struct capability_check *check, const struct capability *capability) {
    const struct key_use use = {{capability->key_name}, capability->key_number};
    struct known_capability *known = &check->known[capability->signature[0] % CAPABILITIES_KNOWN];
    uint8_t bytes[CAPABILITY_SIGNED_BYTES];

    if (!signer_has_keys(&check->signer)) {
        return check->unsigned_allowed && capability->key_number == 0;
    }
    /* What was good by an older number is so no longer. */
    if (!signer_takes(&check->signer, use)) {
        return false;
    }
    capability_signed_bytes(capability, bytes);
    if (tag_is(known->signature, capability->signature, sizeof known->signature) &&
        memcmp(known->bytes, bytes, sizeof bytes) == 0) {
        return true;
    }
    check->computed++;
    if (signer_check(&check->signer, use, (struct bytes){bytes, sizeof bytes},
                     (struct bytes){(const uint8_t *)capability->signature,
                                    sizeof capability->signature}) < 0) {
        return false;
    }
    memcpy(known->bytes, bytes, sizeof bytes);
    memcpy(known->signature, capability->signature, sizeof known->signature);
    return true;
}

int capability_check_signed(struct capability_check *check, const struct capability *capability) {
    bool good = is_good(check, capability);

    check->refused += !good;
    return good ? 0 : -ERR_BAD_CAPABILITY;
}
