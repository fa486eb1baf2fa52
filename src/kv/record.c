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

static int read_keyed(struct bytes payload, struct record_operation *operation) {
    if (payload.size < KV_KEY_BYTES) {
        return -ERR_MALFORMED;
    }
    memcpy(operation->key.bytes, payload.data, KV_KEY_BYTES);
    payload.data += KV_KEY_BYTES;
    payload.size -= KV_KEY_BYTES;
    if (operation->kind == LOG_DELETE) {
        return payload.size == 0 ? 0 : -ERR_MALFORMED;
    }
    if (operation->kind == LOG_PATCH) {
        if (payload.size < PATCH_OFFSET_BYTES) {
            return -ERR_MALFORMED;
        }
        operation->offset = load_le16(payload.data);
        payload.data += PATCH_OFFSET_BYTES;
        payload.size -= PATCH_OFFSET_BYTES;
    }
    operation->value = payload;
    return operation->offset + payload.size <= KV_VALUE_BYTES_MAX ? 0 : -ERR_MALFORMED;
}

static int read_outcome(struct bytes payload, struct kv_outcome *ret_outcome) {
    struct log_outcome fixed;

    if (payload.size < sizeof fixed || payload.size - sizeof fixed > KV_REPLY_BYTES_MAX) {
        return -ERR_MALFORMED;
    }
    memcpy(&fixed, payload.data, sizeof fixed);
    *ret_outcome = (struct kv_outcome){
        .slot = {fixed.slot},
        .session = {fixed.session},
        .sequence = fixed.sequence,
        .floor = fixed.floor,
        .result = fixed.result,
        .reply = {payload.data + sizeof fixed, payload.size - sizeof fixed},
    };
    return fixed.session != 0 ? 0 : -ERR_MALFORMED;
}

int record_next(struct bytes *body, struct record_operation *ret_operation) {
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
    struct record_operation operation = {.kind = header.kind};
    int r = 0;

    switch (header.kind) {
    case LOG_PUT:
    case LOG_DELETE:
    case LOG_PATCH:
        r = read_keyed(payload, &operation);
        break;
    case LOG_NOTE:
        operation.value = payload;
        r = payload.size <= KV_NOTE_BYTES_MAX ? 0 : -ERR_MALFORMED;
        break;
    case LOG_OUTCOME:
        r = read_outcome(payload, &operation.outcome);
        break;
    case LOG_OUTCOME_DROP:
        if (payload.size != sizeof(uint64_t)) {
            return -ERR_MALFORMED;
        }
        operation.outcome.session.value = load_le64(payload.data);
        break;
    default:
        r = -ERR_MALFORMED;
    }
    if (r < 0) {
        return r;
    }
    body->data += sizeof header + header.size;
    body->size -= sizeof header + header.size;
    *ret_operation = operation;
    return 0;
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
