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
 * or until their deadline, so that each takes effect at most once (kv outcomes). Bulk points to
 * the caller's memory: valid until done.
 *
 * Thread: call_start, and done, within the origin's step. call_reply within the server's step. */
#pragma once
#include "base/list.h"
#include "rpc/actor.h"
#include "wire/wire.h"

struct call;
struct rpc;

enum { CALL_BULK_PARTS_MAX = 4, CALL_MESSAGE_KIND = 0xca11, CALL_DONE_KIND = 0xd07e };

/* What travels in front of each request. */
struct call_header {
    uint16_t opcode;
    uint8_t message_class;
    struct target_id target;
    struct slot slot; /* whose state it is about; outcomes are kept by it */
    struct session_id session;
    uint64_t incarnation; /* of the session */
    uint64_t sequence;    /* 0 for queries */
    uint64_t floor;       /* lowest sequence still awaited from this target by the session */
    uint64_t map_version;
    uint64_t trace_id;
    uint64_t term; /* of the group, as last seen; 0 = unknown */
};

struct call {
    struct message message; /* first: a call is posted as its message, kind CALL_MESSAGE_KIND */
    struct call_header header;
    union request_body request;
    union reply_body reply;
    /* Data sent beside the request (writes), in parts; checksums: one CRC-32C a 4 KiB block of
     * the chunk that the data touches, of the bytes it has in that block. */
    struct bytes bulk_out[CALL_BULK_PARTS_MAX];
    uint32_t bulk_out_count;
    /* Space for data that comes back (reads, entries, link targets); size = bytes filled. */
    struct buffer bulk_in;
    uint32_t *checksums;
    uint32_t checksum_count;
    int result; /* valid in done */

    struct actor *origin; /* done runs in its step, through call_done_message */
    void (*done)(struct call *call);
    void *context;        /* the caller's */
    uint64_t deadline_ns; /* on the caller's clock; 0 = never give up */

    /* Server side: where the reply goes, and what a waiting operation needs. */
    void (*reply_to)(struct call *call);
    struct list_node server_node; /* the server's, from its step until call_reply */
    uint64_t server_position;     /* log position that the reply depends on */
    uint64_t started_ns;          /* when the server first saw it */

    /* rpc's own. */
    struct list_node rpc_node;
    struct actor *server;
    uint64_t sent_ns;
    uint32_t attempts;
    void *transport_context;
};

/* Starts the call: fills session, sequence and floor of the header, sends. The caller has filled
 * opcode, target, slot, request, bulk, origin, done, deadline. Never fails: errors come by done,
 * never from inside this call. */
void call_start(struct rpc *rpc, struct call *call);

/* The server's answer; reply fields are filled. Ownership goes back. */
void call_reply(struct call *call, int result);

/* An origin's step hands every message of kind CALL_DONE_KIND here; it runs done. */
void call_done_message(struct message *message);

/* One per client process (or role that calls others, as an MDT calls OSTs). */
struct transport_ops {
    /* Delivers to call->header.target; at some time rpc_answered may be called for it. */
    void (*send)(void *transport, struct call *call);
    /* The call is over for the client: its memory may not be touched from now on. */
    void (*forget)(void *transport, struct call *call);
};

struct rpc_options {
    const struct transport_ops *transport;
    void *transport_context;
    struct env *env;
    uint64_t resend_ns; /* first resend; doubles up to 8 times that */
    uint32_t targets_max;
};

MUST_CHECK int rpc_new(const struct rpc_options *options, struct rpc **ret_rpc);
/* Frees memory; calls in flight are forgotten without done. Takes NULL. */
void rpc_free(struct rpc *rpc);
/* All following mutations belong to this session; sequences start at 1 for each target. */
void rpc_session_set(struct rpc *rpc, struct session_id session, uint64_t incarnation);
struct session_id rpc_session(const struct rpc *rpc, uint64_t *ret_incarnation);
/* Resends what has waited, ends what is past its deadline with -ERR_TIMED_OUT. Call each tick,
 * from any one actor's step; done is posted to the origins. */
void rpc_tick(struct rpc *rpc);
/* By the transport, in any thread: the reply has been copied into the call. */
void rpc_answered(struct rpc *rpc, struct call *call, int result);
uint64_t rpc_in_flight(const struct rpc *rpc);
