/* Sequence numbers of mutations: drawn per log, with a floor below which none is awaited.
 *
 *     1 2 3 4 5 6 7 8 9
 *     . . . . e a e e a        e: ended, a: awaited, floor = 6, drawn = 9
 *
 * ended[s % RPC_WINDOW] becomes s when s has ended; the floor moves up over those that have. A
 * number is drawn only while it is less than a window above the floor, so no mark is overwritten
 * that the floor has not passed. A session has its links in one table; a table whose session is
 * over and that no call counts on any more is used again.
 *
 * A log grants a session its window, at most RPC_WINDOW; then that many above the floor are drawn.
 * Who gets no number is counted as waiting, and tries once more; whoever raises floor or window
 * after that sees the count, and wakes it.
 *
 * Thread: any, without locks. Memory: taken by rpc_session_new. */
#pragma once
#include "rpc/call.h"

struct rpc_session;

struct rpc_link {
    _Atomic uint64_t key; /* the log; 0: free */
    struct rpc_session *session;
    _Alignas(64) _Atomic uint64_t drawn; /* how many; also the last one */
    _Atomic uint64_t passed;             /* floor - 1 */
    _Atomic uint32_t window;
    _Atomic uint32_t waiting_count;
    _Atomic uint64_t ended[RPC_WINDOW];
    uint64_t told;  /* the floor that the log has heard, while nothing was awaited */
    uint64_t quiet; /* numbers drawn when rpc_floor_is_due was asked last */
};

struct rpc_session {
    struct rpc_session *next;
    struct session_id id;
    uint64_t incarnation;
    _Atomic uint64_t call_count; /* calls that use the table */
    uint32_t link_count;
    struct rpc_link *links;
};

/* NULL without memory. */
struct rpc_session *rpc_session_new(uint32_t logs_max);
void rpc_session_free(struct rpc_session *session);
/* For another session; no call may use the table. */
void rpc_session_reset(struct rpc_session *session, struct session_id id, uint64_t incarnation);
/* The log's link; NULL when there are too many logs. */
struct rpc_link *rpc_session_link(struct rpc_session *session, struct log_id log);

/* The next number, or 0 when too many are awaited. */
uint64_t rpc_link_draw(struct rpc_link *link);
/* True: somebody waits for a number, and may get one now. */
bool rpc_link_end(struct rpc_link *link, uint64_t sequence);
/* As granted; -> as rpc_link_end. */
bool rpc_link_window_set(struct rpc_link *link, uint32_t window);
uint64_t rpc_link_floor(struct rpc_link *link);

/* Nothing is awaited of the log, no number was drawn since this was asked last, and the log has
 * not heard so: *ret_floor is to be told. This, the next two: from one thread. */
bool rpc_floor_is_due(struct rpc *rpc, struct log_id log, uint64_t *ret_floor);
void rpc_floor_told(struct rpc *rpc, struct log_id log, uint64_t floor);
/* What the log has granted the rpc's session when it attached there; without a session it is
 * RPC_WINDOW. The log may have lost what it had heard of floors. */
void rpc_window_set(struct rpc *rpc, struct log_id log, uint32_t window);
/* Mutations that had to wait for others of their window to end. */
uint64_t rpc_window_waits(const struct rpc *rpc);
