/* A process's membership in a cluster: its numbers, its address, and the newest cluster map.
 *
 *     ASKING --numbers--> NUMBERED --member_ready: its targets are formatted--> TELLING
 *                                                              (each second, and at a new address)
 *     any answer with a newer version --map_changes, or map_get--> hooks.map --> the map in use
 *     map_wait: answered by the manager when there is a newer one, so that it is known at once
 *
 * Asked is the manager, through the rpc, wherever it is. An answer is also the sign that it is
 * there; while none comes, a line says so once a minute. Who asks this process for its map gets the
 * one in use. The protocol is docs/internals/joining.md.
 *
 * Thread: an actor; hooks run in its step. Memory: one map, the bytes of a second, and that one
 * while it is fetched and taken. */
#pragma once
#include "layout/cluster_map.h"
#include "member/registration.h"
#include "rpc/call.h"

struct env;
struct member;

struct member_hooks {
    /* A newer map, unchanged until the next call of this hook. Not 0: it could not be taken, and is
     * offered again a second later. */
    int (*map)(void *context, const struct cluster_map *map);
    /* What that map takes away is gone, whatever becomes of the rest: in front of each call of
     * `map`, so also again. NULL: nothing is followed before a map is used. */
    void (*map_takes)(void *context, const struct cluster_map *map);
    /* Takes a node_tell, in any state, and answers it from a step or from any thread that has
     * entered. NULL: nobody is there to answer. */
    void (*tell)(void *context, struct call *call);
    /* What its storage targets have, as struct wire_space, at most WIRE_SPACES_MAX: asked for
     * when the manager is told that they can be called. Answers the bytes. NULL: it has none. */
    size_t (*spaces)(void *context, uint8_t *ret_spaces);
    /* The lives of its logs that are open, as struct wire_life, at most WIRE_LIVES_MAX.
     * Answers the bytes. NULL: it has none. */
    size_t (*lives)(void *context, uint8_t *ret_lives);
    /* What becomes of these: at each stage that is reached behind ASKING. */
    void (*registered)(void *context, const struct registration *registration);
    /* The names of the members' keys of its file, the newest first; 0: none. NULL: it has none. */
    void (*keys)(void *context, uint64_t ret_names[2]);
    /* Of the key by which it signs capabilities, which a map of this hook may raise. NULL: none. */
    uint32_t (*key_number)(void *context);
    /* A line of what a person should know. */
    void (*log)(void *context, const char *line);
    void *context;
};

#define MEMBER_MDTS_BY_MANAGER UINT32_MAX

struct member_options {
    struct env *env;
    struct rpc *rpc;               /* its own, ticked by it */
    uint64_t key[2];               /* of the node */
    uint32_t target_count;         /* that it serves, or will */
    uint32_t mdt_count;            /* of these; MEMBER_MDTS_BY_MANAGER: one besides, or none */
    const char *address;           /* that others reach it at, canonical, or empty; copied */
    const struct cluster_map *map; /* that is known already; copied. NULL: none */
    /* Where the manager is, is not known: the first map is asked of whoever can be reached, and the
     * manager by what it says. */
    bool finds_manager;
    uint64_t place;  /* of its directory (folder_place); 0: unknown */
    uint64_t who;    /* that waits for maps: differs from all other askers; 0: by its key */
    uint64_t ask_ns; /* 0: 1 s */
    struct member_hooks hooks;
};

/* What is known; of the last answers. */
struct member_state {
    struct node_id node; /* 0: it has no numbers yet */
    uint32_t first_target;
    uint32_t mdt_count;   /* of its targets, the first ones */
    uint64_t map_version; /* of the map in use; 0: none */
    int map_problem;      /* why a newer one that is here is not used; 0: there is none */
    uint64_t map_newer;   /* its version; 0 likewise */
    int result; /* of the last question: 0, or what the manager has said, or its silence */
    bool told;  /* the manager's map has its targets and its address */
    struct registration registration; /* ASKING where it tells no lives */
    uint64_t heard_ns;                /* when the manager answered last; 0: never */
};

/* -ERR_INVALID for an address that is too long; -ERR_NO_MEMORY. */
MUST_CHECK int member_new(const struct member_options *options, struct member **ret_member);
/* Takes calls of kind CALL_MESSAGE_KIND, for LOG_MEMBER and the node's own log: map_get and
 * node_tell. */
struct actor *member_actor(struct member *member);
/* No call of its may be in flight. Takes NULL. */
void member_free(struct member *member);
/* Every 100 ms, from any thread with a worker; the first one makes it ask. */
void member_tick(struct member *member);
/* Its targets can be called: from now on it tells them and its address. */
void member_ready(struct member *member);

/* Asks the actor; done is called in its step. map: a copy of the one in use goes there; NULL: not
 * wanted. Untouched where none is. */
struct member_question {
    struct message message; /* the member's */
    struct cluster_map *map;
    uint64_t version; /* of a map that is waited for, or a newer one; 0: nothing is */
    uint64_t end_ns;  /* no longer than until then, or its stop: the state says what is in use */
    struct member_state state; /* the answer */
    void (*done)(struct member_question *question);
    void *context;
};
void member_ask(struct member *member, struct member_question *question);
/* Asks nobody any more; done when nothing is in flight. */
void member_stop_start(struct member *member, void (*done)(void *context, int result),
                       void *context);
