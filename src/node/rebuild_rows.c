/* The contract is in rebuild_rows.h.
 *
 *     fsck_list{SESSIONS}, {ENDED}, of a metadata target {SLOTS}, page by page --> rebuilt
 *     sync: what was listed is on disk, so no power takes back what the manager goes by */
#include "node/rebuild_rows.h"
#include "node/local_cluster.h"
#include "node/rebuild_list.h"
#include "rpc/call_origin.h"
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 64 * 1024 };

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

/* What is being asked of one log. */
struct listing {
    struct rebuild_asker *asker;
    struct rebuilt *rebuilt;
    const struct map_target *target;
    struct log_id log;
    uint64_t patience_ns;
    uint8_t *page;
    struct rebuilt_life life;
};

static int rows_list(struct listing *listing, uint32_t what) {
    struct rebuild_list list = {.rebuilt = listing->rebuilt,
                                .log = listing->log,
                                .kind = listing->target->kind,
                                .what = what};
    bool end = false;
    int r = 0;

    while (r == 0 && !end) {
        struct call call = {
            .header = {.opcode = OP_FSCK_LIST, .log = listing->log},
            .request.fsck_list = {.what = what,
                                  .cursor = {list.last.bytes, list.has_last ? KV_KEY_BYTES : 0},
                                  .bytes_max = PAGE_BYTES},
            .bulk_in = {.data = listing->page, .capacity = PAGE_BYTES}};

        r = rebuild_ask(listing->asker, &call, listing->patience_ns);
        if (r < 0) {
            break;
        }
        const struct fsck_list_reply *reply = &call.reply.fsck_list;
        end = reply->end;
        listing->life.term = reply->term;
        listing->life.life = (struct log_life){reply->life_high, reply->life_low};
        if (call.bulk_in.size == 0 && !end) {
            return -ERR_MALFORMED;
        }
        r = rebuild_list_take(&list, (struct bytes){call.bulk_in.data, call.bulk_in.size});
    }
    return r;
}

static int log_list(struct listing *listing) {
    struct call sync = {.header = {.opcode = OP_SYNC, .log = listing->log}};
    int r = rows_list(listing, FSCK_SESSIONS);

    if (r == 0) {
        r = rows_list(listing, FSCK_ENDED);
    }
    if (r == 0 && listing->target->kind == TARGET_MDT) {
        r = rows_list(listing, FSCK_SLOTS);
    }
    if (r == 0) {
        r = rebuild_ask(listing->asker, &sync, listing->patience_ns);
    }
    return r == 0 ? rebuilt_life_add(listing->rebuilt, &listing->life) : r;
}

int rebuild_rows_ask(struct rebuild_asker *asker, struct rebuilt *rebuilt,
                     const struct map_target *target, uint64_t patience_ns) {
    struct log_id log = cluster_map_log_of(rebuilt->map, target->id);
    struct listing listing = {.asker = asker,
                              .rebuilt = rebuilt,
                              .target = target,
                              .log = log,
                              .patience_ns = patience_ns,
                              .page = malloc(PAGE_BYTES),
                              .life = {.log = log, .node = target->node.value}};
    int r = listing.page ? log_list(&listing) : -ERR_NO_MEMORY;

    free(listing.page);
    return r;
}
