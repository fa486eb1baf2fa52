/* The contract is in answers.h. */
#include "answers.h"

static int reply_take(struct wire_cursor *cursor, struct call *call) {
    size_t body_bytes = MIN((size_t)wire_take_number(cursor, 2), cursor->size);
    const uint8_t *body = wire_take(cursor, body_bytes);
    size_t said = wire_take_number(cursor, 2);
    size_t bulk_bytes = MIN(MIN(said, cursor->size), call->bulk_in.capacity);
    const uint8_t *bulk = wire_take(cursor, bulk_bytes);

    if (!body || !bulk) {
        return -ERR_MALFORMED;
    }
    int r = wire_decode_reply(call->header.opcode, (struct bytes){body, body_bytes}, &call->reply);
    if (r == 0) {
        call->bulk_in.size = bulk_bytes;
        if (bulk_bytes > 0) {
            memcpy(call->bulk_in.data, bulk, bulk_bytes);
        }
    }
    return r;
}

int answers_take(struct answers *answers, struct call *call) {
    struct wire_cursor *cursor = &answers->left;

    if (cursor->size == 0 || cursor->bad) {
        return answers->last;
    }
    switch (wire_take_number(cursor, 1) % SAID_COUNT) {
    case SAID_NOTHING:
        return 0;
    case SAID_ERROR:
        return -(int)MAX(wire_take_number(cursor, 1), UINT64_C(1));
    default:
        return reply_take(cursor, call);
    }
}

static void answers_step(struct actor *actor, struct message *first) {
    struct answers *answers = CONTAINER_OF(actor, struct answers, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        memset(&call->reply, 0, sizeof call->reply);
        call->bulk_in.size = 0;
        answers->count++;
        call_reply(call, answers_take(answers, call));
    }
}

void answers_init(struct answers *answers, struct bytes in, int last) {
    *answers = (struct answers){.left = fuzz_cursor(in), .last = last};
    actor_init(&answers->actor, "answers", answers_step);
}

void give_reply(struct buffer *out, uint16_t opcode, const union reply_body *reply,
                struct bytes bulk) {
    static uint8_t space[4096];
    struct buffer body = {space, 0, sizeof space};
    int r = wire_encode_reply(opcode, reply, &body);

    assert(r == 0);
    wire_give_number(out, SAID_REPLY, 1);
    wire_give_number(out, body.size, 2);
    wire_give(out, space, body.size);
    wire_give_number(out, bulk.size, 2);
    if (bulk.size > 0) {
        wire_give(out, bulk.data, bulk.size);
    }
}

void give_error(struct buffer *out, int error) {
    wire_give_number(out, SAID_ERROR, 1);
    wire_give_number(out, (uint64_t)-error, 1);
}

void give_request(struct buffer *out, uint16_t opcode, uint8_t asker,
                  const union request_body *body) {
    static uint8_t space[8192];
    struct buffer encoded = {space, 0, sizeof space};
    int r = wire_encode_request(opcode, body, &encoded);

    assert(r == 0);
    wire_give_number(out, asker, 1);
    wire_give_number(out, encoded.size, 2);
    wire_give(out, space, encoded.size);
}
