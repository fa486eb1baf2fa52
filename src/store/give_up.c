/* Requests that their callers have given up: those that wait for the log, for memory or for blocks
 * end with that. One that is at its I/O, or waits for a sync point, ends with those. */
#include "store/operations.h"
#include <assert.h>

#define GIVE_UP_NS (NS_PER_S / 10)

static void waiting_give_up(struct ost *ost, struct list *waiting, uint64_t now_ns) {
    for (struct list_node *node = list_first(waiting), *next; node; node = next) {
        struct request *request = CONTAINER_OF(node, struct request, node);
        int r = request->is_syncing || request->io_pending > 0
                    ? 0
                    : call_given_up(request->call, now_ns);

        assert(!request->is_ready);
        next = list_next(waiting, node);
        if (r < 0) {
            request_finish(ost, request, r);
            /* The blocks that it held have woken all that wait for some. */
            next = list_is_empty(waiting) ? NULL : next;
        }
    }
}

void requests_give_up(struct ost *ost) {
    uint64_t now_ns = env_now_ns(ost->env);

    ost->seen_ns = now_ns;
    if (now_ns - ost->gave_up_ns < GIVE_UP_NS) {
        return;
    }
    ost->gave_up_ns = now_ns;
    slow_log_tick(&ost->slow, now_ns);
    for (size_t class = 0; class < MESSAGE_CLASS_COUNT; class ++) {
        for (struct list_node *node = list_first(&ost->calls[class]), *next; node; node = next) {
            struct call *call = CONTAINER_OF(node, struct call, server_node);
            int r = call_given_up(call, now_ns);

            next = list_next(&ost->calls[class], node);
            if (r < 0) {
                list_remove(node);
                call->server_position = kv_position(ost->kv);
                slow_log_answer(&ost->slow, call, r, now_ns);
                call_reply(call, r);
            }
        }
    }
    waiting_give_up(ost, &ost->kv_waiting, now_ns);
    waiting_give_up(ost, &ost->io_waiting, now_ns);
    waiting_give_up(ost, &ost->space_waiting, now_ns);
}
