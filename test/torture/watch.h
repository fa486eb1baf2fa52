/* How the machine learns what an engine stores into a region. There are two ways, and a program has
 * one of them, by the build that it belongs to. Each also says what machine.h asks of it.
 *
 *     watch_told     -Dring_trace=true: ring_store tells each store, in the order of the source
 *     watch_stepped  any other build: each instruction that stores into what may not be written to
 *                    faults, runs alone, and is looked at, so this is the compiler's order
 *
 * The data area of a ring is filled by its owner in no order: a place that may be filled is touched
 * until the next event, which compares what is there now.
 *
 * Thread: one, of one machine at a time.  Memory: none. */
#pragma once
#include "machine_internal.h"

/* So much behind a place that is touched is compared. */
extern const size_t watch_touched_bytes;

void watch_begin(struct machine *machine);
void watch_end(void);
/* What was filled there is known: more of it will touch it anew. */
void watch_untouch(struct machine *machine, uint64_t place);
