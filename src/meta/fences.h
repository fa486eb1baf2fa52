/* Sessions that ended before everybody had presented what he had open to a group that had lost the
 * end of its log. What one of them had open may have been any file that was there then, and what it
 * had written and closed may be lost: so a file whose end is not sure since a loss
 * (inode_row.losses) is told, opened or cut only after its storage targets refuse these sessions.
 *
 *     attached --a start without the log's end--> unsure --attached anew--> attached
 *                        the list of the ended names it |                      | likewise, and
 *                                                       |                      | others are unsure
 *                                                       '------> FENCED <------'
 *                                                                  '--the loss is over--> gone
 *
 * F rows say so on disk: of a session that has attached since a loss, up to which one all that it
 * has open is known; of one that is fenced, which number it waits for. A session without is sure up
 * to no loss at all.
 *
 * A loss is over when nobody is unsure and all OSTs have the numbers of all that are fenced, for
 * good once the U row that says so is on disk; the fences go then, and before only where a later
 * one stays. A file whose count is older, and that nobody has open for writing by a W row, is
 * written by nobody: who opened it since was answered when its newer count was on disk. So what
 * lies behind its end stays nobody's, whatever is lost later: it is told as long as it is, and its
 * next open for writing cuts it there.
 *
 * Nobody waits for an unsure session. As long as there is one no count of losses is raised, so what
 * was asked of a file is remembered in memory, and asked anew after a start, and after each end of
 * a session: what it has written since the answers is in none of them.
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

/* Its storage targets were asked, and nobody had been fenced since, up to that place. */
struct fences_file {
    uint64_t ino;
    uint64_t place;
};

struct fences {
    struct list list;       /* that OSTs have to be asked to refuse, by place */
    struct list told;       /* all OSTs have their numbers: they only hold files */
    uint32_t count;         /* of both */
    uint64_t everywhere;    /* number of the list that all OSTs have, as was told */
    uint16_t over;          /* the loss up to which all are over, on disk */
    uint16_t over_staged;   /* in the row that has */
    uint64_t over_position; /* that position */
    uint64_t sure_position; /* of the newest record that raised a file's count, but by a cut */
    uint64_t place_next;    /* from 1 on; rises with each that is fenced */
    struct fence *spare;
    uint64_t position; /* of the newest record of the U row, or in which one went */
    struct fences_file *files;
};

MUST_CHECK int fences_init(struct fences *fences);
void fences_deinit(struct fences *fences);
/* A row, once the sessions are loaded. -ERR_CORRUPT, -ERR_NO_MEMORY. */
MUST_CHECK int fences_load(struct group *group, const struct kv_key *key, struct bytes value);
/* Before these: the U row. -ERR_CORRUPT. */
MUST_CHECK int fences_over_load(struct group *group, const struct kv_key *key, struct bytes value);

/* Of a session that attaches: from now on all that it has open is known. */
MUST_CHECK int fences_known_stage(struct transaction *transaction, struct session_id session,
                                  uint64_t incarnation);
/* Of one that the list names, by number at the latest: its row, and once that is committed the
 * fence. */
MUST_CHECK int fences_add_stage(struct transaction *transaction, const struct session *session,
                                uint64_t number);
void fences_add(struct group *group, struct session *session, uint64_t number);
/* Of one that has nothing open any more; its fence stays. */
MUST_CHECK int fences_end_stage(struct transaction *transaction, const struct session *session);
/* All OSTs have that number of the list; newest: a number by which all were named that are fenced
 * by now, or 0. Above 0: more are left for a later step. -ERR_PENDING: for a record, or its sync.
 */
MUST_CHECK int fences_pass(struct group *group, uint64_t everywhere, uint64_t newest);
/* A loss may be over by what the group itself has heard. */
void fences_step(struct group *group);
/* What lies behind the end of such a file is nobody's, but of who has it open for writing. */
bool fences_are_over(const struct fences *fences, const struct inode_row *row);

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
