/* The engine's state, shared by kv*.c only. */
#pragma once
#include "kv/changes.h"
#include "kv/disk_log.h"
#include "kv/kv.h"
#include "kv/kv_base.h"
#include "kv/outcomes.h"
#include "kv/record.h"
#include "kv/ring.h"
#include <stdatomic.h>

enum {
    KV_SPACE_ENGINE = 2, /* the engine's own rows, behind all others */
    KV_ROW_APPLIED = 'A',
    KV_ROW_FLOOR = 'F',
    KV_ROW_OUTCOME = 'O',
    KV_WARM_JOBS = 32,
    KV_WARM_STRETCHES = 64,
    KV_WARM_SETS = 1024,
    KV_WARM_WAYS = 8,
    KV_COMMIT_ROWS = 16384,
    KV_STEP_ROWS = 512, /* of them are put together in a step */
    KV_SCRATCH_VALUES = 16,
    KV_APPLIED_BYTES = 24,
    KV_OUTCOME_VALUE_BYTES = sizeof(struct log_outcome) + KV_REPLY_BYTES_MAX,
    KV_OUTCOMES_SPARE = 131072, /* above those that every session may keep */
    KV_SESSIONS_MAX = 4096,
};

/* A job reads the rows at and behind a key into the page cache, so that the step may read them. */
struct kv_warm {
    struct env_job job;
    struct kv *kv;
    struct kv_stretch stretch;
    bool busy;
    atomic_bool finished;
};

/* What was read that way last: who waits for several rows finds the first when the last is read. */
struct kv_warmth {
    struct kv_warm jobs[KV_WARM_JOBS];
    uint32_t busy_count; /* of them */
    struct kv_stretch stretches[KV_WARM_STRETCHES];
    uint32_t stretch_next;
    uint32_t stretch_hit; /* where one was found last */
    /* Hashes of keys. One that is taken for another costs a read that waits for its disk. */
    uint64_t (*points)[KV_WARM_WAYS];
    uint32_t set_count; /* a power of two */
};

/* The transaction: its operations lie at the end of the open record. */
struct kv_transaction {
    bool open;
    struct kv_grant grant;
    size_t record_bytes;        /* of the open record when it began; 0: there was none */
    uint32_t record_operations; /* likewise */
    uint64_t data_head;         /* likewise */
    uint64_t data_end_max;      /* that was granted */
    uint32_t rows;
    struct kv_key last_key; /* of them */
    size_t staged_bytes;    /* but for the outcome */
    size_t value_bytes;     /* that were put into changes */
    uint32_t scratch_count;
};

enum sync_stage { SYNC_IDLE, SYNC_DATA, SYNC_RECORDS, SYNC_FLUSH };

struct kv_sync_state {
    enum sync_stage stage;
    bool wanted;           /* one more when this one is done, or now */
    bool data_done, asked; /* asked: somebody waited when it began */
    int data_result;
    struct ring_start cut; /* where the ring starts once this is done */
    uint64_t walk;         /* ring offset of the next record to write */
    struct disk_log_span span;
    uint64_t last_ns;
};

enum checkpoint_stage {
    CHECKPOINT_IDLE,
    CHECKPOINT_SYNC,
    CHECKPOINT_COMMIT,
    CHECKPOINT_SUPERBLOCK,
    CHECKPOINT_SUPERBLOCK_FLUSH
};

struct kv_checkpoint_state {
    enum checkpoint_stage stage;
    bool wanted;
    bool committing; /* a commit of rows to the base is in flight */
    bool flushing;   /* the superblock is written and being flushed */
    atomic_bool commit_finished;
    uint64_t position;
    uint64_t tail_offset; /* of the log once this is done */
    uint64_t tail_position;
    uint32_t tail_crc;
    struct kv_key walk;
    bool walk_inclusive;
    bool last_commit;
    struct kv_base_commit commit;
    struct kv_base_row *rows;
    size_t rows_max;
    size_t row_count, row_bytes; /* of the piece that is being put together; of its values */
    uint64_t last_ns;            /* when one began last */
    bool no_space;               /* the base's file could not grow; tried again from retry_ns on */
    uint64_t no_space_ns;        /* since then */
    uint64_t retry_ns;
};

/* Opening. */
struct kv_replay {
    struct kv *kv;
    char *problem;
    const struct disk_log_options *log_options;
    bool log_is_whole; /* all of the disk log was looked at */
    bool in_ring;      /* the records are in the ring, and maybe not in the disk log */
};

struct kv {
    struct kv_options options;
    struct env *env;
    struct ring ring;
    struct disk_log log;
    struct changes_pool *pool;
    struct changes *changes;
    struct changes *frozen; /* NULL: no checkpoint */
    struct outcomes *outcomes;
    struct kv_base *base;
    uint64_t term;
    struct log_life life;
    uint64_t synced, applied;
    atomic_int failed; /* the error that stopped the log, or 0 */
    struct kv_transaction transaction;
    uint64_t grant_number; /* of the newest grant, while it is good; rises with all that ends it */
    struct kv_sync_state sync;
    struct kv_checkpoint_state checkpoint;
    struct queue waiters;
    struct env_io io; /* of the log: one at a time */
    bool io_busy;
    atomic_bool io_finished;
    int io_result;
    bool base_read; /* the base's read transaction may be open */
    struct kv_warmth warmth;
    uint8_t (*scratch)[KV_VALUE_BYTES_MAX];
    bool stopping;
    enum { STOP_WAIT, STOP_WRITE, STOP_FLUSH } stop_stage;
    void (*stop_done)(void *context, int result);
    void *stop_context;
    struct kv_counters counters;
};
