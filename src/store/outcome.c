/* Outcomes: a request that comes twice is done once, and answered as it was the first time. */
#include "store/operations.h"

int outcome_find(struct ost *ost, const struct request *request,
                 struct store_write_outcome *ret_answer, int *ret_result) {
    const struct call_header *header = &request->call->header;
    struct slot slot = {store_bucket(request->id.ino)};
    struct kv_outcome outcome;

    if (header->sequence == 0 || header->session.value == 0) {
        return -ERR_MALFORMED;
    }
    int r = kv_outcome_get(ost->kv, slot, header->session, header->sequence, &outcome);
    if (r != 0) {
        return r;
    }
    if (outcome.reply.size != sizeof *ret_answer &&
        outcome.reply.size != offsetof(struct store_write_outcome, blocks)) {
        return -ERR_CORRUPT;
    }
    memset(ret_answer, 0, sizeof *ret_answer);
    memcpy(ret_answer, outcome.reply.data, outcome.reply.size);
    *ret_result = outcome.result;
    return 0;
}

void outcome_need(struct ost *ost, const struct request *request, struct kv_need *need) {
    const struct call_header *header = &request->call->header;

    need->session = header->session;
    need->floor = header->floor;
    need->window = ost_session_window(&ost->sessions, header->session);
}

int outcome_stage(struct ost *ost, const struct request *request,
                  const struct store_write_outcome *answer) {
    const struct call_header *call = &request->call->header;
    struct kv_outcome outcome = {.slot = {store_bucket(request->id.ino)},
                                 .session = call->session,
                                 .sequence = call->sequence,
                                 .floor = call->floor,
                                 .reply = {(const uint8_t *)answer, sizeof *answer}};

    return kv_outcome_put(ost->kv, &outcome);
}
