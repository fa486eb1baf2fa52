/* Parking and activating of src/front/fuse/readers.h, as channel_thread.c uses it.
 *
 * THREADS read requests, of which up to CLIENTS are not answered at a time. Who finds none parks
 * and sleeps until it is woken, unless it is the last that reads: that one sleeps at the queue,
 * where a new request wakes it. Who finds one may activate a parked thread. A wake-up is remembered
 * while its thread does not sleep, as by env_loop_wake; there may be one for nothing, and a thread
 * that polls its loop for other things takes it with them. The mount may go before all is answered;
 * then all end.
 *
 * Proved: active_count is never 0, and never more than those who are not parked; all requests are
 * answered unless the mount goes, so no wake-up is lost; all threads end. Steps between shared
 * accesses interleave freely; memory is taken as sequentially consistent.
 *
 * Mutants, each of which must fail: LAST_PARKS, PLAIN_COUNT, PARKED_FIRST, PLAIN_PARKED,
 * WAKE_FIRST, CLOSED_LAST. */

#define THREADS 3
#define CLIENTS 2
#define REQUESTS 3 /* in all */

#ifdef LAST_PARKS
#define LEAST 0
#else
#define LEAST 1
#endif

byte active_count = THREADS;
bool closed = false;
bool parked[THREADS];
bool woken[THREADS];

byte sent = 0;
byte queued = 0; /* that nobody has read */
byte answered = 0;
bool gone = false;
byte threads_left = THREADS;

/* What the proof looks at. */
#define PARKED_COUNT (parked[0] + parked[1] + parked[2])
#define LOOK() assert(active_count >= 1 && active_count + PARKED_COUNT <= THREADS)

/* reader_park; may says how it went. */
inline park(me, seen, may) {
#ifdef PARKED_FIRST /* Can be found before it is counted out, and takes that back. */
    parked[me] = true;
#endif
    seen = active_count;
    do
    :: seen <= LEAST ->
#ifdef PARKED_FIRST
        parked[me] = false;
#endif
        break
    :: else ->
#ifdef PLAIN_COUNT
        atomic { active_count = seen - 1; may = true; seen = 0; break }
#else
        atomic {
            if
            :: active_count == seen -> active_count--; LOOK(); may = true; seen = 0; break
            :: else -> seen = active_count
            fi
        }
#endif
    od;
    seen = 0;
#ifndef PARKED_FIRST
    if
    :: may -> atomic { parked[me] = true; LOOK() }
    :: else
    fi
#endif
}

/* reader_activate, and the wake-up behind it. Threads are found parked in any order. */
inline activate(other) {
    atomic {
        if
        :: parked[0] -> other = 0
        :: parked[1] -> other = 1
        :: parked[2] -> other = 2
        :: !parked[0] || !parked[1] || !parked[2] -> other = THREADS
        fi
    };
    if
    :: other < THREADS ->
#ifdef WAKE_FIRST
        woken[other] = true;
#endif
#ifdef PLAIN_PARKED
        parked[other] = false;
#else
        atomic {
            if
            :: parked[other] -> parked[other] = false
            :: else -> other = THREADS
            fi
        };
#endif
        if
        :: other < THREADS ->
            atomic { active_count++; LOOK() };
#ifndef WAKE_FIRST
            woken[other] = true
#endif
        :: else
        fi
    :: else
    fi;
    other = 0
}

/* readers_close and channel_threads_wake, which holds a mutex. */
inline end_all() {
#ifndef CLOSED_LAST
    closed = true;
#endif
    d_step {
        woken[0] = true;
        woken[1] = true;
        woken[2] = true
    };
#ifdef CLOSED_LAST
    closed = true;
#endif
    threads_left--
}

proctype thread(byte me) {
    byte seen = 0, other = 0;
    bool may = false;

    do
    :: true ->
        /* Has polled its loop for other things, or not; looks for a request without sleeping. */
        atomic {
            if
            :: woken[me] = false
            :: true
            fi;
            if
            :: gone -> break
            :: !gone && queued > 0 -> queued--; may = true
            :: !gone && queued == 0
            fi
        };
        if
        :: may ->
            if
            :: activate(other)
            :: true
            fi;
            atomic { may = false; answered++ }
        :: else ->
            park(me, seen, may);
            if
            :: may ->
                may = false;
                do
                :: atomic { !parked[me] -> break }
                :: parked[me];
                    if
                    :: closed -> break
                    :: else -> atomic { woken[me] -> woken[me] = false }
                    fi
                od;
                if
                :: closed -> break
                :: else
                fi
            :: else ->
                /* Sleeps at the queue. */
                atomic {
                    if
                    :: gone -> break
                    :: !gone && queued > 0 -> queued--
                    fi
                };
                answered++
            fi
        fi
    od;
    end_all()
}

/* Those who ask, one wake-up for nothing, and the end of the mount: with all answered, or before,
 * which is settled first, so that what never gets its answer is not hidden by the end. */
proctype outside() {
    bool stray = false, early = false;

    if
    :: early = true
    :: true
    fi;
    do
    :: atomic { sent < REQUESTS && sent - answered < CLIENTS -> sent++; queued++ }
    :: atomic {
        !stray -> stray = true;
        if
        :: woken[0] = true
        :: woken[1] = true
        :: woken[2] = true
        fi }
    :: atomic { answered == REQUESTS || (early && sent > answered) -> gone = true; break }
    od
}

init {
    atomic {
        run thread(0);
        run thread(1);
        run thread(2);
        run outside()
    };
    _nr_pr == 1;
    assert(threads_left == 0 && closed)
}
