/* A manager against targets that only count what they are told, and clients that ask it. */
#pragma once
#include "unit.h"
#include "env/env_sim.h"
#include "kv/kv_mem.h"
#include "keys/ticket.h"
#include "manager/manager.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"
#include <stdlib.h>
#include <string.h>

enum { MANAGER = 1, MDT = 2, OST = 10, TARGETS = 3, HELD = 8, IDS = 65536 };

struct target {
    struct actor actor;                          /* first */
    uint32_t told;                               /* messages of the list of the ended, */
    uint32_t heard;                              /* and ends that these have told first */
    uint64_t number, lowest, everywhere, newest; /* of that list */
    bool ended[IDS];
    uint32_t wholes;  /* messages of bits */
    uint64_t session; /* of the last one */
    int result;
    uint32_t fails_of; /* each so-many-th message fails; 0: none */
    bool hold;
    struct call *held[HELD];
    uint32_t held_count;
    /* A group: what it gives when it is asked for slots, under which number it was asked last, how
     * often; what it was told to have last, and how much. */
    struct wire_slots gives, had;
    uint16_t gives_row_bytes, gives_more_bytes; /* as it tells; behind the row, no zeros */
    uint32_t unopened;                          /* that it tells of */
    bool is_full;                               /* it answers */
    uint32_t full_told;                         /* groups, of whom it was told last that they are */
    uint64_t asked_under;
    uint32_t asked_count, had_count;
    bool holds_give; /* what asks for slots stays without an answer: */
    struct call *give;
};

struct bench {
    struct sim *sim;
    struct sim_process *process;
    struct env *env;
    struct worker worker;
    struct log_table *logs;
    struct rpc *rpc; /* the manager's */
    struct rpc *client_rpc;
    struct actor origin;
    struct kv_mem_store *store;
    struct prng prng;
    struct cluster_map map;
    struct manager *manager;
    struct key_ring *keys;
    struct target targets[TARGETS];
    struct target joiner;  /* a group that comes later */
    struct target second;  /* and one behind that */
    uint32_t sessions_max; /* 0: 8 */
    uint64_t ring_bytes;   /* 0: 128 KiB */
    uint64_t place;        /* of its node's directory */
    uint32_t map_waits_max;
    uint64_t join_pause_ns;
    uint32_t joins_at_once;
    bool has_no_room;              /* for tickets, in what ask_as asks */
    const struct rebuilt *rebuilt; /* of which the next manager is made */
    uint32_t lines;                /* that the manager has said */
    char line[256];                /* the last one */
};

/* A call of a client. */
struct asked {
    struct call call; /* first */
    uint8_t ticket[TICKET_BYTES_MAX];
    bool done;
};

bool is_ended(const struct target *target, uint64_t session);
void target_release(struct target *target);
void manager_begins(struct bench *bench);
int setup(void **state);
/* The map has so many pool versions when the manager begins: by turns of the first target and of
 * both, and last of both; its ring is as a daemon has it. */
int setup_with_pools(void **state, uint32_t count);
int setup_with_keys(void **state);
int setup_with_newer_key(void **state); /* a newer one before that of setup_with_keys */
void note_flag(void *context);
bool is_set(void *context);
/* Lets time pass, with ticks. */
void pass(struct bench *bench, uint64_t ns);
int manager_ends(struct bench *bench);
int teardown(void **state);
void asked_done(struct call *call);
/* Its caller waits for so long; 0: without end. */
void start_for(struct bench *bench, struct asked *asked, uint64_t patience_ns, uint16_t opcode,
               union request_body request);
void start(struct bench *bench, struct asked *asked, uint16_t opcode, union request_body request);
union request_body end_of(uint64_t session, uint64_t incarnation);
union request_body begin_of(uint32_t node, uint64_t incarnation, const char *origin);
/* address: NULL where the node is not ready yet. */
union request_body node_join_of(uint64_t key, uint32_t target_count, const char *address);
int ask(struct bench *bench, struct asked *asked, uint16_t opcode, union request_body request);
/* With room for a ticket, over a connection of this identity; NULL: a member's. */
int ask_as(struct bench *bench, struct asked *asked, const struct identity *identity,
           struct call call);
uint64_t begin(struct bench *bench, uint32_t node, uint64_t incarnation, const char *origin);
int renew(struct bench *bench, uint64_t session, uint64_t incarnation);
/* How many ends the group has heard of. */
uint32_t told(const struct bench *bench);
/* The group of a target that has joined answers from now on. */
void joiner_begins(struct bench *bench, struct target *joiner, uint32_t target);
void manager_dies(struct bench *bench, bool power);
enum manager_end { MANAGER_STOPS, MANAGER_IS_KILLED, MANAGER_LOSES_POWER, MANAGER_ENDS };
/* It ends in that way, and begins again. */
void manager_again(struct bench *bench, enum manager_end end);
/* In steps so small that nothing gets done beside what is waited for. */
void finish(struct bench *bench, const struct asked *asked);

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
