/* SipHash-2-4 after the reference description in "SipHash: a fast short-input PRF". */
#include "base/siphash.h"
#include "base/endian.h"

struct sip_state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t value, unsigned count) {
    return (value << count) | (value >> (64 - count));
}

static inline void sip_rounds(struct sip_state *s, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        s->v0 += s->v1;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v2 = rotate(s->v2, 32);
    }
}

uint64_t siphash(const struct siphash_key *key, const void *data, size_t size_bytes) {
    const uint8_t *bytes = data;
    struct sip_state s = {
        .v0 = key->words[0] ^ UINT64_C(0x736f6d6570736575),
        .v1 = key->words[1] ^ UINT64_C(0x646f72616e646f6d),
        .v2 = key->words[0] ^ UINT64_C(0x6c7967656e657261),
        .v3 = key->words[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t whole = size_bytes & ~(size_t)7;

    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word = load_le64(bytes + i);

        s.v3 ^= word;
        sip_rounds(&s, 2);
        s.v0 ^= word;
    }
    uint64_t last = (uint64_t)size_bytes << 56;
    for (size_t i = whole; i < size_bytes; i++) {
        last |= (uint64_t)bytes[i] << (8 * (i - whole));
    }
    s.v3 ^= last;
    sip_rounds(&s, 2);
    s.v0 ^= last;
    s.v2 ^= 0xff;
    sip_rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
