/* The contract and the format are in frame.h. */
#include "rpc/frame.h"
#include "base/endian.h"
#include "wire/wire_cursor.h"

/* Numbers, lists' lengths and every fixed field; strings are at most these. */
enum { FRAME_FIXED_BYTES = 1024, FRAME_STRINGS_BYTES = 8192 + 4 * WIRE_GROUPS_MAX };

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

int frame_encode_request(const struct call *call, uint64_t id, struct buffer *out) {
    const struct call_header *header = &call->header;
    bool with_checksums = call->bulk_out_count > 0;
    size_t before = out->size;
    int r;

    wire_give_number(out, id, 8);
    wire_give_number(out, header->opcode, 2);
    wire_give_number(out, header->slot.value, 2);
    wire_give_number(out, header->target.value, 4);
    wire_give_number(out, header->session.value, 8);
    wire_give_number(out, header->incarnation, 8);
    wire_give_number(out, header->sequence, 8);
    wire_give_number(out, header->floor, 8);
    wire_give_number(out, header->map_version, 8);
    wire_give_number(out, header->trace_id, 8);
    wire_give_number(out, header->term, 8);
    wire_give_number(out, bulk_out_bytes(call), 8);
    wire_give_number(out, call->bulk_in.capacity, 8);
    wire_give_number(out, call->checksum_count, 4);
    wire_give_number(out, with_checksums, 4);
    give_checksums(out, call, with_checksums);
    if (out->size > out->capacity) {
        out->size = before;
        return -ERR_TOO_SMALL;
    }
    r = wire_encode_request(header->opcode, &call->request, out);
    if (r < 0) {
        out->size = before;
    }
    return r;
}

int frame_encode_reply(const struct call *call, uint64_t id, struct buffer *out) {
    bool with_checksums = call->bulk_out_count == 0 && call->bulk_in.size > 0;
    size_t before = out->size;
    int r = 0;

    wire_give_number(out, id, 8);
    wire_give_number(out, call->header.opcode, 2);
    wire_give_number(out, 0, 2);
    wire_give_number(out, (uint32_t)call->result, 4);
    wire_give_number(out, call->server_position, 8);
    wire_give_number(out, call->bulk_in.size, 8);
    wire_give_number(out, with_checksums ? call->checksum_count : 0, 4);
    wire_give_number(out, with_checksums, 4);
    give_checksums(out, call, with_checksums);
    if (out->size > out->capacity) {
        out->size = before;
        return -ERR_TOO_SMALL;
    }
    /* An opcode that we don't know has no body to answer with. */
    if (wire_name(call->header.opcode)) {
        r = wire_encode_reply(call->header.opcode, &call->reply, out);
    }
    if (r < 0) {
        out->size = before;
    }
    return r;
}

/* Count, whether they follow, values, and the body up to the end: so both heads end. */
static int take_rest(struct wire_cursor *cursor, uint32_t *ret_count, struct bytes *ret_checksums,
                     struct bytes *ret_body) {
    uint32_t count = (uint32_t)wire_take_number(cursor, 4);
    uint32_t follow = (uint32_t)wire_take_number(cursor, 4);
    size_t checksums_size = follow ? 4 * (size_t)count : 0;
    const uint8_t *checksums = wire_take(cursor, checksums_size);

    if (cursor->bad || follow > 1) {
        return -ERR_MALFORMED;
    }
    *ret_count = count;
    *ret_checksums = (struct bytes){checksums, checksums_size};
    *ret_body = (struct bytes){cursor->data, cursor->size};
    return 0;
}

int frame_peek_request(struct bytes head, uint64_t *ret_id, uint16_t *ret_opcode) {
    struct wire_cursor cursor = {head.data, head.size, false};
    uint64_t id = wire_take_number(&cursor, 8);
    uint16_t opcode = (uint16_t)wire_take_number(&cursor, 2);

    if (cursor.bad) {
        return -ERR_MALFORMED;
    }
    *ret_id = id;
    *ret_opcode = opcode;
    return 0;
}

static void take_header(struct wire_cursor *cursor, struct call_header *header) {
    header->opcode = (uint16_t)wire_take_number(cursor, 2);
    header->slot.value = (uint16_t)wire_take_number(cursor, 2);
    header->target.value = (uint32_t)wire_take_number(cursor, 4);
    header->session.value = wire_take_number(cursor, 8);
    header->incarnation = wire_take_number(cursor, 8);
    header->sequence = wire_take_number(cursor, 8);
    header->floor = wire_take_number(cursor, 8);
    header->map_version = wire_take_number(cursor, 8);
    header->trace_id = wire_take_number(cursor, 8);
    header->term = wire_take_number(cursor, 8);
    header->message_class = wire_class(header->opcode);
}

int frame_decode_request(struct bytes head, uint32_t *scratch, struct call *call,
                         struct frame_request *ret_frame) {
    struct wire_cursor cursor = {head.data, head.size, false};
    struct call_header header = {0};
    struct frame_request frame = {0};
    union request_body request;
    struct bytes body;
    int r;

    frame.id = wire_take_number(&cursor, 8);
    take_header(&cursor, &header);
    frame.bulk_out_bytes = wire_take_number(&cursor, 8);
    frame.bulk_in_bytes = wire_take_number(&cursor, 8);
    r = take_rest(&cursor, &frame.checksum_count, &frame.checksums, &body);
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
    call->header = header;
    call->request = request;
    *ret_frame = frame;
    return 0;
}

int frame_decode_reply(struct bytes head, struct frame_reply *ret_frame) {
    struct wire_cursor cursor = {head.data, head.size, false};
    struct frame_reply frame = {0};
    uint32_t checksum_count;
    uint16_t reserved;
    int r;

    frame.id = wire_take_number(&cursor, 8);
    frame.opcode = (uint16_t)wire_take_number(&cursor, 2);
    reserved = (uint16_t)wire_take_number(&cursor, 2);
    frame.result = (int32_t)wire_take_number(&cursor, 4);
    frame.position = wire_take_number(&cursor, 8);
    frame.bulk_bytes = wire_take_number(&cursor, 8);
    r = take_rest(&cursor, &checksum_count, &frame.checksums, &frame.body);
    if (r < 0) {
        return r;
    }
    if (reserved != 0 || frame.result > 0) {
        return -ERR_MALFORMED;
    }
    *ret_frame = frame;
    return 0;
}

int frame_apply_reply(const struct frame_reply *frame, struct call *call) {
    size_t checksum_count = frame->checksums.size / 4;
    union reply_body reply = {0};
    int r = 0;

    if (frame->opcode != call->header.opcode || frame->bulk_bytes > call->bulk_in.capacity ||
        checksum_count > call->checksum_count) {
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
    if (checksum_count > 0) {
        for (size_t i = 0; i < checksum_count; i++) {
            call->checksums[i] = load_le32(frame->checksums.data + 4 * i);
        }
        call->checksum_count = (uint32_t)checksum_count;
    }
    return 0;
}
