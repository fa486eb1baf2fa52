/* The session: an actor that begins, renews and ends it, holds the map, and attaches to servers.
 *
 *     (FIND ->) BEGIN -> MAP -> ATTACH (groups) -> RUNNING (others when used) -> END -> OVER
 *
 * While it runs, errands that met a server which has started anew, or an old map, are stalled here
 * and go on when that is mended, or fail with what prevents it.
 *
 * Thread: its own step, but state and the entry points that post. Memory: the client's. */
#pragma once
#include "client/again.h"
#include "client/client.h"
#include "client/errand.h"
#include "client/router.h"
#include "maps/map_follower.h"

enum session_message {
    SESSION_START = 1,
    SESSION_TICK,
    SESSION_STOP,
    SESSION_STALLED,   /* an errand, from its shard */
    SESSION_PRESENTED, /* a shard has presented its opens */
    SESSION_LET_GO     /* a shard has let its files go */
};

enum session_stage {
    SESSION_NEW,
    SESSION_FINDING, /* a map, of anybody, that says where the manager is */
    SESSION_BEGINNING,
    SESSION_MAPPING,
    SESSION_ATTACHING,
    SESSION_RUNNING,
    SESSION_ENDING,
    SESSION_OVER
};

/* See again.h. */
struct again {
    uint32_t shards_left; /* that are to let their files go */
    bool have_let_go;
    bool is_beginning;
    uint64_t tried_ns; /* 0: never */
};

struct session {
    struct actor actor; /* first */
    struct shoal_client *client;
    enum session_stage stage;
    _Atomic bool fenced;
    _Atomic bool revoked; /* and none begins again, as the key is */
    _Atomic uint64_t id;
    struct message start;
    struct message tick;
    struct message stop;
    atomic_bool tick_posted;
    bool stopping;
    _Atomic uint64_t stop_ns; /* when the stop began; 0: it did not */
    bool ended;               /* at the manager, with this result */
    int end_result;
    int start_result; /* told when the renewal is answered that is under way */
    void (*done)(void *context, int result); /* of the start, then of the stop */
    void *done_context;
    void (*stop_done)(void *context, int result); /* from who stops to SESSION_STOP */
    void *stop_context;

    bool renewing; /* the first call is under way */
    uint64_t renewed_ns;
    /* What the manager has given, for attach and renew; none where there are no keys. */
    uint8_t ticket[WIRE_TICKET_BYTES_MAX];
    size_t ticket_bytes;
    uint8_t ticket_space[WIRE_TICKET_BYTES_MAX]; /* for the next one, while it is asked for */
    uint64_t ended_number; /* of the list of the ended sessions, when this one began */
    uint64_t late_ns;      /* when late closes were last tried */
    struct call renewal;   /* also begins and ends the session */
    struct map_follower maps;
    struct list map_waiting; /* errands */
    uint64_t starts;         /* of metadata targets, as the manager numbers them */
    bool asking_starts;
    struct call starts_call;
    uint8_t starts_space[8192];
    struct again again;
    uint64_t floors_ns;        /* when floors were last looked at */
    uint32_t floors_under_way; /* calls */
    _Atomic uint64_t reattachments;
    _Atomic uint64_t returns; /* of these, though nobody needed it */
};

MUST_CHECK int session_init(struct session *session, struct shoal_client *client);
void session_deinit(struct session *session);

/* From an errand's shard: keeps it until what its result speaks of is mended. */
void session_stall(struct session *session, struct errand *errand);
/* Somebody has met -ERR_FENCED under a session: the one that runs was evicted, if it was that. */
void client_session_fence(struct session *session, struct session_id id);
/* Of the start, or of a beginning in place of an evicted session. */
void session_begun(struct session *session, int result);
/* To the root's group; to another target when something is asked there for the first time, as it
 * may be away, and there may be many. */
void session_attach_root(struct session *session);
/* Asks the manager, or who may know it; until the request's timeout, where there is no deadline.
 * start: of the session `context`, a call that has opcode, done and context. */
void session_call_start(void *context, struct call *call);
void session_call(struct session *session, struct call *call, uint16_t opcode,
                  void (*done)(struct call *call));
/* Asks the manager for one; what came of it goes to the start, or to again.h. */
void session_begin(struct session *session);
/* Of an errand that is stalled until the log is reached: result where that is not 0, else why it
 * waits no more, or 0. */
MUST_CHECK int session_stalled_over(const struct session *session, const struct errand *errand,
                                    struct log_id log, int result);
/* Posts an errand back to its shard: 0 to go on, or the error that ends it. */
void session_give_back(struct errand *errand, int result);
/* Nothing of ours is under way at the manager; when nothing is anywhere, the stop is done. */
void session_over(struct session *session);
/* A peer is attached, or cannot be. */
void client_session_attached(struct session *session, int result);

/* That calls of the running session have; 0: none. */
uint64_t session_patience_ns(const struct session *session);
struct bytes session_ticket(const struct session *session);

/* session_map.c: the newest map. ask: it is fetched, unless it is on its way. */
MUST_CHECK int session_map_init(struct session *session);
void session_map_ask(struct session *session);
/* Errands that have waited for one for too long; all of them when result is not 0. */
void session_map_expire(struct session *session, int result);
/* At a tick: the manager is asked to say when there is a newer one. */
void session_map_watch(struct session *session);

/* starts.c: the manager's number of starts; where it is another one, who was attached to metadata
 * targets that have started anew comes back to them. */
void session_starts_told(struct session *session, uint64_t starts);
void session_starts_cancel(struct session *session);
/* reattach.c: how peers are attached, and attached again; from the session's step. */
void peer_mend(struct session *session, struct peer *peer, int why);
void peer_mend_new(struct session *session, struct peer *peer); /* that has refused nothing */
void peer_stall(struct session *session, struct errand *errand);
void peer_presented(struct session *session, struct message *message);
/* An attachment, or the showing of opens, is under way. */
bool peers_are_busy(const struct session *session);
/* The stop need not wait for those that are away. */
void peers_cancel(struct session *session);
/* floor.c: tells each log of which nothing is awaited any more so; at a tick. */
void floors_tell(struct session *session, uint64_t now_ns);
/* Gives back what has stalled for too long; all of it when result is not 0. */
void peers_expire(struct session *session, int result);
