/* Settle jobs: asking the OSTs of a file how long it is, when nobody else can tell: after a session
 * that wrote to it ended uncleanly, or when a writer speaks of a truncation's past.
 *
 * Whoever wants to know the size meanwhile waits (settle_is_awaited). For an evicted session the
 * question fences: an OST that has answered takes nothing more from that session. Of a file whose
 * end is not sure since a loss it fences those of fences.h, too, up to 64 at a time.
 *
 *     begin --> READ --> ASK --> END --> gone
 *                ^        |
 *                |--------+--more are to be fenced, or it is asked for once more
 *                |        |
 *                |        '--an OST of the file is away--> PUT_OFF --> among the later ones
 *                '------------------a tick, or a job that ends--------------'
 *
 * A job whose OST is away gives up its place, so that it holds no other file's. Its answers are
 * asked for again then.
 *
 * The same answers tell how many blocks the file has (usage.h). A job that *counts* asks for these
 * alone: nobody waits for it, it changes no size, and it takes one of half of the places.
 *
 * Thread: the group's step.  Memory: SETTLE_JOBS jobs, taken at start; a few bytes for each that is
 * put off, of which there are settles_later_max at most; beyond, they keep their places. */
#pragma once
#include "base/list.h"
#include "base/types.h"
#include "rpc/call.h"
#include "wire/wire_types.h"

enum { SETTLE_JOBS = 16, SETTLE_CALLS = 4, SETTLE_BUCKETS = 256, SETTLES_LATER_MAX = 65536 };

struct group;
struct session;
struct settle_job;
struct transaction;
struct ost_peer;

struct settle_ask {
    struct call call;
    struct settle_job *job;
    struct ost_peer *peer;
    bool busy;
    bool failed; /* to be asked again at a tick */
};

enum settle_stage { SETTLE_IDLE, SETTLE_READ, SETTLE_ASK, SETTLE_PUT_OFF, SETTLE_END };

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
    uint64_t blocks;
    bool counts;     /* asks for blocks alone */
    bool again;      /* asked for once more while under way */
    bool is_read;    /* the row, since it began */
    bool is_over;    /* since a loss that was over then, so what is longer is nobody's, */
    bool is_written; /* unless somebody wrote when it was begun or asked for once more */
    bool is_unsure;  /* its end, by the row that was read */
    /* Of fences.h: those before this place are fenced; and what is asked now. */
    uint64_t fence_place;
    uint64_t fence_place_next;
    uint64_t ends_place; /* the next place when it began to ask */
    uint32_t fence_count;
    bool fence_short; /* an OST of an older version has answered: it takes them one by one, */
    bool fences_one;  /* from then on, and the evicted session's last */
    uint8_t fences[WIRE_FENCES_MAX * WIRE_FENCE_BYTES];
    struct settle_ask asks[SETTLE_CALLS];
};

/* A job that is put off. */
struct settle_later {
    struct list_node node;
    struct list_node bucket_node;
    struct ino ino;
    struct session *session;
    bool is_written;
    bool counts;
};

struct settle {
    struct group *group;
    struct settle_job *jobs;
    uint32_t busy_count;
    uint32_t count_count; /* of these, those that count */
    struct list later;    /* the next one to be tried again first */
    struct list buckets[SETTLE_BUCKETS];
    uint32_t later_count;
    bool ticked;
    bool progress;        /* one has ended, so others may */
    uint64_t ended_count; /* jobs that have given up their places */
    bool no_space;        /* what a storage target answered last */
};

MUST_CHECK int settle_init(struct settle *settle, struct group *group);
void settle_deinit(struct settle *settle);
/* True when settle_begin may be called for the ino. */
bool settle_has_room(const struct group *group, struct ino ino);
/* For an operation, which waits for the size and is run again. -ERR_PENDING; 0 without OSTs. */
MUST_CHECK int settle_ask(struct transaction *transaction, struct ino ino);
void settle_begin(struct group *group, struct ino ino, struct session *session);
/* Counts the blocks of a file, now or later; where too many wait it stays unsure until somebody has
 * written to it again. */
void settle_count(struct group *group, struct ino ino);
/* The OSTs are asked about it, for whatever. */
bool settle_has_job(const struct group *group, struct ino ino);
/* Somebody asks for its size. */
bool settle_is_running(const struct group *group, struct ino ino);
/* Whether the size of the ino is not known now. */
bool settle_is_awaited(const struct group *group, struct ino ino);
void settle_step(struct group *group);
/* For a stop: the calls under way, and having them end soon. */
uint32_t settle_calls_out(const struct settle *settle);
void settle_cancel(struct settle *settle);
