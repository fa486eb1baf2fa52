/* Blocks: those that the bitmap has in use against those that the index names.
 *
 *     bitmap --> used     index --> named, named twice     bitmap --> used still
 *
 * A block is suspect when used (at both times) and not named, named and not used (at both), or
 * named twice. Blocks move while one looks: only what is suspect at every look is a problem, and
 * blocks that are named have to be so, by the same rows, before and after. */
#include "check/fsck_away.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITMAPS = 4, LOOKS = 4, NAMES_MAX = 2 };
enum suspicion { UNNAMED = 1, NOT_USED, NAMED_TWICE };

struct suspect {
    uint64_t block;
    enum suspicion suspicion;
    uint32_t name_count;
    struct kv_key names[NAMES_MAX]; /* segments that name it */
};

struct window {
    struct fsck *fsck;
    uint32_t ost;
    uint64_t first;
    uint64_t count;
    uint64_t file_blocks;
    uint8_t *used_before, *used_after, *named, *twice;
    struct suspect *suspects;
    uint32_t suspect_count;
    bool has_suspects; /* a look was taken: others are not added */
};

static bool bit_get(const uint8_t *bits, uint64_t at) {
    return bits[at / 8] >> (at % 8) & 1;
}

static void bit_set(uint8_t *bits, uint64_t at) {
    bits[at / 8] = (uint8_t)(bits[at / 8] | 1U << (at % 8));
}

static int read_bitmap(struct window *window, uint8_t *bits) {
    struct kv_key from = store_owner_key(STORE_ROW_BITMAP, 0, window->first / STORE_BITMAP_BITS);
    struct fsck_list list;
    struct fsck_row row;
    int r;

    memset(bits, 0, window->count / 8);
    fsck_list_begin(&list, window->fsck, fsck_ost(window->fsck, window->ost), FSCK_BLOCKS);
    fsck_list_from(&list, &from);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        uint64_t at = kv_key_split(&row.key).index * STORE_BITMAP_BITS - window->first;
        size_t head = offsetof(struct store_bitmap, bits);

        if (at >= window->count) {
            return 0;
        }
        if (row.value.size > head) {
            size_t size = MIN(row.value.size - head, (size_t)STORE_BITMAP_BITS / 8);

            memcpy(bits + at / 8, row.value.data + head, size);
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static struct suspect *suspect_find(struct window *window, uint64_t block) {
    uint32_t low = 0;
    uint32_t high = window->suspect_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (window->suspects[middle].block < block) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < window->suspect_count && window->suspects[low].block == block
               ? &window->suspects[low]
               : NULL;
}

static void name_add(struct window *window, const struct kv_key *key, uint64_t block) {
    uint64_t at = block - window->first;

    if (block < window->first || at >= window->count) {
        return;
    }
    bit_set(bit_get(window->named, at) ? window->twice : window->named, at);
    struct suspect *suspect = window->has_suspects ? suspect_find(window, block) : NULL;
    if (suspect && suspect->name_count < NAMES_MAX) {
        suspect->names[suspect->name_count++] = *key;
    }
}

static void report_name(struct window *window, const struct kv_key *key, uint64_t block,
                        const char *kind, const char *meaning) {
    struct kv_key_fields fields = kv_key_split(key);
    char file[FSCK_WHERE_BYTES];
    char where[FSCK_WHERE_BYTES + 128];

    snprintf(where, sizeof where, "%s, chunk %" PRIu64 " on ost%" PRIu32 ", block %" PRIu64,
             fsck_where_ino(window->fsck, fields.id, file), chunk_of(&fields), window->ost, block);
    fsck_problem(window->fsck, kind, where, "%s", meaning);
}

static int read_index(struct window *window) {
    struct fsck_list list;
    struct fsck_row row;
    int r;

    memset(window->named, 0, window->count / 8);
    memset(window->twice, 0, window->count / 8);
    for (uint32_t i = 0; i < window->suspect_count; i++) {
        window->suspects[i].name_count = 0;
    }
    fsck_list_begin(&list, window->fsck, fsck_ost(window->fsck, window->ost), FSCK_CHUNKS);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        struct kv_key_fields fields = kv_key_split(&row.key);

        if (!store_row_is_segment(chunk_row_of(&fields))) {
            continue;
        }
        struct store_segment segment = fsck_segment(row.value);
        for (size_t i = 0; i < BLOCKS_PER_SEGMENT; i++) {
            uint64_t block = store_entry_block(&segment.entries[i]);

            if (block >= window->file_blocks && !window->has_suspects && window->first == 0) {
                report_name(window, &row.key, block, "bad-block",
                            "the index names a block that lies beyond the data file");
            } else if (block != 0) {
                name_add(window, &row.key, block);
            }
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

/* 0: nothing is wrong with the block. */
static enum suspicion suspicion_of(const struct window *window, uint64_t at) {
    if (bit_get(window->twice, at)) {
        return NAMED_TWICE;
    }
    bool named = bit_get(window->named, at);
    if (named && !bit_get(window->used_before, at) && !bit_get(window->used_after, at)) {
        return NOT_USED;
    }
    bool used = bit_get(window->used_before, at) && bit_get(window->used_after, at);
    return used && !named && window->first + at != 0 ? UNNAMED : 0;
}

/* The block that bears the label is in use and nobody's. */
static int window_look(struct window *window) {
    int r = read_bitmap(window, window->used_before);

    if (r == 0) {
        r = read_index(window);
    }
    return r < 0 ? r : read_bitmap(window, window->used_after);
}

static void suspects_collect(struct window *window) {
    for (uint64_t at = 0; at < window->count; at++) {
        enum suspicion suspicion = suspicion_of(window, at);

        if (!suspicion) {
            continue;
        }
        if (window->suspect_count == FSCK_SUSPECTS_MAX) {
            window->fsck->counts.unsettled++;
            continue;
        }
        window->suspects[window->suspect_count++] =
            (struct suspect){.block = window->first + at, .suspicion = suspicion};
    }
    window->has_suspects = true;
}

static void suspects_keep(struct window *window) {
    uint32_t kept = 0;

    for (uint32_t i = 0; i < window->suspect_count; i++) {
        const struct suspect *suspect = &window->suspects[i];

        if (suspicion_of(window, suspect->block - window->first) == suspect->suspicion) {
            window->suspects[kept++] = *suspect;
        }
    }
    window->suspect_count = kept;
}

static int row_names(struct window *window, const struct kv_key *key, uint64_t block,
                     bool *ret_names) {
    struct bytes value;
    int r =
        fsck_row_get(window->fsck, fsck_ost(window->fsck, window->ost), FSCK_CHUNKS, key, &value);

    *ret_names = false;
    if (r == 0) {
        struct store_segment segment = fsck_segment(value);

        for (size_t i = 0; i < BLOCKS_PER_SEGMENT; i++) {
            *ret_names = *ret_names || store_entry_block(&segment.entries[i]) == block;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int is_used(struct window *window, uint64_t block, bool *ret_used) {
    struct kv_key key = store_owner_key(STORE_ROW_BITMAP, 0, block / STORE_BITMAP_BITS);
    struct store_bitmap bitmap = {0};
    struct bytes value;
    int r =
        fsck_row_get(window->fsck, fsck_ost(window->fsck, window->ost), FSCK_BLOCKS, &key, &value);

    if (r == 0) {
        memcpy(&bitmap, value.data, MIN(value.size, sizeof bitmap));
    }
    *ret_used = bit_get(bitmap.bits, block % STORE_BITMAP_BITS);
    return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Named by the first row before and after the other is looked at: at one time, that is. A freed
 * block waits for a sync point before it is used again. */
static int suspect_confirm(struct window *window, const struct suspect *suspect, bool *ret_wrong) {
    bool before = false;
    bool other = false;
    bool after = false;
    int r = row_names(window, &suspect->names[0], suspect->block, &before);

    if (r == 0 && suspect->suspicion == NOT_USED) {
        r = is_used(window, suspect->block, &other);
        other = !other;
    } else if (r == 0 && suspect->name_count == NAMES_MAX) {
        bool same = kv_key_compare(&suspect->names[0], &suspect->names[1]) == 0;

        r = same ? 0 : row_names(window, &suspect->names[1], suspect->block, &other);
        other = other || same;
    }
    if (r == 0) {
        r = row_names(window, &suspect->names[0], suspect->block, &after);
    }
    *ret_wrong = before && other && after;
    return r;
}

static void report_unnamed(struct window *window, uint64_t first, uint64_t count) {
    char where[128];

    snprintf(where, sizeof where, "ost%" PRIu32 ", block %" PRIu64, window->ost, first);
    fsck_problem(window->fsck, "lost-blocks", where,
                 "%" PRIu64
                 " block%s in use that no file refers to: a row of the index is missing, "
                 "or space is lost",
                 count, count == 1 ? " is" : "s from here on are");
}

static int report_named(struct window *window, const struct suspect *suspect) {
    bool wrong;

    if (suspect->name_count == 0) {
        return 0;
    }
    int r = suspect_confirm(window, suspect, &wrong);
    if (r < 0 || !wrong) {
        return r;
    }
    if (suspect->suspicion == NOT_USED) {
        report_name(window, &suspect->names[0], suspect->block, "free-block",
                    "a block of this file is marked as free: it may be overwritten");
        return 0;
    }
    for (uint32_t i = 0; i < suspect->name_count; i++) {
        report_name(window, &suspect->names[i], suspect->block, "shared-block",
                    "another place in the index refers to the same block");
    }
    return 0;
}

/* Adjoining lost blocks are one problem. */
static int suspects_report(struct window *window) {
    const struct suspect *suspects = window->suspects;

    for (uint32_t i = 0; i < window->suspect_count; i++) {
        uint32_t first = i;

        if (suspects[i].suspicion != UNNAMED) {
            int r = report_named(window, &suspects[i]);
            if (r < 0) {
                return r;
            }
            continue;
        }
        while (i + 1 < window->suspect_count && suspects[i + 1].suspicion == UNNAMED &&
               suspects[i + 1].block == suspects[i].block + 1) {
            i++;
        }
        report_unnamed(window, suspects[first].block, i - first + 1);
    }
    return 0;
}

static int window_check(struct window *window) {
    window->suspect_count = 0;
    window->has_suspects = false;
    int r = window_look(window);
    if (r < 0) {
        return r;
    }
    suspects_collect(window);
    for (int i = 1; r == 0 && i < LOOKS && window->suspect_count > 0; i++) {
        r = window_look(window);
        suspects_keep(window);
    }
    return r < 0 ? r : suspects_report(window);
}

/* How many blocks the data file may have; it may be larger than the setting allows by now. */
static int file_blocks_ask(struct fsck *fsck, uint32_t ost, uint64_t *ret_blocks) {
    fsck->call = (struct call){.header.opcode = OP_STATFS};
    int r = fsck_ask(fsck, fsck_ost(fsck, ost));

    if (r == 0) {
        *ret_blocks = fsck->call.reply.statfs.bytes_total / BLOCK_BYTES;
    }
    return r;
}

int fsck_blocks(struct fsck *fsck, uint32_t ost) {
    struct window window = {.fsck = fsck, .ost = ost};
    int r = file_blocks_ask(fsck, ost, &window.file_blocks);
    if (r < 0) {
        return r;
    }
    uint64_t blocks =
        (window.file_blocks + STORE_BITMAP_BITS - 1) / STORE_BITMAP_BITS * STORE_BITMAP_BITS;
    size_t bytes = MIN(blocks / 8, (uint64_t)FSCK_BITS_BYTES / BITMAPS);
    uint8_t *memory = malloc(bytes * BITMAPS);

    r = -ERR_NO_MEMORY;

    window.suspects = calloc(FSCK_SUSPECTS_MAX, sizeof *window.suspects);
    if (memory && window.suspects) {
        window.used_before = memory;
        window.used_after = memory + bytes;
        window.named = memory + 2 * bytes;
        window.twice = memory + 3 * bytes;
        r = 0;
    }
    for (; r == 0 && window.first < blocks; window.first += bytes * 8) {
        window.count = MIN(blocks - window.first, (uint64_t)bytes * 8);
        r = window_check(&window);
    }
    free(window.suspects);
    free(memory);
    return r;
}
