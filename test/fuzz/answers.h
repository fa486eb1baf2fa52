/* Servers whose answers an input tells, for a role that calls them. Each answer is u8 of enum said
 * and then
 *
 *     SAID_NOTHING  a reply of zeros
 *     SAID_ERROR    u8, the code
 *     SAID_REPLY    u16 size, body of the reply, u16 size, bulk: as the lane hands them over, so a
 *                   body that does not decode is an error, and bulk has the room that it was given
 *
 * Once the input has ended, all answers are `last`. Logs that nobody is added for have no server.
 *
 * Thread: one, the caller's worker's.  Memory: the input's. */
#pragma once
#include "fuzz.h"
#include "rpc/actor.h"
#include "rpc/call.h"

enum said { SAID_NOTHING, SAID_ERROR, SAID_REPLY, SAID_COUNT };

struct answers {
    struct actor actor; /* first; of as many logs as one likes */
    struct wire_cursor left;
    int last;
    uint64_t count; /* that were given */
};

void answers_init(struct answers *answers, struct bytes in, int last);
/* The next one, into the call: its result, which is not given to whoever asks yet. */
int answers_take(struct answers *answers, struct call *call);

/* Seeds. */
void give_reply(struct buffer *out, uint16_t opcode, const union reply_body *reply,
                struct bytes bulk);
void give_error(struct buffer *out, int error);
/* As targets that ask a server take one, behind their number of the opcode: u8 of who asks how, u16
 * size, body. */
void give_request(struct buffer *out, uint16_t opcode, uint8_t asker,
                  const union request_body *body);
