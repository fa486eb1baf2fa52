/* What an engine is opened with: its environment, its limits, and what it calls.
 *
 * Memory: all that it names stays the owner's and outlives the engine. */
#pragma once
#include "base/types.h"
#include "env/env.h"

struct kv_base_ops;

struct kv_hooks { /* each may be NULL but wake */
    void (*wake)(void *context);
    /* A sync point begins: make durable all data that records up to cut name, then call
     * kv_data_synced once (now or later, from the step). */
    void (*data_sync)(void *context, uint64_t cut);
    void (*synced)(void *context, uint64_t synced);
    /* During kv_open: a note of a record; in_ring: its data may be in the ring's data area only. */
    int (*replay_note)(void *context, struct bytes note, uint64_t position, bool in_ring);
};
struct kv_options {
    struct env *env;
    const char *directory;   /* for disk log and base, relative to the env's root */
    const char *shared_name; /* of the ring; no other log's on this machine */
    bool ring_expected;      /* no ring is a loss, told by a line */
    bool accept_loss;        /* a damaged ring or end of the log is one: no reason to refuse */
    const struct kv_base_ops *base;
    void *base_store;       /* kv_mem: its struct kv_mem_store */
    const char *root;       /* file system path of the env's root; LMDB only */
    uint8_t owner_id[16];   /* the target's id: a ring of another target is not replayed */
    struct log_id log_id;   /* what it is formatted with, and then must have; 0: any, drawn */
    size_t ring_bytes;      /* records; 32 MiB by default, at least 64 KiB */
    size_t ring_data_bytes; /* small writes; 0 for none */
    const char *ring_bytes_name, *ring_data_bytes_name; /* as settings, for messages; or NULL */
    uint64_t disk_log_bytes;    /* 512 MiB by default, at least 8 x ring_bytes */
    size_t changes_bytes_max;   /* hard limit of changes in memory; soft at half */
    uint64_t base_memory_bytes; /* base read in the step while its file is smaller than this */
    uint64_t base_check_bytes;  /* a start looks through no larger base; 0: kv_lmdb_check.h */
    uint64_t sync_interval_ns;  /* 1 s by default */
    uint64_t checkpoint_ns;     /* between checkpoints, at most; 0: only when memory or log fill */
    uint32_t outcomes_max;      /* kept at a time; 0: 8 a session and 131,072 (windows.h) */
    uint32_t sessions_max;      /* that outcomes are kept of; 0: 4,096 */
    uint32_t warm_sets;         /* for tests, a power of two: what is kept of rows read; 0: all */
    void (*log)(void *context, const char *line); /* or NULL */
    void *log_context, *hook_context;
    struct kv_hooks hooks;
};
