/* Members: the sessions that the manager knows, by number.
 *
 * Thread: the manager's.  Memory: count_max of them, taken by members_init. */
#pragma once
#include "base/list.h"
#include "manager/manager_format.h"
#include "rpc/call.h"

struct manager;

struct member {
    struct member *next;   /* of the bucket, or of the free ones */
    struct list_node node; /* in all */
    struct manager *manager;
    uint64_t id;
    uint32_t node_id;
    uint64_t incarnation;
    uint64_t origin[2];
    enum member_state state;
    uint64_t renewed_ns;
    uint64_t position; /* of the record that says so */

    /* Its eviction: the targets, one after the other. */
    uint32_t target; /* the next one, as an index into the order of eviction */
    bool calling;
    bool resting;       /* a target could not be reached: again at the next tick */
    struct list enders; /* calls that asked for its end */
    struct call call;
};

struct members {
    struct member *memory;
    struct member **buckets;
    struct member *free;
    struct list all;
    uint32_t bucket_mask;
    uint32_t count;
    uint32_t count_max;
    uint32_t used; /* of memory, ever */
};

MUST_CHECK int members_init(struct members *members, uint32_t count_max);
void members_deinit(struct members *members);
struct member *members_find(const struct members *members, uint64_t id);
/* NULL when there are count_max. */
struct member *members_add(struct members *members, uint64_t id);
void members_remove(struct members *members, struct member *member);
