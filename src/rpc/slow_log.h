/* One line for each call that a server took long to answer, by the call's own stamps:
 *
 *     started_ns --- waited ---> ran_ns --- ran ---> disk_ns --- disk ---> answered
 *
 * ran_ns and disk_ns are the last time that the server has looked at the clock when the call was
 * run first, and when it first began to wait for the disk; 0 when it never did.
 *
 * Thread: the server's step.  Memory: its own few bytes. */
#pragma once
#include "rpc/call.h"

/* Lines in a second; what is beyond is counted, and told by one line once the second is over. */
enum { SLOW_LOG_LINES_MAX = 10, SLOW_LOG_LINE_BYTES = 256 };

struct slow_log {
    uint64_t limit_ns; /* 0: off */
    struct target_id target;
    void (*log)(void *context, const char *line); /* or NULL */
    void *log_context;
    uint64_t second_ns; /* when the present second began */
    uint32_t line_count;
    uint64_t left_out;
};

/* Writes the line; result is what the call answers. */
void slow_log_write(struct slow_log *slow, const struct call *call, int result, uint64_t now_ns);
/* Tells how many were left out in a second that is over; call on every tick. */
void slow_log_tick(struct slow_log *slow, uint64_t now_ns);

/* Of each call that is answered. */
static inline void slow_log_answer(struct slow_log *slow, const struct call *call, int result,
                                   uint64_t now_ns) {
    if (slow->limit_ns > 0 && now_ns - call->started_ns > slow->limit_ns) {
        slow_log_write(slow, call, result, now_ns);
    }
}
