/* Block 0 of a data file. What is taken is what its target writes: each bit of it counts. */
#include "base/crc32c.h"
#include "fuzz.h"
#include "store/label.h"
#include "store/label_format.h"

enum { TARGET = 5, LEAVE_CHECKSUM = 1 };

#define PATH "ost0/data"

static const struct target_id target = {TARGET};

/* The first byte says whether the checksum stays as it is; then the block, zeros behind it. */
void fuzz_label(struct bytes in) {
    static uint8_t block[BLOCK_BYTES], again[BLOCK_BYTES];
    struct wire_cursor cursor = fuzz_cursor(in);
    bool is_left = wire_take_number(&cursor, 1) & LEAVE_CHECKSUM;
    struct bytes rest = fuzz_rest(&cursor);
    char problem[256] = "";
    uint64_t label = UINT64_MAX;

    memset(block, 0, sizeof block);
    if (rest.size > 0) {
        memcpy(block, rest.data, MIN(rest.size, sizeof block));
    }
    if (!is_left) {
        store_le32(block + offsetof(struct store_label, crc),
                   crc32c(0, block, offsetof(struct store_label, crc)));
    }
    int r = label_decode(block, target, PATH, &label, problem);
    if (r < 0) {
        assert(r == -ERR_NOT_OURS || r == -ERR_CORRUPT || r == -ERR_NEWER_FORMAT);
        assert(label == UINT64_MAX && strstr(problem, PATH));
        return;
    }
    assert(!problem[0]);
    if (label == 0) {
        memset(again, 0, sizeof again);
    } else {
        label_encode(target, label, again);
    }
    assert(memcmp(block, again, sizeof block) == 0);
}

void seed_label(const struct fuzz_seeds *seeds) {
    static uint8_t seed[1 + BLOCK_BYTES];
    static const uint8_t none[1 + sizeof(struct store_label)] = {LEAVE_CHECKSUM};

    label_encode(target, UINT64_C(0x1122334455667789), seed + 1);
    fuzz_seed(seeds, (struct bytes){seed, 1 + sizeof(struct store_label)});
    fuzz_seed(seeds, (struct bytes){seed, sizeof seed});
    label_encode((struct target_id){TARGET + 1}, 1, seed + 1);
    fuzz_seed(seeds, (struct bytes){seed, 1 + sizeof(struct store_label)});
    fuzz_seed(seeds, (struct bytes){none, sizeof none});
}
