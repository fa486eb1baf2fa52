/* Which threads of a mount read its requests: the active ones. The others are parked.
 *
 *     active --reader_park, unless it is the last--> parked
 *       ^                                              |
 *       '---- reader_activate by an active one, -------'
 *             then a wake-up of the thread
 *
 * A thread that parks is counted out before it can be found, one that is activated is found before
 * it is counted in. So active_count is never more than those who are not parked, and as it stays
 * above 0, one always reads: test/model/readers.pml proves it. (Each is counted that waits for a
 * request's memory to read into; so who parks must keep none.)
 *
 * Thread: any; a reader is parked by its own thread only.  Memory: none beyond the structs. */
#pragma once
#include "base/types.h"
#include <stdatomic.h>

struct readers {
    atomic_int active_count;
    atomic_bool closed; /* nobody is parked any more */
};

struct reader {
    atomic_bool parked; /* whoever takes it back makes the thread active */
};

/* The calling thread reads from now on. */
static inline void readers_enter(struct readers *readers) {
    atomic_fetch_add(&readers->active_count, 1);
}

/* Leaves the requests to the other active threads; false when there is none. After a true one the
 * thread waits, and looks at reader_is_parked after each wake-up. */
MUST_CHECK static inline bool reader_park(struct readers *readers, struct reader *reader) {
    int active = atomic_load(&readers->active_count);

    do {
        if (active <= 1)
            return false;
    } while (!atomic_compare_exchange_weak(&readers->active_count, &active, active - 1));
    atomic_store(&reader->parked, true);
    return true;
}

/* False for good once it is activated, until it parks again. */
static inline bool reader_is_parked(struct readers *readers, struct reader *reader) {
    return atomic_load(&reader->parked) && !atomic_load(&readers->closed);
}

/* True when it was parked and this has activated it: wake its thread then. */
MUST_CHECK static inline bool reader_activate(struct readers *readers, struct reader *reader) {
    bool parked = atomic_load_explicit(&reader->parked, memory_order_relaxed);

    if (!parked || !atomic_compare_exchange_strong(&reader->parked, &parked, false))
        return false;
    atomic_fetch_add(&readers->active_count, 1);
    return true;
}

/* There is nothing to read any more: wake all threads then. */
static inline void readers_close(struct readers *readers) {
    atomic_store(&readers->closed, true);
}

static inline bool readers_are_closed(struct readers *readers) {
    return atomic_load(&readers->closed);
}
