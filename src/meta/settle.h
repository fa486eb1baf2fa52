/* Settle jobs: asking the OSTs of a file how long it is, when nobody else can tell: after a session
 * that wrote to it ended uncleanly, or when a writer speaks of a truncation's past.
 *
 * Whoever wants to know the size meanwhile waits (settle_is_awaited). For an evicted session the
 * question fences: an OST that has answered takes nothing more from that session.
 *
 * Thread: the group's step.  Memory: SETTLE_JOBS jobs, taken at start. */
#pragma once
#include "base/types.h"
#include "rpc/call.h"

enum { SETTLE_JOBS = 16, SETTLE_CALLS = 4 };

struct group;
struct session;
struct settle_job;

struct settle_ask {
    struct call call;
    struct settle_job *job;
    bool busy;
    bool failed; /* to be asked again at a tick */
};

enum settle_stage { SETTLE_IDLE, SETTLE_READ, SETTLE_ASK, SETTLE_END };

struct settle_job {
    enum settle_stage stage;
    struct settle *settle;
    struct ino ino;
    struct session *session; /* that is being evicted; NULL: no fence */
    struct layout layout;
    uint32_t generation;
    uint32_t truncate_seq;
    uint64_t truncate_size;
    uint32_t chain_next; /* the first that nobody has been asked of */
    uint32_t answer_count;
    uint64_t length;
    bool again; /* asked for once more while under way */
    struct settle_ask asks[SETTLE_CALLS];
};

struct settle {
    struct group *group;
    struct settle_job *jobs;
    uint32_t busy_count;
    bool ticked;
    bool no_space; /* what a storage target answered last */
};

MUST_CHECK int settle_init(struct settle *settle, struct group *group);
void settle_deinit(struct settle *settle);
/* True when settle_begin may be called for the ino. */
bool settle_has_room(const struct group *group, struct ino ino);
void settle_begin(struct group *group, struct ino ino, struct session *session);
bool settle_is_running(const struct group *group, struct ino ino);
/* Whether the size of the ino is not known now. */
bool settle_is_awaited(const struct group *group, struct ino ino);
void settle_step(struct group *group);
/* For a stop: the calls under way, and having them end soon. */
uint32_t settle_calls_out(const struct settle *settle);
void settle_cancel(struct settle *settle);
