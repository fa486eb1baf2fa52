/* Lists of calls, and of the mutations among them by their numbers. */
#include "meta/parking.h"

static struct list *bucket_of(struct parking *parking, const struct call *call) {
    uint64_t mixed =
        (call->header.sequence ^ call->header.session.value << 7) * UINT64_C(0x9e3779b97f4a7c15);

    return &parking->mutations[(mixed >> 32) % PARKING_BUCKETS];
}

void parking_init(struct parking *parking) {
    for (int i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        list_init(&parking->rows[i]);
        list_init(&parking->group[i]);
    }
    for (int i = 0; i < PARKING_BUCKETS; i++) {
        list_init(&parking->mutations[i]);
    }
}

void parking_put(struct parking *parking, struct list *list, struct call *call) {
    assert(!list_contains(&call->server_node));
    list_push_back(list, &call->server_node);
    parking->count++;
    if (call->header.sequence != 0) {
        list_push_back(bucket_of(parking, call), &call->server_number_node);
    }
}

/* It is in no list any more. */
static void taken(struct parking *parking, struct call *call) {
    assert(parking->count > 0);
    parking->count--;
    if (call->header.sequence != 0) {
        assert(list_contains(&call->server_number_node));
        list_remove(&call->server_number_node);
    }
}

struct call *parking_take(struct parking *parking, struct list *list) {
    struct list_node *node = list_pop_front(list);
    struct call *call = node ? CONTAINER_OF(node, struct call, server_node) : NULL;

    if (call) {
        taken(parking, call);
    }
    return call;
}

static struct call *copy_find(struct parking *parking, const struct call *call) {
    const struct list *bucket = bucket_of(parking, call);

    for (struct list_node *node = list_first(bucket); node; node = list_next(bucket, node)) {
        struct call *other = CONTAINER_OF(node, struct call, server_number_node);

        parking->looks++;
        if (other->header.sequence == call->header.sequence &&
            other->header.session.value == call->header.session.value &&
            other->header.message_class == call->header.message_class) {
            return other;
        }
    }
    return NULL;
}

struct call *parking_take_copy(struct parking *parking, const struct call *call) {
    struct call *other = call->header.sequence != 0 ? copy_find(parking, call) : NULL;

    if (other) {
        list_remove(&other->server_node);
        taken(parking, other);
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
