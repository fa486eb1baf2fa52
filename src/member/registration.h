/* Whether the lives of a node's logs are those that serve them, as far as its manager says.
 *
 *     ASKING --no answer within ALONE_NS, or an error--> ALONE: it serves, and goes on asking
 *     ASKING --WAIT--> WAITING --no answer within WAITING_NS--> ALONE
 *     ASKING, WAITING, ALONE --REGISTERED--> REGISTERED
 *     any --RUNS or OLDER--> REFUSED, for good: it serves nothing any more
 *
 * The manager's side is manager/lives.c, the protocol docs/internals/identity.md. Pure: of whoever
 * holds it; the caller gives the time. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"

/* In which a manager that is there answers; and longer than one that made us wait needs to find
 * the other life silent. */
#define REGISTRATION_ALONE_NS NS_PER_S
#define REGISTRATION_WAITING_NS (6 * NS_PER_S)

enum registration_stage {
    REGISTRATION_ASKING,
    REGISTRATION_WAITING,
    REGISTRATION_ALONE,
    REGISTRATION_REGISTERED,
    REGISTRATION_REFUSED
};

struct registration {
    enum registration_stage stage;
    enum lives_verdict verdict; /* the last one */
    struct log_id log;          /* that is refused, where it is */
    uint64_t asked;             /* of the last answer, for the next question */
    uint64_t heard_ns;          /* when it began, or the last answer came */
};

static inline bool registration_serves(const struct registration *registration) {
    return registration->stage == REGISTRATION_ALONE ||
           registration->stage == REGISTRATION_REGISTERED;
}

void registration_begin(struct registration *registration, uint64_t now_ns);
/* An answer to a question with lives. True: the stage is another. */
bool registration_answer(struct registration *registration, const struct node_join_reply *reply,
                         uint64_t now_ns);
/* A manager that is there answers with an error. True: the stage is another. */
bool registration_error(struct registration *registration);
/* Again and again. True: the stage is another. */
bool registration_tick(struct registration *registration, uint64_t now_ns);
