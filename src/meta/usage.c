/* The contract is in usage.h. */
#include "meta/usage.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "wire/wire_blocks.h"

enum { SECTOR_BYTES = 512 };
#define USAGE_BLOCKS_MAX ((UINT64_C(1) << 48) - 1) /* 1 EiB: as far as the row counts */

static uint64_t blocks_of(uint64_t bytes) {
    return bytes / BLOCK_BYTES + (bytes % BLOCK_BYTES != 0);
}

static void blocks_put(struct inode_row *row, uint64_t blocks) {
    blocks = MIN(blocks, USAGE_BLOCKS_MAX);
    row->blocks_low = (uint32_t)blocks;
    row->blocks_high = (uint16_t)(blocks >> 32);
}

void usage_set(struct inode_row *row, uint64_t blocks) {
    blocks_put(row, blocks);
    row->flags |= INODE_COUNTED;
}

void usage_unsure(struct inode_row *row) {
    row->flags &= (uint16_t)~INODE_COUNTED;
}

/* Behind a cut to 0 only writes of its sequence count, and each tells all that it has. Of another
 * one nobody has said how many blocks it takes; and what writers have not told by now, which may be
 * all of the file, they don't tell any more. */
void usage_cut(struct inode_row *row, uint64_t size, bool is_written) {
    if (size == 0) {
        usage_set(row, 0);
        return;
    }
    usage_unsure(row);
    if (size < row->size) {
        uint64_t most = blocks_of(size);

        blocks_put(row, is_written ? most : MIN(inode_blocks(row), most));
    }
}

/* Writes of an older sequence are of before the truncation: where it was to 0 nothing is left of
 * them, where it was not the count is unsure. */
void usage_settle(struct inode_row *row, const struct settle_request *request) {
    uint64_t blocks = inode_blocks(row);
    bool same = request->blocks_seq == row->truncate_seq;
    uint64_t less = request->blocks < 0 ? -(uint64_t)request->blocks : 0;
    bool too_many = same && (request->blocks > (int64_t)USAGE_BLOCKS_MAX || less > blocks);

    if (row->data_state != DATA_CHUNKED) {
        return;
    }
    if (same && !too_many) {
        blocks_put(row, blocks + (uint64_t)request->blocks);
    }
    bool is_silent = request->blocks_told == 0 && request->wrote;
    if (is_silent || too_many || request->blocks_told == BLOCKS_UNSURE ||
        request->blocks_seq > row->truncate_seq) {
        usage_unsure(row);
    }
}

uint64_t usage_bytes(const struct inode_row *row) {
    uint64_t blocks = inode_blocks(row);
    uint64_t most = blocks_of(row->size);

    switch (row->data_state) {
    case DATA_CHUNKED:
        if (!(row->flags & INODE_COUNTED)) {
            blocks = blocks > 0 ? MIN(blocks, most) : most;
        }
        return blocks * BLOCK_BYTES;
    case DATA_INLINE:
        return (MIN(row->size, (uint64_t)INLINE_BYTES_MAX) + SECTOR_BYTES - 1) / SECTOR_BYTES *
               SECTOR_BYTES;
    default:
        return 0;
    }
}

int usage_patch(struct transaction *transaction, struct ino ino, const struct inode_row *row,
                const struct inode_row *changed) {
    struct kv_key key = key_inode(ino);
    int r = 0;

    if (changed->blocks_low != row->blocks_low) {
        r = INODE_PATCH(transaction, ino, changed, rdev, atime_ns);
    }
    if (r == 0 && changed->blocks_high != row->blocks_high) {
        r = transaction_patch(
            transaction, &key, offsetof(struct inode_row, blocks_high),
            (struct bytes){(const uint8_t *)&changed->blocks_high, sizeof changed->blocks_high});
    }
    if (r == 0 && changed->flags != row->flags) {
        r = INODE_PATCH(transaction, ino, changed, flags, nlink);
    }
    return r;
}

bool usage_is_due(const struct transaction *transaction, struct ino ino,
                  const struct inode_row *row, const struct session *except) {
    const struct group *group = transaction->group;

    return row->data_state == DATA_CHUNKED && !(row->flags & (INODE_COUNTED | INODE_CUT_PENDING)) &&
           group->rpc && !opens_any_writer(&group->opens, ino, except);
}
