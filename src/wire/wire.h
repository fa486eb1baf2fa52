/* Messages: structs, tables and codecs, all generated from messages.def.
 *
 * Encoding: fields in order, little-endian, without padding; bytes fields are u32 length and
 * bytes; attributes, credentials, layouts and capabilities are u16 length and their fields. A body
 * carries its length, too, so unknown trailing fields are skipped at each level and missing ones
 * are zero: versions mix. Decoded bytes and groups point into the input (groups into `scratch`).
 *
 * Any bytes may be given to a decoder: it answers -ERR_MALFORMED and reads nothing beyond them. */
#pragma once
#include "base/err.h"
#include "wire/wire_lives.h"
#include "wire/wire_types.h"

/* Of chunk_length: an incarnation of a session that changes nothing any more. */
struct wire_fence {
    uint64_t session;
    uint64_t incarnation;
};
enum {
    WIRE_FENCE_BYTES = 16,
    WIRE_FENCES_MAX = 64,
    WIRE_FENCES_BYTES_MAX = WIRE_FENCES_MAX * WIRE_ROW_GROWTH * WIRE_FENCE_BYTES_MIN
};
_Static_assert(sizeof(struct wire_fence) == WIRE_FENCE_BYTES, "no padding");

#define WIRE_C_u8 uint8_t
#define WIRE_C_u16 uint16_t
#define WIRE_C_u32 uint32_t
#define WIRE_C_u64 uint64_t
#define WIRE_C_i64 int64_t
#define WIRE_C_ino struct ino
#define WIRE_C_bytes struct bytes
#define WIRE_C_attributes struct attributes
#define WIRE_C_known struct attributes
#define WIRE_C_credentials struct credentials
#define WIRE_C_layout struct layout
#define WIRE_C_capability struct capability
#define WIRE_MEMBER(message, type, field, limit) WIRE_C_##type field;

#include "wire/messages.def"

#define M(name, NAME, number, message_class, kind, from, reply)                                    \
    struct name##_request {                                                                        \
        FIELDS_##name##_request(WIRE_MEMBER, name##_request)                                       \
    };                                                                                             \
    struct name##_reply {                                                                          \
        FIELDS_##name##_reply(WIRE_MEMBER, name##_reply)                                           \
    };
MESSAGES(M)
#undef M

enum opcode {
#define M(name, NAME, number, message_class, kind, from, reply) OP_##NAME = number,
    MESSAGES(M)
#undef M
        OPCODE_COUNT = 80
};

union request_body {
#define M(name, NAME, number, message_class, kind, from, reply) struct name##_request name;
    MESSAGES(M)
#undef M
};

union reply_body {
#define M(name, NAME, number, message_class, kind, from, reply) struct name##_reply name;
    MESSAGES(M)
#undef M
};

enum wire_kind { WIRE_QUERY, WIRE_MUTATION };
/* Whose key lets a message in; who may less has the higher number. */
enum wire_from { WIRE_MEMBER_ONLY, WIRE_WRITER, WIRE_MOUNT };

/* NULL / false / 0 for numbers that are no message. */
const char *wire_name(uint16_t opcode);
bool wire_is_mutation(uint16_t opcode);
/* Of the file or directory that a request names first; 0 when it names none. */
uint64_t wire_request_ino(uint16_t opcode, const union request_body *body);
bool wire_reply_has_bulk(uint16_t opcode);
uint8_t wire_from(uint16_t opcode); /* enum wire_from; MEMBER_ONLY for what is no message */
/* The bytes fields of a request together; copies them, and lets the body name the copies. */
size_t wire_request_bytes(uint16_t opcode, const union request_body *body);
void wire_request_move_bytes(uint16_t opcode, union request_body *body, uint8_t *to);
/* As whom it is asked; NULL: the message does not say. */
struct credentials *wire_request_credentials(uint16_t opcode, union request_body *body);
/* Directories whose names it changes, and what the answer tells of each: the reply's `known`
 * fields, by the request's fields of the same names; one that stands in it twice, once. */
enum { WIRE_PARENTS_MAX = 2 };
struct wire_parent {
    struct ino ino;
    struct attributes *attributes; /* in the reply */
};
uint32_t wire_parents(uint16_t opcode, const union request_body *request, union reply_body *reply,
                      struct wire_parent ret_parents[WIRE_PARENTS_MAX]);
uint8_t wire_class(uint16_t opcode); /* enum message_class of rpc/actor.h, same numbers */

/* Append the encoded body; -ERR_TOO_SMALL, -ERR_INVALID (a bytes field over its limit). */
MUST_CHECK int wire_encode_request(uint16_t opcode, const union request_body *body,
                                   struct buffer *out);
MUST_CHECK int wire_encode_reply(uint16_t opcode, const union reply_body *body, struct buffer *out);
/* scratch holds decoded group lists: WIRE_GROUPS_MAX entries, alive as long as the body is used. */
MUST_CHECK int wire_decode_request(uint16_t opcode, struct bytes in, uint32_t *scratch,
                                   union request_body *ret_body);
MUST_CHECK int wire_decode_reply(uint16_t opcode, struct bytes in, union reply_body *ret_body);

/* Attributes alone, as readdir's entries carry them, whose header says their length: an older
 * peer's are the beginning of these, a newer one's go on. -ERR_MALFORMED without any. */
enum { WIRE_ATTRIBUTES_BYTES = 93 };
void wire_encode_attributes(const struct attributes *attributes, struct buffer *out);
MUST_CHECK int wire_decode_attributes(struct bytes in, struct attributes *ret_attributes);
/* Prints "lookup parent=1 name=\"a\"" for traces; always terminated, cut when too long. */
void wire_print_request(uint16_t opcode, const union request_body *body, char *out, size_t size);
