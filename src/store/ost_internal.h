/* Inside of the OST, shared by the files of store/ only. */
#pragma once
#include "keys/ticket.h"
#include "kv/ended_list.h"
#include "rpc/slow_log.h"
#include "store/block_cache.h"
#include "store/capability_check.h"
#include "store/ost.h"
#include "store/request.h"
#include "store/session.h"
#include "store/small.h"
#include <stdatomic.h>

enum {
    OST_MESSAGE_WAKE = 1,
    OST_MESSAGE_IO,
    OST_MESSAGE_STATS,
    OST_BOUNCE_BYTES = 128 * 1024,
    OST_ACTIVE_BUCKETS = 256,
    OST_DIRECT_BYTES_MIN = 64 * 1024, /* less goes through the ring */
    OST_SMALL_BLOCKS_MAX = OST_DIRECT_BYTES_MIN / BLOCK_BYTES + 2,
    OST_CACHED_BLOCKS_MAX = 4, /* of a request: what is larger is mostly a whole sample */
    OST_SYNC_IO_MAX = 32,      /* of a sync point at a time, reserved for it */
    OST_SYNC_IO_BLOCKS = 256,
};

/* One operation of the data file. finished runs in the step. */
struct ost_io {
    struct env_io io;
    struct message message;
    struct list_node node;
    struct ost *ost;
    void *owner;
    void (*finished)(struct ost *ost, struct ost_io *io);
    int result;
    uint8_t *bounce; /* a pool's buffer, or NULL */
    uint32_t index;  /* first block of the request's range */
    uint32_t block_count;
};

enum stop_stage { STOP_NONE, STOP_REQUESTS, STOP_KV, STOP_KV_DONE, STOP_DONE };

enum load_stage { LOAD_STATE, LOAD_PROMISED, LOAD_BITMAP, LOAD_SESSIONS, LOAD_DONE };

struct data_sync {
    bool running;
    bool flushing;
    uint64_t cut;
    uint32_t at; /* next entry of small to write */
    uint32_t io_pending;
    int result;
};

struct ost {
    struct actor actor;
    struct ost_options options;
    struct env *env;
    struct kv *kv;
    struct env_file *file;
    bool is_loading;     /* calls wait */
    uint64_t gave_up_ns; /* when requests_give_up looked last */
    int failed;          /* nothing is served: the answer to every call */

    /* Memory. */
    struct request *requests;
    struct list free_requests;
    uint32_t free_request_count;
    struct ost_io *ios;
    struct list free_ios;
    uint32_t free_io_count;
    uint8_t *bounces;
    uint8_t **free_bounces;
    uint32_t free_bounce_count;
    uint8_t *edges;
    struct block_entry *entries;

    /* Work. */
    struct list calls[MESSAGE_CLASS_COUNT]; /* that wait for a request */
    struct list ready[MESSAGE_CLASS_COUNT];
    struct list kv_waiting;    /* for kv's wake */
    struct list io_waiting;    /* for an ost_io or a bounce buffer */
    struct list space_waiting; /* for blocks */
    struct list yielded;
    struct list finished; /* answered once the step's records are sealed */
    struct list active[OST_ACTIVE_BUCKETS];
    struct list pins; /* by pin_number */
    uint64_t read_number;
    uint64_t epoch; /* of the newest change */

    atomic_bool wake_posted;
    bool kv_due; /* kv_step is to be called in this step */
    struct message wake_message;
    bool is_open; /* it may be posted to */
    uint32_t step_count;

    struct blocks blocks;
    struct block_cache cache;
    struct small small;
    struct sessions sessions;
    struct ended_list ended;
    struct capability_check capability_check;
    struct signer ticket_signer;
    struct change change;
    struct data_sync sync;
    uint64_t direct_bytes; /* written since the last sync point was wanted */
    struct kv_waiter bytes_waiter;
    bool bytes_waiting;

    /* The data file. */
    uint64_t reserve_blocks;
    uint64_t held_blocks;    /* taken by writes that have no record yet */
    uint64_t block_size_max; /* blocks it may grow to, or has already */
    uint64_t found_blocks;   /* that the data file had before the open, whole ones */
    uint64_t file_blocks;    /* that it has since */
    uint64_t file_label;     /* 0: none yet */
    bool was_empty;
    uint64_t recovered;       /* records that were not on disk at open: it serves when they are */
    uint64_t fenced_position; /* of the newest record with a fence of this life; 0: none */
    struct ost_io grow_io;
    bool growing, grow_failed;
    uint64_t grow_failed_ns;
    /* What other threads may know of the space, and since when; 0: nothing. */
    _Atomic uint64_t noted_used_bytes, noted_available_bytes, noted_ns;
    uint64_t label;
    uint64_t label_position; /* of the record that the label waits for */
    bool label_wanted, label_writing;
    struct ost_io label_io;
    uint8_t *label_block;

    enum load_stage load_stage;
    struct kv_cursor load_cursor;
    char problem[256];

    atomic_bool stop_wanted;
    enum stop_stage stop_stage;
    int stop_result;
    void (*stop_done)(void *context, int result);
    void *stop_context;
    struct ost_counters counters;
    struct slow_log slow;
    uint64_t seen_ns; /* when the clock was looked at last */
    struct operation_counters operations[OPCODE_COUNT];
};
