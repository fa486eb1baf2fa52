/* Who has sent a call: the process, by the life that its connection has greeted with, and the key
 * that it has proven. A session's requests are taken from the process that has attached it.
 *
 * Pure; of a call that a server has. */
#pragma once
#include "rpc/call.h"

struct call_sender {
    uint64_t life[2]; /* 0: this process, or one that has not attached since the start */
    uint64_t serial;  /* of a mount's key; 0: a member's */
};

static inline struct call_sender call_sender_of(const struct call *call) {
    return (struct call_sender){{call->life[0], call->life[1]},
                                call->identity ? call->identity->serial : 0};
}

static inline bool call_is_from(const struct call *call, const struct call_sender *sender) {
    const struct call_sender own = call_sender_of(call);

    return own.life[0] == sender->life[0] && own.life[1] == sender->life[1] &&
           own.serial == sender->serial;
}
