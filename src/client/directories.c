/* Directories that this client has changed. */
#include "client/directories.h"
#include "base/bug.h"

static struct directory_slot *slot_of(struct directories *directories, struct ino ino) {
    return &directories->slots[(ino.value * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

_Static_assert(DIRECTORY_SLOTS == 1 << (64 - 54), "the hash has a slot");

static bool slot_take(struct directory_slot *slot) {
    return !atomic_exchange_explicit(&slot->taken, true, memory_order_acquire);
}

static void slot_give(struct directory_slot *slot) {
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

static bool slot_is_of(const struct directory_slot *slot, struct ino ino) {
    return slot->attributes.ino.value == ino.value;
}

struct directory_ticket directories_ticket(struct directories *directories, struct ino ino,
                                           uint64_t now_ns) {
    return (struct directory_ticket){now_ns, atomic_load(&slot_of(directories, ino)->changes)};
}

void directories_changed(struct directories *directories, struct ino ino) {
    atomic_fetch_add(&slot_of(directories, ino)->changes, 1);
}

/* It becomes that directory's. What was told of another one goes: older answers about that must not
 * come back in its place. */
static uint64_t slot_make_way(struct directory_slot *slot, struct ino ino, uint64_t changes) {
    if (!slot_is_of(slot, ino) && slot->attributes.ino.value != 0) {
        changes = 1 + atomic_fetch_add(&slot->changes, 1);
    }
    if (!slot_is_of(slot, ino)) {
        slot->attributes = (struct attributes){.ino = ino};
        slot->asked_ns = 0;
        slot->changes_seen = changes - 1;
    }
    return changes;
}

void directories_see(struct directories *directories, struct ino ino,
                     const struct directory_ticket *ticket, const struct attributes *attributes) {
    struct directory_slot *slot = slot_of(directories, ino);

    if (attributes->ino.value != ino.value || !slot_take(slot)) {
        directories_changed(directories, ino);
        return;
    }
    uint64_t before = atomic_load(&slot->changes);
    uint64_t changes = slot_make_way(slot, ino, before);

    if (attributes->epoch > slot->attributes.epoch || BUG(LATE_PARENT)) {
        slot->attributes = *attributes;
        slot->asked_ns = MAX(slot->asked_ns, ticket->asked_ns);
        slot->changes_seen = ticket->changes == before ? changes : slot->changes_seen;
    }
    slot_give(slot);
}

int64_t directories_find(struct directories *directories, struct ino ino, uint64_t now_ns,
                         uint64_t age_max_ns, struct attributes *ret_attributes) {
    struct directory_slot *slot = slot_of(directories, ino);

    if (age_max_ns == 0 || !slot_take(slot)) {
        return -1;
    }
    uint64_t age_ns = now_ns > slot->asked_ns ? now_ns - slot->asked_ns : 0;
    bool found = age_ns < age_max_ns && slot_is_of(slot, ino) &&
                 slot->changes_seen == atomic_load(&slot->changes);

    if (found) {
        *ret_attributes = slot->attributes;
    }
    slot_give(slot);
    return found ? (int64_t)age_ns : -1;
}

void directories_asked(struct directories *directories, uint16_t opcode, struct call *call,
                       uint64_t now_ns, struct directory_ticket ret_tickets[WIRE_PARENTS_MAX]) {
    struct wire_parent parents[WIRE_PARENTS_MAX];
    uint32_t count = wire_parents(opcode, &call->request, &call->reply, parents);

    for (uint32_t i = 0; i < count; i++) {
        ret_tickets[i] = directories_ticket(directories, parents[i].ino, now_ns);
    }
}

/* What the call is about may be a directory itself. */
static void itself_changed(struct directories *directories, const struct call *call) {
    switch (call->header.opcode) {
    case OP_SETATTR:
        directories_changed(directories, call->request.setattr.ino);
        break;
    case OP_LAYOUT_SET:
        directories_changed(directories, call->request.layout_set.ino);
        break;
    case OP_RMDIR:
        directories_changed(directories, call->reply.rmdir.ino);
        break;
    case OP_RENAME:
        directories_changed(directories, call->reply.rename.ino);
        directories_changed(directories, call->reply.rename.replaced);
        break;
    default:
        break;
    }
}

void directories_answered(struct directories *directories, struct call *call, bool is_over,
                          const struct directory_ticket tickets[WIRE_PARENTS_MAX]) {
    struct wire_parent parents[WIRE_PARENTS_MAX];
    uint32_t count = wire_parents(call->header.opcode, &call->request, &call->reply, parents);

    for (uint32_t i = 0; i < count; i++) {
        if (call->result == 0 && !is_over) {
            directories_see(directories, parents[i].ino, &tickets[i], parents[i].attributes);
        } else {
            directories_changed(directories, parents[i].ino);
        }
    }
    itself_changed(directories, call);
}
