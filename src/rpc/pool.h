/* Pools: a fixed number of equal objects, all taken at start, with a reserve per message class.
 *
 *     free (home's, newest first) --pool_get--> in use --pool_put at home--> free
 *            ^                                    |
 *            | when free gets short               | pool_put elsewhere: in batches, a batch goes
 *         returned (atomic) <---------------------+ when it is full or its worker's slice ends
 *
 * A class leaves untouched what is reserved for the classes before it, so requests run dry first
 * and control last. An object starts with a struct pool_item; the rest is the user's and keeps its
 * content from one use to the next.
 *
 * Thread: pool_get at the home, which is one worker's thread, or one actor (worker NULL: no thread
 * is the home, all objects come back through `returned`). pool_put from any thread.
 * Memory: object_count objects, each on cache lines of its own, from init to deinit. */
#pragma once
#include "base/err.h"
#include "rpc/actor.h"

enum { POOL_BATCH_MAX = 16 };

struct pool;
struct worker;

struct pool_item {
    struct pool_item *next; /* itself while in use */
    struct pool *home;
};

struct pool_options {
    const char *name; /* static */
    size_t object_bytes;
    uint32_t object_count;
    /* What each class alone may use, less important classes aside; the sum is below the count. */
    uint32_t reserve_count[MESSAGE_CLASS_COUNT];
    struct worker *worker;
};

/* As seen now, from any thread. Objects on their way home count as used. */
struct pool_usage {
    uint32_t object_count;
    uint32_t used_count;
    uint32_t used_count_max;
    uint64_t got_count[MESSAGE_CLASS_COUNT];
    uint64_t refused_count[MESSAGE_CLASS_COUNT];
};

struct pool {
    struct pool_item *free; /* the home's, as all but returned; others read the counters */
    _Atomic uint32_t free_count;
    _Atomic uint32_t free_count_min;
    uint32_t floor_count[MESSAGE_CLASS_COUNT]; /* a class takes while more than this are free */
    struct worker *worker;
    const char *name;
    uint8_t *memory;
    size_t stride_bytes;
    uint32_t object_count;
    _Atomic uint64_t got_count[MESSAGE_CLASS_COUNT];
    _Atomic uint64_t refused_count[MESSAGE_CLASS_COUNT];
    _Alignas(64) _Atomic(struct pool_item *) returned;
};

/* -ERR_INVALID for no objects, objects smaller than an item or reserves that leave nothing;
 * -ERR_NO_MEMORY. Objects are zeroed and their memory is there. */
MUST_CHECK int pool_init(struct pool *pool, const struct pool_options *options);
/* All objects must be back. */
void pool_deinit(struct pool *pool);
/* An object by its number, to set objects up before the first get. */
void *pool_object(struct pool *pool, uint32_t index);

/* NULL, and a refusal counted, when only what is reserved for more important classes is left. */
void *pool_get(struct pool *pool, enum message_class message_class);
/* Takes NULL too. */
void pool_put(void *object);

struct pool_usage pool_usage(const struct pool *pool);

/* For workers: sends home what their slice has put. */
void worker_return_all(struct worker *worker);
