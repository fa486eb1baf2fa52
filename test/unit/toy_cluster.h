/* Servers as small as a client's test needs them: a manager, a group with files in an array, and
 * storage targets with chunks in an array. They do what the messages say, and what a script says
 * instead: hold what arrives, answer with an error, forget their sessions, damage data.
 *
 * All runs on the calling thread: a call that is not held is answered before call_start returns. */
#pragma once
#include "env/env_sim.h"
#include "layout/cluster_map.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"

enum {
    TOY_MANAGER = 1,
    TOY_MDT = 2,
    TOY_SECOND_MDT = 3,
    TOY_SECOND_SLOT = 40000, /* that it has, and all behind */
    TOY_OST = 10,            /* and the following */
    TOY_OSTS = 3,
    TOY_FILES = 32,
    TOY_CHUNKS = 256,
    TOY_CHUNK_BYTES = 65536,
    TOY_HELD = 512,
    TOY_KEPT = 16,
    TOY_SESSION = 77
};

/* An answer that was lost. */
struct toy_kept {
    uint64_t sequence;
    int result;
    union reply_body reply;
};

/* One server. seen[opcode] counts what it has answered. */
struct toy_server {
    struct actor actor; /* first */
    struct toy_cluster *cluster;
    struct target_id id;
    int (*handle)(struct toy_server *server, struct call *call);
    bool hold;         /* what arrives waits to be released */
    bool hold_answers; /* is handled, but the answer waits to be released */
    int held_results[TOY_HELD];
    bool held_handled[TOY_HELD];
    struct call *held[TOY_HELD];
    uint32_t held_count;
    uint32_t held_count_max;
    uint16_t fail_opcode; /* so many of these get fail_result; 0: none */
    uint32_t fail_count;
    int fail_result;
    uint16_t
        lose_opcode; /* so many of these are done, and end with -ERR_AWAY; 0: none. A copy gets */
    uint32_t lose_count; /* the answer that the first one would have got */
    int lose_result;     /* instead of -ERR_AWAY */
    struct toy_kept kept[TOY_KEPT];
    uint32_t kept_count;
    uint8_t ticket_least; /* attachments with a ticket by an older key are refused */
    bool attached;
    int detached_result; /* what calls get as long as it is not attached */
    uint64_t term;
    uint64_t life;     /* of that term */
    uint64_t position; /* of the newest answer: each counts as a record */
    uint16_t window;   /* that it grants; 0: RPC_WINDOW */
    uint64_t survived; /* what the next attachment says of the term before */
    uint32_t seen[OPCODE_COUNT];
    uint64_t sequences[OPCODE_COUNT]; /* of the last one */
    uint64_t traces[OPCODE_COUNT];    /* likewise */
};

struct toy_file {
    struct attributes attributes; /* ino 0: free */
    struct layout layout;
    uint64_t parent;
    char name[32];
    uint8_t data[8192]; /* while inline */
    uint32_t truncate_seq;
    uint64_t truncate_size;
    uint32_t other_chunks; /* that it has had before: their generation is 1, the next one's 2 */
    uint32_t read_opens;
    uint32_t write_opens;
    uint32_t settled;    /* settles that told something */
    int64_t blocks;      /* sum of what they told */
    uint8_t blocks_told; /* by the last one */
};

struct toy_chunk {
    struct ino ino; /* 0: free */
    uint64_t chunk;
    uint32_t truncate_seq;
    uint32_t length;
    struct target_id target;
    uint8_t data[TOY_CHUNK_BYTES];
};

struct toy_cluster {
    uint64_t session_count; /* ever */
    struct sim *sim;
    struct env *env;
    struct worker worker;
    struct log_table *logs;
    struct rpc *rpc;
    struct cluster_map map;
    struct toy_server manager;
    struct toy_server mdt;
    struct toy_server second_mdt; /* see toy_second_mdt_add */
    struct toy_server osts[TOY_OSTS];
    struct toy_file files[TOY_FILES];
    struct toy_chunk *chunks;
    uint64_t next_counter;
    uint64_t epoch;
    uint32_t damage; /* so many reads of chunks are damaged */
    bool no_blocks;  /* targets of an older version, which tell no counts */
    bool no_layouts; /* a metadata target of an older version, which tells none with generations */
    uint32_t key_number;
    uint64_t promised_bytes; /* of all chunks */
    uint32_t key_turns;      /* so many requests for data meet a key that has turned since */
    bool inline_synced;      /* conversions must sync first */
    uint64_t starts;         /* the manager's number of them */
    uint16_t starts_row_bytes, starts_more_bytes; /* as it tells; behind the row, no zeros */
    uint8_t ticket_key; /* by which it gives tickets, which name it; 0: it gives none */
};

void toy_cluster_init(struct toy_cluster *cluster);
/* Another group, in a newer map; files that are made from now on are in its slots. */
void toy_second_mdt_add(struct toy_cluster *cluster);
void toy_cluster_deinit(struct toy_cluster *cluster);
/* Lets simulated time pass. */
void toy_cluster_pass(struct toy_cluster *cluster, uint64_t ns);
/* Lets go what is held: count of them, the oldest first; all that is there with UINT32_MAX. */
void toy_release(struct toy_server *server, uint32_t count);
struct toy_file *toy_file_find(struct toy_cluster *cluster, uint64_t ino);
/* What the chunks hold; size bytes, zeros where there is none. */
void toy_chunks_read(struct toy_cluster *cluster, uint64_t ino, uint64_t offset, void *data,
                     size_t size);
/* Calls that all storage targets have seen. */
uint32_t toy_osts_seen(const struct toy_cluster *cluster, uint16_t opcode);
