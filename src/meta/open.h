/* What open, create and reopen share. */
#pragma once
#include "meta/inode.h"
#include "meta/opens.h"

enum {
    OPEN_FLAGS_KNOWN = OPEN_READ | OPEN_WRITE | OPEN_TRUNCATE | OPEN_DIRECTORY | OPEN_EXECUTE,
    OPEN_COUNT_MAX = 1 << 20, /* of one inode by one session, as far as reopen goes */
};

/* Whether who may open the inode with these OPEN_ flags: types first, then permission. */
MUST_CHECK int open_check(const struct inode_row *row, const struct credentials *who,
                          uint32_t open_flags);
/* Somebody besides whoever made a file may write to it while its bytes are with the inode: from now
 * on those of files that are there go to chunks on disk only (op_inline.c). */
void open_is_shared(const struct transaction *transaction, const struct inode_row *row,
                    uint32_t open_flags);
/* An open or close by name (opens.h): it has no outcome, and the open has no record. */
bool open_is_by_name(const struct call *call);
/* Stages the open of the call's session, for who asks: the W row and the effect.
 * -ERR_TOO_MANY_OPEN. */
MUST_CHECK int open_stage(struct transaction *transaction, struct ino ino,
                          const struct credentials *who, uint32_t open_flags);
/* At a tick: a line in the log for each user who has met his share of what the group may have open
 * for all sessions, a minute apart. */
void open_shares_tell(struct group *group);
/* Stages the end of one open (effect: EFFECT_CLOSE, its ino and flags): the W row with the last one
 * for writing, and the end of an inode that nobody names or has open any more (*ret_freed). */
MUST_CHECK int close_stage(struct transaction *transaction, const struct inode_row *row,
                           const struct effect *effect, bool *ret_freed);
/* The W row of the session, unless it is there. */
MUST_CHECK int open_writer_stage(struct transaction *transaction, struct ino ino);
/* Stages that it, and the session's moves of the file, are gone: whoever applies it notes that. */
MUST_CHECK int open_writer_lose(struct transaction *transaction, const struct open_entry *entry);
/* That, the moves as orders, and the end of the file if that was its last open. */
extern const struct kv_need open_lose_need;
