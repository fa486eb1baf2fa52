/* Calls as bytes: the head of a request and of its reply. Bulk travels beside, never in it.
 *
 *     request:  u16 bytes of the fixed fields, these included, u16 opcode, u16 slot, u16 0;
 *               u64 id, log, origin, session, incarnation, sequence, floor, map_version, trace_id,
 *               term, epoch, time left in ns (UINT64_MAX: without end), bulk bytes that follow,
 *               space for the reply's bulk; u32 chain_version, checksum count, 0 or 1: checksums
 *               follow, 0; [fields of a newer version]; u32 each checksum; body
 *     reply:    u16 bytes of the fixed fields, these included, u16 opcode, u32 0; u64 id, log,
 *               term, epoch, log position that it depends on, bulk bytes that follow; i32 result;
 *               u32 checksum count, 0 or 1: checksums follow, 0; [fields of a newer version];
 *               u32 each checksum; body
 *
 * Little-endian, unaligned. The id is the client's own and comes back as it was. Fixed fields that
 * an older peer does not have are zero, those of a newer one are skipped, as in bodies (wire.h).
 * Any bytes may be decoded: -ERR_MALFORMED, and nothing is read beyond them. Pure, any thread. */
#pragma once
#include "rpc/call.h"

/* Numbers of a request that are no fields of struct call. */
struct frame_request {
    uint64_t id;
    uint64_t time_left_ns; /* UINT64_MAX: without end */
    uint64_t bulk_out_bytes;
    uint64_t bulk_in_bytes;  /* space that the client has */
    uint32_t checksum_count; /* as in struct call */
    struct bytes checksums;  /* u32 each, in the input; empty when they are for the reply */
};

struct frame_reply {
    uint64_t id;
    uint16_t opcode;
    int result;
    struct log_id log;
    uint64_t term;
    uint64_t epoch;
    uint64_t position;
    uint64_t bulk_bytes;
    struct bytes checksums;
    struct bytes body;
};

/* What the head of this call takes at most. */
size_t frame_request_size(const struct call *call);
size_t frame_reply_size(const struct call *call);

/* Append the head; errors are those of wire_encode_*, and -ERR_TOO_SMALL. time_left_ns: as in the
 * frame. */
MUST_CHECK int frame_encode_request(const struct call *call, uint64_t id, uint64_t time_left_ns,
                                    struct buffer *out);
MUST_CHECK int frame_encode_reply(const struct call *call, uint64_t id, struct buffer *out);

/* What must be known of a request to answer it at all. */
struct frame_peek {
    uint64_t id;
    struct log_id log;
    uint16_t opcode;
};
MUST_CHECK int frame_peek_request(struct bytes head, struct frame_peek *ret_peek);
/* Fills header and request of the call; byte fields point into the input, groups into scratch
 * (WIRE_GROUPS_MAX). -ERR_NOT_SUPPORTED for an opcode that is none here. */
MUST_CHECK int frame_decode_request(struct bytes head, uint32_t *scratch, struct call *call,
                                    struct frame_request *ret_frame);
/* In two parts, as the call of a reply is found by its id. */
MUST_CHECK int frame_decode_reply(struct bytes head, struct frame_reply *ret_frame);
/* Fills reply and checksums of the call, whose space is kept to. */
MUST_CHECK int frame_apply_reply(const struct frame_reply *frame, struct call *call);
