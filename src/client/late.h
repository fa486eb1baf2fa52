/* What a client still has to say to a metadata target when nobody waits for it any more.
 *
 * Closes that it would not take when the handle was closed, as it was full, or away for longer than
 * the patience; and opens that have ended without an answer, and may have taken effect.
 *
 *     release -- -ERR_NO_SPACE --> CLOSE: each second one after another --> taken, or nobody's
 *        |          '-- 0 to the caller
 *        '-- unanswered --> CLOSE: likewise, under the number that it had
 *                   '-- the error to the caller
 *
 *     open, create -- unanswered --> OPEN, CREATE: asked under the number it had
 *         '-- the error to the caller                '-- refused: it is not open, and never will be
 *                                                    '-- it is open --> CLOSE
 *                                                    '-- it was, in a term that is over --> AGAIN
 *     AGAIN: opened anew, but not to cut or make it --> CLOSE
 *
 *     open, create -- an answer that can't be used --> CLOSE
 *
 * An open is asked again as one that opens nothing (open_flags 0). A server that has run it answers
 * as it did then; one that has not refuses it, and every copy under that number: so it never takes
 * effect later, when others may have the file, or its name, by then. Only what was sent is kept: of
 * what is asked while a server is away nothing is, so that it takes no place of the log's window.
 *
 * The handle of a CLOSE stays one of its file: it is counted, presented to a server that starts
 * anew, and what is owed of size and times is overlaid. One that was opened by name is neither: a
 * server that starts anew has nothing to close. It goes when the server has taken the close, when
 * that fails for another reason, with the file, or with the session. A round of a shard ends with
 * the first for which there is no room, which is the last of the next one, or when some have met a
 * server that is away. Under its number a close that had been taken before is not taken twice:
 * another open of that file stays.
 *
 * Those that have a number and those that need one are two lines: the latter may wait for a place
 * in the log's window, which the former give back.
 *
 * Thread: the shard's step, but the atomic fields. Memory: the handle has the node, the line its
 * one errand. */
#pragma once
#include "client/errand.h"

struct shard;
struct shoal_client;
struct shoal_file;

enum late_stage { LATE_CLOSE, LATE_OPEN, LATE_CREATE, LATE_AGAIN };

struct late_line {
    struct list handles;     /* those that wait, */
    uint32_t waiting;        /* so many */
    struct shoal_file *sent; /* what is asked of; NULL: nothing */
    uint32_t round;          /* so many are still to be sent in this one, */
    uint32_t round_away;     /* and so many may still meet a server that is away */
    uint32_t parity;         /* of the router's readers, as long as one is sent */
    uint64_t write_count;    /* of its file, when it was sent */
    bool is_repeated;        /* under the number of a copy that may have said less */
    struct errand errand;
};

struct late_closes {
    struct message message; /* from the session: begin a round */
    atomic_bool posted;
    _Atomic uint32_t count;      /* with those that are sent, and those that come from others */
    _Atomic uint64_t ever;       /* closes that were put here for want of room, */
    _Atomic uint64_t ever_away;  /* and as their server was away; */
    _Atomic uint64_t ever_opens; /* and opens, and closes of those whose answer can't be used */
    struct late_line lines[2];   /* by whether they have a number */
};

void late_init(struct late_closes *late);
/* Whether a close that ended so stays. */
bool late_takes(int result);
/* Takes over the handle of such a close, and the number of its call, which has ended so; or of an
 * open that was answered, and is to be closed. */
void late_keep(struct shard *shard, struct shoal_file *handle, struct call *call);
/* Whether an open or create that has ended stays: it may have taken effect. */
bool late_takes_open(const struct call *call);
/* Takes over a handle for it, and its number. In it: flags; the file, pinned, or of a create its
 * directory in ino. */
void late_keep_open(struct shard *shard, struct shoal_file *handle, struct call *call);
/* In the shard's step, for the session's message; and for a handle's. */
void late_step(struct shard *shard);
void late_made(struct shard *shard, struct shoal_file *handle);

/* By the session. Wakes the shards that have some; how many there are. */
uint32_t late_wake(struct shoal_client *client);
/* A stop tries each once, for no longer than this. */
#define LATE_STOP_NS NS_PER_S
