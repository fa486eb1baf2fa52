/* Stories of several nodes and clients: each plays what broke an earlier wording of a rule, and
 * says which rule of consistency that is. */
#include "story.h"

#define STOP(who) {.kind = STEP_STOP, .node = who}
#define GO_ON(who) {.kind = STEP_GO_ON, .node = who}
#define CUT(from, there) {.kind = STEP_CUT, .node = from, .to = there}
#define SPLIT(one, other) {.kind = STEP_SPLIT, .node = one, .to = other}
#define ALONE(who) {.kind = STEP_ALONE, .node = who}
#define HEAL {.kind = STEP_HEAL}
#define HOLD(what, time_ms) {.kind = STEP_HOLD, .opcode = OP_##what, .ms = time_ms}
#define LET_GO {.kind = STEP_HOLD}
#define SLOW(who, time_ms) {.kind = STEP_SLOW, .node = who, .ms = time_ms}
#define COUNT(what, at_least, at_most)                                                             \
    {.kind = STEP_COUNT, .count = COUNT_##what, .least = at_least, .most = at_most}
#define AT_LEAST(what, at_least) COUNT(what, at_least, UINT64_MAX)
#define PLACE(what, where, directory)                                                              \
    {.kind = STEP_PLACE, .name = what, .node = where, .in = directory}

/* A move of a directory over an empty one, of which something has changed when its prepares come:
 * all are at other metadata targets than its coordinator. */
#define MOVE_BEGINS(moved, replaced)                                                               \
    PLACE(moved, ON_FOURTH_MDT, "from"), PLACE(replaced, ON_MDT, "to"), HOLD(CROSS_PREPARE, 200),  \
        BEGIN(RENAME, .name = moved, .in = "from", .new_name = replaced, .new_in = "to"),          \
        SENT(CROSS_PREPARE)
#define MOVE_ENDS(tries) LET_GO, END(0), AT_LEAST(AGAIN, tries)

/* A directory that its name's target and its own remove together, up to the moment that follows. */
#define REMOVAL_BEGINS(directory)                                                                  \
    PLACE(directory, ON_OTHER_MDT, NULL), BEGIN(RMDIR, .name = directory)
#define LOSES_RING(who, directory)                                                                 \
    POWER(who), START(who), END(0), ASK(LOOKUP, .name = directory, .fails = true)

/* A directory that is made elsewhere, while what its group was drawn by changes. */
#define MADE_ELSEWHERE(directory, file)                                                            \
    HOLD(CROSS_PREPARE, 100), BEGIN(MKDIR, .name = directory, .mode = 0755), RUN(20),              \
        ASK(CREATE, .client = 1, .name = file), ASK(RELEASE, .client = 1), LET_GO, END(0)

const struct story cluster_stories[] = {
    /* Exact within a mount, and between mounts: a write that was answered stays, whatever was given
     * up before it and lies unread at a target that is stopped. */
    {.name = "late-copy",
     .steps = {ASK(CREATE, .name = "a"),
               ASK(WRITE, .size = 70000, .byte = 'a'),
               ASK(FSYNC, .client = 0),
               ASK(LOOKUP, .client = 1, .name = "a"),
               ASK(OPEN, .client = 1, .of = "a"),
               ASK(READ, .client = 1, .size = 4096, .byte = 'a'),
               COUNT(WRITES, 2, 2),
               STOP(ON_OST),
               BEGIN(WRITE, .size = 4096, .byte = 'x', .fails = true),
               END(0),
               GO_ON(ON_OST),
               RUN(1000),
               ASK(WRITE, .client = 1, .size = 4096, .byte = 'b'),
               ASK(READ, .client = 1, .size = 4096, .byte = 'b'),
               RUN(3000),
               ASK(READ, .client = 1, .size = 4096, .byte = 'b'),
               ASK(READ, .size = 4096, .byte = 'b'),
               COUNT(WRITES, 3, 3),
               ASK(RELEASE, .client = 1),
               ASK(RELEASE, .client = 0)},
     .client_count = 2,
     .streams = true,
     .request_ms = 5000,
     .is_brief = true,
     .is_whole = true},
    /* Once, and answered: the second copy of a request that is at work is not run, and the answer
     * goes to the connection that brought it. */
    {.name = "second-copy",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 65536, .byte = 'z'),
               ASK(FSYNC, .client = 0), COUNT(WRITES, 1, 1), SLOW(ON_OST, 8000),
               BEGIN(WRITE, .size = 65536, .byte = 'a'), RUN(100), SPLIT(ON_CLIENT, ON_OST),
               RUN(3000), HEAL, RUN(3000), AT_LEAST(RESENT, 1), WAITS(0), END(0),
               COUNT(WRITES, 2, 2), SLOW(ON_OST, 0), ASK(FSYNC, .client = 0),
               ASK(READ, .size = 65536, .byte = 'a'), ASK(RELEASE, .client = 0)},
     .streams = true,
     .is_brief = true,
     .is_whole = true},
    /* Close-to-open over an eviction: once another client was told the size, the evicted one writes
     * nothing, also where it never was before and the list of the ended has not come. What it was
     * acknowledged is there. */
    {.name = "unused-target",
     .steps = {PLACE("a", ON_OST, NULL), ASK(WRITE, .size = 65536, .byte = 'a'),
               ASK(FSYNC, .client = 0), ASK(LOOKUP, .client = 1, .name = "a"),
               ASK(WRITE, .size = 4096, .byte = 'b'), ASK(FLUSH, .client = 0),
               SPLIT(ON_CLIENT, ON_MDT), SPLIT(ON_CLIENT, ON_MANAGER), CUT(ON_MANAGER, ON_OST),
               CUT(ON_MANAGER, ON_OTHER_OST), UNTIL(IS_LISTED, .client = 0),
               ASK(OPEN, .client = 1, .of = "a", .told = 65536),
               ASK(WRITE, .size = 4096, .offset = 65536, .byte = 'x', .fails = true, .ms = 1000),
               ASK(READ, .client = 1, .size = 4096, .byte = 'b'),
               ASK(GETATTR, .client = 1, .of = "a", .told = 65536), HEAL, ASK(RELEASE, .client = 1),
               ASK(RELEASE, .fails = true)},
     .ost_count = 2,
     .client_count = 2,
     .session_ms = 600,
     .request_ms = 5000,
     .is_brief = true,
     .is_whole = true},
    /* The same where the metadata target has lost its ring, and with it the open for writing. */
    {.name = "lost-open",
     .steps = {ASK(CREATE, .name = "s"), ASK(WRITE, .size = 40000, .byte = 'a'),
               ASK(FSYNC, .client = 0), ASK(RELEASE, .client = 0),
               ASK(LOOKUP, .client = 1, .name = "s"), RUN(1500), ASK(OPEN, .of = "s"),
               POWER(ON_MDT), SPLIT(ON_CLIENT, ON_MDT), SPLIT(ON_CLIENT, ON_MANAGER),
               CUT(ON_MANAGER, ON_OST), START(ON_MDT), UNTIL(IS_LISTED, .client = 0),
               ASK(OPEN, .client = 1, .of = "s", .told = 40000),
               ASK(WRITE, .size = 4096, .byte = 'x', .fails = true, .ms = 1000),
               ASK(READ, .client = 1, .size = 40000, .byte = 'a'), HEAL, ASK(RELEASE, .client = 1),
               ASK(RELEASE, .fails = true)},
     .client_count = 2,
     .session_ms = 600,
     .request_ms = 5000,
     .is_brief = true,
     .is_whole = true},
    /* A session that speaks lives: a manager that was stopped has heard nobody, and evicts nobody
     * for it. Who needs nothing of it goes on. */
    {.name = "stopped-manager",
     .steps = {ASK(CREATE, .name = "a"), ASK(LOOKUP, .client = 1, .name = "a"), STOP(ON_MANAGER),
               RUN(6000), ASK(WRITE, .size = 4000, .byte = 'a', .ms = 1000),
               ASK(MKDIR, .client = 1, .name = "d", .mode = 0755, .ms = 1000), GO_ON(ON_MANAGER),
               RUN(4000), COUNT(EVICTED, 0, 0), ASK(FSYNC, .client = 0),
               ASK(READ, .size = 4000, .byte = 'a'), ASK(RELEASE, .client = 0),
               ASK(RMDIR, .client = 1, .name = "d")},
     .client_count = 2,
     .streams = true,
     .session_ms = 4000,
     .is_brief = true,
     .is_whole = true},
    /* Likewise one that is cut off from all others. */
    {.name = "cut-manager",
     .steps = {{.kind = STEP_JOIN},
               UNTIL(ARE_REACHED, .client = 0),
               ASK(CREATE, .name = "a"),
               ASK(LOOKUP, .client = 1, .name = "a"),
               ALONE(ON_MANAGER),
               RUN(6000),
               ASK(WRITE, .size = 4000, .byte = 'a', .ms = 1000),
               ASK(MKDIR, .client = 1, .name = "d", .mode = 0755, .ms = 1000),
               HEAL,
               RUN(3500),
               COUNT(EVICTED, 0, 0),
               AT_LEAST(HELD, 1),
               ASK(FSYNC, .client = 0),
               ASK(READ, .size = 4000, .byte = 'a'),
               ASK(RELEASE, .client = 0),
               ASK(RMDIR, .client = 1, .name = "d")},
     .client_count = 2,
     .session_ms = 4000,
     .is_brief = true,
     .is_whole = true},
    /* A move relies on what is true when it is decided: what another has changed since it looked
     * (access to the new parent, to the directory that moves, what lies in the one that is
     * replaced, the count of moves) has it begin anew, and nothing is left of its other halves. */
    {.name = "changed-prepares",
     .steps = {PLACE("from", ON_OTHER_MDT, NULL),
               PLACE("to", ON_THIRD_MDT, NULL),
               PLACE("here", ON_MDT, NULL),
               PLACE("there", ON_MDT, NULL),
               MOVE_BEGINS("m1", "r1"),
               ASK(SETATTR, .client = 1, .of = "to", .mode = 0700),
               MOVE_ENDS(1),
               MOVE_BEGINS("m2", "r2"),
               ASK(SETATTR, .client = 1, .of = "m2", .mode = 0700),
               MOVE_ENDS(2),
               PLACE("m3", ON_FOURTH_MDT, "from"),
               PLACE("r3", ON_MDT, "to"),
               HOLD(CROSS_PREPARE, 200),
               BEGIN(RENAME, .name = "m3", .in = "from", .new_name = "r3", .new_in = "to",
                     .fails = true),
               SENT(CROSS_PREPARE),
               ASK(CREATE, .client = 1, .name = "f", .in = "r3"),
               MOVE_ENDS(3),
               ASK(RELEASE, .client = 1),
               PLACE("x", ON_MDT, "here"),
               MOVE_BEGINS("m4", "r4"),
               ASK(RENAME, .client = 1, .name = "x", .in = "here", .new_name = "x",
                   .new_in = "there"),
               MOVE_ENDS(4),
               AT_LEAST(GONE, 4),
               ASK(LOOKUP, .name = "r1", .in = "to"),
               ASK(LOOKUP, .name = "m3", .in = "from"),
               ASK(LOOKUP, .name = "m4", .in = "from", .fails = true)},
     .mdt_count = 4,
     .client_count = 2,
     .is_brief = true,
     .is_whole = true},
    /* A directory is made once, in the group that has promised it: by the mean of now the deciding
     * run would draw another one. */
    {.name = "changed-mean",
     .steps = {ASK(MKDIR, .client = 1, .name = "w", .mode = 0755), MADE_ELSEWHERE("d1", "f1"),
               MADE_ELSEWHERE("d2", "f2"), MADE_ELSEWHERE("d3", "f3"), MADE_ELSEWHERE("d4", "f4"),
               MADE_ELSEWHERE("d5", "f5"), AT_LEAST(CROSSINGS, 3), COUNT(AGAIN, 0, 0)},
     .mdt_count = 3,
     .client_count = 2,
     .is_brief = true,
     .is_whole = true},
    /* What was answered is done everywhere, and what is done is done everywhere: the coordinator
     * loses its ring at a look, at its prepares, when all is promised, before its decision is on
     * disk, at the commits, and when all has ended. */
    {.name = "ring-of-coordinator",
     .steps = {REMOVAL_BEGINS("d1"),
               SENT(CROSS_LOOK),
               LOSES_RING(ON_MDT, "d1"),
               REMOVAL_BEGINS("d2"),
               SENT(CROSS_PREPARE),
               LOSES_RING(ON_MDT, "d2"),
               REMOVAL_BEGINS("d3"),
               UNTIL(IS_PROMISED, .node = ON_OTHER_MDT),
               LOSES_RING(ON_MDT, "d3"),
               REMOVAL_BEGINS("d4"),
               UNTIL(IS_DECIDED, .node = ON_MDT),
               LOSES_RING(ON_MDT, "d4"),
               REMOVAL_BEGINS("d5"),
               SENT(CROSS_COMMIT),
               LOSES_RING(ON_MDT, "d5"),
               REMOVAL_BEGINS("d6"),
               END(0),
               UNTIL(IS_ENDED, .node = ON_MDT),
               POWER(ON_MDT),
               START(ON_MDT),
               ASK(LOOKUP, .name = "d6", .fails = true)},
     .mdt_count = 2,
     .is_brief = true,
     .is_whole = true},
    /* Likewise the participant: at a look, at the prepare, when it has promised, before the
     * decision is on disk, at the commit, and when that is in its ring only. */
    {.name = "ring-of-participant",
     .steps = {REMOVAL_BEGINS("d1"), SENT(CROSS_LOOK), LOSES_RING(ON_OTHER_MDT, "d1"),
               REMOVAL_BEGINS("d2"), SENT(CROSS_PREPARE), LOSES_RING(ON_OTHER_MDT, "d2"),
               REMOVAL_BEGINS("d3"), UNTIL(IS_PROMISED, .node = ON_OTHER_MDT),
               LOSES_RING(ON_OTHER_MDT, "d3"), REMOVAL_BEGINS("d4"),
               UNTIL(IS_DECIDED, .node = ON_MDT), LOSES_RING(ON_OTHER_MDT, "d4"),
               REMOVAL_BEGINS("d5"), SENT(CROSS_COMMIT), LOSES_RING(ON_OTHER_MDT, "d5"),
               REMOVAL_BEGINS("d6"), UNTIL(IS_KEPT, .node = ON_OTHER_MDT),
               LOSES_RING(ON_OTHER_MDT, "d6"), AT_LEAST(FOUND, 3)},
     .mdt_count = 2,
     .is_brief = true,
     .is_whole = true},
    /* A commit is known when it is on disk: the second one is not answered while the first is only
     * in the ring, which power then takes; the decision is still there to be told again. */
    {.name = "second-commit",
     .steps = {REMOVAL_BEGINS("d"), SENT(CROSS_COMMIT), UNTIL(IS_KEPT, .node = ON_OTHER_MDT),
               SENT(CROSS_COMMIT), RUN(5), COUNT(UNDER_WAY, 1, 1), LOSES_RING(ON_OTHER_MDT, "d"),
               UNTIL(IS_ENDED, .node = ON_MDT), COUNT(FOUND, 1, 1)},
     .mdt_count = 2,
     .is_brief = true,
     .is_whole = true},
    /* Each slot is one target's: a giver that was not heard is asked again by a manager that has
     * lost its ring, and answers what it has given, although it has lost its own since. */
    {.name = "slot-given-twice",
     .steps = {{.kind = STEP_JOIN},
               SENT(SLOTS_GIVE),
               CUT(ON_MDT, ON_MANAGER),
               UNTIL(IS_GIVEN, .node = ON_MDT),
               SENT(SLOTS_GIVE),
               RUN(10),
               POWER(ON_MANAGER),
               POWER(ON_MDT),
               HEAL,
               START(ON_MDT),
               START(ON_MANAGER),
               SENT(SLOTS_GIVE),
               {.kind = STEP_JOINED},
               ASK(MKDIR, .name = "a", .mode = 0755),
               ASK(MKDIR, .name = "b", .mode = 0755),
               ASK(MKDIR, .name = "c", .mode = 0755)},
     .mdt_count = 2,
     .late_mdt = true,
     .is_brief = true,
     .is_whole = true},
    /* A size is told when it is known: a metadata target whose map does not name the file's pool
     * version waits for a newer one, and tells no size of what it has asked nobody about. */
    {.name = "old-map",
     .steps = {{.kind = STEP_KEEP_MAP, .node = ON_MDT},
               {.kind = STEP_JOIN},
               UNTIL(IS_GROWN, .node = ON_MDT),
               ASK(CREATE, .name = "a"),
               ASK(WRITE, .size = 131072, .byte = 'a'),
               ASK(FSYNC, .client = 0),
               ASK(LOOKUP, .client = 1, .name = "a"),
               ASK(WRITE, .size = 65536, .offset = 131072, .byte = 'b'),
               KILL(ON_CLIENT),
               CUT(ON_MANAGER, ON_MDT),
               UNTIL(IS_EVICTED, .client = 0),
               KILL(ON_MDT),
               {.kind = STEP_OLD_MAP, .node = ON_MDT},
               HEAL,
               CUT(ON_MDT, ON_MANAGER),
               START(ON_MDT),
               UNTIL(IS_LISTED, .client = 0),
               BEGIN(OPEN, .client = 1, .of = "a", .told = 196608),
               RUN(3000),
               WAITS(1),
               HEAL,
               END(1),
               ASK(READ, .client = 1, .size = 65536, .offset = 131072, .byte = 'b'),
               ASK(RELEASE, .client = 1)},
     .ost_count = 2,
     .client_count = 2,
     .late_ost = true,
     .session_ms = 2000,
     .is_brief = true,
     .is_whole = true},
    /* What does not need a target that is away ends as fast as without: all that is asked here, of
     * a storage target, and then of a metadata target as well. */
    {.name = "one-away",
     .steps = {PLACE("e", ON_OTHER_MDT, NULL),
               KILL(ON_OTHER_OST),
               RUN(3000),
               PLACE("f", ON_OST, NULL),
               ASK(WRITE, .size = 65536, .byte = 'a', .ms = 200),
               ASK(FSYNC, .ms = 200),
               ASK(READ, .size = 65536, .byte = 'a', .ms = 200),
               ASK(RELEASE, .ms = 200),
               ASK(OPEN, .of = "f", .told = 65536, .ms = 200),
               ASK(RELEASE, .ms = 200),
               ASK(RENAME, .name = "f", .new_name = "g", .ms = 200),
               ASK(UNLINK, .name = "g", .ms = 200),
               ASK(MKDIR, .name = "d", .ms = 200),
               ASK(RMDIR, .name = "d", .ms = 200),
               KILL(ON_OTHER_MDT),
               RUN(3000),
               ASK(MKDIR, .name = "d1", .ms = 200),
               ASK(MKDIR, .name = "d2", .ms = 200),
               ASK(MKDIR, .name = "d3", .ms = 200),
               ASK(CREATE, .name = "s", .ms = 200),
               ASK(WRITE, .size = 4000, .byte = 's', .ms = 200),
               ASK(FSYNC, .ms = 200),
               ASK(READ, .size = 4000, .byte = 's', .ms = 200),
               ASK(RELEASE, .ms = 200),
               ASK(RENAME, .name = "s", .new_name = "t", .new_in = "d1", .ms = 200),
               ASK(UNLINK, .name = "t", .in = "d1", .ms = 200),
               ASK(RMDIR, .name = "d2", .ms = 200),
               START(ON_OTHER_OST),
               START(ON_OTHER_MDT),
               ASK(RMDIR, .name = "e")},
     .mdt_count = 2,
     .ost_count = 3,
     .streams = true,
     .is_brief = true,
     .is_whole = true},
};
const size_t cluster_story_count = ARRAY_SIZE(cluster_stories);
