/* One seed: a machine with one or two owners, a schedule, and a crash at points of it.
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "fail.h"
#include "machine.h"
#include "owner.h"
#include "totals.h"

enum { SEED_OWNERS_MAX = 2 };

/* What a store is for. */
enum mark_part { MARK_OTHER, MARK_SEAL, MARK_RELEASE, MARK_FILLER };

/* What goes with each event: what the engine was at. */
struct mark {
    unsigned owner, sync, checkpoint;
    bool opening, is_open;
    bool filler, record; /* in the ring; with a record behind it */
    enum mark_part part;
};
struct mark mark_split(uint32_t packed);
uint32_t mark_pack(const struct mark *mark);

struct seed {
    uint64_t number;
    const char *what; /* it is called, in the small scope */
    struct prng prng;
    struct machine *machine;
    struct owner *owners[SEED_OWNERS_MAX];
    enum owner_kind kinds[SEED_OWNERS_MAX];
    size_t owner_count;
    size_t active;      /* the owner whose step it is */
    size_t first_point; /* events before it are of the preparation */
    bool every_point;
    bool fills;               /* its first life fills the log */
    bool resizes;             /* what is recovered may open with a ring of other sizes */
    uint64_t failures_before; /* of I/O, when the life at hand began */
    bool holds_up;            /* the life at hand: its checkpoints wait for space, its log fills */
    uint64_t filler_at[SEED_OWNERS_MAX]; /* the ring's head where the newest filler was stored */
    bool filler_known[SEED_OWNERS_MAX];
    struct counts counts[OWNER_KIND_COUNT];
    struct counts unseen; /* of what a recovery does */
};

/* run.c: plays one, and says how it went. */
void seed_run(struct machine *machine, uint64_t number, FILE *trace,
              struct seed_report *ret_report);
/* Each event of the machine knows what the seed's engine was at. */
void seed_mark(struct seed *seed);
void seed_end(struct seed *seed);
/* schedule.c */
void schedule_play(struct seed *seed);
/* A crash of what runs now, and the next life. */
void schedule_crash(struct seed *seed, enum crash_kind kind);
enum crash_kind crash_draw(struct prng *prng);
/* recover.c: walks back over the trace and crashes at its points. */
void recover_all(struct seed *seed);
/* The same by hand: owners are abandoned; then, downwards, back to each event (true: it may be
 * crashed there) and crashes of it, each of which opens, is compared, and takes a sync point. */
void recover_begin(struct seed *seed);
bool recover_back(struct seed *seed, size_t point);
void recover_short(struct seed *seed, size_t point, enum crash_kind kind);
/* What a crash leaves of a ring's data area: what no whole record names is anything. */
void scramble(struct owner *owner);
/* What a start would take of a ring, as a number: the same for rings that differ only in what no
 * start looks at. 0: there is none. */
uint64_t ring_seen(const struct owner *owner);
/* The owner's ring as it lies there, if it has a header; a walk over its records as a start does:
 * false where it has no beginning, and NULL behind the last. */
struct ring_header;
const struct ring_header *owner_ring(const struct owner *owner);
struct ring_walk {
    const struct ring_header *header;
    const struct ring_start *start;
    uint64_t offset, first, position; /* of the next record; of the first */
    uint32_t crc;                     /* of the one before */
};
bool ring_walk_begin(const struct ring_header *header, struct ring_walk *ret_walk);
const struct log_record *ring_walk_next(struct ring_walk *walk);
/* damage.c, of the first owner: what must be refused is, and is taken back. */
void damage_play(struct seed *seed, size_t point, bool killed);
/* A start fails, as the disk does; what it did stays. */
void opening_fail(struct seed *seed, size_t point);
/* A ring does not say what its newest record is. */
void newest_forget(struct owner *owner);
/* prepare.c: a log that has come far: records, terms, offsets go on from there. */
void prepare_far(struct seed *seed, struct owner *owner, uint64_t first);
/* Likewise, its ring about to come round. */
void prepare_late(struct seed *seed, struct owner *owner);
