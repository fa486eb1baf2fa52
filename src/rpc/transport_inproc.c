/* The contract is in transport_inproc.h. The table is open-addressed; an entry keeps its log for
 * ever and loses only its actor, so that readers need no more than two loads. */
#include "rpc/transport_inproc.h"
#include <stdlib.h>

struct entry {
    _Atomic uint64_t key; /* the log; 0: free */
    _Atomic(struct actor *) actor;
};

struct transport_inproc {
    uint32_t entry_count;
    struct entry entries[];
};

int transport_inproc_new(uint32_t logs_max, struct transport_inproc **ret_transport) {
    struct transport_inproc *transport;

    if (logs_max == 0) {
        return -ERR_INVALID;
    }
    transport = calloc(1, sizeof *transport + logs_max * sizeof transport->entries[0]);
    if (!transport) {
        return -ERR_NO_MEMORY;
    }
    transport->entry_count = logs_max;
    *ret_transport = transport;
    return 0;
}

void transport_inproc_free(struct transport_inproc *transport) {
    free(transport);
}

/* The log's entry, or the free one where it would be, or NULL. */
static struct entry *entry_find(struct transport_inproc *transport, struct log_id log) {
    for (uint32_t i = 0; i < transport->entry_count; i++) {
        struct entry *entry = &transport->entries[(log.value + i) % transport->entry_count];
        uint64_t key = atomic_load_explicit(&entry->key, memory_order_acquire);

        if (key == 0 || key == log.value) {
            return entry;
        }
    }
    return NULL;
}

int transport_inproc_add(struct transport_inproc *transport, struct log_id log,
                         struct actor *actor) {
    struct entry *entry = entry_find(transport, log);

    if (!entry) {
        return -ERR_TOO_MANY_OPEN;
    }
    if (atomic_load_explicit(&entry->actor, memory_order_relaxed)) {
        return -ERR_EXISTS;
    }
    atomic_store_explicit(&entry->actor, actor, memory_order_release);
    atomic_store_explicit(&entry->key, log.value, memory_order_release);
    return 0;
}

void transport_inproc_remove(struct transport_inproc *transport, struct log_id log) {
    struct entry *entry = entry_find(transport, log);

    if (entry) {
        atomic_store_explicit(&entry->actor, NULL, memory_order_release);
    }
}

static void inproc_reply(struct call *call) {
    /* There are no copies here. Should a server think it has one, the first try's outcome will
     * answer the next. */
    int result = call->result == CALL_DISCARDED ? -ERR_BUSY : call->result;

    rpc_answered(call->rpc, call, result);
}

static void inproc_send(void *context, struct call *call) {
    struct entry *entry = entry_find(context, call->header.log);
    struct actor *actor = NULL;

    if (entry) {
        actor = atomic_load_explicit(&entry->actor, memory_order_acquire);
    }
    if (!actor) {
        rpc_answered(call->rpc, call, -ERR_STALE_MAP);
        return;
    }
    call->reply_to = inproc_reply;
    call->message.kind = CALL_MESSAGE_KIND;
    actor_post(actor, &call->message);
}

const struct transport_ops transport_inproc_ops = {.send = inproc_send, .reliable = true};
