/* Which life of each log is the one that serves it, for the files of the manager. */
#pragma once
#include "manager/manager_internal.h"

MUST_CHECK int manager_lives_new(struct manager *manager);
void manager_lives_free(struct manager *manager);
/* Reads the rows: -ERR_PENDING: call again; -ERR_CORRUPT: one is none. */
MUST_CHECK int manager_lives_load(struct manager *manager);
/* What a member tells has the form of lives: 0, or -ERR_MALFORMED. */
MUST_CHECK int manager_lives_check(const struct node_join_request *request);
/* Of a node_join that tells lives, by a node of the map, with what is said of them in its reply.
 * 0: they are registered, and that is on disk, or it tells none. -ERR_TWO_LIVES: they wait or are
 * refused: the answer is due and nothing more is taken. -ERR_PENDING: the call is kept, and given
 * to manager_join again when they are on disk. -ERR_INVALID: a log that the node does not serve;
 * -ERR_NO_SPACE: more logs than the manager keeps lives of. */
MUST_CHECK int manager_lives_look(struct manager *manager, const struct map_node *node,
                                  struct call *call);
/* Where the node of that id is: of the manager's own its place, of another one that of the lives
 * that are registered. 0: not known. */
uint64_t manager_lives_place(const struct manager *manager, uint32_t node);
/* So long a life that has spoken is taken for one that runs. */
uint64_t manager_lives_stands_ns(const struct manager *manager);
/* Another number than before when a metadata target has started anew, or the manager. */
uint64_t manager_lives_starts(const struct manager *manager);
/* log_starts: who has since a number; all that there are where it is another manager's. */
void manager_lives_starts_get(struct manager *manager, struct call *call);
/* Writes what is to be registered; gives calls back whose lives are. */
void manager_lives_step(struct manager *manager);
