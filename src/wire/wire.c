/* Tables generated from messages.def and the one walker that encodes and decodes by them.
 *
 * A message is a row of fields {type, place in the struct, limit}; the walkers switch over twelve
 * types, so that a new message costs no code. */
#include "wire/wire.h"
#include "wire/wire_cursor.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum field_type {
    FIELD_u8,
    FIELD_u16,
    FIELD_u32,
    FIELD_u64,
    FIELD_i64,
    FIELD_ino,
    FIELD_bytes,
    FIELD_attributes,
    FIELD_credentials,
    FIELD_layout,
    FIELD_capability,
    FIELD_known,
};

/* In front of attributes, credentials, layouts and capabilities. */
enum { STRUCT_LENGTH_BYTES = 2 };

struct field {
    const char *name;
    uint16_t offset;
    uint16_t limit;
    uint8_t type;
};

struct message_row {
    const char *name;
    const struct field *request;
    const struct field *reply;
    uint8_t request_count;
    uint8_t reply_count;
    uint8_t message_class;
    uint8_t kind;
    uint8_t from;
    uint8_t reply_bulk;
};

#define FIELD_ROW(message, type, field, limit)                                                     \
    {#field, offsetof(struct message, field), limit, FIELD_##type},
#define M(name, NAME, number, message_class, kind, from, reply)                                    \
    static const struct field name##_request_fields[] = {                                          \
        FIELDS_##name##_request(FIELD_ROW, name##_request)};                                       \
    static const struct field name##_reply_fields[] = {                                            \
        FIELDS_##name##_reply(FIELD_ROW, name##_reply)};
MESSAGES(M)
#undef M

/* Numbers of enum message_class (rpc/actor.h), which this level may not include. */
enum { CLASS_CONTROL, CLASS_RELEASE, CLASS_REQUEST, CLASS_BACKGROUND };

enum { REPLY_NONE, REPLY_BULK };
enum { FROM_MEMBER = WIRE_MEMBER_ONLY, FROM_WRITER = WIRE_WRITER, FROM_MOUNT = WIRE_MOUNT };

static const struct message_row rows[OPCODE_COUNT] = {
#define M(name, NAME, number, message_class, kind, from, reply)                                    \
    [number] = {#name,                                                                             \
                name##_request_fields,                                                             \
                name##_reply_fields,                                                               \
                ARRAY_SIZE(name##_request_fields),                                                 \
                ARRAY_SIZE(name##_reply_fields),                                                   \
                CLASS_##message_class,                                                             \
                WIRE_##kind,                                                                       \
                FROM_##from,                                                                       \
                REPLY_##reply},
    MESSAGES(M)
#undef M
};

static const struct message_row *row_of(uint16_t opcode) {
    return opcode < OPCODE_COUNT && rows[opcode].name ? &rows[opcode] : NULL;
}

const char *wire_name(uint16_t opcode) {
    const struct message_row *row = row_of(opcode);

    return row ? row->name : NULL;
}

bool wire_is_mutation(uint16_t opcode) {
    const struct message_row *row = row_of(opcode);

    return row && row->kind == WIRE_MUTATION;
}

bool wire_reply_has_bulk(uint16_t opcode) {
    const struct message_row *row = row_of(opcode);

    return row && row->reply_bulk == REPLY_BULK;
}

uint8_t wire_from(uint16_t opcode) {
    const struct message_row *row = row_of(opcode);

    return row ? row->from : WIRE_MEMBER_ONLY;
}

struct credentials *wire_request_credentials(uint16_t opcode, union request_body *body) {
    const struct message_row *row = row_of(opcode);

    for (size_t i = 0; row && i < row->request_count; i++) {
        if (row->request[i].type == FIELD_credentials) {
            return (struct credentials *)(void *)((uint8_t *)body + row->request[i].offset);
        }
    }
    return NULL;
}

/* The request's field of that name, as each `known` one of a reply has. */
static struct ino ino_named(const struct message_row *row, const char *name,
                            const union request_body *request) {
    struct ino ino = {0};

    for (size_t i = 0; i < row->request_count; i++) {
        const struct field *field = &row->request[i];

        if (field->type == FIELD_ino && strcmp(field->name, name) == 0) {
            memcpy(&ino, (const uint8_t *)request + field->offset, sizeof ino);
        }
    }
    return ino;
}

uint32_t wire_parents(uint16_t opcode, const union request_body *request, union reply_body *reply,
                      struct wire_parent ret_parents[WIRE_PARENTS_MAX]) {
    const struct message_row *row = row_of(opcode);
    uint32_t count = 0;

    for (size_t i = 0; row && i < row->reply_count; i++) {
        const struct field *field = &row->reply[i];

        if (field->type == FIELD_known) {
            struct ino ino = ino_named(row, field->name, request);

            assert(ino.value != 0 && count < WIRE_PARENTS_MAX);
            if (count == 0 || ret_parents[0].ino.value != ino.value) {
                ret_parents[count++] = (struct wire_parent){
                    ino, (struct attributes *)(void *)((uint8_t *)reply + field->offset)};
            }
        }
    }
    return count;
}

uint8_t wire_class(uint16_t opcode) {
    const struct message_row *row = row_of(opcode);

    return row ? row->message_class : 0;
}

/* The fields of compound types, in wire order. */
struct part {
    uint16_t offset;
    uint8_t size;
};

/* Numbers that follow each other in the struct as on the wire are one part: copied as they are. */
#define MEMBER_END(type, field)                                                                    \
    (offsetof(struct type, field) + sizeof(((struct type *)NULL)->field))
/* clang-format does not settle on one layout of a braced macro. */
/* clang-format off */
#define PART(type, first, last)                                                                    \
    {offsetof(struct type, first), MEMBER_END(type, last) - offsetof(struct type, first)}
/* clang-format on */
#define PART_IS(type, first, last, size_bytes)                                                     \
    static_assert(MEMBER_END(type, last) - offsetof(struct type, first) == (size_bytes),           \
                  "a gap in what is copied as a whole")

static const struct part attribute_parts[] = {
    PART(attributes, ino, truncate_seq),
    PART(attributes, size, data_state),
};
PART_IS(attributes, ino, truncate_seq, 8 + 7 * 4);
PART_IS(attributes, size, data_state, 7 * 8 + 1);
static_assert(8 + 7 * 4 + 7 * 8 + 1 == WIRE_ATTRIBUTES_BYTES, "attributes have a size");

static const struct part layout_parts[] = {PART(layout, pool_version, redundancy)};
PART_IS(layout, pool_version, redundancy, 3 * 4 + 2 + 1);

static const struct part capability_parts[] = {
    PART(capability, ino, truncate_seq),
    PART(capability, truncate_size, key_number),
    PART(capability, signature[0], key_name),
};
PART_IS(capability, ino, truncate_seq, 8 + 2 * 4 + 8 + 4);
PART_IS(capability, truncate_size, key_number, 4 * 8 + 4);
PART_IS(capability, signature[0], key_name, 3 * 8);

static size_t parts_bytes(const struct part *parts, size_t count) {
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += parts[i].size;
    }
    return bytes;
}

static void give_parts(struct buffer *out, const void *from, const struct part *parts,
                       size_t count) {
    for (size_t i = 0; i < count; i++) {
        wire_give(out, (const uint8_t *)from + parts[i].offset, parts[i].size);
    }
}

/* As far as there are bytes: an older peer's struct is the beginning of ours. */
static void take_parts(struct wire_cursor *in, void *to, const struct part *parts, size_t count) {
    for (size_t i = 0; i < count && in->size > 0; i++) {
        size_t size = MIN(in->size, (size_t)parts[i].size);

        memcpy((uint8_t *)to + parts[i].offset, wire_take(in, size), size);
    }
}

static void give_struct(struct buffer *out, const void *from, const struct part *parts,
                        size_t count) {
    wire_give_number(out, parts_bytes(parts, count), STRUCT_LENGTH_BYTES);
    give_parts(out, from, parts, count);
}

/* Of no inode: a struct of no bytes, which reads as zeros. */
static void give_known(struct buffer *out, const struct attributes *from) {
    size_t count = from->ino.value != 0 ? ARRAY_SIZE(attribute_parts) : 0;

    give_struct(out, from, attribute_parts, count);
}

/* The bytes of the struct that comes next; what is left of it when it has been read is not looked
 * at. Empty when it is cut off. */
static struct wire_cursor take_struct(struct wire_cursor *in) {
    size_t size = wire_take_number(in, STRUCT_LENGTH_BYTES);
    const uint8_t *at = wire_take(in, size);

    return (struct wire_cursor){at, at ? size : 0, false};
}

static size_t number_bytes(uint8_t type) {
    static const uint8_t sizes[] = {[FIELD_u8] = 1,  [FIELD_u16] = 2, [FIELD_u32] = 4,
                                    [FIELD_u64] = 8, [FIELD_i64] = 8, [FIELD_ino] = 8};

    return sizes[type];
}

static int give_field(struct buffer *out, const struct field *field, const void *body) {
    const void *from = (const uint8_t *)body + field->offset;

    switch (field->type) {
    case FIELD_bytes: {
        const struct bytes *bytes = from;

        if (bytes->size > field->limit) {
            return -ERR_INVALID;
        }
        wire_give_number(out, bytes->size, 4);
        wire_give(out, bytes->data, bytes->size);
        return 0;
    }
    case FIELD_credentials: {
        const struct credentials *who = from;

        if (who->group_count > WIRE_GROUPS_MAX) {
            return -ERR_INVALID;
        }
        wire_give_number(out, 12 + who->group_count * sizeof *who->groups, STRUCT_LENGTH_BYTES);
        wire_give_number(out, who->uid, 4);
        wire_give_number(out, who->gid, 4);
        wire_give_number(out, who->group_count, 4);
        wire_give(out, who->groups, who->group_count * sizeof *who->groups);
        return 0;
    }
    case FIELD_attributes:
        give_struct(out, from, attribute_parts, ARRAY_SIZE(attribute_parts));
        return 0;
    case FIELD_known:
        give_known(out, from);
        return 0;
    case FIELD_layout:
        give_struct(out, from, layout_parts, ARRAY_SIZE(layout_parts));
        return 0;
    case FIELD_capability:
        give_struct(out, from, capability_parts, ARRAY_SIZE(capability_parts));
        return 0;
    default:
        wire_give(out, from, number_bytes(field->type));
        return 0;
    }
}

static void take_bytes(struct wire_cursor *in, uint16_t limit, struct bytes *to) {
    size_t size = wire_take_number(in, 4);

    if (size > limit) {
        in->bad = true;
        return;
    }
    const uint8_t *at = wire_take(in, size);
    if (at) {
        *to = (struct bytes){at, size};
    }
}

static void take_credentials(struct wire_cursor *in, uint32_t *scratch, struct credentials *to) {
    struct wire_cursor inner = take_struct(in);

    if (inner.size == 0) {
        return;
    }
    to->uid = (uint32_t)wire_take_number(&inner, 4);
    to->gid = (uint32_t)wire_take_number(&inner, 4);
    uint32_t count = (uint32_t)wire_take_number(&inner, 4);
    const uint8_t *at = wire_take(&inner, count * sizeof *scratch);
    if (inner.bad || count > WIRE_GROUPS_MAX || (count > 0 && !scratch)) {
        in->bad = true;
    } else if (count > 0) {
        memcpy(scratch, at, count * sizeof *scratch);
        to->group_count = count;
        to->groups = scratch;
    }
}

static void take_field(struct wire_cursor *in, const struct field *field, uint32_t *scratch,
                       void *body) {
    void *to = (uint8_t *)body + field->offset;
    struct wire_cursor inner;

    switch (field->type) {
    case FIELD_bytes:
        take_bytes(in, field->limit, to);
        break;
    case FIELD_credentials:
        take_credentials(in, scratch, to);
        break;
    case FIELD_attributes:
    case FIELD_known:
        inner = take_struct(in);
        take_parts(&inner, to, attribute_parts, ARRAY_SIZE(attribute_parts));
        break;
    case FIELD_layout:
        inner = take_struct(in);
        take_parts(&inner, to, layout_parts, ARRAY_SIZE(layout_parts));
        break;
    case FIELD_capability:
        inner = take_struct(in);
        take_parts(&inner, to, capability_parts, ARRAY_SIZE(capability_parts));
        break;
    default: {
        const uint8_t *at = wire_take(in, number_bytes(field->type));

        if (at) {
            memcpy(to, at, number_bytes(field->type));
        }
    }
    }
}

/* A body is u32 length and its fields. */
static int encode(const struct field *fields, size_t count, const void *body, struct buffer *out) {
    size_t start = out->size;

    wire_give_number(out, 0, 4);
    for (size_t i = 0; i < count; i++) {
        int r = give_field(out, &fields[i], body);

        if (r < 0) {
            out->size = start;
            return r;
        }
    }
    if (out->size > out->capacity) {
        out->size = start;
        return -ERR_TOO_SMALL;
    }
    store_le32(out->data + start, (uint32_t)(out->size - start - 4));
    return 0;
}

/* Fields that an older peer does not send stay zero; what a newer one adds is not looked at. A
 * field that is cut off in its middle is malformed. */
static int decode(const struct field *fields, size_t count, struct bytes in, uint32_t *scratch,
                  void *ret_body) {
    struct wire_cursor outer = {in.data, in.size, false};
    size_t length = wire_take_number(&outer, 4);
    const uint8_t *at = wire_take(&outer, length);

    if (!at) {
        return -ERR_MALFORMED;
    }
    struct wire_cursor cursor = {at, length, false};
    for (size_t i = 0; i < count && cursor.size > 0; i++) {
        take_field(&cursor, &fields[i], scratch, ret_body);
        if (cursor.bad) {
            return -ERR_MALFORMED;
        }
    }
    return 0;
}

int wire_encode_request(uint16_t opcode, const union request_body *body, struct buffer *out) {
    const struct message_row *row = row_of(opcode);

    return row ? encode(row->request, row->request_count, body, out) : -ERR_INVALID;
}

int wire_encode_reply(uint16_t opcode, const union reply_body *body, struct buffer *out) {
    const struct message_row *row = row_of(opcode);

    return row ? encode(row->reply, row->reply_count, body, out) : -ERR_INVALID;
}

int wire_decode_request(uint16_t opcode, struct bytes in, uint32_t *scratch,
                        union request_body *ret_body) {
    const struct message_row *row = row_of(opcode);
    union request_body body;

    memset(&body, 0, sizeof body);
    int r = row ? decode(row->request, row->request_count, in, scratch, &body) : -ERR_MALFORMED;
    if (r == 0) {
        *ret_body = body;
    }
    return r;
}

int wire_decode_reply(uint16_t opcode, struct bytes in, union reply_body *ret_body) {
    const struct message_row *row = row_of(opcode);
    union reply_body body;

    memset(&body, 0, sizeof body);
    int r = row ? decode(row->reply, row->reply_count, in, NULL, &body) : -ERR_MALFORMED;
    if (r == 0) {
        *ret_body = body;
    }
    return r;
}

void wire_encode_attributes(const struct attributes *attributes, struct buffer *out) {
    give_parts(out, attributes, attribute_parts, ARRAY_SIZE(attribute_parts));
}

int wire_decode_attributes(struct bytes in, struct attributes *ret_attributes) {
    struct wire_cursor cursor = {in.data, in.size, false};
    struct attributes attributes = {0};

    if (in.size == 0) {
        return -ERR_MALFORMED;
    }
    take_parts(&cursor, &attributes, attribute_parts, ARRAY_SIZE(attribute_parts));
    *ret_attributes = attributes;
    return 0;
}

static void print_bytes(const struct bytes *bytes, char *out, size_t size) {
    size_t at = 0;

    for (size_t i = 0; i < bytes->size && i < 40 && at + 5 < size; i++) {
        uint8_t byte = bytes->data[i];
        bool plain = byte >= 0x20 && byte < 0x7f && byte != '"';

        at += (size_t)(plain ? snprintf(out + at, size - at, "%c", byte)
                             : snprintf(out + at, size - at, "\\x%02x", byte));
    }
    out[MIN(at, size - 1)] = '\0';
}

static size_t print_field(const struct field *field, const void *from, char *out, size_t size) {
    char text[224];
    uint64_t number = 0;

    switch (field->type) {
    case FIELD_bytes:
        print_bytes(from, text, sizeof text);
        return (size_t)snprintf(out, size, " %s=\"%s\"", field->name, text);
    case FIELD_credentials:
        return (size_t)snprintf(out, size, " uid=%u", ((const struct credentials *)from)->uid);
    case FIELD_capability: {
        const struct capability *capability = from;

        return (size_t)snprintf(out, size, " cap=%" PRIx64 "/%u", capability->ino.value,
                                capability->truncate_seq);
    }
    case FIELD_attributes:
    case FIELD_known:
    case FIELD_layout:
        return (size_t)snprintf(out, size, " %s", field->name);
    default:
        memcpy(&number, from, number_bytes(field->type));
        return (size_t)snprintf(out, size, " %s=%" PRIu64, field->name, number);
    }
}

void wire_print_request(uint16_t opcode, const union request_body *body, char *out, size_t size) {
    const struct message_row *row = row_of(opcode);

    assert(size > 0);
    size_t at = (size_t)snprintf(out, size, "%s", row ? row->name : "unknown");
    for (size_t i = 0; row && i < row->request_count && at < size; i++) {
        const struct field *field = &row->request[i];

        at += print_field(field, (const uint8_t *)body + field->offset, out + at, size - at);
    }
}

uint64_t wire_request_ino(uint16_t opcode, const union request_body *body) {
    const struct message_row *row = row_of(opcode);

    for (uint32_t i = 0; row && i < row->request_count; i++) {
        const struct field *field = &row->request[i];
        const void *from = (const uint8_t *)body + field->offset;

        if (field->type == FIELD_ino) {
            return ((const struct ino *)from)->value;
        }
        if (field->type == FIELD_capability) {
            return ((const struct capability *)from)->ino.value;
        }
    }
    return 0;
}

size_t wire_request_bytes(uint16_t opcode, const union request_body *body) {
    const struct message_row *row = row_of(opcode);
    size_t size = 0;

    for (uint32_t i = 0; row && i < row->request_count; i++) {
        const struct field *field = &row->request[i];

        if (field->type == FIELD_bytes) {
            size +=
                ((const struct bytes *)(const void *)((const uint8_t *)body + field->offset))->size;
        }
    }
    return size;
}

void wire_request_move_bytes(uint16_t opcode, union request_body *body, uint8_t *to) {
    const struct message_row *row = row_of(opcode);

    for (uint32_t i = 0; row && i < row->request_count; i++) {
        const struct field *field = &row->request[i];
        struct bytes *bytes = (void *)((uint8_t *)body + field->offset);

        if (field->type == FIELD_bytes && bytes->size > 0) {
            memcpy(to, bytes->data, bytes->size);
            bytes->data = to;
            to += bytes->size;
        }
    }
}
