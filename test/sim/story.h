/* What a story is made of: steps, one after the other, with nothing random in them. Each step says
 * what must be so; a story in which that is otherwise has failed, whatever its golden file says.
 *
 *     ask, begin .. end      what clients want, and what they must be answered
 *     kill, cut, hold, ...   what befalls nodes and messages
 *     sent, until            the moment at which the next step happens
 *     count                  what must have happened by then, and how often
 *
 * stories.c and stories_cluster.c have the tables, story_player.c plays them. */
#pragma once
#include "shoal/shoal.h"
#include "wire/wire.h"
#include "world.h"

enum { STORY_STEPS_MAX = 64, STORY_PROBLEM_BYTES = 700 };

enum step_kind {
    STEP_NONE,
    STEP_ASK,
    STEP_BEGIN, /* the same, but nobody waits for the answer */
    STEP_END,   /* until then; it is what the step that began it says */
    STEP_WAITS, /* it is not there yet */
    STEP_PLACE, /* makes a directory, or a file that stays open, where the story needs it */
    STEP_KILL,
    STEP_POWER,
    STEP_START,
    STEP_STOP, /* as by SIGSTOP, until it goes on */
    STEP_GO_ON,
    STEP_CUT,      /* what `node` sends does not reach `to` */
    STEP_SPLIT,    /* likewise, both ways */
    STEP_ALONE,    /* it is cut off from all others */
    STEP_HEAL,     /* ends all cuts */
    STEP_HOLD,     /* requests of this kind come so much later (packets only); ms 0: no more */
    STEP_SLOW,     /* each operation of the node's disk takes so much longer; ms 0: no more */
    STEP_RUN,      /* for so long */
    STEP_WAIT,     /* for 3 s */
    STEP_SENT,     /* until a request of this kind leaves somebody */
    STEP_UNTIL,    /* until the state is there */
    STEP_COUNT,    /* it is least to most */
    STEP_KEEP_MAP, /* what the node has of the cluster map now */
    STEP_OLD_MAP,  /* is what it has again; of a node that is down */
    STEP_JOIN,     /* nodes join; the world's late target runs once it has its numbers */
    STEP_JOINED,   /* until all have joined, and each slot is one target's, the map's */
    STEP_FLIP,     /* the first bit of the disk log's first batch; a second time: back */
    STEP_DAMAGE,   /* the row of the file's inode below; likewise */
    STEP_REFUSED,  /* a start is, as damage was found */
};

enum story_node {
    ON_MDT,
    ON_OTHER_MDT,
    ON_THIRD_MDT,
    ON_FOURTH_MDT,
    ON_OST,
    ON_OTHER_OST,
    ON_THIRD_OST,
    ON_MANAGER,
    ON_CLIENT,
    ON_OTHER_CLIENT,
};

enum story_state {
    IS_PROMISED, /* halves, by the metadata target, on its disk */
    IS_DECIDED,  /* a transaction, by it; not on its disk yet */
    IS_KEPT,     /* one more promise of its, in its ring */
    IS_ENDED,    /* all that it coordinates */
    IS_GIVEN,    /* some of its slots, by its rows */
    IS_EVICTED,  /* a session, for its silence, by the manager */
    IS_LISTED,   /* likewise, by the metadata target: it closes what that had open */
    IS_GROWN,    /* the pool, by its map: there is a second version */
    ARE_REACHED, /* two nodes besides the manager's, which it counts among those it must hear */
};

enum story_count {
    COUNT_EVICTED,   /* sessions, for their silence */
    COUNT_HELD,      /* those that were not, as the manager hears too few */
    COUNT_CROSSINGS, /* transactions that were decided */
    COUNT_AGAIN,     /* that began anew */
    COUNT_UNDER_WAY, /* of which not everybody knows yet */
    COUNT_GONE,      /* promises that were aborted */
    COUNT_FOUND,     /* promises that a start has found */
    COUNT_RESENT,    /* requests that a lane has sent again */
    COUNT_WRITES,    /* that storage targets have run */
};

struct step {
    enum step_kind kind;
    enum story_node node, to;
    enum shoal_operation operation; /* of who asks: on what is open, or on a name */
    const char *verb;               /* its name */
    uint32_t client;                /* who asks */
    const char *name;
    const char *new_name;
    const char *in, *new_in; /* directories, by the names that they had first; NULL: the root */
    const char *of;          /* likewise, what is asked about by its number */
    uint64_t size;           /* to write or read, or to cut to */
    uint64_t offset;
    uint64_t told; /* size that the answer has; 0: any */
    uint32_t mode; /* to be set, or of what is made; 0: as usual */
    uint8_t byte;  /* to write, or to be read everywhere */
    bool fails;
    uint16_t opcode;
    enum story_state state;
    enum story_count count;
    uint64_t least, most;
    uint64_t ms;      /* of who asks: within which the answer is there; 0: STEP_S */
    uint64_t gone_ms; /* likewise: after which its program is gone; 0: it never is */
};

struct story {
    const char *name;
    struct step steps[STORY_STEPS_MAX];
    uint64_t checkpoint_ns;                      /* 0: none by time */
    uint32_t mdt_count, ost_count, client_count; /* 0: one */
    bool late_mdt, late_ost;                     /* the last one is to join */
    bool streams;                                /* carry the calls, else packets do */
    uint64_t session_ms, request_ms;             /* timeouts; 0: 20 s */
    bool is_brief; /* signs of life, and copies behind the second one, are not kept */
    bool is_whole; /* in the end nothing is under way, and all rows fit together */
};

#define ASK(what, ...) {.kind = STEP_ASK, .operation = SHOAL_##what, .verb = #what, __VA_ARGS__}
#define BEGIN(what, ...) {.kind = STEP_BEGIN, .operation = SHOAL_##what, .verb = #what, __VA_ARGS__}
#define END(who) {.kind = STEP_END, .client = who}
#define WAITS(who) {.kind = STEP_WAITS, .client = who}
#define KILL(who) {.kind = STEP_KILL, .node = who}
#define POWER(who) {.kind = STEP_POWER, .node = who}
#define START(who) {.kind = STEP_START, .node = who}
#define WAIT {.kind = STEP_WAIT}
#define RUN(time_ms) {.kind = STEP_RUN, .ms = time_ms}
#define UNTIL(what, ...) {.kind = STEP_UNTIL, .state = what, __VA_ARGS__}
#define SENT(what) {.kind = STEP_SENT, .opcode = OP_##what}

extern const struct story cluster_stories[];
extern const size_t cluster_story_count;
