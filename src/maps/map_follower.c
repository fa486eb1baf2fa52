/* The contract and the pictures are in map_follower.h. */
#include "maps/map_follower.h"
#include "env/env.h"
#include "layout/map_change.h"
#include <assert.h>
#include <stdlib.h>

/* A map's bytes are fewer than its struct; the room that is left is for maps of newer versions. */
enum { MAP_BYTES_MAX = sizeof(struct cluster_map) + 65536 };

int map_follower_init(struct map_follower *follower, struct env *env,
                      const struct map_follower_hooks *hooks, void *context) {
    *follower = (struct map_follower){.env = env, .hooks = hooks, .context = context};
    follower->bytes = malloc(MAP_BYTES_MAX);
    return follower->bytes ? 0 : -ERR_NO_MEMORY;
}

void map_follower_deinit(struct map_follower *follower) {
    free(TAKE_PTR(follower->bytes));
}

static uint64_t known_version(const struct map_follower *follower) {
    const struct cluster_map *map = follower->hooks->known(follower->context);

    return map ? map->version : 0;
}

static int whole_take(struct map_follower *follower) {
    struct bytes bytes = {follower->bytes, follower->fetch_call.bulk_in.size};
    struct cluster_map *map;

    if (bytes.size == 0) {
        return 0; /* The one that is known is the newest. */
    }
    map = follower->hooks->make(follower->context);
    if (!map) {
        return -ERR_NO_MEMORY;
    }
    int r = cluster_map_decode(bytes, map);
    return follower->hooks->take(follower->context, map, r);
}

/* -ERR_NOT_FOUND: it is to be fetched as a whole. */
static int changes_take(struct map_follower *follower) {
    struct bytes bytes = {follower->bytes, follower->fetch_call.bulk_in.size};
    uint64_t newest = follower->fetch_call.reply.map_changes.version;
    struct cluster_map *map;

    if (bytes.size == 0) {
        return newest > known_version(follower) ? -ERR_NOT_FOUND : 0;
    }
    map = follower->hooks->make(follower->context);
    if (!map) {
        return -ERR_NO_MEMORY;
    }
    cluster_map_copy(map, follower->hooks->known(follower->context));
    int r = cluster_map_changes_apply(map, bytes) < 0 ? -ERR_NOT_FOUND : 0;
    return follower->hooks->take(follower->context, map, r);
}

/* By a manager of the version before, which takes what it does not know for a member's. */
static bool is_unknown(const struct call *call) {
    return call->result == -ERR_NOT_SUPPORTED || call->result == -ERR_NOT_PERMITTED;
}

static int answer_take(struct map_follower *follower) {
    const struct call *call = &follower->fetch_call;
    bool by_changes = follower->fetch == MAP_FETCH_CHANGES;

    if (by_changes && is_unknown(call)) {
        return -ERR_NOT_FOUND;
    }
    if (call->result < 0) {
        return call->result;
    }
    return by_changes ? changes_take(follower) : whole_take(follower);
}

static void fetch_answered(struct call *call);

static void fetch_by(struct map_follower *follower, enum map_fetch fetch) {
    bool by_changes = fetch == MAP_FETCH_CHANGES;
    struct call *call = &follower->fetch_call;

    follower->fetch = fetch;
    *call = (struct call){
        .header.opcode = by_changes ? OP_MAP_CHANGES : OP_MAP_GET,
        .bulk_in = {.data = follower->bytes,
                    .capacity = by_changes ? (size_t)MAP_CHANGES_BYTES_MAX : MAP_BYTES_MAX},
        .done = fetch_answered,
        .context = follower,
    };
    if (by_changes) {
        call->request.map_changes.known_version = known_version(follower);
    } else {
        call->request.map_get.known_version = known_version(follower);
    }
    follower->hooks->start(follower->context, call);
}

static void fetch_answered(struct call *call) {
    struct map_follower *follower = call->context;

    assert(map_follower_is_fetching(follower));
    int r = answer_take(follower);
    if (r == -ERR_NOT_FOUND && follower->fetch == MAP_FETCH_CHANGES && !follower->is_stopped) {
        fetch_by(follower, MAP_FETCH_WHOLE);
        return;
    }
    follower->fetch = MAP_FETCH_NONE;
    follower->hooks->fetched(follower->context, r);
}

void map_follower_fetch(struct map_follower *follower) {
    if (!map_follower_is_fetching(follower) && !follower->is_stopped) {
        fetch_by(follower, known_version(follower) > 0 ? MAP_FETCH_CHANGES : MAP_FETCH_WHOLE);
    }
}

static void watch_answered(struct call *call) {
    struct map_follower *follower = call->context;
    bool is_refused = call->result < 0 || call->reply.map_wait.is_full;
    uint64_t again_ns = is_refused ? MAP_WATCH_REFUSED_NS : 0;

    assert(follower->is_watching);
    follower->is_watching = false;
    follower->watch_ns = MAX(follower->watch_ns, env_now_ns(follower->env) + again_ns);
    follower->hooks->watched(follower->context,
                             call->result < 0 ? 0 : call->reply.map_wait.version);
}

void map_follower_watch(struct map_follower *follower, uint64_t who) {
    uint64_t now_ns = env_now_ns(follower->env);

    if (map_follower_is_busy(follower) || follower->is_stopped || now_ns < follower->watch_ns) {
        return;
    }
    assert(known_version(follower) > 0);
    follower->is_watching = true;
    follower->watch_ns = now_ns + MAP_WATCH_AGAIN_NS;
    follower->watch_call = (struct call){
        .header.opcode = OP_MAP_WAIT,
        .request.map_wait = {.known_version = known_version(follower), .who = who},
        .deadline_ns = now_ns + MAP_WATCH_NS,
        .done = watch_answered,
        .context = follower,
    };
    follower->hooks->start(follower->context, &follower->watch_call);
}

void map_follower_unwatch(struct map_follower *follower) {
    if (follower->is_watching) {
        call_cancel(&follower->watch_call);
    }
}

void map_follower_stop(struct map_follower *follower) {
    follower->is_stopped = true;
    map_follower_unwatch(follower);
    if (map_follower_is_fetching(follower)) {
        call_cancel(&follower->fetch_call);
    }
}
