/* The list of the sessions that have ended, as a target has it (docs/internals/identity.md): its
 * number, the lowest session that lives, and above that one bit a session.
 *
 *     news: each name, in one transaction with what the owner does then --> number and lowest
 *       --> all of it on disk --> the owner answers with the number
 *
 * A bit is never taken back, so news may come in any order and more than once; the number goes on
 * only by news that begin where it stands. Who answers with another one than he is told is told
 * again from there. Without a list, number 0, nobody is attached.
 *
 * Rows are the owner's, in the owner's space, of a type that he gives: id 0 is the head, id 1 + n
 * bits of the sessions from n * ENDED_BITS on, 1 = ended; a row may be shorter, the rest is 0.
 *
 * Thread: the kv's owner. */
#pragma once
#include "kv/kv.h"

enum { ENDED_FORMAT = 1, ENDED_BITS = 4096 };

/* The head: how far the list is here; rows of bits before first_row are gone. */
struct __attribute__((packed)) ended_row {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t number, lowest, first_row;
};
_Static_assert(sizeof(struct ended_row) == 32, "stored");

/* What the owner of the rows does, each with the context of ended_list_take. */
struct ended_owner {
    uint8_t row_type;
    struct kv_need need; /* what `end` stages; for drops its session is set */
    /* A transaction: 0; above 0: there is no room yet, and the owner calls ended_list_take again
     * when there is, as after -ERR_PENDING; or an error. */
    int (*begin)(void *context, const struct kv_need *need);
    void (*commit)(void *context);
    void (*abort)(void *context);
    /* In the transaction: the end of the session, which may be unknown here. */
    int (*end)(void *context, uint64_t session);
    /* That is committed, and stands in the record at list->position. */
    void (*ended)(void *context, uint64_t session);
    /* One from `from` on, and below `end`, of which something is kept, though it has ended then;
     * 0: none. */
    int (*within)(void *context, uint64_t from, uint64_t end, uint64_t *ret_session);
};

struct ended_list {
    const struct ended_owner *owner;
    struct kv *kv;
    uint64_t number; /* 0: it has none */
    uint64_t lowest; /* all below it have ended */
    uint64_t first_row;
    uint64_t position; /* of the newest record that changed it in this life; 0: none */
};

/* As sessions_ended of wire/messages.def says. */
struct ended_news {
    uint64_t from, number, lowest, first;
    struct bytes names;
};

/* How far taking the news has come; zeros at first. */
struct ended_work {
    int stage;
    uint64_t cursor; /* of the names; then the session up to which all are named */
};

/* After kv_open. -ERR_PENDING, -ERR_CORRUPT. */
MUST_CHECK int ended_list_load(struct ended_list *list, struct kv *kv,
                               const struct ended_owner *owner);
/* -ERR_PENDING. */
MUST_CHECK int ended_list_has(const struct ended_list *list, uint64_t session, bool *ret_ended);

enum { ENDED_YIELDS = 2 };
/* 0: all of it is taken, and is on disk when list->position is; the owner seals. ENDED_YIELDS: a
 * stretch of it is, and the next one is for a later step. Above 0: what begin has answered.
 * -ERR_PENDING, -ERR_INVALID: the news make no sense, or an error: nobody has to undo anything. */
MUST_CHECK int ended_list_take(struct ended_list *list, struct ended_work *work,
                               const struct ended_news *news, void *context);
