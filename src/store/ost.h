/* An OST: the chunks of one storage target, an actor over one kv and one data file.
 *
 * It answers the chunk_ messages, session_attach and sessions_ended, sync, statfs and fsck_list of
 * wire/messages.def. docs/internals/data.md says how; README.md names the files.
 *
 * Thread: ost_open and ost_close while nobody posts; ost_tick and ost_stop_start from any thread
 * with a worker; all else happens in the actor's step.
 * Memory: all taken at open, from these limits. */
#pragma once
#include "keys/key_ring.h"
#include "kv/kv.h"
#include "rpc/actor.h"
#include "rpc/operation_counters.h"
#include "rpc/session_counters.h"

struct ost;

/* A new data file takes that much at once, or its limit. */
enum { OST_FIRST_BYTES = 64 << 20, OST_SESSIONS_DEFAULT = 65536 };

/* What is 0 gets the default in brackets. */
struct ost_options {
    struct env *env;
    struct kv_options kv;  /* hooks are set here; ring_data_bytes at least 256 KiB */
    const char *data_path; /* file or block device, relative to the env's root */
    struct target_id target;
    uint64_t data_bytes_max;     /* the data file grows up to this; [as large as the device] */
    uint64_t grow_bytes;         /* at a time [256 MiB] */
    uint64_t keep_free_bytes;    /* of the file system, for others: growth leaves as much */
    uint32_t file_system_shares; /* targets that grow on that file system [1] */
    uint64_t reserve_bytes;      /* for overwrite, cut and delete [1 %, at least 4 MiB] */
    uint64_t sync_bytes;         /* data written directly that begins a sync point [256 MiB] */
    size_t cache_bytes;          /* of blocks; 0, or a data file in memory: none */
    uint32_t requests_max;       /* at work at a time; more wait [256] */
    uint32_t io_max;             /* operations of the data file in flight [256] */
    uint32_t bounce_max; /* buffers of 128 KiB for callers' memory that is not aligned [64] */
    uint32_t request_bytes_max; /* of one read or write [4 MiB] */
    uint32_t sessions_max;      /* attached at a time [65,536] */
    uint32_t freed_max;         /* extents freed since the last sync point [65,536] */
    uint32_t step_segments;     /* that one transaction of a cut or a delete frees, to 256 [64] */
    uint64_t slow_request_ns;   /* a call that takes longer gets a line; 0: none does */
    bool verify_on_arrival;     /* the data of writes came over a network */
    /* By which capabilities and tickets are checked; borrowed as long as the OST is open. NULL: no
     * ticket is asked for, and no capability good but, with unsigned_allowed, those without a
     * signature: within one process. */
    const struct key_ring *keys;
    bool unsigned_allowed;
    /* One line about something that somebody must see: damaged blocks, a data file that cannot
     * grow. May be NULL. */
    void (*log)(void *context, const char *line);
    void *log_context;
};

/* Opens, or formats what is empty. (start) ret_problem says in a line what is wrong:
 * -ERR_INVALID an option; -ERR_CORRUPT, -ERR_NEWER_FORMAT, -ERR_NOT_OURS (a data file of another
 * target); else what env or kv answered. */
MUST_CHECK int ost_open(const struct ost_options *options, struct ost **ret_ost,
                        char ret_problem[256]);
/* Post calls to it as their messages. */
struct actor *ost_actor(struct ost *ost);
/* Every 10 ms or so, from a tick. */
void ost_tick(struct ost *ost);
/* Refuses new calls with -ERR_CLOSED, ends those at work, then takes a sync point and a checkpoint.
 * done runs in the step. The actor must be idle before ost_close. */
void ost_stop_start(struct ost *ost, void (*done)(void *context, int result), void *context);
/* Frees memory and closes files; takes NULL. */
void ost_close(struct ost *ost);
/* Of a process that dies, or that could not start: whatever is in flight. Takes NULL. */
void ost_abandon(struct ost *ost);

struct ost_counters {
    uint64_t reads, read_bytes, writes, write_bytes, small_writes, cuts, deletes, corrupt_blocks;
    uint64_t cuts_through_damage;
    uint64_t capabilities_checked; /* by their signature, as they were not among the last */
    uint64_t capabilities_refused; /* for want of a good one */
    uint64_t cache_hits, cache_misses, disk_reads, disk_writes, merge_reads, bounces, waits;
    uint64_t copies; /* of writes that were at work */
    uint64_t block_count, free_blocks, quarantine_blocks, sync_writes, sync_blocks;
    uint64_t promised_blocks;   /* of those that are free or will be: for holes, by fallocate */
    uint64_t punches, promises; /* requests that made holes; that promised or took back */
    uint64_t
        waiting_count; /* requests that wait for a row, room, an I/O slot or blocks; as of now */
};
/* In the step, or when the actor is idle. */
void ost_counters_get(const struct ost *ost, struct ost_counters *ret_counters);

/* A copy of the target's numbers, made in its step. The caller owns it until done. */
struct ost_stats {
    struct message message; /* ours */
    void (*done)(struct ost_stats *stats);
    void *context;
    struct ost_counters ost;
    struct kv_counters kv;
    struct env_file_ways data; /* of the data file */
    uint64_t position;
    uint64_t synced_position;
    struct operation_counters *operations; /* OPCODE_COUNT of them, the caller's; or NULL */
    struct session_counters_list clients;  /* rows are the caller's; added to */
};
void ost_stats_start(struct ost *ost, struct ost_stats *stats);
struct kv *ost_kv(struct ost *ost);

/* What is used, and what new data may still take, by its limit and by what is free below. */
struct ost_space {
    uint64_t used_bytes;
    uint64_t available_bytes;
};
/* As of a second ago at most, from any thread. False: it has not loaded yet. */
bool ost_space_get(const struct ost *ost, struct ost_space *ret_space);
