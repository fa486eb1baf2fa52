/* The serving half of a transport that carries bytes.
 *
 *     bytes --inlet_take--> twin of the call, from a pool --> actor that serves the log
 *                                                                |  call_reply
 *     bytes <--inlet_encode-- the carrier's time to send <--ready--+
 *                 inlet_done
 *
 * A request whose class finds no twin, or whose bulk finds no memory, is answered -ERR_BUSY: it was
 * not looked at. One of a log that is not served here is answered -ERR_STALE_MAP. What the sender's
 * key is not for (messages.def, from) is refused before its body is looked at: -ERR_NOT_PERMITTED,
 * -ERR_READ_ONLY. Root is nobody for a mount whose key says so. Who waits for a newer map has a
 * pool of its own, so that it takes nothing of what others work with.
 *
 * What a request points to is copied: the carrier has its memory of the head back when
 * take has returned.
 *
 * Thread: take at the inlet's home (worker of its pool); ready runs where the actor's step runs;
 * encode and done on any thread. Memory: the twins; bulk is the carrier's. */
#pragma once
#include "base/list.h"
#include "rpc/frame.h"
#include "rpc/log_table.h"
#include "rpc/pool.h"

struct env;
struct inlet;

/* Two names. */
enum { INLET_BYTES_SHORT = 512 };

/* A request at work. The carrier may use `next` between ready and done. */
struct inlet_request {
    struct pool_item item;
    struct call call;
    struct list_node node; /* the carrier's, from take to done */
    struct inlet_request *next;
    struct inlet *inlet;
    void *from; /* as given to inlet_take; the carrier may change it */
    uint64_t id;
    void *long_bytes; /* names and the like, where there is no room for them below; or NULL */
    uint32_t scratch[WIRE_GROUPS_MAX];
    uint8_t bytes[INLET_BYTES_SHORT]; /* of the request, as its head does not stay */
};

struct inlet_options {
    struct env *env;        /* its clock */
    struct log_table *logs; /* that are served */
    struct worker *worker;  /* home of the pool; NULL: one actor's, or a simulation's */
    uint32_t requests_max;
    uint32_t reserve_count[MESSAGE_CLASS_COUNT]; /* of them, as in a pool */
    uint32_t waits_max; /* map_wait, beside requests_max; what is over is one of these. 0: none */
    uint64_t bulk_bytes_max; /* of one request, either way */
    /* Zeroed where it matters to nobody else; aligned to a block. NULL: none is left. */
    void *(*bulk_get)(void *context, size_t size_bytes);
    void (*bulk_put)(void *context, void *bulk);
    /* It is about to be posted. */
    void (*taken)(void *context, struct inlet_request *request);
    /* The reply is in the call, or CALL_DISCARDED: the carrier sees to encode and done. */
    void (*ready)(void *context, struct inlet_request *request);
    void *context;
};

struct inlet {
    struct inlet_options options;
    struct pool pool;
    struct pool waits;
};

/* The errors of pool_init. */
MUST_CHECK int inlet_init(struct inlet *inlet, const struct inlet_options *options);
/* All requests must be done. */
void inlet_deinit(struct inlet *inlet);

/* Bytes of one request. */
struct inlet_arrival {
    struct bytes head;
    struct bytes bulk; /* aligned to a block */
    void *from;        /* what the carrier knows the request by */
    /* Who sends them, by their proof; stays until done. NULL: a member. */
    const struct identity *identity;
    uint64_t life[2]; /* of the process that sends them, as it has greeted */
    uint64_t late_ns; /* how long the bytes may have lain unread: taken off the request's time */
};

/* An answer that needs no twin. */
struct inlet_refusal {
    struct frame_peek request;
    int result;
};

enum inlet_taken {
    INLET_POSTED,     /* bulk must stay until done; ready is called once, maybe at once */
    INLET_REFUSED,    /* to be answered by inlet_encode_refusal; nothing is kept */
    INLET_UNREADABLE, /* not even an id could be read; nothing is kept */
};

/* Any bytes may come. What has no time left is not run: -ERR_TIMED_OUT. */
MUST_CHECK enum inlet_taken inlet_take(struct inlet *inlet, const struct inlet_arrival *arrival,
                                       struct inlet_refusal *ret_refusal);

/* What the head of the reply takes at most; then the head itself. Its bulk is call.bulk_in. */
size_t inlet_reply_size(const struct inlet_request *request);
void inlet_encode(const struct inlet_request *request, struct buffer *out);
enum { INLET_REFUSAL_BYTES = 1024 };
void inlet_encode_refusal(const struct inlet_refusal *refusal, struct buffer *out);
/* Gives everything of the request back. */
void inlet_done(struct inlet_request *request);
