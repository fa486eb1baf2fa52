/* Sessions that were evicted and had not presented what they had open to a group that had lost the
 * end of its log. It may have been any file that was there then: so a file whose end is not sure
 * since a loss (inode_row.losses) is told, opened or cut only after its storage targets refuse
 * these sessions, too.
 *
 *     attached --a start without the log's end--> unsure --attached anew--> attached
 *                                                   | the list of the ended names it
 *                                                   '--> FENCED, until all OSTs have the list's
 *                                                        number by which it is named --> gone
 *
 * F rows say so on disk: of a session that has attached since a loss, up to which one all that it
 * has open is known; of one that is fenced, which number it waits for. A session without is sure up
 * to no loss at all.
 *
 * Nobody waits for an unsure session. As long as there is one no count of losses is raised, so what
 * was asked of a file is remembered in memory, and asked anew after a start, and after each end of
 * one that was unsure, fenced or not: what it has written since the answers is in none of them.
 *
 * Thread: the group's.  Memory: a few bytes for each that is fenced; a table of files, taken at
 * start. */
#pragma once
#include "base/list.h"
#include "kv/kv.h"
#include "meta/group_format.h"
#include "meta/transaction.h"

enum { FENCES_FILES = 4096 };

struct group;
struct session;

struct fence {
    struct list_node node;
    struct session_id session;
    uint64_t incarnation;
    uint64_t number; /* of the list of the ended; 0: an older manager has not told it */
    uint64_t place;  /* rises with each that is added */
};

/* Its storage targets were asked, and nobody unsure had ended since, up to that place. */
struct fences_file {
    uint64_t ino;
    uint64_t place;
};

struct fences {
    struct list list; /* by place */
    uint32_t count;
    uint64_t place_next; /* from 1 on; rises with each end of a session that was unsure */
    struct fence *spare;
    uint64_t position; /* of the newest record in which one went */
    struct fences_file *files;
};

MUST_CHECK int fences_init(struct fences *fences);
void fences_deinit(struct fences *fences);
/* A row, once the sessions are loaded. -ERR_CORRUPT, -ERR_NO_MEMORY. */
MUST_CHECK int fences_load(struct group *group, const struct kv_key *key, struct bytes value);

/* Of a session that attaches: from now on all that it has open is known. */
MUST_CHECK int fences_known_stage(struct transaction *transaction, struct session_id session,
                                  uint64_t incarnation);
/* Of one that the list names, by number at the latest: its row, and once that is committed the
 * fence. */
MUST_CHECK int fences_add_stage(struct transaction *transaction, const struct session *session,
                                uint64_t number);
void fences_add(struct group *group, struct session *session, uint64_t number);
/* One that was unsure has ended, and all OSTs refuse it already. */
void fences_pass_over(struct fences *fences);
/* Of one that has nothing open any more; its fence stays. */
MUST_CHECK int fences_end_stage(struct transaction *transaction, const struct session *session);
/* All OSTs have that number of the list; newest: a number by which all were named that are fenced
 * by now, or 0. Above 0: more are left for a later step. */
MUST_CHECK int fences_pass(struct group *group, uint64_t everywhere, uint64_t newest);

/* Whether a row may be told, or acted upon, only after a question that fences (settle_ask). */
bool fences_hold(const struct group *group, struct ino ino, const struct inode_row *row);
/* Some come at or behind the place. */
bool fences_any_from(const struct fences *fences, uint64_t place);
/* Up to `most` of them, as chunk_length has them, and the place behind: how many. */
uint32_t fences_take(const struct fences *fences, uint64_t *place, uint32_t most,
                     uint8_t ret_bytes[]);
/* The file's OSTs were asked, behind the last end, and refuse all that are fenced now. */
void fences_file_asked(struct fences *fences, struct ino ino);
bool fences_file_is_asked(const struct fences *fences, struct ino ino);
