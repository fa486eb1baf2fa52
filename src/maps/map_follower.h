/* Follows the manager's map: is told when there is a newer one, and fetches it.
 *
 *     fetch   NONE --one is known--> CHANGES --applied to a copy of it--> take --> fetched, NONE
 *               |                     '--none, of another map, or not known there--> WHOLE
 *               '--none is known--> WHOLE --> take --> fetched, NONE
 *
 *     watch   tick --map_wait--> answered when there is a newer one, or after a while: watched
 *                                '--> the next tick that is MAP_WATCH_AGAIN_NS behind the question,
 *                                     or MAP_WATCH_REFUSED_NS behind a refusal, asks again
 *
 * A question that is refused, or that nobody answers, costs nothing: its owner hears of versions by
 * its signs of life, too. A manager of the version before knows neither message: it is asked for
 * whole maps.
 *
 * Thread: its owner's step, also the hooks. Memory: the bytes of one map, touched when one comes;
 * of the maps the owner has all. */
#pragma once
#include "layout/cluster_map.h"
#include "rpc/call.h"

struct env;

/* Who waits waits for so long, and is answered earlier; asks at most so often, so that versions
 * that come within that are fetched together; and asks again where nobody lets it wait. */
#define MAP_WATCH_NS (40 * NS_PER_S)
#define MAP_WATCH_AGAIN_NS NS_PER_S
#define MAP_WATCH_REFUSED_NS (10 * NS_PER_S)

/* All are there. */
struct map_follower_hooks {
    /* Starts a call, whose opcode, request, space, done and context are filled in: by whom, of
     * which log, and until when, if it has no deadline, is the owner's. */
    void (*start)(void *context, struct call *call);
    /* The map that it goes by; NULL, or version 0: none yet. */
    const struct cluster_map *(*known)(void *context);
    /* Memory for the next one, which take gets; NULL: there is none. */
    struct cluster_map *(*make)(void *context);
    /* result 0: a map as it was fetched, newer or not; else it is none. It is the owner's again
     * either way. Answers result, or why the map is not used. */
    int (*take)(void *context, struct cluster_map *map, int result);
    /* A fetch has ended: 0, by take or as there is nothing newer; or why there is no map. */
    void (*fetched)(void *context, int result);
    /* A question has ended: by the manager's newest version, or, refused, 0. */
    void (*watched)(void *context, uint64_t version);
};

enum map_fetch { MAP_FETCH_NONE, MAP_FETCH_CHANGES, MAP_FETCH_WHOLE };

struct map_follower {
    struct env *env;
    const struct map_follower_hooks *hooks;
    void *context;
    enum map_fetch fetch;
    struct call fetch_call;
    uint8_t *bytes;
    bool is_watching;
    uint64_t watch_ns; /* not before that again */
    struct call watch_call;
    bool is_stopped;
};

/* -ERR_NO_MEMORY. */
MUST_CHECK int map_follower_init(struct map_follower *follower, struct env *env,
                                 const struct map_follower_hooks *hooks, void *context);
/* What is under way is forgotten, with its process. Also of one that is all zero. */
void map_follower_deinit(struct map_follower *follower);
/* Fetches the newest map, unless a fetch is under way: who asks meanwhile hears of what came later
 * as ever, and asks again. */
void map_follower_fetch(struct map_follower *follower);
/* At a tick, with a map that is known: asks to be told of a newer one, if it is time. who: differs
 * from all other askers of the process. */
void map_follower_watch(struct map_follower *follower, uint64_t who);
/* The question that waits is called off. */
void map_follower_unwatch(struct map_follower *follower);
/* So is the fetch; nothing begins any more, but what is under way still ends. */
void map_follower_stop(struct map_follower *follower);
static inline bool map_follower_is_fetching(const struct map_follower *follower) {
    return follower->fetch != MAP_FETCH_NONE;
}
/* A call of its own is under way, which lies in its memory. */
static inline bool map_follower_is_busy(const struct map_follower *follower) {
    return map_follower_is_fetching(follower) || follower->is_watching;
}
