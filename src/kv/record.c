/* Building and reading records. */
#include "kv/record.h"
#include "base/crc32c.h"
#include "kv/ring_store.h"

enum { OPERATION = sizeof(struct log_operation), PATCH_OFFSET_BYTES = 2 };

size_t record_put_bytes(size_t value_bytes) {
    return OPERATION + KV_KEY_BYTES + value_bytes;
}

size_t record_patch_bytes(size_t patch_bytes) {
    return OPERATION + KV_KEY_BYTES + PATCH_OFFSET_BYTES + patch_bytes;
}

size_t record_delete_bytes(void) {
    return OPERATION + KV_KEY_BYTES;
}

size_t record_note_bytes(size_t note_bytes) {
    return OPERATION + note_bytes;
}

size_t record_outcome_bytes(size_t reply_bytes) {
    return OPERATION + sizeof(struct log_outcome) + reply_bytes;
}

size_t record_drop_bytes(void) {
    return OPERATION + sizeof(uint64_t);
}

static const uint8_t *write_header(const uint8_t *at, uint8_t kind, size_t size) {
    struct log_operation header = {.kind = kind, .size = (uint32_t)size};

    ring_store(at, &header, sizeof header);
    return at + sizeof header;
}

static const uint8_t *write_bytes(const uint8_t *at, const void *data, size_t size) {
    if (size > 0) {
        ring_store(at, data, size);
    }
    return at + size;
}

size_t record_write_put(const uint8_t *at, const struct kv_key *key, struct bytes value) {
    const uint8_t *to = write_header(at, LOG_PUT, KV_KEY_BYTES + value.size);

    to = write_bytes(to, key->bytes, KV_KEY_BYTES);
    return (size_t)(write_bytes(to, value.data, value.size) - at);
}

size_t record_write_delete(const uint8_t *at, const struct kv_key *key) {
    const uint8_t *to = write_header(at, LOG_DELETE, KV_KEY_BYTES);

    return (size_t)(write_bytes(to, key->bytes, KV_KEY_BYTES) - at);
}

size_t record_write_patch(const uint8_t *at, const struct kv_key *key, size_t offset,
                          struct bytes patch) {
    const uint8_t *to = write_header(at, LOG_PATCH, KV_KEY_BYTES + PATCH_OFFSET_BYTES + patch.size);
    uint8_t from[PATCH_OFFSET_BYTES];

    to = write_bytes(to, key->bytes, KV_KEY_BYTES);
    store_le16(from, (uint16_t)offset);
    to = write_bytes(to, from, sizeof from);
    return (size_t)(write_bytes(to, patch.data, patch.size) - at);
}

size_t record_write_note(const uint8_t *at, struct bytes note) {
    const uint8_t *to = write_header(at, LOG_NOTE, note.size);

    return (size_t)(write_bytes(to, note.data, note.size) - at);
}

size_t record_write_outcome(const uint8_t *at, const struct kv_outcome *outcome) {
    struct log_outcome fixed = {.session = outcome->session.value,
                                .sequence = outcome->sequence,
                                .floor = outcome->floor,
                                .result = outcome->result,
                                .slot = outcome->slot.value};
    const uint8_t *to = write_header(at, LOG_OUTCOME, sizeof fixed + outcome->reply.size);

    to = write_bytes(to, &fixed, sizeof fixed);
    return (size_t)(write_bytes(to, outcome->reply.data, outcome->reply.size) - at);
}

size_t record_write_drop(const uint8_t *at, struct session_id session) {
    const uint8_t *to = write_header(at, LOG_OUTCOME_DROP, sizeof session.value);

    return (size_t)(write_bytes(to, &session.value, sizeof session.value) - at);
}

static bool keyed_is_whole(uint8_t kind, size_t size) {
    size_t fixed = KV_KEY_BYTES + (kind == LOG_PATCH ? PATCH_OFFSET_BYTES : 0);

    return size >= fixed && (kind != LOG_DELETE || size == fixed);
}

/* Bytes of a row that the operation sets end at this one. */
static size_t keyed_end(uint8_t kind, struct bytes payload) {
    return kind == LOG_PATCH ? load_le16(payload.data + KV_KEY_BYTES) + payload.size -
                                   KV_KEY_BYTES - PATCH_OFFSET_BYTES
                             : payload.size - KV_KEY_BYTES;
}

static bool payload_is_whole(uint8_t kind, struct bytes payload) {
    switch (kind) {
    case LOG_PUT:
    case LOG_DELETE:
    case LOG_PATCH:
        return keyed_is_whole(kind, payload.size) && keyed_end(kind, payload) <= KV_VALUE_BYTES_MAX;
    case LOG_NOTE:
        return payload.size <= KV_NOTE_BYTES_MAX;
    case LOG_OUTCOME:
        return payload.size >= sizeof(struct log_outcome) &&
               payload.size - sizeof(struct log_outcome) <= KV_REPLY_BYTES_MAX &&
               load_le64(payload.data + offsetof(struct log_outcome, session)) != 0;
    case LOG_OUTCOME_DROP:
        return payload.size == sizeof(uint64_t);
    default:
        return false;
    }
}

/* The operation that the body begins with, checked; 0, and the body goes on behind it. */
static int take_operation(struct bytes *body, uint8_t *ret_kind, struct bytes *ret_payload) {
    struct log_operation header;

    if (body->size == 0) {
        return -ERR_NOT_FOUND;
    }
    if (body->size < sizeof header) {
        return -ERR_MALFORMED;
    }
    memcpy(&header, body->data, sizeof header);
    if (header.size > body->size - sizeof header) {
        return -ERR_MALFORMED;
    }
    struct bytes payload = {body->data + sizeof header, header.size};
    if (!payload_is_whole(header.kind, payload)) {
        return -ERR_MALFORMED;
    }
    body->data += sizeof header + header.size;
    body->size -= sizeof header + header.size;
    *ret_kind = header.kind;
    *ret_payload = payload;
    return 0;
}

static void read_keyed(struct bytes payload, struct record_operation *operation) {
    size_t fixed = KV_KEY_BYTES;

    memcpy(operation->key.bytes, payload.data, KV_KEY_BYTES);
    operation->offset = 0;
    if (operation->kind == LOG_PATCH) {
        operation->offset = load_le16(payload.data + KV_KEY_BYTES);
        fixed += PATCH_OFFSET_BYTES;
    }
    operation->value = (struct bytes){payload.data + fixed, payload.size - fixed};
}

static void read_outcome(struct bytes payload, struct kv_outcome *outcome) {
    struct log_outcome fixed;

    memcpy(&fixed, payload.data, sizeof fixed);
    *outcome = (struct kv_outcome){
        .slot = {fixed.slot},
        .session = {fixed.session},
        .sequence = fixed.sequence,
        .floor = fixed.floor,
        .result = fixed.result,
        .reply = {payload.data + sizeof fixed, payload.size - sizeof fixed},
    };
}

/* Field by field where it goes: a whole one, made and copied, cost a fourth of a replay. */
int record_next(struct bytes *body, struct record_operation *ret_operation) {
    struct bytes payload;
    uint8_t kind;
    int r = take_operation(body, &kind, &payload);

    if (r < 0) {
        return r;
    }
    ret_operation->kind = kind;
    if (kind <= LOG_PATCH) {
        read_keyed(payload, ret_operation);
    } else if (kind == LOG_NOTE) {
        ret_operation->value = payload;
    } else if (kind == LOG_OUTCOME) {
        read_outcome(payload, &ret_operation->outcome);
    } else {
        ret_operation->outcome.session.value = load_le64(payload.data);
    }
    return 0;
}

int record_count(struct bytes body) {
    struct bytes payload;
    uint8_t kind;
    int count = 0;
    int r;

    while ((r = take_operation(&body, &kind, &payload)) == 0) {
        count++;
    }
    return r == -ERR_NOT_FOUND ? count : r;
}

uint32_t record_crc(const struct log_record *header, const void *body, uint32_t previous_crc) {
    struct log_record copy = *header;

    copy.crc = 0;
    uint32_t crc = crc32c(previous_crc, &copy, sizeof copy);
    return crc32c(crc, body, header->length - sizeof copy);
}

int record_check(const struct log_record *record, size_t available, uint32_t previous_crc) {
    if (available < sizeof *record || record->magic != LOG_RECORD_MAGIC ||
        record->length < sizeof *record || record->length > available) {
        return -ERR_MALFORMED;
    }
    return record->crc == record_crc(record, record + 1, previous_crc) ? 0 : -ERR_CORRUPT;
}

struct bytes record_body(const struct log_record *record) {
    return (struct bytes){(const uint8_t *)(record + 1), record->length - sizeof *record};
}
