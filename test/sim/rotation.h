/* Who runs the cluster changes its members' key: each node is started anew with a file of both,
 * and, when all sign by the newer and no ticket by the older is left, with one of that alone.
 *
 *     [old] --start--> [new, old] on all: the map says new --later, at a start--> [new]
 *
 * Servers of the first targets are one node to the manager: it is told what all their files have.
 * Thread: the simulator's.  Memory: the rings of the nodes, freed by the world. */
#pragma once
#include "base/types.h"

struct node;
struct world;

/* Whether this world's keys change; the map names the first one, or does not say. */
void rotation_begin(struct world *world);
/* A ring of the node's file, as it was made. */
void rotation_ring(struct node *node);
/* The node is down and about to start: maybe with another file. */
void rotation_start(struct node *node);
/* An MDT has a newer map on disk: its node signs as it says. */
void rotation_map(struct node *node);
/* As member_hooks.keys. */
void rotation_names(const struct world *world, uint64_t ret_names[2]);
/* Of that node alone. */
void rotation_node_names(const struct node *node, uint64_t ret_names[2]);
