/* Which nodes the manager hears, for the files of the manager; and their numbers by their keys. */
#pragma once
#include "manager/manager_internal.h"

MUST_CHECK int manager_heard_new(struct manager *manager);
void manager_heard_free(struct manager *manager);
/* The map is another one: whoever is new in it counts as heard. */
void manager_heard_map(struct manager *manager);
/* The node of the map that has this key; NULL: none. */
const struct map_node *manager_heard_node(struct manager *manager, uint64_t high, uint64_t low);
/* The map has the targets of that node. */
bool manager_heard_has_targets(const struct manager *manager, const struct map_node *node);
/* It has targets or an address, and not all its targets are lost. */
bool manager_heard_is_member(const struct manager *manager, const struct map_node *node);
/* It has numbers and no targets in the map, and asked for them a short while ago, or before the
 * manager's start: its first start may still go on. */
bool manager_heard_is_coming(const struct manager *manager, const struct map_node *node);
/* It is the manager's own, or has spoken a short while ago, or nothing is known of its silence. */
bool manager_heard_is(const struct manager *manager, struct node_id node);
/* It has spoken. */
void manager_heard_note(struct manager *manager, const struct map_node *node);
/* The manager was not listening for so long. */
void manager_heard_forgive(struct manager *manager, uint64_t gap_ns, uint64_t now_ns);
/* A tick. True: nobody is to be evicted for silence now. */
bool manager_heard_holds(struct manager *manager, uint64_t now_ns);
/* A session was evicted for its silence; one was not, as evictions are held back. */
void manager_heard_evicted(struct manager *manager);
void manager_heard_held(struct manager *manager);
