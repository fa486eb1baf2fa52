/* Room (docs/internals/log.md, "The account"): nothing begins that could end without it.
 *
 *     asker (one a class)  admission -> record in the ring, rows in the changes, an outcome
 *     syncer               cut -> batches to the log -> the ring's start moves
 *     checkpointer         freeze -> synced -> commit -> superblock, which moves the log's tail
 *     cleaner              rows of superfluous outcomes are deleted
 *     world                kill between any two steps, start with what ring, log and base hold
 *
 * Units: a record takes one or two of the ring's, a filler what is left before the ring's end; a
 * batch wastes one of the log's; a row takes one of the memory, as does a generation's beginning.
 *
 * Proved, by assertions: staging within what was admitted always fits ring and memory, a sync
 * point of what was admitted always fits the log, before and after a kill, and a freeze has room.
 * Proved, with LIVENESS: from every state that can come, once the base has room and nobody kills,
 * each class is admitted with its largest record. Even without fairness: nothing that the engine
 * does alone goes on for ever, so it ends where the one that waits is admitted.
 *
 * Two rules it rests on: the account counts the log's tail where the superblock on disk has it, not
 * where one in flight will (EARLY_TAIL); and a checkpoint is not for nothing while the tail is
 * behind the head, also when all records are in the base (TAIL_STAYS).
 *
 * What is left out, and why that hides nothing:
 *
 * - The base is full for as long as `commit` of the checkpointer is not taken; any wait is a course
 *   of the search. Only with LIVENESS must it end.
 * - Outside LIVENESS a checkpoint may begin at any time, so nobody has to ask for one.
 * - A transaction is a record: several in one waste less.
 * - Data area and power loss: the one is counted like the ring, the other leaves a shorter log and
 *   an empty ring.
 * - A start serves at once, and replays at once: what it leaves on disk when it is cut off is what
 *   it found, or what one step of a checkpoint makes of it, from where the next start goes on.
 * - One session, with room for one outcome; its floor's row and the applied one are parts of the
 *   outcome's and the generation's.
 * - After a kill each row counts that was in memory, also where two generations had the same.
 * - With LIVENESS all records are of two, so there is no filler, which the first search has. One
 *   class asks at a time: who is admitted takes a step of the time before, and all states that such
 *   steps leave are begun from; who is refused wants a checkpoint, which hinders nobody.
 * - FREEING asks like BACKGROUND and REQUEST, with a reserve between theirs.
 *
 * Not proved, as the states would be too many: the gap that a batch leaves at the end of the log's
 * region. What is counted for it may grow by a kill, when two batches become one; CONTROL leaves a
 * ring in the log, which is more. Here it leaves nothing.
 *
 * Mutants, each of which must fail: FILLER, FULL_LOG, FREEZE_ROOM, FULL_OUTCOMES, NO_GRANT,
 * LAST_CHUNK, EARLY_TAIL, TAIL_STAYS. */

#define RING 6
#define LOG 14
#define POOL 7
#ifdef LIVENESS
#define POOL_SMALL POOL
#define MENDS true
#define RECORD_MIN 2
#else
#define POOL_SMALL 6 /* of a start whose rows take more than they did, or with a smaller setting */
#define MENDS false
#define RECORD_MIN 1
#endif
#define RECORD_MAX 2
#define BATCH_MAX 4 /* units of records; each but the last has BATCH_MIN at least */
#define BATCH_MIN 3
#define OUTCOMES 1

/* Classes, and what each leaves to those before it. FREEING lies between RELEASE and REQUEST. */
#define CONTROL 0
#define RELEASE 1
#define BACKGROUND 2
#define REQUEST 3
#define RING_KEPT(class) (class == REQUEST -> 2 : (class == RELEASE -> 1 : 0))
#define POOL_KEPT(class) (class == REQUEST)
#define LOG_KEPT(class) (class == REQUEST -> 3 : (class == CONTROL -> 0 : 2))

/* The other classes' records write rows that are there already. */
#define ROWS(class) (class >= BACKGROUND)

/* Ring: units behind its start, in three parts. */
byte written = 0;   /* in the log, not released */
byte rest = 0;      /* of the running sync point */
byte next = 0;      /* for the one behind it */
byte ring_head = 0; /* modulo RING */
bool filler = false; /* the unit before the ring's end is one, and not released */

byte log_used = 0; /* from the tail that is on disk to the head */

/* Changes, in rows; those of frozen outcomes apart, as a kill makes them outcomes again. */
byte pool = POOL;
byte fresh = 0, frozen = 0, frozen_outcomes = 0;

/* Outcomes: without a row; with one; superfluous, their place is kept until the row is deleted. */
byte outcomes_new = 0, outcomes_row = 0, outcomes_old = 0;

mtype = { IDLE, RECORDS, COMMIT, FLUSH };
mtype sync = IDLE;
mtype checkpoint = IDLE;
bool wanted = false;  /* a checkpoint */
byte sync_points = 0; /* that a checkpoint waits for */
byte log_after = 0;   /* what the log holds once the checkpoint is done */

bool serving = true;
bool inherited = false; /* an older version left a log without room */
bool mending = false;
byte asks = 0; /* which class, then */
bool admitted = false;

#ifdef TAIL_STAYS /* liveness */
bool unapplied = false, unapplied_frozen = false; /* there are records behind the applied one */
#endif

#define MIN(a, b) ((a) < (b) -> (a) : (b))

/* The ring. */
#define FILLER_BACK (ring_head + 1)
#define FILLER_IN_REST (filler && FILLER_BACK > next && FILLER_BACK <= next + rest)
#define REST_PAYLOAD (rest - FILLER_IN_REST)
#define RING_PAYLOAD (rest + next - (filler && FILLER_BACK <= next + rest))
#define RING_USED (written + rest + next)
#define NEEDS_FILLER (ring_head == RING - 1)
#ifdef FILLER
#define ADDED(units) (units)
#else
#define ADDED(units) ((units) + NEEDS_FILLER)
#endif

/* The log, as kv_log_has_room counts it. */
#define BATCHES_COST(units) ((units) == 0 -> 0 : (units) + (units) / BATCH_MIN + 1)
#define COST(more) (BATCHES_COST(rest) + BATCHES_COST(next + (more)))
#ifdef EARLY_TAIL /* when its superblock is in flight */
#define LOG_USED (checkpoint == FLUSH -> log_after : log_used)
#else
#define LOG_USED log_used
#endif
#define LOG_HAS_ROOM(more, kept) (LOG_USED + COST(more) + (kept) <= LOG)

/* The changes. */
#define POOL_USED (1 + fresh + (checkpoint == IDLE -> 0 : 1 + frozen + frozen_outcomes))
#ifdef FREEZE_ROOM
#define OWN_ROWS 0
#else
#define OWN_ROWS outcomes_new
#endif
#define NEXT_GENERATION (checkpoint == IDLE -> 1 : 0)
#define POOL_HAS_ROOM(rows, kept) (POOL_USED + (rows) + OWN_ROWS + NEXT_GENERATION + (kept) <= pool)

/* Outcomes: the floor that a request carries comes first. */
#define OUTCOMES_KEPT (outcomes_new + outcomes_row)
#define OUTCOMES_USED (OUTCOMES_KEPT + outcomes_old)
#ifdef FULL_OUTCOMES /* liveness */
#define OUTCOMES_HAVE_ROOM(raises) (OUTCOMES_USED < OUTCOMES)
#else
#define OUTCOMES_HAVE_ROOM(raises) (OUTCOMES_USED < OUTCOMES || ((raises) && OUTCOMES_KEPT > 0))
#endif

/* Admission of a record. With an outcome come its row and one that is deleted. */
#define OUTCOME_ADMITS(class, raises) (class != REQUEST || OUTCOMES_HAVE_ROOM(raises))
#define RING_ADMITS(class, units) (RING_USED + ADDED(units) + RING_KEPT(class) <= RING)
#define POOL_ADMITS(class, units) \
    POOL_HAS_ROOM(1 + 2 * (class == REQUEST), POOL_KEPT(class))
#ifdef FULL_LOG
#define LOG_ADMITS(class, units) \
    (class == CONTROL || class == RELEASE || LOG_HAS_ROOM(ADDED(units), LOG_KEPT(class)))
#else
#define LOG_ADMITS(class, units) LOG_HAS_ROOM(ADDED(units), LOG_KEPT(class))
#endif
#ifdef NO_GRANT
#define UNASKED(class) (class == CONTROL)
#else
#define UNASKED(class) false
#endif
#define ADMITS(class, units, raises) \
    (UNASKED(class) || (OUTCOME_ADMITS(class, raises) && RING_ADMITS(class, units) && \
     POOL_ADMITS(class, units) && LOG_ADMITS(class, units)))
#define WANTS_CHECKPOINT(class, units, raises) \
    (OUTCOME_ADMITS(class, raises) && RING_ADMITS(class, units) && \
     !(POOL_ADMITS(class, units) && LOG_ADMITS(class, units)))

/* Released. */
inline forget_filler() {
    if
    :: filler && FILLER_BACK > RING_USED -> filler = false
    :: else
    fi
}

/* No more than was asked for. A request may raise its session's floor, CONTROL may end the session:
 * all outcomes before are superfluous then. */
inline stage(class, units, raises) {
    if
    :: NEEDS_FILLER ->
        next++;
        filler = true;
        ring_head = 0
    :: else
    fi;
    next = next + units;
    ring_head = (ring_head + units) % RING;
    fresh = fresh + ROWS(class);
    if
    :: raises ->
        outcomes_old = outcomes_old + outcomes_row;
        outcomes_row = 0;
        outcomes_new = 0
    :: else
    fi;
    if
    :: class == REQUEST ->
        if
        :: OUTCOMES_USED == OUTCOMES ->
            assert(outcomes_old > 0);
            outcomes_old--;
            fresh++
        :: else
        fi;
        outcomes_new++
    :: else
    fi;
#ifdef TAIL_STAYS
    unapplied = true;
#endif
    assert(RING_USED <= RING);
    assert(POOL_USED + outcomes_new + NEXT_GENERATION <= pool)
}

proctype asker(byte class) {
end:
    do
    :: d_step { serving && !mending && RECORD_MIN == 1 && ADMITS(class, 1, false) ->
        stage(class, 1, false) }
    :: d_step { serving && !mending && ADMITS(class, 2, false) -> stage(class, 2, false) }
    :: d_step { serving && !mending && RECORD_MIN == 1 && class == REQUEST &&
                ADMITS(class, 1, true) ->
        stage(class, 1, true) }
    :: d_step { serving && !mending && class == REQUEST && ADMITS(class, 2, true) ->
        stage(class, 2, true) }
    :: d_step { serving && !mending && class == CONTROL && OUTCOMES_KEPT > 0 &&
                ADMITS(class, 2, false) ->
        stage(class, 2, true) }

    :: d_step { MENDS && !mending && sync == IDLE ->
        mending = true;
        asks = class }
    :: d_step { serving && mending && asks == class && !admitted && ADMITS(class, 2, true) ->
        stage(class, 2, class == REQUEST);
        admitted = true }
    :: d_step { serving && mending && asks == class && !admitted && !wanted &&
                WANTS_CHECKPOINT(class, 2, true) ->
        wanted = true }
    od
}

proctype cleaner() {
end:
    do
    :: d_step { serving && outcomes_old > 0 && POOL_HAS_ROOM(1, 0) ->
        outcomes_old--;
        fresh++ }
    od
}

/* Of `units` of records; a filler between or behind them is walked over. */
inline write_batch(units, walked) {
    walked = (units == REST_PAYLOAD -> rest :
              units + (FILLER_IN_REST && next + rest - FILLER_BACK < units));
    written = written + walked;
    rest = rest - walked;
    log_used = log_used + units + 1;
    log_after = (checkpoint == IDLE -> 0 : log_after + units + 1);
    walked = 0;
    assert(log_used <= LOG)
}

#define WRITES (sync == RECORDS && checkpoint != FLUSH) /* the log has one I/O at a time */

proctype syncer() {
    byte size = 0, walked = 0;

end:
    do
    :: d_step { serving && sync == IDLE && next > 0 ->
        assert(LOG_HAS_ROOM(0, 0));
        rest = next;
        next = 0;
        sync = RECORDS }
    :: d_step { WRITES && rest > 0 && REST_PAYLOAD <= BATCH_MAX ->
        size = REST_PAYLOAD;
        write_batch(size, walked);
        size = 0 }
    :: d_step { WRITES && REST_PAYLOAD > BATCH_MAX -> write_batch(BATCH_MAX, walked) }
    :: d_step { WRITES && REST_PAYLOAD > BATCH_MAX -> write_batch(BATCH_MIN, walked) }
    :: d_step { WRITES && rest == 0 ->
        written = 0;
        forget_filler();
        sync_points = (sync_points > 0 -> sync_points - 1 : 0);
        sync = IDLE }
    od
}

#define DUE (2 * POOL_USED >= pool || 8 * log_used >= 3 * LOG)
/* A tail that is behind the head is something to do. */
#ifdef TAIL_STAYS
#define NOTHING_NEW (fresh == 0 && !unapplied)
#else
#define NOTHING_NEW (fresh == 0 && log_used == 0 && RING_USED == 0)
#endif

inline freeze() {
    assert(POOL_USED + outcomes_new + 1 <= pool);
#ifdef TAIL_STAYS
    unapplied_frozen = unapplied;
    unapplied = false;
#endif
    frozen = fresh;
    frozen_outcomes = outcomes_new;
    fresh = 0;
    outcomes_row = outcomes_row + outcomes_new;
    outcomes_new = 0;
    sync_points = (sync != IDLE) + (next > 0);
    log_after = 0;
    wanted = false;
    checkpoint = COMMIT
}

proctype checkpointer() {
end:
    do
    :: d_step { serving && checkpoint == IDLE && !NOTHING_NEW && (!mending || wanted || DUE) ->
        freeze() }
    :: d_step { serving && checkpoint == IDLE && NOTHING_NEW && wanted -> wanted = false }
    :: d_step { checkpoint == COMMIT && sync_points == 0 && written == 0 ->
        checkpoint = FLUSH }
    :: d_step { checkpoint == FLUSH ->
        log_used = log_after;
        log_after = 0;
        frozen = 0;
        frozen_outcomes = 0;
        checkpoint = IDLE }
    od
}

#define REPLAY_NEEDS (POOL_USED + outcomes_new + NEXT_GENERATION)

/* What only the ring holds, and the log's newest record, do not go to the base. */
#define ROWS_KEPT MIN(fresh, RING_PAYLOAD + RECORD_MAX)

/* Replay: with half of the memory used, or too little left, what the log holds goes to the base;
 * without room there it is frozen until there is, and the memory grows where it must. */
inline open(base_has_room, size) {
    pool = size;
    serving = true;
#ifndef LAST_CHUNK
    if
    :: log_used > 0 && (2 * fresh >= pool || REPLAY_NEEDS > pool) ->
        if
        :: base_has_room -> fresh = ROWS_KEPT
        :: else ->
            frozen = fresh - ROWS_KEPT;
            fresh = fresh - frozen;
            log_after = log_used;
            checkpoint = COMMIT
        fi
    :: else
    fi;
#endif
    assert(inherited || LOG_HAS_ROOM(0, 0));
    if
    :: LOG_HAS_ROOM(0, 0)
    :: else ->
        /* The rescue: what the log holds goes to the base, and the tail moves. Or a refusal. */
        if
        :: base_has_room ->
            fresh = MIN(fresh, RING_PAYLOAD);
            log_used = 0
        :: else ->
            fresh = fresh + frozen;
            frozen = 0;
            log_after = 0;
            checkpoint = IDLE;
            serving = false
        fi
    fi;
    if
    :: serving ->
        inherited = false;
#ifdef LAST_CHUNK
        pool = (POOL_USED > pool -> POOL_USED : pool)
#else
        pool = (REPLAY_NEEDS > pool -> REPLAY_NEEDS : pool)
#endif
    :: else
    fi
}

/* Ring and log stay. The superblock in flight is on disk, or not. Superfluous outcomes are found
 * again where neither the floor that makes them so nor their deletion is in the base. */
inline die(tail_moved, found_again) {
    written = 0;
    next = next + rest;
    rest = 0;
    sync = IDLE;
    forget_filler();
    if
    :: tail_moved -> log_used = log_after
    :: else
    fi;
    if
    :: checkpoint == COMMIT ->
#ifdef TAIL_STAYS
        unapplied = unapplied || unapplied_frozen;
#endif
        fresh = fresh + frozen;
        frozen_outcomes = MIN(frozen_outcomes, outcomes_row);
        outcomes_new = outcomes_new + frozen_outcomes;
        outcomes_row = outcomes_row - frozen_outcomes
    :: else
    fi;
    outcomes_old = (found_again -> OUTCOMES - OUTCOMES_KEPT : 0);
    frozen = 0;
    frozen_outcomes = 0;
    log_after = 0;
    sync_points = 0;
    wanted = false;
    checkpoint = IDLE
}

#define DIES(tail_moved, found_again, base_has_room, size) \
    d_step { serving && !mending && (!(tail_moved) || checkpoint == FLUSH) && \
             (!(found_again) || OUTCOMES_KEPT < OUTCOMES) -> \
        die(tail_moved, found_again); \
        open(base_has_room, size) }

proctype world() {
end:
    do
    :: DIES(false, false, false, POOL)
    :: DIES(false, false, true, POOL)
    :: DIES(false, false, false, POOL_SMALL)
    :: DIES(false, false, true, POOL_SMALL)
    :: DIES(false, true, false, POOL_SMALL)
    :: DIES(false, true, true, POOL_SMALL)
    :: DIES(true, false, false, POOL_SMALL)
    :: DIES(true, false, true, POOL_SMALL)
    :: d_step { !serving -> open(true, POOL) }
    od
}

init {
    atomic {
        if
        :: true
        :: inherited = true;
            serving = false;
            log_used = LOG;
            next = RING - 2;
            ring_head = RING - 2;
            fresh = 4;
            outcomes_new = OUTCOMES
        fi;
        run asker(CONTROL);
        run asker(RELEASE);
        run asker(BACKGROUND);
        run asker(REQUEST);
        run cleaner();
        run syncer();
        run checkpointer();
        run world()
    }
}

ltl goes_on { [] (mending -> <> admitted) }
