/* The step of an actor that only makes calls: what comes is that they are done.
 *
 * Thread: whichever runs the actor. */
#pragma once
#include "rpc/call.h"

void call_origin_step(struct actor *actor, struct message *first);
