/* A transaction across logs whose coordinator is lost for good, in whatever phase, and also a
 * participant, before or after it (src/meta/promise_lost.c, docs/internals/halves.md).
 *
 *     prepared --somebody left has done it--> done --all left have done it, or nothing--> forgotten
 *         '----nobody left has done it------> given up
 *
 * There are versions of the map: in the first one nobody is lost, then each loses one. Everybody
 * learns of them at his own time, asks and refuses by them at once, and answers by them once they
 * are on his disk: the first participant's may be full for long. Who is lost may run on, and does
 * not know of it: the coordinator decides, tells and forgets, the participant answers. Messages of
 * the coordinator come at any time; one question of each participant is out at a time, and its
 * answer comes at any time, or never.
 *
 * Proved, with CRASHES power losses of participants: those who are left all do it or all give it
 * up, and in the end nothing is promised, and no mark is left.
 *
 * It knows nothing of the coordinator's own disk (halves.pml), of what its client was told, and of
 * more than one lost participant: by the same rule a round of questions begins anew with each.
 *
 * Mutants, each of which must fail: ALONE, ANY_MAP, STALE_ROUND, LATE_ANSWER, UNSYNCED, ABOUT_TO,
 * REFUSED_KNOWN, UNKEPT. */

#define PARTS 3
#define CRASHES 1

#define NONE 0
#define PREPARED 1
#define DONE 2
#define FORGOTTEN 3 /* and it was done */
#define GIVEN_UP 4

#define SAYS_PROMISED 1
#define SAYS_DONE 2
#define SAYS_NOTHING 3

/* Versions of the map: there is this one; it ends with that one. */
byte version = 0;
byte last;
/* Which comes first: 0: the loss of the coordinator, 1: that of the last participant. */
byte first;

#define LOST(v) ((v) > first)
#define LOST_PART(v, i) ((i) == PARTS - 1 && (v) > 1 - first)

/* Participants. */
byte state[PARTS], disk[PARTS];
byte map[PARTS], kept[PARTS]; /* in memory, on disk */
bool keeps[PARTS]; /* in memory: it has heard that it is done, and will do it */
bool heard[9];     /* likewise: by who asks, and who is asked */
byte asked[PARTS]; /* whose answer is out, plus 1 */
byte says[PARTS], asked_map[PARTS];

/* The coordinator. */
bool promised[PARTS];
bool decided, aborted, ended;
byte own_map = 0;

byte crashes = 0;

#define AT(i, j) ((i) * PARTS + (j))
#define NEXT(i) (((i) + 1) % PARTS)
#define AFTER(i) (((i) + 2) % PARTS)
#define IS_DONE(i) (state[i] == DONE || state[i] == FORGOTTEN)
#define ON_DISK(i) (state[i] == disk[i])
#define KEEPS(i) kept[i] = (i == 0 -> kept[i] : map[i])
#define ALL_ON_DISK(i) (ON_DISK(i) && kept[i] == map[i])

#ifdef ALONE
#define NEED_NOT_ASK true
#else
#define NEED_NOT_ASK false
#endif
#ifdef ANY_MAP
#define MAP_WILL_DO(i, j) true
#else
#define MAP_WILL_DO(i, j) (ANSWERS_BY(j) >= map[i])
#endif
#ifdef UNKEPT
#define ANSWERS_BY(j) map[j]
#else
#define ANSWERS_BY(j) kept[j]
#endif
#ifdef STALE_ROUND
#define ROUND_IS(i) true
#define ROUND_ENDS(i) skip
#else
#define ROUND_IS(i) (asked_map[i] == map[i])
#define ROUND_ENDS(i) forget_heard(i)
#endif
#ifdef LATE_ANSWER
#define IS_TAKEN(i) true
#else
#define IS_TAKEN(i) (!LOST_PART(map[i], asked[i] - 1))
#endif
#ifdef UNSYNCED
#define MAY_SAY(j) (ON_DISK(j) || state[j] == FORGOTTEN || state[j] == GIVEN_UP)
#else
#define MAY_SAY(j) ON_DISK(j)
#endif
#ifdef ABOUT_TO
#define IS_QUIET(j) false
#else
#define IS_QUIET(j) keeps[j]
#endif
#ifdef REFUSED_KNOWN
#define REFUSED(i) LOST(map[i])
#else
#define REFUSED(i) false
#endif

#define KNOWN(i)                                                                                   \
    ((IS_DONE(i) && ON_DISK(i)) || (LOST_PART(own_map, i) && !LOST(own_map)) || REFUSED(i))

inline forget_heard(k) {
    heard[AT(k, 0)] = false;
    heard[AT(k, 1)] = false;
    heard[AT(k, 2)] = false
}

#define IS_OPEN(i) ((state[i] == PREPARED && !keeps[i]) || state[i] == DONE)
#define MAY_ASK(i, j)                                                                              \
    (LOST(map[i]) && IS_OPEN(i) && asked[i] == 0 && !heard[AT(i, j)] && !LOST_PART(map[i], j) &&   \
     LOST(ANSWERS_BY(j)) && MAP_WILL_DO(i, j) && !IS_QUIET(j) && MAY_SAY(j))
#define HAS_HEARD(i, j) (heard[AT(i, j)] || LOST_PART(map[i], j) || NEED_NOT_ASK)
#define HAS_HEARD_ALL(i)                                                                           \
    (LOST(map[i]) && asked[i] == 0 && HAS_HEARD(i, NEXT(i)) && HAS_HEARD(i, AFTER(i)))

inline ask(i, j) {
    asked[i] = (j) + 1;
    asked_map[i] = map[i];
    if
    :: state[j] == PREPARED -> says[i] = SAYS_PROMISED
    :: state[j] == DONE -> says[i] = SAYS_DONE
    :: else -> says[i] = SAYS_NOTHING
    fi
}

inline hear(i) {
    if
    :: !IS_TAKEN(i) -> skip
    :: else ->
       if
       :: state[i] == PREPARED && says[i] == SAYS_DONE -> keeps[i] = true
       :: !(state[i] == PREPARED && says[i] == SAYS_DONE) && ROUND_IS(i) &&
          (state[i] == PREPARED || says[i] != SAYS_PROMISED) -> heard[AT(i, asked[i] - 1)] = true
       :: else -> skip
       fi
    fi;
    forget_answer(i)
}

inline forget_answer(k) {
    asked[k] = 0;
    says[k] = 0;
    asked_map[k] = 0
}

proctype participant(byte i) {
    end: do
    /* What the coordinator sends. */
    :: atomic { state[i] == NONE && !LOST(map[i]) && !decided && !aborted -> state[i] = PREPARED }
    :: atomic { state[i] == PREPARED && !LOST(map[i]) && decided -> state[i] = DONE }
    :: atomic { state[i] == PREPARED && !LOST(map[i]) && aborted -> state[i] = GIVEN_UP }
    :: atomic { state[i] == DONE && !LOST(map[i]) && ended -> state[i] = FORGOTTEN }
    /* What participants ask one another. */
    :: atomic { MAY_ASK(i, NEXT(i)) -> ask(i, NEXT(i)) }
    :: atomic { MAY_ASK(i, AFTER(i)) -> ask(i, AFTER(i)) }
    :: atomic { asked[i] != 0 -> hear(i) }
    :: atomic { state[i] == PREPARED && keeps[i] ->
                state[i] = DONE; keeps[i] = false; forget_heard(i) }
    :: atomic { state[i] == PREPARED && !keeps[i] && HAS_HEARD_ALL(i) ->
                state[i] = GIVEN_UP; forget_heard(i) }
    :: atomic { state[i] == DONE && HAS_HEARD_ALL(i) -> state[i] = FORGOTTEN; forget_heard(i) }
    :: atomic { map[i] < version -> map[i]++; KEEPS(i); ROUND_ENDS(i) }
    :: atomic { kept[i] < map[i] -> kept[i]++ }
    :: atomic { !ON_DISK(i) -> disk[i] = state[i] }
    od
}

/* What nobody asks for any more makes no states: promises once it has decided, and its map, which
 * only tells who counts as knowing, before that and behind the end. */
inline forget_promised() {
    promised[0] = false;
    promised[1] = false;
    promised[2] = false
}

proctype coordinator() {
    end: do
    :: atomic { !promised[0] && !decided && !aborted && state[0] == PREPARED && ON_DISK(0) ->
                promised[0] = true }
    :: atomic { !promised[1] && !decided && !aborted && state[1] == PREPARED && ON_DISK(1) ->
                promised[1] = true }
    :: atomic { !promised[2] && !decided && !aborted && state[2] == PREPARED && ON_DISK(2) ->
                promised[2] = true }
    :: atomic { !decided && !aborted && promised[0] && promised[1] && promised[2] ->
                decided = true; forget_promised() }
    :: atomic { !decided && !aborted -> aborted = true; forget_promised() }
    :: atomic { decided && !ended && KNOWN(0) && KNOWN(1) && KNOWN(2) ->
                ended = true; own_map = 0 }
    :: atomic { decided && !ended && own_map < version -> own_map++ }
    od
}

inline power(k) {
    crashes++;
    state[k] = disk[k];
    map[k] = kept[k];
    keeps[k] = false;
    forget_heard(k);
    forget_answer(k)
}

proctype faults() {
    do
    :: atomic { version < last -> version++ }
    :: atomic { crashes < CRASHES && !ALL_ON_DISK(0) -> power(0) }
    :: atomic { crashes < CRASHES && !ALL_ON_DISK(1) -> power(1) }
    :: atomic { version == last -> break }
    od;
    end: do
    :: atomic { crashes < CRASHES && !ALL_ON_DISK(0) -> power(0) }
    :: atomic { crashes < CRASHES && !ALL_ON_DISK(1) -> power(1) }
    od
}

#define IS_LEFT(i) (!LOST_PART(last, i))
#define ALIKE(i, j) (IS_DONE(i) == IS_DONE(j) || !IS_LEFT(i) || !IS_LEFT(j))

/* Nothing can happen any more. */
proctype end_of_all() {
    byte x;
    timeout ->
    for (x : 0 .. PARTS - 1) {
        assert(!IS_LEFT(x) || (state[x] != PREPARED && state[x] != DONE))
    }
    assert(ALIKE(0, 1) && ALIKE(1, 2) && ALIKE(0, 2))
}

init {
    atomic {
        if
        :: first = 0; last = 1
        :: first = 0; last = 2
        :: first = 1; last = 2
        fi;
        run participant(0);
        run participant(1);
        run participant(2);
        run coordinator();
        run faults();
        run end_of_all()
    }
}
