/* Lists of calls, and marks that tell quickly that no copy of a mutation is among them. */
#include "meta/parking.h"

static size_t mark_of(const struct call *call) {
    uint64_t mixed =
        (call->header.sequence ^ call->header.session.value << 7) * UINT64_C(0x9e3779b97f4a7c15);

    static_assert(PARKING_MARKS == 1 << (64 - 54), "marks are found by the upper bits");
    return (size_t)(mixed >> 54);
}

void parking_init(struct parking *parking) {
    for (int i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        list_init(&parking->rows[i]);
        list_init(&parking->group[i]);
    }
}

void parking_put(struct parking *parking, struct list *list, struct call *call) {
    assert(!list_contains(&call->server_node));
    list_push_back(list, &call->server_node);
    parking->count++;
    parking->marks[mark_of(call)]++;
}

struct call *parking_take(struct parking *parking, struct list *list) {
    struct list_node *node = list_pop_front(list);
    struct call *call = node ? CONTAINER_OF(node, struct call, server_node) : NULL;

    if (call) {
        assert(parking->count > 0 && parking->marks[mark_of(call)] > 0);
        parking->count--;
        parking->marks[mark_of(call)]--;
    }
    return call;
}

static struct call *list_find(const struct list *list, const struct call *call) {
    for (struct list_node *node = list_first(list); node; node = list_next(list, node)) {
        struct call *other = CONTAINER_OF(node, struct call, server_node);

        if (other->header.sequence == call->header.sequence &&
            other->header.session.value == call->header.session.value) {
            return other;
        }
    }
    return NULL;
}

struct call *parking_take_copy(struct parking *parking, const struct call *call) {
    uint8_t message_class = call->header.message_class;

    if (parking->count == 0 || call->header.sequence == 0 || parking->marks[mark_of(call)] == 0) {
        return NULL;
    }
    struct call *other = list_find(&parking->rows[message_class], call);

    other = other ? other : list_find(&parking->group[message_class], call);
    if (other) {
        list_remove(&other->server_node);
        parking->count--;
        parking->marks[mark_of(other)]--;
    }
    return other;
}

void parking_put_back(struct list *front, struct list *list) {
    while (!list_is_empty(front)) {
        struct list_node *last = front->head.previous;

        list_remove(last);
        list_push_front(list, last);
    }
}
