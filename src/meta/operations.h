/* The operations of a group: one function for each opcode, in op_<verb>.c.
 *
 * An operation reads rows, decides, stages its changes and fills call->reply. It has no other
 * effect, so it may be left at any read (-ERR_PENDING) and run again. Its errors are those of the
 * system call that it serves; which one wins when several apply is as in Linux. */
#pragma once
#include "meta/transaction.h"
#include "rpc/call.h"

typedef int operation_fn(struct transaction *transaction, struct call *call);

enum operation_flag {
    OPERATION_CHANGES = 1,    /* may stage something */
    OPERATION_NO_SESSION = 2, /* anybody may ask */
    OPERATION_REOPENS = 4,    /* by sessions that have not attached again yet */
};

struct operation {
    operation_fn *run;
    uint8_t rows;          /* that it puts, patches or deletes at the most */
    uint16_t record_bytes; /* that it adds to the log at the most, but for its outcome */
    uint8_t flags;
};

/* NULL for what is no operation of a group. */
const struct operation *operation_of(uint16_t opcode);

#define OPERATIONS(O)                                                                              \
    O(session_attach, SESSION_ATTACH, 6, 600, OPERATION_CHANGES | OPERATION_NO_SESSION)            \
    O(session_floor, SESSION_FLOOR, 0, 0, OPERATION_CHANGES)                                       \
    O(sessions_ended, SESSIONS_ENDED, 0, 0, OPERATION_CHANGES | OPERATION_NO_SESSION)              \
    O(lookup, LOOKUP, 0, 0, 0)                                                                     \
    O(getattr, GETATTR, 0, 0, 0)                                                                   \
    O(setattr, SETATTR, 20, 7000, OPERATION_CHANGES)                                               \
    O(create, CREATE, 16, 3000, OPERATION_CHANGES)                                                 \
    O(mknod, MKNOD, 12, 2500, OPERATION_CHANGES)                                                   \
    O(mkdir, MKDIR, 14, 2900, OPERATION_CHANGES)                                                   \
    O(symlink, SYMLINK, 16, 8000, OPERATION_CHANGES)                                               \
    O(readlink, READLINK, 0, 0, 0)                                                                 \
    O(link, LINK, 14, 2900, OPERATION_CHANGES)                                                     \
    O(unlink, UNLINK, 22, 3400, OPERATION_CHANGES)                                                 \
    O(rmdir, RMDIR, 18, 3400, OPERATION_CHANGES)                                                   \
    O(rename, RENAME, 36, 5600, OPERATION_CHANGES)                                                 \
    O(open, OPEN, 24, 3500, OPERATION_CHANGES)                                                     \
    O(reopen, REOPEN, 12, 2000, OPERATION_CHANGES | OPERATION_REOPENS)                             \
    O(settle, SETTLE, 28, 4000, OPERATION_CHANGES)                                                 \
    O(readdir, READDIR, 0, 0, 0)                                                                   \
    O(inline_read, INLINE_READ, 0, 0, 0)                                                           \
    O(inline_write, INLINE_WRITE, 16, 8000, OPERATION_CHANGES)                                     \
    O(inline_convert, INLINE_CONVERT, 24, 4000, OPERATION_CHANGES)                                 \
    O(layout_set, LAYOUT_SET, 6, 1200, OPERATION_CHANGES)                                          \
    O(layout_get, LAYOUT_GET, 0, 0, 0)                                                             \
    O(access, ACCESS, 0, 0, 0)                                                                     \
    O(sync, SYNC, 0, 0, OPERATION_NO_SESSION)                                                      \
    O(statfs, STATFS, 0, 0, OPERATION_NO_SESSION)                                                  \
    O(slots_give, SLOTS_GIVE, 48, 4800, OPERATION_CHANGES | OPERATION_NO_SESSION)                  \
    O(group_tell, GROUP_TELL, 48, 4800, OPERATION_CHANGES | OPERATION_NO_SESSION)                  \
    O(cross_look, CROSS_LOOK, 0, 0, OPERATION_NO_SESSION)                                          \
    O(cross_prepare, CROSS_PREPARE, 3, 1800, OPERATION_CHANGES | OPERATION_NO_SESSION)             \
    O(cross_commit, CROSS_COMMIT, 48, 9000, OPERATION_CHANGES | OPERATION_NO_SESSION)              \
    O(cross_abort, CROSS_ABORT, 2, 300, OPERATION_CHANGES | OPERATION_NO_SESSION)                  \
    O(cross_ask, CROSS_ASK, 0, 0, OPERATION_NO_SESSION)                                            \
    O(cross_fate, CROSS_FATE, 0, 0, OPERATION_NO_SESSION)                                          \
    O(fsck_list, FSCK_LIST, 0, 0, OPERATION_NO_SESSION)

#define O(name, NAME, rows, record_bytes, flags) operation_fn op_##name;
OPERATIONS(O)
#undef O
