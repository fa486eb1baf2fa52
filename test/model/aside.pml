/* Standing aside and watching, as in src/front/fuse/channel_aside.c.
 *
 * While its policy is SCHED_IDLE a thread may get no CPU at any step, until somebody else gives it
 * its policy back. It enters and leaves as it likes, TURNS times. The watcher looks at it under the
 * mutex, again and again while it stands aside, else sleeps.
 *
 * Proved: the thread is never left without a CPU while the watcher sleeps; it ends with its own
 * policy and CPUs, and the watcher touches it no more then. Memory is taken as sequentially
 * consistent.
 *
 * Mutants, each of which must fail: CLEAR_ENTERING, IDLE_FIRST, NONE_FIRST, PLAIN_LEAVE,
 * UNWATCHED, LOST_WAKE, NO_LOOK, EARLY_OVER. */

#define TURNS 4

mtype = { none, entering, yes, ending };

mtype state = none;
bool idle = false;   /* the policy */
bool pinned = false; /* to its program's CPU */
byte begun = 0;    /* requests */
bool locked = false;
bool asleep = false;
bool over = false;

inline lock() {
    atomic { !locked -> locked = true }
}

inline unlock() {
    locked = false
}

/* Before each step of the thread. */
inline run_or_starve() {
    if
    :: idle ->
        if
        :: true -> !idle
        :: true
        fi
    :: else
    fi
}

inline watcher_wake() {
#ifdef LOST_WAKE
    asleep = false;
#else
    lock();
    asleep = false;
    unlock();
#endif
}

inline leave(mine) {
    run_or_starve();
    mine = (state == yes);
    run_or_starve();
    if
    :: mine ->
#ifdef UNWATCHED
        atomic {
            if
            :: state == yes -> state = none
            :: else
            fi
        };
        run_or_starve();
        idle = false;
        pinned = false
#else
        idle = false;
        pinned = false;
#ifdef PLAIN_LEAVE
        state = none
#else
        atomic {
            if
            :: state == yes -> state = none
            :: else
            fi
        }
#endif
#endif
    :: else
    fi;
    mine = false
}

/* Finds its program elsewhere, and follows. */
inline follow() {
    run_or_starve();
    pinned = true;
    run_or_starve();
#ifndef NO_LOOK
    if
    :: state != yes -> pinned = false
    :: else
    fi
#endif
}

inline enter() {
#ifdef IDLE_FIRST
    idle = true;
    run_or_starve();
    state = entering;
    run_or_starve();
    watcher_wake();
#else
    state = entering;
    watcher_wake();
    pinned = true;
    idle = true;
#endif
    run_or_starve();
    state = yes
}

active proctype thread() {
    byte turns = 0;
    bool mine = false;

    do
    :: turns < TURNS ->
        turns++;
        run_or_starve();
        begun = 1 - begun;
        if
        :: state == none -> enter()
        :: state == yes -> leave(mine)
        :: state == yes -> follow()
        :: true
        fi
    :: else -> break
    od;
    leave(mine);
    state == none;
    assert(!idle && !pinned);
#ifdef EARLY_OVER
    over = true;
#else
    lock();
    over = true;
    unlock();
#endif
    watcher_wake()
}

active proctype watcher() {
    mtype saw = none;
    byte seen = 0;
    bool any = false;
    bool mine = false;

    lock();
    do
    :: over -> break
    :: !over ->
        any = false;
        saw = state;
        if
        :: saw == none || saw == ending
        :: else ->
            if
            :: begun != seen -> seen = begun; any = true
            :: begun == seen ->
                if
#ifdef CLEAR_ENTERING
                :: atomic { saw == entering && state == entering -> state = ending; mine = true }
                :: saw == entering && state != entering
#else
                :: saw == entering -> assert(!over); idle = false; any = true
#endif
                :: saw == yes ->
                    atomic {
                        if
                        :: state == yes -> state = ending; mine = true
                        :: else
                        fi
                    }
                fi;
                if
                :: mine ->
#ifdef NONE_FIRST
                    state = none;
#endif
                    assert(!over);
                    idle = false;
                    pinned = false;
                    state = none;
                    mine = false
                :: else
                fi
            fi
        fi;
        /* The rest of the time until it looks again, or is woken. */
        if
        :: any -> unlock(); lock()
        :: else ->
            atomic { asleep = true; locked = false };
            !asleep || over;
            lock()
        fi
    od;
    unlock()
}
