/* The contract is in rebuild_rows.h. */
#include "node/rebuild_rows.h"
#include "node/local_cluster.h"
#include "node/rebuild_listing.h"
#include "rpc/call_origin.h"

/* Of one that is away, after it has answered. */
#define AWAY_NS (5 * NS_PER_S)

int rebuild_asker_open(struct rebuild_asker *asker, const struct caller_options *options,
                       char problem[512]) {
    actor_init(&asker->origin, "rebuild", call_origin_step);
    asker->is_entered = true;
    return caller_open(&asker->caller, options, problem);
}

void rebuild_asker_close(struct rebuild_asker *asker) {
    if (asker->is_entered) {
        caller_leave(&asker->caller);
        caller_close(&asker->caller);
        asker->is_entered = false;
    }
}

static void note_done(struct call *call) {
    struct rebuild_asker *asker = call->context;

    asker->done = true;
}

/* Whoever refuses this cluster, or this key, does so for as long as it is asked. */
static int others_ask(struct rebuild_asker *asker, struct call *call, uint64_t patience_ns) {
    struct caller *caller = &asker->caller;
    uint64_t end_ns = env_now_ns(caller->env) + patience_ns;

    call->origin = &asker->origin;
    call->done = note_done;
    call->context = asker;
    call->deadline_ns = end_ns;
    asker->done = false;
    caller->said[0] = '\0';
    call_start(caller->rpc, call);
    caller_run(caller);
    while (!asker->done && env_now_ns(caller->env) < end_ns) {
        caller_turn(caller);
    }
    if (asker->done) {
        return call->result;
    }
    call_cancel(call);
    while (!asker->done) {
        caller_turn(caller);
    }
    return -ERR_TIMED_OUT;
}

int rebuild_ask(struct rebuild_asker *asker, struct call *call, uint64_t patience_ns) {
    return asker->cluster ? local_cluster_ask(asker->cluster, call)
                          : others_ask(asker, call, patience_ns);
}

int rebuild_rows_ask(struct rebuild_asker *asker, struct rebuilt *rebuilt,
                     const struct map_target *target, uint64_t patience_ns) {
    struct rebuild_listing listing;
    struct call call;
    int r = rebuild_listing_init(&listing, rebuilt, target);

    while (r == 0 && rebuild_listing_next(&listing, &call)) {
        call.patience_ns = AWAY_NS;
        r = rebuild_ask(asker, &call, patience_ns);
        if (r == 0) {
            r = rebuild_listing_take(&listing, &call);
        }
    }
    rebuild_listing_deinit(&listing);
    return r;
}
