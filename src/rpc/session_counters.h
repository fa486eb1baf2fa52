/* What a server counts of the calls of one session, in the memory of its table of sessions. A call
 * finds its session there once and points to it, so that its end needs no search; by then the
 * session may have ended and its place be another's, which the id tells.
 * Thread: the server's step; others get copies. */
#pragma once
#include "rpc/call.h"

struct session_counters {
    struct session_id session; /* 0: nobody's place */
    uint64_t incarnation;
    uint32_t node;
    uint64_t request_count;
    uint64_t error_count;
    uint64_t read_bytes;
    uint64_t written_bytes;
    uint64_t total_ns; /* from the arrival of each call to its reply */
    uint64_t largest_ns;
};

/* NULL when the call's session was not known, or has ended since. */
static inline struct session_counters *session_counters_of(const struct call *call) {
    struct session_counters *counters = call->session_counters;

    return counters && counters->session.value == call->header.session.value ? counters : NULL;
}

/* Of a call that is about to be answered. */
static inline void session_counters_record(const struct call *call, int result,
                                           uint64_t latency_ns) {
    struct session_counters *counters = session_counters_of(call);

    if (counters) {
        counters->request_count++;
        counters->error_count += result < 0;
        counters->total_ns += latency_ns;
        counters->largest_ns = MAX(counters->largest_ns, latency_ns);
    }
}

/* Copies of some servers' sessions: the caller gives place for max of them, count is how many there
 * are, in place or not. */
struct session_counters_list {
    struct session_counters *rows;
    uint32_t max;
    uint32_t count;
};

static inline void session_counters_add(struct session_counters_list *list,
                                        const struct session_counters *counters) {
    if (list->count < list->max) {
        list->rows[list->count] = *counters;
    }
    list->count++;
}
