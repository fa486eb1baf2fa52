/* See slow_log.h. */
#include "rpc/slow_log.h"
#include <inttypes.h>
#include <stdio.h>

static void second_begin(struct slow_log *slow, uint64_t now_ns) {
    char line[SLOW_LOG_LINE_BYTES];

    if (now_ns - slow->second_ns < NS_PER_S) {
        return;
    }
    if (slow->left_out > 0) {
        (void)snprintf(line, sizeof line, "target %u: slow: %" PRIu64 " more, without a line",
                       (unsigned)slow->target.value, slow->left_out);
        slow->log(slow->log_context, line);
    }
    slow->second_ns = now_ns;
    slow->line_count = 0;
    slow->left_out = 0;
}

void slow_log_tick(struct slow_log *slow, uint64_t now_ns) {
    if (slow->left_out > 0) {
        second_begin(slow, now_ns);
    }
}

/* The stamps are of steps, so one may lie behind the next by what a step takes. */
static uint64_t part_ms(uint64_t from_ns, uint64_t to_ns) {
    return to_ns > from_ns ? (to_ns - from_ns) / NS_PER_MS : 0;
}

void slow_log_write(struct slow_log *slow, const struct call *call, int result, uint64_t now_ns) {
    uint64_t disk_ns = call->disk_ns ? call->disk_ns : now_ns;
    uint64_t ran_ns = call->ran_ns ? call->ran_ns : disk_ns;
    char line[SLOW_LOG_LINE_BYTES];

    if (!slow->log) {
        return;
    }
    second_begin(slow, now_ns);
    if (slow->line_count == SLOW_LOG_LINES_MAX) {
        slow->left_out++;
        return;
    }
    slow->line_count++;
    (void)snprintf(line, sizeof line,
                   "target %u: slow %s of inode %" PRIu64 ", trace %" PRIx64 ", %s: %" PRIu64
                   " ms, of them waiting %" PRIu64 ", running %" PRIu64 ", disk %" PRIu64,
                   (unsigned)slow->target.value, wire_name(call->header.opcode),
                   wire_request_ino(call->header.opcode, &call->request), call->header.trace_id,
                   result < 0 ? err_name(result) : "OK", part_ms(call->started_ns, now_ns),
                   part_ms(call->started_ns, ran_ns), part_ms(ran_ns, disk_ns),
                   part_ms(disk_ns, now_ns));
    slow->log(slow->log_context, line);
}
