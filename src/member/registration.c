/* The contract is in registration.h. */
#include "member/registration.h"

void registration_begin(struct registration *registration, uint64_t now_ns) {
    *registration = (struct registration){.heard_ns = now_ns};
}

static enum registration_stage stage_by(enum registration_stage stage, enum lives_verdict verdict) {
    switch (verdict) {
    case LIVES_REGISTERED:
        return REGISTRATION_REGISTERED;
    case LIVES_WAIT:
        /* Who has begun to serve goes on. */
        return stage == REGISTRATION_ASKING ? REGISTRATION_WAITING : stage;
    case LIVES_RUNS:
    case LIVES_OLDER:
        return REGISTRATION_REFUSED;
    case LIVES_NOT_TOLD:
        break;
    }
    /* Of a manager that knows nothing of lives, or whose answer is of a question without. */
    return stage == REGISTRATION_ASKING ? REGISTRATION_ALONE : stage;
}

bool registration_answer(struct registration *registration, const struct node_join_reply *reply,
                         uint64_t now_ns) {
    enum registration_stage before = registration->stage;

    if (before == REGISTRATION_REFUSED) {
        return false;
    }
    registration->heard_ns = now_ns;
    registration->verdict = (enum lives_verdict)MIN(reply->verdict, (uint8_t)LIVES_OLDER);
    registration->asked = reply->asked;
    registration->stage = stage_by(before, registration->verdict);
    registration->log.value = reply->log;
    return registration->stage != before;
}

bool registration_error(struct registration *registration) {
    bool is_alone = registration->stage == REGISTRATION_ASKING;

    if (is_alone) {
        registration->stage = REGISTRATION_ALONE;
    }
    return is_alone;
}

bool registration_tick(struct registration *registration, uint64_t now_ns) {
    uint64_t silent_ns = now_ns - registration->heard_ns;
    bool is_alone =
        (registration->stage == REGISTRATION_ASKING && silent_ns >= REGISTRATION_ALONE_NS) ||
        (registration->stage == REGISTRATION_WAITING && silent_ns >= REGISTRATION_WAITING_NS);

    if (is_alone) {
        registration->stage = REGISTRATION_ALONE;
    }
    return is_alone;
}
