/* One metadata group on an outside in memory, for inputs: a storage target each answers what the
 * input says, and so does another group, which has the upper half of the slots.
 *
 * Thread: one.  Memory: all of a life's goes with group_stage_end. */
#pragma once
#include "answers.h"
#include "kv/kv_mem.h"
#include "layout/cluster_map.h"
#include "meta/group.h"
#include "rpc/worker.h"

struct memory_env;

enum { STAGE_SPACE_BYTES = 65536, STAGE_OTHER_SLOTS = 32768 };
#define STAGE_MDT ((struct target_id){1})
#define STAGE_OTHER_LOG ((struct log_id){2})

struct group_stage {
    struct memory_env *world;
    struct kv_mem_store *store;
    struct worker worker;
    struct log_table *logs;
    struct rpc *rpc;
    struct group *group;   /* NULL: none is open */
    struct answers others; /* from the start on: -ERR_TIMED_OUT */
    uint64_t sequence;     /* of the last mutation */
    char problem[256];
};
extern struct group_stage group_stage; /* between begin and end */

void group_stage_begin(void);
void group_stage_end(void);
/* As group_open. */
MUST_CHECK int group_stage_start(void);
/* The process dies, and what it had under way with it. */
void group_stage_die(void);
/* An engine on the group's rows, while no group is open; it dies at once. */
struct kv *group_stage_engine(void);
void group_stage_engine_die(struct kv *kv);
/* Time passes, and a tick. */
void group_stage_turn(uint64_t ns);

/* One that is asked of the group, as the inlet hands it over, by session 1 of incarnation 7. */
struct asked {
    struct call call;
    uint32_t scratch[WIRE_GROUPS_MAX];
    uint8_t *space; /* of bulk_in */
    bool answered;
};
void asked_begin(struct asked *one, uint16_t opcode);
void asked_post(struct asked *one);
/* Asserts that it is answered in its time; answers its result. */
int asked_end(struct asked *one);
/* One from its begin to its end; ret_reply may be NULL. */
int group_stage_run(uint16_t opcode, const union request_body *body, union reply_body *ret_reply);
