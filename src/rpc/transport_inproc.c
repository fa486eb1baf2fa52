/* The contract is in transport_inproc.h. */
#include "rpc/transport_inproc.h"

static void inproc_reply(struct call *call) {
    /* There are no copies here. Should a server think it has one, the first try's outcome will
     * answer the next. */
    int result = call->result == CALL_DISCARDED ? -ERR_BUSY : call->result;

    rpc_answered(call->rpc, call, result);
}

static void inproc_send(void *context, struct call *call) {
    struct actor *actor = log_table_find(context, call->header.log);

    if (!actor) {
        rpc_answered(call->rpc, call, -ERR_STALE_MAP);
        return;
    }
    call->reply_to = inproc_reply;
    call->message.kind = CALL_MESSAGE_KIND;
    actor_post(actor, &call->message);
}

const struct transport_ops transport_inproc_ops = {.send = inproc_send, .reliable = true};
