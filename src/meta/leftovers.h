/* W rows with no open behind them: of a session that lives, whose close power has taken.
 *
 * Its client was answered and has nothing to close any more, so it presents nothing of the file
 * when it comes back; as long as the session lasts the file would count as written by it, and would
 * not go when it is removed.
 *
 *     attached anew --> row without an open --> floor has passed what was answered before
 *         --> chunks: the OSTs are asked for the size, as what the close said of it is lost, too
 *         --> the row is deleted, its moves become orders, and the file goes if that was its last
 *
 * An open whose answer its client never got is not presented either, and made up for when it is
 * asked for again (run.c): it may be, until the session's floor has passed it. Nobody is fenced, as
 * the session lives; should it end meanwhile, its eviction closes what is left.
 *
 * Thread: the group's. Memory: a node in the open_entry. */
#pragma once

struct group;
struct session;

/* The session attaches, having presented all that it has open. */
void leftovers_find(struct group *group, struct session *session);
void leftovers_step(struct group *group);
