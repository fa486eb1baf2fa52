/* Whom a process waits for: peers that do not answer (lane_peer.c knows when that is), as a person
 * is told. A line says so once for each time away, LANE_AWAY_SAID_NS after the last sign of life,
 * where calls wait. Thread: any. */
#pragma once
#include "rpc/lane.h"

#define LANE_AWAY_SAID_NS (5 * NS_PER_S)

struct lane_away {
    uint32_t node;       /* that the peer is; 0: not known */
    uint64_t since_ns;   /* by the clock of the env; no sign of life came later */
    uint32_t wait_count; /* calls that wait for it, of a moment ago */
    char name[LANE_NAME_BYTES];
    char address[ADDRESS_TEXT_BYTES]; /* the first of them; empty: it is on this machine */
};

/* Those that are away now, capacity of them at most. How many rows there are. */
uint32_t lanes_away(struct lanes *lanes, struct lane_away *ret_rows, uint32_t capacity);
/* For lanes_tick. */
void lanes_away_say(struct lanes *lanes, uint64_t now_ns);
