/* Intrusive lists: a doubly linked ring (list) and a singly linked queue (queue). No memory of
 * their own; a node is in one list at a time. Not safe across threads. */
#pragma once
#include "base/types.h"

struct list_node {
    struct list_node *next;
    struct list_node *previous;
};

/* An empty ring points at itself. */
struct list {
    struct list_node head;
};

static inline void list_init(struct list *list) {
    list->head.next = &list->head;
    list->head.previous = &list->head;
}

static inline bool list_is_empty(const struct list *list) {
    return list->head.next == &list->head;
}

static inline void list_insert_between(struct list_node *node, struct list_node *previous,
                                       struct list_node *next) {
    node->previous = previous;
    node->next = next;
    previous->next = node;
    next->previous = node;
}

static inline void list_push_back(struct list *list, struct list_node *node) {
    list_insert_between(node, list->head.previous, &list->head);
}

static inline void list_push_front(struct list *list, struct list_node *node) {
    list_insert_between(node, &list->head, list->head.next);
}

/* Leaves the node outside any list; removing such a node again does nothing. */
static inline void list_remove(struct list_node *node) {
    if (node->next) {
        node->next->previous = node->previous;
        node->previous->next = node->next;
        node->next = NULL;
        node->previous = NULL;
    }
}

static inline struct list_node *list_first(const struct list *list) {
    return list_is_empty(list) ? NULL : list->head.next;
}

static inline struct list_node *list_pop_front(struct list *list) {
    struct list_node *node = list_first(list);

    if (node) {
        list_remove(node);
    }
    return node;
}

static inline struct list_node *list_next(const struct list *list, const struct list_node *node) {
    return node->next == &list->head ? NULL : node->next;
}

/* Walks it. */
static inline size_t list_count(const struct list *list) {
    size_t count = 0;

    for (struct list_node *node = list_first(list); node; node = list_next(list, node)) {
        count++;
    }
    return count;
}

/* Whether the node is in some list; a zeroed node is in none. */
static inline bool list_contains(const struct list_node *node) {
    return node->next != NULL;
}

struct queue_node {
    struct queue_node *next;
};

struct queue {
    struct queue_node *first;
    struct queue_node *last;
};

static inline void queue_push(struct queue *queue, struct queue_node *node) {
    node->next = NULL;
    if (queue->last) {
        queue->last->next = node;
    } else {
        queue->first = node;
    }
    queue->last = node;
}

static inline struct queue_node *queue_pop(struct queue *queue) {
    struct queue_node *node = queue->first;

    if (node) {
        queue->first = node->next;
        if (!queue->first) {
            queue->last = NULL;
        }
        node->next = NULL;
    }
    return node;
}
