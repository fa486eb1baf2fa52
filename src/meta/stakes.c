/* The contract is in stakes.h. */
#include "meta/stakes.h"
#include "meta/group_internal.h"
#include "meta/promise.h"
#include <assert.h>

void stakes_init(struct stakes *stakes) {
    stakes->count = 0;
    for (size_t i = 0; i < STAKE_BUCKETS; i++) {
        list_init(&stakes->buckets[i]);
    }
}

/* Those that hold an inode's parent lie with those that hold all of it. Apart from these lie those
 * that hold a name within, as each use of a directory asks for its inode: they may be very many. */
static struct list *bucket_of(struct stakes *stakes, struct stake_what what) {
    uint64_t kind = what.kind == STAKE_MOVED ? STAKE_INODE : what.kind;
    uint64_t mixed =
        (what.ino ^ what.hash) * UINT64_C(0x9e3779b97f4a7c15) + kind * UINT64_C(0xd6e8feb86659fd93);

    return &stakes->buckets[(mixed >> 32) % STAKE_BUCKETS];
}

void stakes_add(struct stakes *stakes, struct stake *stake) {
    list_push_back(bucket_of(stakes, stake->what), &stake->node);
    stakes->count++;
}

void stakes_remove(struct stakes *stakes, struct stake *stake) {
    assert(list_contains(&stake->node) && stakes->count > 0);
    list_remove(&stake->node);
    stakes->count--;
}

/* Two that hold the inode's parent, or all of the inode, are in each other's way. */
static bool is_of(const struct stake *stake, struct stake_what what) {
    bool same_kind = stake->what.kind == what.kind ||
                     (stake->what.kind == STAKE_MOVED && what.kind == STAKE_INODE) ||
                     (stake->what.kind == STAKE_INODE && what.kind == STAKE_MOVED);

    return same_kind && stake->what.ino == what.ino && stake->what.hash == what.hash;
}

static bool passes(const struct transaction *transaction, const struct stake *stake,
                   struct stake_what what, enum stake_use use) {
    if (stake->owner == transaction->crossing || stake->owner == transaction->promise) {
        return true;
    }
    /* What goes on with an inode goes on while its parent changes. */
    if (stake->what.kind == STAKE_MOVED && what.kind == STAKE_INODE && use == STAKE_READ) {
        return true;
    }
    return stake->claim && use == STAKE_READ;
}

static bool is_about_sizes(const struct transaction *transaction) {
    const struct call *call = transaction->call;

    return !transaction->promise &&
           (!call || call->header.opcode == OP_REOPEN || call->header.opcode == OP_SETTLE);
}

int stakes_meet(struct transaction *transaction, struct stake_what what, enum stake_use use) {
    struct stakes *stakes = &transaction->group->stakes;

    if (stakes->count == 0 || is_about_sizes(transaction)) {
        return 0;
    }
    const struct list *bucket = bucket_of(stakes, what);
    for (struct list_node *node = list_first(bucket); node; node = list_next(bucket, node)) {
        const struct stake *stake = CONTAINER_OF(node, struct stake, node);

        stakes->looks++;
        if (!is_of(stake, what) || passes(transaction, stake, what, use)) {
            continue;
        }
        if (!stake->claim) {
            promise_is_waited_for(transaction->group, stake->owner);
        }
        uint16_t opcode = transaction->call->header.opcode;
        if (opcode == OP_CROSS_LOOK || opcode == OP_CROSS_PREPARE) {
            return -ERR_CHANGED;
        }
        transaction->met_stake = true;
        return transaction_stall(transaction);
    }
    return 0;
}

struct promise *stakes_promise_of(struct stakes *stakes, struct ino ino) {
    const struct stake_what what = stake_of(STAKE_INODE, ino);
    const struct list *bucket = bucket_of(stakes, what);

    for (struct list_node *node = list_first(bucket); node; node = list_next(bucket, node)) {
        const struct stake *stake = CONTAINER_OF(node, struct stake, node);

        stakes->looks++;
        if (!stake->claim && stake->what.kind == what.kind && stake->what.ino == what.ino) {
            return (struct promise *)(uintptr_t)stake->owner;
        }
    }
    return NULL;
}

static void touched_add(struct transaction *transaction, struct stake_what what) {
    for (uint32_t i = 0; i < transaction->touched_count; i++) {
        const struct stake_what *known = &transaction->touched[i];

        if (known->kind == what.kind && known->ino == what.ino && known->hash == what.hash) {
            return;
        }
    }
    if (transaction->touched_count < TOUCHED_MAX) {
        transaction->touched[transaction->touched_count++] = what;
    }
}

int stakes_touch(struct transaction *transaction, const struct kv_key *key) {
    const struct group *group = transaction->group;
    struct stake_what what;

    if (slots_has_all(&group->slots) && group->stakes.count == 0) {
        return 0;
    }
    struct kv_key_fields fields = kv_key_split(key);
    if (fields.type == ROW_DENTRY && fields.space == KV_SPACE_SLOT) {
        what = stake_name((struct ino){fields.id}, fields.index);
    } else if (fields.type == ROW_INODE && fields.space == KV_SPACE_SLOT) {
        what = stake_of(STAKE_INODE, (struct ino){fields.id});
    } else if (fields.type == ROW_COUNT) {
        what = stake_of(STAKE_COUNT, (struct ino){0});
    } else {
        return 0;
    }
    int r = stakes_meet(transaction, what, STAKE_CHANGE);
    if (r == 0) {
        touched_add(transaction, what);
    }
    return r;
}
