/* Metadata: how many targets a load of files needs, how long operations wait, what a storm of
 * listings costs, and whether metadata wants nodes of its own.
 *
 * Waiting. A name belongs to one target, so each target is a queue of its own: M/M/c, c its service
 * threads, with arrivals at random times and exponential service; `skew` is the busiest target's
 * share of the load over the mean.
 *
 * Listing storm. Every client lists one directory several times while it changes now and then.
 * Names and then a stat each; names with attributes; the same kept by each node under a lease,
 * which a change recalls (one request) before the node lists again; and a sealed tree, which can't
 * change and is fetched once by each node. The targets are busy with requests and entries, or
 * their NICs are.
 *
 * Dedicated against co-located. A storage node does `target_rate` operations or
 * `storage_node_bandwidth` of data a second, or any mix of the two in proportion. Dedicated: the
 * metadata targets have a node each, the rest is for data, so that data never delays metadata.
 * Co-located: every node does both, evenly; metadata waits behind data requests (one server a
 * node, Poisson arrivals, exponential sizes of either kind), unless it is served first, when it
 * waits only for what is being served. A client is no nearer to the metadata in one than in the
 * other. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct metadata_inputs {
#include "planner/def_inputs.inc"
#include "planner/metadata.def"
};

struct metadata_outputs {
#include "planner/def_outputs.inc"
#include "planner/metadata.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void metadata_plan(const struct data *data, const struct metadata_inputs *in,
                   struct metadata_outputs *out);
/* The words `placement`. */
void metadata_words(const struct data *data, const struct metadata_inputs *in,
                    struct metadata_outputs *out);
