/* The contract and the format are in frame.h. */
#include "rpc/frame.h"
#include "base/endian.h"
#include "wire/wire_cursor.h"

/* Numbers, lists' lengths and every fixed field; strings are at most these. */
enum { FRAME_FIXED_BYTES = 1024, FRAME_STRINGS_BYTES = 8192 + 4 * WIRE_GROUPS_MAX };
enum { FRAME_REQUEST_BYTES = 136, FRAME_REPLY_BYTES = 72, FRAME_LEAST_BYTES = 24 };

/* What stands in a fixed head beside a call's header and a struct frame_request or frame_reply. */
struct frame_rest {
    uint16_t bytes; /* of the fixed fields */
    uint32_t checksum_count;
    uint32_t follow;
    uint32_t zero;
};

/* F(value, bytes) for each fixed field, in order; the same lists write and read. */
/* clang-format does not settle on one layout of them. */
/* clang-format off */
#define REQUEST_FIELDS(F, header, frame, rest)                                                     \
    F((rest)->bytes, 2) F((header)->opcode, 2) F((header)->slot.value, 2) F((rest)->zero, 2)       \
    F((frame)->id, 8) F((header)->log.value, 8) F((header)->origin.value, 8)                       \
    F((header)->session.value, 8) F((header)->incarnation, 8) F((header)->sequence, 8)             \
    F((header)->floor, 8) F((header)->map_version, 8) F((header)->trace_id, 8)                     \
    F((header)->term, 8) F((header)->epoch, 8) F((frame)->time_left_ns, 8)                         \
    F((frame)->bulk_out_bytes, 8) F((frame)->bulk_in_bytes, 8) F((header)->chain_version, 4)       \
    F((rest)->checksum_count, 4) F((rest)->follow, 4) F((rest)->zero, 4)
#define REPLY_FIELDS(F, frame, rest)                                                               \
    F((rest)->bytes, 2) F((frame)->opcode, 2) F((rest)->zero, 4) F((frame)->id, 8)                 \
    F((frame)->log.value, 8) F((frame)->term, 8) F((frame)->epoch, 8) F((frame)->position, 8)      \
    F((frame)->bulk_bytes, 8) F((frame)->result, 4) F((rest)->checksum_count, 4)                   \
    F((rest)->follow, 4) F((rest)->zero, 4)
/* clang-format on */
#define GIVE(value, bytes) wire_give_number(out, (uint64_t)(value), bytes);
#define TAKE(value, bytes) (value) = (__typeof__(value))wire_take_number(&fixed, bytes);
#define COUNT(value, bytes) +(bytes)
_Static_assert((REQUEST_FIELDS(COUNT, , , )) == FRAME_REQUEST_BYTES, "the head of a request");
_Static_assert((REPLY_FIELDS(COUNT, , )) == FRAME_REPLY_BYTES, "the head of a reply");

static uint64_t bulk_out_bytes(const struct call *call) {
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < call->bulk_out_count; i++) {
        bytes += call->bulk_out[i].size;
    }
    return bytes;
}

size_t frame_request_size(const struct call *call) {
    return FRAME_FIXED_BYTES + FRAME_STRINGS_BYTES +
           (call->bulk_out_count > 0 ? 4 * (size_t)call->checksum_count : 0);
}

size_t frame_reply_size(const struct call *call) {
    return FRAME_FIXED_BYTES + 4 * (size_t)call->checksum_count;
}

static void give_checksums(struct buffer *out, const struct call *call, bool with_values) {
    for (uint32_t i = 0; with_values && i < call->checksum_count; i++) {
        wire_give_number(out, call->checksums[i], 4);
    }
}

/* Checksums and body behind the fixed fields; what does not fit is taken back. */
static int give_rest(struct buffer *out, size_t before, const struct call *call,
                     bool with_checksums) {
    give_checksums(out, call, with_checksums);
    if (out->size > out->capacity) {
        out->size = before;
        return -ERR_TOO_SMALL;
    }
    return 0;
}

int frame_encode_request(const struct call *call, uint64_t id, uint64_t time_left_ns,
                         struct buffer *out) {
    bool with_checksums = call->bulk_out_count > 0;
    const struct frame_request frame = {.id = id,
                                        .time_left_ns = time_left_ns,
                                        .bulk_out_bytes = bulk_out_bytes(call),
                                        .bulk_in_bytes = call->bulk_in.capacity};
    const struct frame_rest rest = {.bytes = FRAME_REQUEST_BYTES,
                                    .checksum_count = call->checksum_count,
                                    .follow = with_checksums};
    size_t before = out->size;

    REQUEST_FIELDS(GIVE, &call->header, &frame, &rest)
    int r = give_rest(out, before, call, with_checksums);
    if (r == 0) {
        r = wire_encode_request(call->header.opcode, &call->request, out);
    }
    if (r < 0) {
        out->size = before;
    }
    return r;
}

int frame_encode_reply(const struct call *call, uint64_t id, struct buffer *out) {
    bool with_checksums = call->bulk_out_count == 0 && call->bulk_in.size > 0;
    const struct frame_reply frame = {.id = id,
                                      .opcode = call->header.opcode,
                                      .result = call->result,
                                      .log = call->header.log,
                                      .term = call->server_term,
                                      .epoch = call->server_epoch,
                                      .position = call->server_position,
                                      .bulk_bytes = call->bulk_in.size};
    const struct frame_rest rest = {.bytes = FRAME_REPLY_BYTES,
                                    .checksum_count = with_checksums ? call->checksum_count : 0,
                                    .follow = with_checksums};
    size_t before = out->size;

    REPLY_FIELDS(GIVE, &frame, &rest)
    int r = give_rest(out, before, call, with_checksums);
    /* An opcode that we don't know has no body to answer with. */
    if (r == 0 && wire_name(call->header.opcode)) {
        r = wire_encode_reply(call->header.opcode, &call->reply, out);
    }
    if (r < 0) {
        out->size = before;
    }
    return r;
}

/* The fixed fields, as many as there are, in `copy`, behind which zeros are; the cursor goes on
 * behind them, and behind those of a newer version. */
static struct wire_cursor take_fixed(struct wire_cursor *cursor, uint8_t *copy, size_t copy_bytes) {
    size_t size = cursor->size >= 2 ? load_le16(cursor->data) : 0;
    const uint8_t *at = wire_take(cursor, size);

    memset(copy, 0, copy_bytes);
    if (size < FRAME_LEAST_BYTES || !at) {
        cursor->bad = true;
    } else {
        memcpy(copy, at, MIN(size, copy_bytes));
    }
    return (struct wire_cursor){copy, copy_bytes, false};
}

/* Checksums, and the body up to the end: so both heads end. */
static int take_rest(struct wire_cursor *cursor, const struct frame_rest *rest,
                     struct bytes *ret_checksums, struct bytes *ret_body) {
    size_t checksums_size = rest->follow ? 4 * (size_t)rest->checksum_count : 0;
    const uint8_t *checksums = wire_take(cursor, checksums_size);

    if (cursor->bad || rest->follow > 1) {
        return -ERR_MALFORMED;
    }
    *ret_checksums = (struct bytes){checksums, checksums_size};
    *ret_body = (struct bytes){cursor->data, cursor->size};
    return 0;
}

int frame_peek_request(struct bytes head, struct frame_peek *ret_peek) {
    if (head.size < FRAME_LEAST_BYTES || load_le16(head.data) < FRAME_LEAST_BYTES) {
        return -ERR_MALFORMED;
    }
    *ret_peek = (struct frame_peek){.opcode = load_le16(head.data + 2),
                                    .id = load_le64(head.data + 8),
                                    .log = {load_le64(head.data + 16)}};
    return 0;
}

int frame_decode_request(struct bytes head, uint32_t *scratch, struct call *call,
                         struct frame_request *ret_frame) {
    uint8_t copy[FRAME_REQUEST_BYTES];
    struct wire_cursor cursor = {head.data, head.size, false};
    struct wire_cursor fixed = take_fixed(&cursor, copy, sizeof copy);
    struct call_header header = {0};
    struct frame_request frame = {0};
    struct frame_rest rest = {0};
    union request_body request;
    struct bytes body;

    REQUEST_FIELDS(TAKE, &header, &frame, &rest)
    int r = take_rest(&cursor, &rest, &frame.checksums, &body);
    if (r < 0) {
        return r;
    }
    if (!wire_name(header.opcode)) {
        return -ERR_NOT_SUPPORTED;
    }
    /* A mutation without a number could not be told from its copy. */
    if (wire_is_mutation(header.opcode) != (header.sequence > 0)) {
        return -ERR_MALFORMED;
    }
    r = wire_decode_request(header.opcode, body, scratch, &request);
    if (r < 0) {
        return r;
    }
    header.message_class = wire_class(header.opcode);
    frame.checksum_count = rest.checksum_count;
    call->header = header;
    call->request = request;
    *ret_frame = frame;
    return 0;
}

int frame_decode_reply(struct bytes head, struct frame_reply *ret_frame) {
    uint8_t copy[FRAME_REPLY_BYTES];
    struct wire_cursor cursor = {head.data, head.size, false};
    struct wire_cursor fixed = take_fixed(&cursor, copy, sizeof copy);
    struct frame_reply frame = {0};
    struct frame_rest rest = {0};

    REPLY_FIELDS(TAKE, &frame, &rest)
    int r = take_rest(&cursor, &rest, &frame.checksums, &frame.body);
    if (r < 0) {
        return r;
    }
    if (frame.result > 0) {
        return -ERR_MALFORMED;
    }
    *ret_frame = frame;
    return 0;
}

int frame_apply_reply(const struct frame_reply *frame, struct call *call) {
    size_t checksum_count = frame->checksums.size / 4;
    union reply_body reply = {0};
    int r = 0;

    if (frame->opcode != call->header.opcode || frame->log.value != call->header.log.value ||
        frame->bulk_bytes > call->bulk_in.capacity || checksum_count > call->checksum_count) {
        return -ERR_MALFORMED;
    }
    /* A server that does not know the opcode answers without a body. */
    if (frame->body.size > 0 || frame->result == 0) {
        r = wire_decode_reply(frame->opcode, frame->body, &reply);
    }
    if (r < 0) {
        return r;
    }
    call->reply = reply;
    call->server_position = frame->position;
    call->server_term = frame->term;
    call->server_epoch = frame->epoch;
    if (checksum_count > 0) {
        for (size_t i = 0; i < checksum_count; i++) {
            call->checksums[i] = load_le32(frame->checksums.data + 4 * i);
        }
        call->checksum_count = (uint32_t)checksum_count;
    }
    return 0;
}
