/* The hand-off of src/rpc/actor.c: posters push and count, who counts from 0 owns and drains.
 *
 * POSTERS threads post MESSAGES messages each to one actor; each runs the actor when it comes to
 * own it. After a batch the owner may put the actor, still owned, into the run queue, from which
 * any thread takes it (its owner's or a thief's; run_queue.pml is about that queue itself).
 *
 * Proved: at most one thread is in the step; no message is lost, handled twice or left behind when
 * all are quiet; the messages of one poster come in order; a step never gets none. Steps between
 * shared accesses interleave freely; memory is taken as sequentially consistent (the orderings of
 * the C code are ThreadSanitizer's business).
 *
 * Mutants, each of which must fail: COUNT_FIRST, TAKE_ALL, FORGET_COUNT, NOT_REVERSED. */

#define POSTERS 3
#define MESSAGES 2
#define TOTAL (POSTERS * MESSAGES)
#define BATCH_MAX 2
#define NONE 255

#ifdef TAKE_ALL /* Hands the step what is there, counted or not. */
#define MAY_TAKE(taken, counted) true
#else
#define MAY_TAKE(taken, counted) (taken < counted)
#endif

/* Message m is number m % MESSAGES of poster m / MESSAGES. */
byte next[TOTAL];
byte arrived = NONE; /* newest first */
byte inbox = NONE;   /* oldest first */
short pending_count = 0;

bool queued = false; /* the actor waits in the run queue, owned by whoever takes it */
byte posters_left = POSTERS;

/* What the proof looks at. */
byte in_step = 0;
byte handled[TOTAL];
byte handled_count = 0;
byte awaited[POSTERS]; /* each poster's number that comes next */

inline handle(message) {
    handled[message]++;
    handled_count++;
    assert(handled[message] == 1);
    assert(message % MESSAGES == awaited[message / MESSAGES]);
    awaited[message / MESSAGES]++;
}

/* list_reverse of what was taken off the stack; no shared access, so one step. */
inline reverse_to_inbox(newest, after) {
    d_step {
#ifdef NOT_REVERSED
        inbox = newest;
        newest = NONE;
#endif
        do
        :: newest == NONE -> break
        :: else ->
            after = next[newest];
            next[newest] = inbox;
            inbox = newest;
            newest = after
        od;
        newest = 0;
        after = 0
    }
}

/* actor_turn until the actor is let go, or queued. */
inline run_actor() {
    do
    :: true ->
        counted = pending_count;
        assert(counted > 0);
        if
        :: inbox == NONE ->
            atomic {
                newest = arrived;
                arrived = NONE
            };
            reverse_to_inbox(newest, after)
        :: else
        fi;
        atomic {
            in_step++;
            assert(in_step == 1);
            assert(inbox != NONE)
        };
        /* The step: one transition, in which others can still be caught being in it too. */
        d_step {
            taken = 0;
            do
            :: inbox != NONE && taken < BATCH_MAX && MAY_TAKE(taken, counted) ->
                message = inbox;
                inbox = next[message];
                next[message] = NONE;
                taken++;
                handle(message)
            :: else -> break
            od;
            message = 0
        };
        in_step--;
#ifdef FORGET_COUNT
        /* Lets the actor go for what it saw, whatever was counted since. */
        atomic {
            more = (counted > taken);
            pending_count = (more -> pending_count - taken : 0);
            counted = 0;
            taken = 0
        };
#else
        atomic {
            pending_count = pending_count - taken;
            more = (pending_count != 0);
            counted = 0;
            taken = 0
        };
#endif
        if
        :: !more -> break
        :: more
        :: more ->
            assert(!queued);
            more = false;
            queued = true;
            break
        fi
    od;
    more = false
}

proctype poster(byte first) {
    byte i = 0, newest = 0, after = 0, message = 0;
    short counted = 0;
    byte taken = 0;
    bool more = false;

    do
    :: i == MESSAGES -> break
    :: else ->
#ifdef COUNT_FIRST
        atomic {
            pending_count++;
            more = (pending_count == 1)
        };
#endif
        do
        :: true ->
            atomic {
                newest = arrived;
                next[first + i] = newest
            };
            atomic {
                if
                :: arrived == newest ->
                    arrived = first + i;
                    break
                :: else
                fi
            }
        od;
        newest = 0;
#ifndef COUNT_FIRST
        atomic {
            pending_count++;
            more = (pending_count == 1)
        };
#endif
        i++;
        if
        :: more ->
            more = false;
            run_actor()
        :: else
        fi
    od;
    /* The worker's loop: runs the queue until nobody can put anything there. */
    posters_left--;
    do
    :: atomic { queued -> queued = false }; run_actor()
    :: posters_left == 0 && !queued -> break
    od
}

init {
    byte i = 0;

    atomic {
        do
        :: i == TOTAL -> break
        :: else ->
            next[i] = NONE;
            i++
        od;
        i = 0;
        do
        :: i == POSTERS -> break
        :: else ->
            run poster(i * MESSAGES);
            i++
        od
    };
    _nr_pr == 1;
    assert(handled_count == TOTAL);
    assert(pending_count == 0);
    assert(arrived == NONE && inbox == NONE)
}
