/* Keys and values of the rows in meta_format.h. Values come from disk and are not trusted: a check
 * answers -ERR_CORRUPT or -ERR_NEWER_FORMAT and leaves *ret_row alone. A checked row points into
 * the value and lives as long as that. Pure, any thread. */
#pragma once
#include "kv/kv_key.h"
#include "meta/cross_format.h"
#include "meta/group_format.h"
#include "wire/wire_types.h"

/* Space 1. */
static inline struct kv_key key_partition(struct ino directory) {
    return kv_key_make((struct kv_key_fields){KV_SPACE_SLOT, ino_slot(directory).value,
                                              ROW_PARTITION, directory.value, 0, 0});
}
static inline struct kv_key key_dentry(struct ino directory, uint64_t index) {
    return kv_key_make((struct kv_key_fields){KV_SPACE_SLOT, ino_slot(directory).value, ROW_DENTRY,
                                              directory.value, 0, index});
}
static inline struct kv_key key_inode(struct ino ino) {
    return kv_key_make(
        (struct kv_key_fields){KV_SPACE_SLOT, ino_slot(ino).value, ROW_INODE, ino.value, 0, 0});
}
static inline struct kv_key key_inline(struct ino ino, uint64_t piece) {
    return kv_key_make((struct kv_key_fields){KV_SPACE_SLOT, ino_slot(ino).value, ROW_INLINE,
                                              ino.value, 0, piece});
}

/* Space 0: id, generation and index as meta_format.h says for each type. */
static inline struct kv_key key_owner(enum row_type type, uint64_t id, uint32_t generation,
                                      uint64_t index) {
    return kv_key_make(
        (struct kv_key_fields){KV_SPACE_OWNER, 0, (uint8_t)type, id, generation, index});
}

MUST_CHECK int partition_row_check(struct bytes value, const struct partition_row **ret_row);
MUST_CHECK int dentry_row_check(struct bytes value, const struct dentry_row **ret_row);
MUST_CHECK int inode_row_check(struct bytes value, const struct inode_row **ret_row);
/* *ret_data: the bytes of the piece. */
MUST_CHECK int inline_row_check(struct bytes value, struct bytes *ret_data);
MUST_CHECK int group_row_check(struct bytes value, const struct group_row **ret_row);
MUST_CHECK int counters_row_check(struct bytes value, const struct counters_row **ret_row);
MUST_CHECK int slots_row_check(struct bytes value, const struct slots_row **ret_row);
MUST_CHECK int lost_row_check(struct bytes value, const struct lost_row **ret_row);
MUST_CHECK int fence_row_check(struct bytes value, const struct fence_row **ret_row);
MUST_CHECK int over_row_check(struct bytes value, const struct over_row **ret_row);
MUST_CHECK int session_row_check(struct bytes value, const struct session_row **ret_row);
MUST_CHECK int mark_row_check(struct bytes value, const struct mark_row **ret_row);
MUST_CHECK int order_row_check(struct bytes value, const struct order_row **ret_row);
/* *ret_halves: behind the participants; none in a row that says COMMITTED. */
MUST_CHECK int transaction_row_check(struct bytes value, const struct transaction_row **ret_row,
                                     struct bytes *ret_halves);
MUST_CHECK int decision_row_check(struct bytes value, const struct decision_row **ret_row);
MUST_CHECK int count_row_check(struct bytes value, const struct count_row **ret_row);
/* *ret_reply: the encoded reply behind the head. */
MUST_CHECK int outcome_check(struct bytes value, const struct outcome_head **ret_head,
                             struct bytes *ret_reply);

/* Whether a chunk can only have come to be by what that loss took: its inode was made, or its
 * generation drawn, and nothing that was kept knows of it. */
bool lost_row_has(const struct lost_row *row, struct ino ino, uint32_t generation);

struct layout inode_layout(const struct inode_row *row);
void inode_layout_set(struct inode_row *row, const struct layout *layout);
struct layout order_layout(const struct order_row *row);
/* Of 4 KiB, that OSTs have of it, as far as the row knows; 0 but of a file in chunks. */
uint64_t inode_blocks(const struct inode_row *row);

static inline bool mode_is_directory(uint32_t mode) {
    return mode >> 12 == 4;
}
static inline bool mode_is_regular(uint32_t mode) {
    return mode >> 12 == 8;
}
static inline bool mode_is_link(uint32_t mode) {
    return mode >> 12 == 10;
}

/* Types in the upper bits of a mode, and bits of its lower twelve, with the values of POSIX. */
enum {
    MODE_FIFO = 0010000,
    MODE_CHARACTER = 0020000,
    MODE_DIRECTORY = 0040000,
    MODE_BLOCK = 0060000,
    MODE_REGULAR = 0100000,
    MODE_LINK = 0120000,
    MODE_SOCKET = 0140000,
    MODE_TYPE_BITS = 0170000,
    MODE_BITS = 07777,
    MODE_SETUID = 04000,
    MODE_SETGID = 02000,
    MODE_STICKY = 01000,
    MODE_GROUP_EXECUTE = 0010,
};
