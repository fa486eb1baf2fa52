/* Sessions that are attached to this OST: who may use it.
 *
 * A table in memory of those attached, as their S rows are; a fence (F row) outlives its session
 * and refuses it for ever.
 *
 * Thread: the OST's. Memory: taken at init. */
#pragma once
#include "base/err.h"
#include "base/index_pool.h"
#include "kv/windows.h"
#include "rpc/call_sender.h"
#include "rpc/session_counters.h"

struct session_entry {
    uint64_t session; /* 0: empty */
    uint64_t incarnation;
    uint32_t node;
    uint32_t place;            /* in counters */
    uint16_t window;           /* mutations that it may have under way, until its end */
    struct call_sender sender; /* that has attached it since the start; else nobody's */
};

struct sessions {
    struct session_entry *entries; /* open addressing, at most half full */
    uint32_t mask;
    uint32_t count;
    uint32_t count_max;
    struct windows windows;
    struct session_counters *counters; /* count_max of them; each stays where it is */
    struct index_pool places;
};

MUST_CHECK int ost_sessions_init(struct sessions *sessions, uint32_t count_max);
void ost_sessions_deinit(struct sessions *sessions);
/* NULL when it is not attached. */
const struct session_entry *ost_sessions_find(const struct sessions *sessions, uint64_t session);
/* What it was granted; 0 when it is not attached. */
uint32_t ost_session_window(const struct sessions *sessions, struct session_id session);
/* Whether its requests may come from there: it is not attached, or by that sender. */
bool ost_session_is_from(const struct sessions *sessions, const struct call *call);
/* Of an attach that is good. */
void ost_session_sender_set(struct sessions *sessions, const struct call *call);
/* The id of one that is attached, from `from` on and below `end`; 0: none is. */
uint64_t ost_sessions_within(const struct sessions *sessions, uint64_t from, uint64_t end);
/* NULL when it is not attached; valid until it is removed. */
struct session_counters *ost_sessions_counters(const struct sessions *sessions,
                                               struct session_id session);
/* Adds what was counted of each. */
void ost_sessions_counters_get(struct sessions *sessions, struct session_counters_list *list);
/* Adds or changes it; place is ours. -ERR_BUSY when all are in use. */
MUST_CHECK int sessions_put(struct sessions *sessions, struct session_entry session);
void sessions_remove(struct sessions *sessions, uint64_t session);
