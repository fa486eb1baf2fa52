/* The contract is in transport_inproc.h. */
#include "rpc/transport_inproc.h"

static void inproc_reply(struct call *call) {
    /* There are no copies here. Should a server think it has one, the first try's outcome will
     * answer the next. */
    int result = call->result == CALL_DISCARDED ? -ERR_BUSY : call->result;

    rpc_answered(call->rpc, call, result);
}

bool transport_inproc_try(struct log_table *logs, struct call *call) {
    struct actor *actor = log_table_find(logs, call->header.log);

    if (!actor) {
        return false;
    }
    call->was_sent = true;
    call->reply_to = inproc_reply;
    call->message.kind = CALL_MESSAGE_KIND;
    actor_post(actor, &call->message);
    return true;
}

static void inproc_send(void *context, struct call *call) {
    if (!transport_inproc_try(context, call)) {
        rpc_answered(call->rpc, call, -ERR_STALE_MAP);
    }
}

const struct transport_ops transport_inproc_ops = {.send = inproc_send, .reliable = true};
