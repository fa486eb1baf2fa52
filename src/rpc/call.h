/* Calls: one request and its reply between a client and a server actor, whatever lies between.
 *
 * A call is caller-owned and lives until `done` has run on the origin actor. In one process the
 * server gets this very struct and fills the reply in place; over a network the transport encodes
 * it and the server gets a twin from a pool. Server code cannot tell.
 *
 *   client actor -- call_start --> transport -- post --> server actor: step runs the operation
 *   client actor <-- post -------- transport <-- call_reply --+
 *
 * Mutations carry (session, sequence, floor) and are resent with the same sequence until answered
 * or until their deadline, so that each takes effect at most once (kv outcomes). Sequences are
 * drawn per log; the floor is the lowest that is still awaited. -ERR_BUSY, by which a server
 * says that it has not looked at the request, is retried here, until the deadline.
 * Bulk points to the caller's memory: valid until done (in process, see call_given_up).
 *
 * Thread: any with a worker; done within the origin's step; call_reply within the server's step. */
#pragma once
#include "base/list.h"
#include "keys/identity.h"
#include "rpc/actor.h"
#include "wire/wire.h"

struct rpc;
struct transport_ops;

enum { CALL_BULK_PARTS_MAX = 4, CALL_DISCARDED = 1, CALL_MESSAGE_KIND = 0xca11, CALL_DONE_KIND };

/* What travels in front of each request. */
struct call_header {
    uint16_t opcode;
    uint8_t message_class;
    struct log_id log; /* that is to answer */
    struct slot slot;  /* whose state it is about; outcomes are kept by it */
    struct session_id session;
    uint64_t incarnation; /* of the session */
    struct log_id origin; /* the log that sequence and floor are of; 0: as `log` */
    uint64_t sequence;    /* 0 for queries */
    uint64_t floor;       /* lowest sequence still awaited from this log by the session */
    uint64_t map_version;
    uint32_t chain_version; /* of the chain that a chunk's request goes to; 0: none */
    uint64_t trace_id;
    uint64_t term;  /* of the log, as last seen; 0 = unknown */
    uint64_t epoch; /* newest that the caller has seen of any log; 0: none */
};

struct call {
    struct message message; /* first: a call is posted as its message, kind CALL_MESSAGE_KIND */
    struct call_header header;
    union request_body request;
    union reply_body reply;
    /* Data sent beside the request (writes), in parts. A server that got it over a network has one
     * part, aligned to a block. */
    struct bytes bulk_out[CALL_BULK_PARTS_MAX];
    uint32_t bulk_out_count;
    /* Space for data that comes back (reads, entries, link targets); size = bytes filled. */
    struct buffer bulk_in;
    /* One CRC-32C a 4 KiB block of the chunk that the data touches, of the bytes it has in that
     * block. Without bulk_out it is space for the server to fill: count = how many there is space
     * for, and then how many there are. */
    uint32_t *checksums;
    uint32_t checksum_count;
    int result;           /* valid in done */
    struct actor *origin; /* done runs in its step, through call_done_message */
    void (*done)(struct call *call);
    void *context;                     /* the caller's */
    uint64_t deadline_ns, patience_ns; /* on its clock, 0 = never give up; transport.h, 0: none */
    bool may_wait;                   /* it leaves with the next one to that process, or at a tick */
    bool keeps_number;               /* also when it ends unanswered */
    bool (*unwanted)(void *context); /* transport.h; NULL: never */
    void *unwanted_context;
    /* Server side: where the reply goes, and what a waiting operation needs. */
    void (*reply_to)(struct call *call);
    const struct identity
        *identity;    /* its connection's; NULL: a member's; stays until call_reply */
    uint64_t life[2]; /* of the process that sent it; 0: this one */
    struct list_node server_node, server_number_node; /* its, from its step until call_reply */
    uint64_t server_position;        /* log position that the reply depends on; in done: as told */
    uint64_t server_term;            /* of the log that answers, likewise */
    uint64_t server_epoch;           /* newest of the log that answers, likewise */
    void *server_context;            /* the server's, likewise; NULL when it comes */
    uint8_t walk_key[24], walk_kept; /* where a walk goes on that waits; see transaction.h */
    uint64_t started_ns, ran_ns, disk_ns; /* when it was first seen; slow_log.h tells the others */
    struct session_counters *session_counters; /* where it is counted; may be NULL */

    struct list_node rpc_node; /* this and the rest: rpc's own */
    struct rpc *rpc;
    struct rpc_link *link; /* where its sequence was drawn */
    uint64_t sent_ns;
    uint32_t attempts;
    uint8_t stage;
    bool was_sent, bulk_is_sent, is_handed, is_extended; /* a server may have it; lane_*.c */
    atomic_bool answered, cancelled;
    void *transport_context;
};

/* Starts the call: fills message class, session, sequence and floor of the header, sends. The
 * caller has filled opcode, log, slot, request, bulk, origin, done, deadline, and zeroed the
 * rest before its first use. Never fails: errors come by done, from a step of the origin, so never
 * from inside this call when that is made in a step.
 *
 * A call that ended with an error whose action is REFRESH or REOPEN may have taken effect before:
 * it keeps its sequence (header.sequence, else 0 in done); where keeps_number says so, with others
 * too. Start it again, for the same log, and it is the same mutation; or let it go by call_abandon,
 * or keep the number for later (call_number.h). */
void call_start(struct rpc *rpc, struct call *call);
/* The caller won't start it again: a kept sequence is awaited no longer. Does nothing otherwise. */
void call_abandon(struct call *call);
/* Ends a call early where that is possible, at a tick, with -ERR_INTERRUPTED; its mutation may
 * take effect nevertheless. From the origin's step, before done. */
void call_cancel(struct call *call);
/* The server's answer; reply fields are filled. Ownership goes back. */
void call_reply(struct call *call, int result);
/* 0, or what a server that still holds it answers at a tick; its caller does over a network. */
MUST_CHECK int call_given_up(const struct call *call, uint64_t now_ns);
/* Until the deadline, by the caller's clock; UINT64_MAX when it has none. */
uint64_t call_time_left_ns(const struct call *call);
/* The server's end of a copy of a mutation that it is at work on: the first one gets the answer.
 * reply_to finds CALL_DISCARDED in result. */
void call_discard(struct call *call);

/* An origin's step hands every message of kind CALL_DONE_KIND here; it runs done. */
void call_done_message(struct message *message);

/* One per client process (or role that calls others, as an MDT calls OSTs). */
struct rpc_options {
    const struct transport_ops *transport;
    void *transport_context;
    struct env *env;
    uint64_t resend_ns; /* first resend; doubles up to 8 times that */
    uint32_t logs_max;  /* that it may call */
};

/* Mutations of a session that a log may grant to be awaited, and those before it has. */
enum { RPC_WINDOW = 2048, RPC_WINDOW_LEAST = 8 };

/* -ERR_INVALID, -ERR_NO_MEMORY. */
MUST_CHECK int rpc_new(const struct rpc_options *options, struct rpc **ret_rpc);
/* Frees memory; calls in flight are forgotten without done. Takes NULL. */
void rpc_free(struct rpc *rpc);
/* All mutations that start from now on belong to this session; sequences start at 1 for each
 * log. Not beside itself. -ERR_NO_MEMORY. */
MUST_CHECK int rpc_session_set(struct rpc *rpc, struct session_id session, uint64_t incarnation);
struct session_id rpc_session(const struct rpc *rpc, uint64_t *ret_incarnation);
/* Its target is lost for good: calls to it end with -ERR_TARGET_LOST. Any thread. */
void rpc_log_lose(struct rpc *rpc, struct log_id log);
/* Resends what has waited, ends what is past its deadline with -ERR_TIMED_OUT. Call each tick,
 * from any thread with a worker; done is posted to the origins. */
void rpc_tick(struct rpc *rpc);
/* Calls that were started and are not done, or keep their sequence. */
uint64_t rpc_in_flight(struct rpc *rpc);
