/* Keeps derived keys by (which members' key, whether the number is odd): n and n - 1 of both. */
#include "keys/signer.h"
#include "base/err.h"
#include <assert.h>

enum { SIGNER_TAG_BYTES_MIN = 16 };

void signer_init(struct signer *signer, const struct key_ring *ring, const char *purpose,
                 uint32_t age_max) {
    *signer = (struct signer){.ring = ring, .purpose = purpose, .age_max = age_max};
}

void signer_deinit(struct signer *signer) {
    secret_wipe(signer, sizeof *signer);
}

static size_t place_of(const struct signer *signer, struct key_use use) {
    bool newest = use.name.value == key_ring_newest(signer->ring).value;

    return (newest ? 0 : 2) + use.number % 2;
}

static bool use_is(struct key_use a, struct key_use b) {
    return a.name.value == b.name.value && a.number == b.number;
}

struct key_use signer_use(const struct signer *signer) {
    return (struct key_use){key_ring_signing(signer->ring), key_ring_number(signer->ring)};
}

void signer_sign(struct signer *signer, struct key_use use, struct bytes message,
                 uint8_t ret_tag[TAG_BYTES]) {
    size_t place = place_of(signer, use);

    if (!use_is(signer->kept[place].use, use)) {
        int r = key_ring_derive(signer->ring, signer->purpose, use, &signer->kept[place].key);

        assert(r == 0 && use.number > 0);
        (void)r;
        signer->kept[place].use = use;
    }
    hmac_sha256(&signer->kept[place].key, message, ret_tag);
}

bool signer_takes(const struct signer *signer, struct key_use use) {
    uint32_t number = key_ring_number(signer->ring);

    return use.number > 0 && (use.number >= number || number - use.number <= signer->age_max);
}

int signer_check(struct signer *signer, struct key_use use, struct bytes message,
                 struct bytes tag) {
    size_t place = place_of(signer, use);
    struct hmac_key derived;
    uint8_t want[TAG_BYTES];

    if (!signer_takes(signer, use) || tag.size < SIGNER_TAG_BYTES_MIN || tag.size > TAG_BYTES) {
        return -ERR_ACCESS;
    }
    bool kept = use_is(signer->kept[place].use, use);
    if (!kept && key_ring_derive(signer->ring, signer->purpose, use, &derived) < 0) {
        return -ERR_ACCESS;
    }
    hmac_sha256(kept ? &signer->kept[place].key : &derived, message, want);
    bool good = tag_is(want, tag.data, tag.size);
    /* What was derived for a forged tag would only push out what is of use. */
    if (!kept && good) {
        signer->kept[place].use = use;
        signer->kept[place].key = derived;
    }
    if (!kept) {
        hmac_key_deinit(&derived);
    }
    return good ? 0 : -ERR_ACCESS;
}
