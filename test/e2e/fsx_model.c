/* What a file holds, and where the next step takes place. */
#include "fsx_steps.h"
#include <string.h>

/* Where something changes: inline data ends, blocks and the chunks of either folder begin. */
static const uint64_t edges[] = {BLOCK_BYTES, BLOCK_BYTES, SEGMENT_BYTES, SEGMENT_BYTES, MIB};

static uint64_t near_edge(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    uint64_t edge = edges[fsx_below(fsx, ARRAY_SIZE(edges))];
    uint64_t at = fsx_below(fsx, MIN(file->limit, file->size + 2 * edge) / edge + 1) * edge;

    switch (fsx_below(fsx, 8)) {
    case 0:
        return at + fsx_below(fsx, 4);
    case 1:
        return at - MIN(at, fsx_below(fsx, 4));
    case 2:
        return at - MIN(at, (uint64_t)BLOCK_BYTES);
    default:
        return at;
    }
}

uint64_t fsx_offset(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    uint64_t at;

    switch (fsx_below(fsx, 10)) {
    case 0:
    case 1:
        at = fsx_below(fsx, file->size + 1);
        break;
    case 2:
        at = file->size - MIN(file->size, fsx_below(fsx, 4));
        break;
    case 3:
        at = file->size + fsx_below(fsx, 4);
        break;
    case 4:
        at = fsx_below(fsx, 5000);
        break;
    case 5:
        at = fsx_below(fsx, file->limit);
        break;
    default:
        at = near_edge(file);
    }
    return MIN(at, file->limit - 1);
}

uint64_t fsx_length(struct fsx_file *file, uint64_t offset) {
    static const uint64_t lengths[] = {1,    511,   512,   4095,  4096,   4097,
                                       8192, 65535, 65536, 65537, 131072, MIB};
    struct fsx *fsx = file->fsx;
    uint64_t most = MIN(file->limit - offset, (uint64_t)FSX_PIECE);
    uint64_t length;

    switch (fsx_below(fsx, 8)) {
    case 0:
        length = prng_between(&fsx->prng, 1, 100);
        break;
    case 1:
    case 2:
        length = prng_between(&fsx->prng, 1, 5000);
        break;
    case 3:
        length = prng_between(&fsx->prng, 1, most);
        break;
    case 4: {
        uint64_t edge = edges[fsx_below(fsx, ARRAY_SIZE(edges))];
        length = edge - offset % edge;
        break;
    }
    default:
        length = lengths[fsx_below(fsx, ARRAY_SIZE(lengths))];
    }
    return MIN(length, most);
}

void fsx_content(struct fsx *fsx, uint8_t *bytes, uint64_t length) {
    if (fsx_one_in(fsx, 10)) {
        memset(bytes, 0, length);
        return;
    }
    for (uint64_t at = 0; at < length; at += sizeof(uint64_t)) {
        uint64_t word = prng_next(&fsx->prng);
        memcpy(bytes + at, &word, MIN(length - at, (uint64_t)sizeof word));
    }
}

void fsx_put(struct fsx_file *file, uint64_t offset, const uint8_t *bytes, uint64_t length) {
    if (bytes) {
        memcpy(file->bytes + offset, bytes, length);
    } else {
        memset(file->bytes + offset, 0, length);
    }
    file->size = MAX(file->size, offset + length);
    file->highest = MAX(file->highest, file->size);
}

void fsx_clear(struct fsx_file *file, uint64_t offset, uint64_t length) {
    if (offset < file->size) {
        memset(file->bytes + offset, 0, MIN(length, file->size - offset));
    }
}

void fsx_resize(struct fsx_file *file, uint64_t size) {
    if (size < file->size) {
        memset(file->bytes + size, 0, file->size - size);
    }
    file->size = size;
    file->highest = size == 0 ? 0 : MAX(file->highest, size);
}

uint64_t fsx_found(const struct fsx_file *file, uint64_t offset, uint64_t length) {
    return offset >= file->size ? 0 : MIN(length, file->size - offset);
}

void fsx_same(struct fsx_file *file, uint64_t offset, const uint8_t *bytes, uint64_t length) {
    const uint8_t *want = file->bytes + offset;

    if (memcmp(bytes, want, length) == 0) {
        return;
    }
    uint64_t first = 0;
    while (bytes[first] == want[first]) {
        first++;
    }
    uint64_t last = length - 1;
    while (bytes[last] == want[last]) {
        last--;
    }
    uint64_t other = 0, zeros = 0;
    for (uint64_t at = first; at <= last; at++) {
        other += bytes[at] != want[at];
        zeros += bytes[at] != want[at] && bytes[at] == 0;
    }
    fsx_wrong(file, offset + first,
              "got %02x, expected %02x; %llu bytes differ up to %llu, %llu of them zero",
              bytes[first], want[first], (unsigned long long)other,
              (unsigned long long)(offset + last), (unsigned long long)zeros);
}

bool fsx_is_zero(const struct fsx_file *file, uint64_t from, uint64_t to) {
    const uint8_t *bytes = file->bytes;

    return from >= to ||
           (bytes[from] == 0 && memcmp(bytes + from, bytes + from + 1, to - from - 1) == 0);
}
