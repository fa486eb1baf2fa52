/* One metadata group on an outside in memory, with clients that make their calls by hand and OSTs
 * that only keep books. A killed group comes back on what it left. */
#pragma once
#include "base/prng.h"
#include "keys/ticket.h"
#include "kv/kv_mem.h"
#include "layout/cluster_map.h"
#include "memory_env.h"
#include "meta/group.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"

enum { BENCH_SESSIONS = 4, BENCH_OSTS = 2, BENCH_CHUNKS = 4096, BENCH_BULK_BYTES = 65536 };
enum { BENCH_HELD = 8, BENCH_FENCES = 512 };
#define BENCH_MDT ((struct target_id){1})
#define BENCH_OTHER_LOG ((struct log_id){2}) /* of the other group, whose actor is the test's */

struct bench_session {
    uint64_t id;
    uint64_t incarnation;
    uint64_t sequence; /* of the last mutation */
    uint64_t term;
};

/* What the OSTs hold of one generation of one file. */
struct bench_chunks {
    uint64_t ino;
    uint32_t generation;
    uint32_t truncate_seq; /* of the last cut */
    uint64_t length;
    uint64_t blocks; /* on the first OST, as the test says; others have none */
    bool deleted;
};

struct bench_ost {
    struct actor actor;
    struct meta_bench *bench;
    struct target_id id;
    uint64_t position;
    uint64_t synced;
    bool is_away;       /* answers no question for a length but that */
    bool has_none;      /* of what is written: its chunks are the other ones */
    bool holds_syncs;   /* answers none but by bench_sync_answer */
    bool holds_deletes; /* answers none but by bench_delete_answer */
    bool refuses_cuts;  /* by an error that lasts */
    struct call *held[BENCH_HELD];
    uint32_t held_count;
    bool is_dead;                  /* answers nothing; what waits for it may be given up */
    struct list unanswered;        /* as long as that */
    uint64_t fences[BENCH_FENCES]; /* session ids that it refuses */
    uint32_t fence_count;
    bool fences_one;        /* as an older version: the request's own only */
    uint32_t length_count;  /* questions for a length that it has answered */
    uint64_t deleted_count; /* chunks of so many files, each as often as that was ended here */
};

struct meta_bench {
    uint64_t seed;
    struct prng prng;
    struct memory_env *world;
    struct kv_mem_store *store;
    struct cluster_map *map;
    struct log_table *logs;
    struct rpc *rpc;
    struct worker worker;
    struct group *group;
    struct bench_session sessions[BENCH_SESSIONS];
    uint64_t next_session_id;
    uint64_t unended;     /* the OSTs, asked as coordinators, have not ended this number only */
    uint64_t list_number; /* of the list of the ended, that the group has */
    uint8_t ended[8];     /* the session that it is told of */
    struct bench_ost osts[BENCH_OSTS];
    struct bench_chunks chunks[BENCH_CHUNKS];
    uint32_t chunks_count;
    uint8_t hash_bits;
    uint32_t opens_max;
    uint32_t warm_sets;
    uint64_t slow_request_ns;
    uint32_t crossings_max;
    uint32_t settles_later_max, listing_step;
    struct key_ring *keys; /* NULL: none; tickets then have this place */
    uint8_t ticket[TICKET_BYTES_MAX];
    char slow_line[256]; /* the last one */
    uint32_t slow_line_count;
    char other_line[256]; /* the last one that is not about a slow call */
    uint32_t other_line_count;
    struct session_counters clients[2 * BENCH_SESSIONS];
    uint8_t bulk[BENCH_BULK_BYTES];
};

struct bench_options {
    uint64_t seed;
    uint32_t cold_per_mille; /* how often a read meets PENDING */
    uint32_t warm_sets;      /* see kv_options */
    uint8_t hash_bits;
    uint32_t opens_max; /* 0: 256 */
    uint64_t slow_request_ns;
    struct key_ring *keys; /* the caller's; or NULL */
    uint32_t slot_count;   /* slots from this one on are another group's; 0: all are this one's */
    uint32_t slot_first;   /* likewise those before this one */
    uint32_t crossings_max;
    uint32_t settles_later_max, listing_step;
};

/* An empty group, with all sessions attached. Fails the test on any error. */
struct meta_bench *bench_new(const struct bench_options *options);
void bench_free(struct meta_bench *bench);
/* The group dies and starts again on what is left; its sessions are known and not attached. */
void bench_restart(struct meta_bench *bench, bool power);
/* As group_open, on what a group has left that was abandoned. */
MUST_CHECK int bench_open(struct meta_bench *bench, char problem[256]);
/* What the stop answers; the group is to be started again, or freed with the bench. */
int bench_stop(struct meta_bench *bench);
void bench_stop_and_start(struct meta_bench *bench);
void bench_attach(struct meta_bench *bench, uint32_t session);
/* Tells the group the next number of the list of the ended, which names this session; 0: nobody. */
MUST_CHECK int bench_ended(struct meta_bench *bench, uint64_t session);
/* Likewise, and the group has closed what it had open. */
void bench_evict(struct meta_bench *bench, uint64_t session);
bool bench_is_known(struct meta_bench *bench, uint64_t session);
/* What the manager would give a session over a connection of that identity, by the bench's keys;
 * until the next one. */
struct bytes bench_ticket(struct meta_bench *bench, const struct bench_session *who,
                          const struct identity *identity);

/* Prepares a call of the session; a mutation gets the next sequence. */
void bench_prepare(struct meta_bench *bench, uint32_t session, uint16_t opcode, struct call *call);
/* Posts it and runs the world until it is answered; answers the result. */
int bench_run(struct meta_bench *bench, struct call *call);
/* Posts it; bench_finish runs the world until it is answered. */
void bench_post(struct meta_bench *bench, struct call *call);
int bench_finish(struct meta_bench *bench, struct call *call);
bool bench_is_answered(const struct call *call);
/* Runs the world a little. */
void bench_turn(struct meta_bench *bench);
/* Runs the world for so long. */
void bench_advance(struct meta_bench *bench, uint64_t ns);

/* It is dead no more, and answers what has come meanwhile. */
void bench_ost_returns(struct bench_ost *ost);
bool bench_is_fenced(const struct bench_ost *ost, uint64_t session);
/* Answers the oldest sync that the OST holds; false: it holds none. */
bool bench_sync_answer(struct bench_ost *ost);
/* Likewise a delete, which is done only then. */
bool bench_delete_answer(struct bench_ost *ost);
struct bench_chunks *bench_chunks_find(struct meta_bench *bench, uint64_t ino, uint32_t generation);
/* A write to the chunks of the capability's file that ends at `end`. */
void bench_chunk_write(struct meta_bench *bench, const struct capability *capability, uint64_t end);
/* clients: the bench's memory, until the next time. */
void bench_stats(struct meta_bench *bench, struct group_stats *ret_stats);
