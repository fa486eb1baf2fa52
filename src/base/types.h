/* Words that every level shares: ids as one-member structs, byte views, attributes of functions.
 *
 * An id is a struct so that the compiler finds a swapped pair; it is passed by value. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))
/* In front of a callback whose parameters a library has chosen. */
#define FOREIGN_SIGNATURE
#define PRINTF_LIKE(format_index, first_index)                                                     \
    __attribute__((format(printf, format_index, first_index)))
#define _cleanup_(function) __attribute__((cleanup(function)))
#define TAKE_PTR(pointer)                                                                          \
    __extension__({                                                                                \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member)                                                        \
    __extension__({                                                                                \
        char *member_ = (char *)(pointer);                                                         \
        (type *)(void *)(member_ - offsetof(type, member));                                        \
    })
/* Each use names its copies anew, so that they nest. */
#define UNIQUE_PASTE(name, number) name##number
#define UNIQUE(name, number) UNIQUE_PASTE(name, number)
#define CHOOSE(a, b, order, number)                                                                \
    __extension__({                                                                                \
        __typeof__(a) UNIQUE(chosen_a_, number) = (a);                                             \
        __typeof__(b) UNIQUE(chosen_b_, number) = (b);                                             \
        bool UNIQUE(chosen_, number) = UNIQUE(chosen_a_, number) order UNIQUE(chosen_b_, number);  \
        UNIQUE(chosen_, number) ? UNIQUE(chosen_a_, number) : UNIQUE(chosen_b_, number);           \
    })
#define MIN(a, b) CHOOSE(a, b, <, __COUNTER__)
#define MAX(a, b) CHOOSE(a, b, >, __COUNTER__)

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

enum { BLOCK_BYTES = 4096, SEGMENT_BYTES = 65536, BLOCKS_PER_SEGMENT = 16, NAME_BYTES_MAX = 255 };

/* ino = slot:16 | counter:48. The root directory is slot 0, counter 1. */
struct ino {
    uint64_t value;
};
struct slot {
    uint16_t value;
};
struct session_id {
    uint64_t value;
};
struct target_id {
    uint32_t value;
};
struct node_id {
    uint32_t value;
};
struct group_id {
    uint32_t value;
};
/* Of the log of a group, a storage target or the manager: given when it is formatted, 0: none. It
 * stays when the log is served elsewhere; terms, positions, sequences and floors belong to it. */
struct log_id {
    uint64_t value;
};

/* Of one start of a log, drawn anew at each: two of one term are two machines with one log. */
struct log_life {
    uint64_t high;
    uint64_t low;
};

static inline bool log_life_is(struct log_life a, struct log_life b) {
    return a.high == b.high && a.low == b.low;
}

/* Whatever log the cluster's manager has; no log that is drawn has a number this low. */
#define LOG_MANAGER ((struct log_id){1})
/* Every daemon serves this one itself: who was reached answers of itself (member.h). */
#define LOG_MEMBER ((struct log_id){2})

/* The same, at one node. */
static inline struct log_id log_of_node(struct node_id node) {
    return (struct log_id){UINT64_C(1) << 32 | node.value};
}

#define INO_ROOT ((struct ino){1})
#define INO_COUNTER_BITS 48

static inline struct slot ino_slot(struct ino ino) {
    return (struct slot){(uint16_t)(ino.value >> INO_COUNTER_BITS)};
}

static inline struct ino ino_make(struct slot slot, uint64_t counter) {
    return (struct ino){((uint64_t)slot.value << INO_COUNTER_BITS) | counter};
}

/* A view of bytes that somebody else owns; valid as long as its owner says. */
struct bytes {
    const uint8_t *data;
    size_t size;
};

/* Space that the callee fills: size bytes of capacity are used; what the rest holds then is not
 * said. */
struct buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
};
