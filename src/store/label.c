/* The contract is in label.h, the bytes are in label_format.h. */
#include "store/label.h"
#include "base/crc32c.h"
#include "store/label_format.h"
#include "store/store_format.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static bool is_zero(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (data[i]) {
            return false;
        }
    }
    return true;
}

/* Of the format that we write: nothing is said where zeros belong. */
static bool is_whole(const struct store_label *label, const uint8_t block[BLOCK_BYTES]) {
    return label->format == STORE_FORMAT && label->reserved == 0 &&
           is_zero(block + sizeof *label, BLOCK_BYTES - sizeof *label);
}

void label_encode(struct target_id target, uint64_t label, uint8_t ret_block[BLOCK_BYTES]) {
    struct store_label bytes = {.format = STORE_FORMAT, .target = target.value, .label = label};

    assert(label != 0);
    memcpy(bytes.magic, STORE_LABEL_MAGIC, sizeof bytes.magic);
    bytes.crc = crc32c(0, &bytes, offsetof(struct store_label, crc));
    memset(ret_block, 0, BLOCK_BYTES);
    memcpy(ret_block, &bytes, sizeof bytes);
}

int label_decode(const uint8_t block[BLOCK_BYTES], struct target_id target, const char *path,
                 uint64_t *ret_label, char problem[256]) {
    struct store_label label;

    memcpy(&label, block, sizeof label);
    if (memcmp(label.magic, STORE_LABEL_MAGIC, sizeof label.magic) != 0) {
        if (!is_zero(block, BLOCK_BYTES)) {
            snprintf(problem, 256,
                     "the first block of %s is not Shoal's: if this target has served before, it "
                     "is damaged, restore DIR from a backup; a new one needs an empty file",
                     path);
            return -ERR_NOT_OURS;
        }
        *ret_label = 0;
        return 0;
    }
    if (label.crc != crc32c(0, &label, offsetof(struct store_label, crc)) ||
        (label.format <= STORE_FORMAT && !is_whole(&label, block))) {
        snprintf(problem, 256,
                 "the label of %s, at byte 0, is damaged: check the disk, and restore DIR from a "
                 "backup",
                 path);
        return -ERR_CORRUPT;
    }
    if (label.format > STORE_FORMAT) {
        snprintf(problem, 256, "%s has format %" PRIu32 "; this program knows %d", path,
                 label.format, STORE_FORMAT);
        return -ERR_NEWER_FORMAT;
    }
    if (label.target != target.value || label.label == 0) {
        snprintf(problem, 256,
                 "%s belongs to target %" PRIu32 ", not to %" PRIu32 ": put the right file back",
                 path, label.target, target.value);
        return -ERR_NOT_OURS;
    }
    *ret_label = label.label;
    return 0;
}
