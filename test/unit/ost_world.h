/* One OST over a kv in memory and the outside in memory, and calls to it, for its tests. */
#pragma once
#include "keys/ticket.h"
#include "kv/kv_mem.h"
#include "memory_env.h"
#include "rpc/call.h"
#include "rpc/worker.h"
#include "store/ost.h"

enum { OST_CALLS_MAX = 24, OST_CALL_BYTES_MAX = 192 * 1024, OST_SESSION = 7, OST_INCARNATION = 3 };

/* A call with its memory. user is the test's. */
struct ost_call {
    struct call call;
    struct ost_world *world;
    uint8_t *memory; /* aligned; data lies at memory + shift */
    uint32_t shift;
    uint32_t checksums[OST_CALL_BYTES_MAX / BLOCK_BYTES + 2];
    bool busy;
    bool answered;
    uint64_t answer_number; /* in the order of answers */
    uint32_t user[8];
    void *note;
};

struct ost_world {
    struct prng prng;
    struct memory_env *env;
    struct kv_mem_store *store;
    struct worker worker;
    struct ost *ost;
    struct ost_options options;
    struct ost_call calls[OST_CALLS_MAX];
    uint64_t next_sequence;
    uint64_t list_number; /* of the ended sessions */
    uint64_t answer_number;
    uint8_t ticket[TICKET_BYTES_MAX];
    uint32_t log_lines;
    char last_line[256];
    void (*answered)(struct ost_world *world, struct ost_call *call);
    void *model;
};

/* Defaults for a small target; the test may change options before the first open. */
struct ost_world *ost_world_new(uint64_t seed);
void ost_world_free(struct ost_world *world);
MUST_CHECK int ost_world_open(struct ost_world *world, char problem[256]);
/* Kill or power cut: calls in flight are forgotten. */
void ost_world_crash(struct ost_world *world, bool power);
/* Some time passes: completions, a tick. */
void ost_world_turn(struct ost_world *world);
void ost_world_stop(struct ost_world *world);

/* An idle call, zeroed but for header and memory; NULL when all are busy. */
struct ost_call *ost_call_get(struct ost_world *world, uint16_t opcode);
/* Posts it; in flight until answered. */
void ost_call_start(struct ost_call *call);
/* Starts it, turns until it is answered, and answers its result. */
int ost_call_run(struct ost_call *call);

/* Fills capability, place, data and checksums. seed 0: the data is there already. */
struct ost_place {
    struct ino ino;
    uint32_t generation;
    uint64_t chunk;
    uint32_t chunk_bytes;
    uint32_t offset;
    uint32_t size;
    uint32_t truncate_seq;
    uint64_t truncate_size;
};
void ost_call_write(struct ost_call *call, const struct ost_place *place, const uint8_t *data);
void ost_call_read(struct ost_call *call, const struct ost_place *place);
/* The bytes of a read that was answered, checked against their checksums. */
const uint8_t *ost_call_data(const struct ost_call *call);
/* One write or read alone; the read's bytes are compared when want is not NULL. */
int ost_world_write(struct ost_world *world, const struct ost_place *place, const uint8_t *data);
int ost_world_read(struct ost_world *world, const struct ost_place *place, const void *want);
/* What the manager would give by the options' keys; until the next one. */
/* It is told the next number of the list of the ended, which names this session; 0: none. */
MUST_CHECK int ost_world_ended(struct ost_world *world, uint64_t session);
struct bytes ost_world_ticket(struct ost_world *world, uint64_t session,
                              const struct identity *identity);
/* Attaches the session; asserts that it works. */
void ost_world_attach(struct ost_world *world);
int ost_world_sync(struct ost_world *world);
/* Deletes all chunks of the file and syncs. */
void ost_world_delete(struct ost_world *world, struct ino ino, uint32_t generation);
/* Where block `index` of the only chunk lies. */
uint64_t ost_world_block(struct ost_world *world, uint32_t index);
/* Reads all rows and fails the test unless every block is used exactly as often as the bitmap
 * says, and heads count right. Answers how many blocks chunks use. */
uint64_t ost_world_fsck(struct ost_world *world);
