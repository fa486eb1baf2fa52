/* Transactions across logs (docs/internals/halves.md): a coordinator, two participants, each with
 * a ring that a kill leaves and a power loss takes, and a disk.
 *
 *     prepare -> promised, on disk -> decided, on disk -> commit -> known, on disk -> forgotten
 *
 * A mark of what was committed stays until the coordinator has said that all below some number have
 * ended, or, asked, that it has this one no more: then the participant remembers the number.
 *
 * Messages are a set: one that was sent may come at any time afterwards, more than once, or never,
 * but not to a later life of its receiver: links see to that. The number is one of many: others
 * end, so a participant may hear that this one has ended. Values match again after a commit, as
 * one link less does: only marks and ended numbers tell a late copy of a prepare from a first one.
 *
 * Proved: a half is done at most once, and only if the decision is on disk; nothing that was
 * decided is aborted; when crashes have ended, what was decided is done everywhere, and nothing is
 * promised. A coordinator or a participant that is lost for good is in fates.pml.
 *
 * Mutants, each of which must fail: UNFLUSHED_DECISION, UNFLUSHED_PROMISE, UNFLUSHED_KNOWN,
 * NO_MARK, EARLY_MARK, NO_PAST, EARLY_FORGET, ABORT_UNDECIDED, FORGET_AT_START. */

#define NUMBERS 1
#define PARTS 2
#define CRASHES 2
#define COPIES 2 /* of a prepare that find no trace of those before */

/* The coordinator, by number. */
bool live[NUMBERS]; /* in memory, not decided */
bool promised[2];   /* in memory, by number and participant */
bool known[2];
bool decided[NUMBERS], decided_disk[NUMBERS];
bool forgotten[NUMBERS], forgotten_disk[NUMBERS];
byte next = 0;

/* A participant, by number and participant. */
bool prepared[2], prepared_disk[2];
bool mark[2], mark_disk[2];
byte done[2], done_disk[2];
byte below[PARTS]; /* in memory: numbers that have ended, */
byte past[PARTS];  /* and up to the highest that it was told of by itself */

/* What was sent. */
bool prepare_sent[2], commit_sent[2], abort_sent[2]; /* to each participant */
bool promise_sent[2], known_sent[2];
byte copies[2];

bool was_decided[NUMBERS]; /* on disk, once */
byte crashes = 0;

#define AT(n, i) ((n) * PARTS + (i))

/* Whether the coordinator has to do with it still. */
#define OPEN(n) (live[n] || (decided[n] && !forgotten[n]))

/* All numbers before this one have ended. */
#define LOWEST (next > 0 && OPEN(0) -> 0 : next)

inline begin() {
    live[next] = true;
    next++
}

inline give_up(n) {
    live[n] = false;
    abort_sent[AT(n, 0)] = true;
    abort_sent[AT(n, 1)] = true;
    promised[AT(n, 0)] = false;
    promised[AT(n, 1)] = false
}

inline decide(n) {
    decided[n] = true;
    live[n] = false
}

inline coordinator_sync() {
    byte k;
    for (k : 0 .. NUMBERS - 1) {
        decided_disk[k] = decided[k];
        forgotten_disk[k] = forgotten[k];
        was_decided[k] = was_decided[k] || decided[k]
    }
}

inline coordinator_memory_goes() {
    byte m;
    for (m : 0 .. NUMBERS - 1) {
        live[m] = false
    }
    for (m : 0 .. 1) {
        promised[m] = false;
        known[m] = false
    }
}

#ifdef FORGET_AT_START
#define AFTER_START(p) decided_disk[p]
#else
#define AFTER_START(p) forgotten_disk[p]
#endif

inline coordinator_power() {
    byte p;
    for (p : 0 .. NUMBERS - 1) {
        decided[p] = decided_disk[p];
        forgotten[p] = AFTER_START(p)
    }
    coordinator_memory_goes()
}

inline participant_sync(i) {
    byte q;
    for (q : 0 .. NUMBERS - 1) {
        prepared_disk[AT(q, i)] = prepared[AT(q, i)];
        mark_disk[AT(q, i)] = mark[AT(q, i)];
        done_disk[AT(q, i)] = done[AT(q, i)]
    }
}

/* What had been sent to it does not come any more; nor does what it had answered. */
inline participant_memory_goes(i) {
    below[i] = 0;
    past[i] = 0;
    prepare_sent[i] = false;
    commit_sent[i] = false;
    abort_sent[i] = false;
    promise_sent[i] = false;
    known_sent[i] = false
}

inline participant_power(i) {
    byte s;
    for (s : 0 .. NUMBERS - 1) {
        prepared[AT(s, i)] = prepared_disk[AT(s, i)];
        mark[AT(s, i)] = mark_disk[AT(s, i)];
        done[AT(s, i)] = done_disk[AT(s, i)]
    }
    participant_memory_goes(i)
}

#ifdef NO_MARK
#define IS_MARKED false
#else
#define IS_MARKED true
#endif

inline commit(n, i) {
    assert(was_decided[n]);
    assert(done[AT(n, i)] == 0);
    done[AT(n, i)] = done[AT(n, i)] + 1;
    prepared[AT(n, i)] = false;
    mark[AT(n, i)] = IS_MARKED
}

inline drop(n, i) {
    assert(!decided[n]);
    prepared[AT(n, i)] = false
}

#define ON_DISK(n, i)                                                                              \
    (prepared[AT(n, i)] == prepared_disk[AT(n, i)] && mark[AT(n, i)] == mark_disk[AT(n, i)] &&     \
     done[AT(n, i)] == done_disk[AT(n, i)])
#define COORDINATOR_ON_DISK (decided[0] == decided_disk[0] && forgotten[0] == forgotten_disk[0])

#ifdef UNFLUSHED_DECISION
#define IF_NOT_UNFLUSHED_DECISION(n, i) true
#else
#define IF_NOT_UNFLUSHED_DECISION(n, i) (decided_disk[n])
#endif
#ifdef EARLY_FORGET
#define IF_NOT_EARLY_FORGET(n, i) true
#else
#define IF_NOT_EARLY_FORGET(n, i) (known[AT(n, 0)] && known[AT(n, 1)])
#endif
#ifdef UNFLUSHED_PROMISE
#define IF_NOT_UNFLUSHED_PROMISE(n, i) true
#else
#define IF_NOT_UNFLUSHED_PROMISE(n, i) (prepared_disk[AT(n, i)])
#endif
#ifdef UNFLUSHED_KNOWN
#define IF_NOT_UNFLUSHED_KNOWN(n, i) true
#else
#define IF_NOT_UNFLUSHED_KNOWN(n, i) (ON_DISK(n, i))
#endif
#ifdef ABORT_UNDECIDED
#define IF_NOT_ABORT_UNDECIDED(n, i) true
#else
#define IF_NOT_ABORT_UNDECIDED(n, i) (!live[n])
#endif
#ifdef NO_PAST
#define PAST(n) 0
#else
#define PAST(n) ((n) + 1)
#endif
#ifdef EARLY_MARK
#define IF_NOT_EARLY_MARK(n, i) true
#else
#define IF_NOT_EARLY_MARK(n, i) (n < below[i])
#endif

#define NOT_YET(n) (decided[n] && !forgotten[n])

proctype coordinator(byte n) {
    end: do
    :: atomic { n == next -> begin() }
    :: atomic { live[n] && !prepare_sent[0] -> prepare_sent[0] = true }
    :: atomic { live[n] && !prepare_sent[1] -> prepare_sent[1] = true }
    :: atomic { live[n] -> give_up(n) }
    :: atomic { live[n] && promise_sent[0] && !promised[0] -> promised[0] = true }
    :: atomic { live[n] && promise_sent[1] && !promised[1] -> promised[1] = true }
    :: atomic { live[n] && promised[0] && promised[1] -> decide(n) }
    :: atomic { NOT_YET(n) && !commit_sent[0] && IF_NOT_UNFLUSHED_DECISION(n, 0) ->
                commit_sent[0] = true }
    :: atomic { NOT_YET(n) && !commit_sent[1] && IF_NOT_UNFLUSHED_DECISION(n, 1) ->
                commit_sent[1] = true }
    :: atomic { NOT_YET(n) && known_sent[0] && !known[0] -> known[0] = true }
    :: atomic { NOT_YET(n) && known_sent[1] && !known[1] -> known[1] = true }
    :: atomic { NOT_YET(n) && commit_sent[0] && IF_NOT_EARLY_FORGET(n, 0) -> forgotten[n] = true }
    od
}

proctype participant(byte n; byte i) {
    end: do
    :: atomic { prepare_sent[i] && copies[i] < COPIES && !prepared[i] && !mark[i] &&
                n >= below[i] && n >= past[i] -> prepared[i] = true; copies[i]++ }
    :: atomic { prepared[i] && !promise_sent[i] && IF_NOT_UNFLUSHED_PROMISE(n, i) ->
                promise_sent[i] = true }
    :: atomic { commit_sent[i] && prepared[i] && !mark[i] -> commit(n, i) }
    :: atomic { commit_sent[i] && !prepared[i] && !known_sent[i] && IF_NOT_UNFLUSHED_KNOWN(n, i) ->
                known_sent[i] = true }
    :: atomic { abort_sent[i] && prepared[i] -> drop(n, i) }
    /* It asks: one that is neither in memory nor decided is aborted. */
    :: atomic { prepared[i] && !decided[n] && IF_NOT_ABORT_UNDECIDED(n, i) -> drop(n, i) }
    :: atomic { mark[i] && IF_NOT_EARLY_MARK(n, i) -> mark[i] = false }
    /* It asks: one that is committed here and that the coordinator has no more has ended. */
    :: atomic { mark[i] && !OPEN(n) -> mark[i] = false; past[i] = PAST(n) }
    od
}

proctype disks() {
    end: do
    :: atomic { !COORDINATOR_ON_DISK -> coordinator_sync() }
    :: atomic { !ON_DISK(0, 0) -> participant_sync(0) }
    :: atomic { !ON_DISK(0, 1) -> participant_sync(1) }
    :: atomic { below[0] < LOWEST -> below[0] = LOWEST }
    :: atomic { below[1] < LOWEST -> below[1] = LOWEST }
    od
}

proctype faults() {
    do
    :: atomic { crashes < CRASHES -> crashes++; coordinator_memory_goes() } /* kill -9 */
    :: atomic { crashes < CRASHES -> crashes++; coordinator_power() }
    :: atomic { crashes < CRASHES -> crashes++; participant_memory_goes(0) }
    :: atomic { crashes < CRASHES -> crashes++; participant_power(0) }
    :: atomic { crashes < CRASHES -> crashes++; participant_power(1) }
    :: crashes == CRASHES -> break
    od
}

/* Nothing can happen any more. */
proctype end_of_all() {
    byte x;
    timeout ->
    for (x : 0 .. 1) {
        assert(!prepared[x]);
        assert(done[x] == (decided[x / PARTS] -> 1 : 0));
        assert(!decided[x / PARTS] || forgotten[x / PARTS])
    }
}

init {
    atomic {
        run coordinator(0);
        run participant(0, 0);
        run participant(0, 1);
        run disks();
        run faults();
        run end_of_all()
    }
}
