/* How many lanes a peer grants, and whose others may use (the picture is in lane_share.c). Thread:
 * the lane's. */
#pragma once
#include "rpc/lane_internal.h"

void lane_note_grant(struct lane *lane, uint32_t lane_count);
/* Whether one more than are open would be refused. */
bool lane_is_surplus(const struct lane *lane);
/* Another thread with a lane to the peer that is open; NULL: there is none. */
struct lane_thread *lane_sharer(const struct lane *lane);
