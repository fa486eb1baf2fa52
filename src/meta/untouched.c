/* The contract is in untouched.h. */
#include "meta/untouched.h"
#include "base/bug.h"
#include "meta/group_internal.h"
#include "meta/usage.h"

int untouched_draw(struct transaction *transaction, struct inode_row *row) {
    uint32_t generation;

    int r = transaction_generation(transaction, &generation);
    if (r < 0) {
        return r;
    }
    row->chunk_generation = generation;
    row->data_state = DATA_CHUNKED;
    usage_set(row, 0);
    row->flags |= INODE_UNTOUCHED;
    row->truncate_position = kv_position(transaction->group->kv) + 1;
    return 0;
}

bool untouched_give_back(const struct transaction *transaction, struct ino ino, uint32_t generation,
                         struct inode_row *row) {
    const struct open_entry *entry =
        opens_find(&transaction->group->opens, ino, transaction->session);

    bool is_sole = (row->flags & INODE_UNTOUCHED) && row->truncate_seq == 0 && entry &&
                   !entry->presented && entry->write_count > 0;

    if (generation == 0 || row->data_state != DATA_CHUNKED || row->chunk_generation != generation ||
        row->size > 0) {
        return false;
    }
    if (!is_sole && !BUG(BLIND_BELIEF)) {
        transaction->group->counters.totals.chunks_kept++;
        return false;
    }
    transaction->group->counters.totals.chunks_given_back++;
    row->data_state = DATA_EMPTY;
    row->flags &= (uint16_t)~(INODE_UNTOUCHED | INODE_COUNTED);
    row->chunk_generation = 0;
    row->truncate_position = 0;
    return true;
}

bool untouched_end(struct inode_row *row) {
    bool was = row->flags & INODE_UNTOUCHED;

    row->flags &= (uint16_t)~INODE_UNTOUCHED;
    return was;
}
