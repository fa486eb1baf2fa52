/* Records: built in place by a writer, walked by a reader that trusts nothing. */
#pragma once
#include "base/err.h"
#include "kv/kv.h"
#include "kv/log_format.h"

/* One operation of a record; data points into the record. */
/* Only what is of its kind is set. */
struct record_operation {
    uint8_t kind;
    struct kv_key key;         /* PUT, DELETE, PATCH */
    uint16_t offset;           /* PATCH */
    struct bytes value;        /* PUT, PATCH, NOTE */
    struct kv_outcome outcome; /* OUTCOME; of OUTCOME_DROP the session only */
};

/* Bytes that an operation takes. */
size_t record_put_bytes(size_t value_bytes);
size_t record_patch_bytes(size_t patch_bytes);
size_t record_delete_bytes(void);
size_t record_note_bytes(size_t note_bytes);
size_t record_outcome_bytes(size_t reply_bytes);
size_t record_drop_bytes(void);

/* Each stores at `at` in the ring, where that many bytes are free, and answers how many. */
size_t record_write_put(const uint8_t *at, const struct kv_key *key, struct bytes value);
size_t record_write_delete(const uint8_t *at, const struct kv_key *key);
size_t record_write_patch(const uint8_t *at, const struct kv_key *key, size_t offset,
                          struct bytes patch);
size_t record_write_note(const uint8_t *at, struct bytes note);
size_t record_write_outcome(const uint8_t *at, const struct kv_outcome *outcome);
size_t record_write_drop(const uint8_t *at, struct session_id session);

/* The operation at the front of *body, which moves on behind it. -ERR_NOT_FOUND at the end,
 * -ERR_MALFORMED for what is no operation. */
MUST_CHECK int record_next(struct bytes *body, struct record_operation *ret_operation);
/* How many there are; -ERR_MALFORMED unless all are whole. */
MUST_CHECK int record_count(struct bytes body);

/* Of a record whose header, but for its crc, is here, and whose body is there. */
uint32_t record_crc(const struct log_record *header, const void *body, uint32_t previous_crc);
/* 0 when `available` bytes at `record` begin with a whole record whose crc fits. */
MUST_CHECK int record_check(const struct log_record *record, size_t available,
                            uint32_t previous_crc);
struct bytes record_body(const struct log_record *record);

static inline size_t record_padded(size_t length) {
    return (length + LOG_ALIGN - 1) & ~(size_t)(LOG_ALIGN - 1);
}
