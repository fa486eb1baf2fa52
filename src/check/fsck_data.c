/* Stored blocks against their checksums, read from the disk by the OST. A block that does not match
 * is looked at again, as long as the index gives it another content meanwhile. */
#include "check/fsck_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int segment_get(struct fsck *fsck, uint32_t ost, const struct kv_key *key,
                       struct store_segment *ret_segment) {
    struct bytes value;
    int r = fsck_row_get(fsck, fsck_ost(fsck, ost), FSCK_CHUNKS, key, &value);

    if (r == 0) {
        *ret_segment = fsck_segment(value);
    }
    return r;
}

static void report_block(struct fsck *fsck, uint32_t ost, const struct kv_key *key,
                         const struct store_segment *segment, uint32_t i) {
    struct kv_key_fields fields = kv_key_split(key);
    uint64_t block = (chunk_row_of(&fields) - 1) * BLOCKS_PER_SEGMENT + i;
    char where[FSCK_WHERE_BYTES];
    char place[FSCK_WHERE_BYTES + 128];

    snprintf(place, sizeof place,
             "%s, chunk %" PRIu64 " block %" PRIu64 ", on ost%" PRIu32 " at block %" PRIu64,
             fsck_where_ino(fsck, fields.id, where), chunk_of(&fields), block, ost,
             store_entry_block(&segment->entries[i]));
    fsck_problem(fsck, "damaged-block", place,
                 "the stored bytes do not match their checksum: reading them fails");
}

/* What one look at a segment found: bits of blocks that don't match. */
static int segment_look(struct fsck *fsck, uint32_t ost, const struct kv_key *key,
                        uint16_t *ret_mask) {
    struct bytes value;
    int r = fsck_row_get(fsck, fsck_ost(fsck, ost), FSCK_DATA, key, &value);

    if (r == 0) {
        *ret_mask = value.size >= sizeof *ret_mask ? load_le16(value.data) : 0;
    }
    return r;
}

static int segment_recheck(struct fsck *fsck, uint32_t ost, const struct kv_key *key) {
    for (int i = 0; i < FSCK_LOOKS_MAX; i++) {
        struct store_segment before;
        struct store_segment after;
        uint16_t mask = 0;
        bool moved = false;

        int r = segment_get(fsck, ost, key, &before);
        if (r == 0) {
            r = segment_look(fsck, ost, key, &mask);
        }
        if (r == 0) {
            r = segment_get(fsck, ost, key, &after);
        }
        if (r < 0 || mask == 0) {
            return r == -ERR_NOT_FOUND ? 0 : r;
        }
        for (uint32_t at = 0; at < BLOCKS_PER_SEGMENT; at++) {
            bool same =
                memcmp(&before.entries[at], &after.entries[at], sizeof before.entries[at]) == 0;

            moved = moved || (mask >> at & 1 && !same);
        }
        for (uint32_t at = 0; at < BLOCKS_PER_SEGMENT && !moved; at++) {
            if (mask >> at & 1) {
                report_block(fsck, ost, key, &after, at);
            }
        }
        if (!moved) {
            return 0;
        }
    }
    fsck->counts.unsettled++;
    return 0;
}

int fsck_data(struct fsck *fsck, uint32_t ost) {
    struct fsck_list list;
    struct fsck_row row;
    int r;

    fsck_list_begin(&list, fsck, fsck_ost(fsck, ost), FSCK_DATA);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        struct kv_key key = row.key;

        if (row.value.size < sizeof(uint16_t) || load_le16(row.value.data) != 0) {
            r = segment_recheck(fsck, ost, &key);
        }
        if (r < 0) {
            return r;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}
