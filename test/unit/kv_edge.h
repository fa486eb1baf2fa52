/* One engine over a base in memory and the outside in memory, for tests of its edges and limits.
 *
 * Thread: the test's.  Memory: of each edge what it names. */
#pragma once
#include "kv/kv.h"
#include "kv/kv_mem.h"
#include "kv/log_format.h"
#include "memory_env.h"

enum { EDGE_RING_BYTES = 64 * 1024, EDGE_TURNS_MAX = 4000 };

struct edge {
    struct prng prng;
    struct memory_env *world;
    struct kv_mem_store *store;
    struct kv_options options;
    struct kv *kv;
    char problem[256];
    bool woken;
    char line[512]; /* the last one that was logged */
};

extern const uint8_t edge_content[KV_VALUE_BYTES_MAX];

/* Open, and empty; the test may change options and open it again. */
struct edge *edge_with_log(uint64_t seed, uint64_t disk_log_bytes);
struct edge *edge_new(uint64_t seed);
void edge_free(struct edge *edge);
MUST_CHECK int edge_open(struct edge *edge);
void edge_kill(struct edge *edge);
/* The machine dies: what was not flushed stays, the ring does not. */
void edge_power(struct edge *edge);
/* What stop answers. */
int edge_stop(struct edge *edge);

/* Asserts what kv_check says. */
void edge_check(struct edge *edge);
/* So much time passes, and what is in flight ends. */
void edge_turn(struct edge *edge, uint64_t ns);
/* Until what was sealed is on disk, or a checkpoint more has ended. */
void edge_settle(struct edge *edge, bool checkpoint);
/* Within 10 s a record of this class is taken. */
void edge_goes_on(struct edge *edge, enum kv_class message_class, uint64_t id);

struct kv_key edge_key(uint64_t id);
struct kv_need edge_need(size_t value_bytes);
/* One row, not sealed. What kv_admit says. */
int edge_put(struct edge *edge, enum kv_class message_class, uint64_t id, size_t size);
/* One outcome, sealed. */
int edge_outcome(struct edge *edge, uint64_t session, uint64_t sequence, uint64_t floor);
bool edge_has(struct edge *edge, uint64_t id);
/* The region as another process would find it. */
uint8_t *edge_region(struct edge *edge, struct env_shared **ret_shared);
/* Writes both superblocks anew, as `change` leaves them. */
void edge_superblocks_change(struct edge *edge, void (*change)(struct log_superblock *));
