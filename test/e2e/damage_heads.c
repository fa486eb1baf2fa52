/* The heads of what lies in a node's DIR and in shared memory, as the code defines them: a line for
 * each field, for damage.py.
 *
 *     HEAD bytes BYTES         a head, and how long it is
 *     HEAD FIELD OFFSET BYTES  a field of it
 *
 * The fields of a head are all of it: one that was added without a line here does not compile, and
 * damage.py wants a row for each. */
#include "kv/log_format.h"
#include "store/label_format.h"
#include <stdio.h>

#define FIELD(type, field) {#field, offsetof(struct type, field), sizeof((struct type *)0)->field},
#define BYTES(type, field) +sizeof((struct type *)0)->field
#define HEAD(type, fields)                                                                         \
    static const struct field type##_fields[] = {fields(FIELD, type)};                             \
    _Static_assert(sizeof(struct type) == 0 fields(BYTES, type), "a field has no line");

#define RECORD(X, type)                                                                            \
    X(type, magic)                                                                                 \
    X(type, length)                                                                                \
    X(type, position)                                                                              \
    X(type, term) X(type, durable_upto) X(type, data_end) X(type, crc) X(type, operation_count)
#define RING(X, type)                                                                              \
    X(type, magic)                                                                                 \
    X(type, format)                                                                                \
    X(type, crc)                                                                                   \
    X(type, owner_id)                                                                              \
    X(type, boot_id)                                                                               \
    X(type, log_id) X(type, record_bytes) X(type, data_bytes) X(type, starts) X(type, newest)
#define START(X, type)                                                                             \
    X(type, sequence)                                                                              \
    X(type, offset) X(type, position) X(type, data_start) X(type, previous_crc) X(type, crc)
#define NEWEST(X, type) X(type, position) X(type, end) X(type, check) X(type, reserved)
#define SUPERBLOCK(X, type)                                                                        \
    X(type, magic)                                                                                 \
    X(type, format)                                                                                \
    X(type, crc)                                                                                   \
    X(type, owner_id)                                                                              \
    X(type, sequence)                                                                              \
    X(type, region_bytes)                                                                          \
    X(type, tail_offset)                                                                           \
    X(type, tail_position)                                                                         \
    X(type, term)                                                                                  \
    X(type, written_bytes)                                                                         \
    X(type, tail_previous_crc)                                                                     \
    X(type, losses)                                                                                \
    X(type, stopped) X(type, ring_log2) X(type, starts) X(type, log_id) X(type, counted_from)
#define BATCH(X, type)                                                                             \
    X(type, magic)                                                                                 \
    X(type, crc)                                                                                   \
    X(type, owner)                                                                                 \
    X(type, offset)                                                                                \
    X(type, first_position)                                                                        \
    X(type, last_position)                                                                         \
    X(type, durable_upto) X(type, payload_bytes) X(type, previous_crc) X(type, reserved)
#define LABEL(X, type)                                                                             \
    X(type, magic) X(type, format) X(type, target) X(type, label) X(type, reserved) X(type, crc)

struct field {
    const char *name;
    size_t offset, bytes;
};

HEAD(log_record, RECORD)
HEAD(ring_header, RING)
HEAD(ring_start, START)
HEAD(ring_newest, NEWEST)
HEAD(log_superblock, SUPERBLOCK)
HEAD(log_batch, BATCH)
HEAD(store_label, LABEL)

static void print(const char *head, size_t bytes, const struct field *fields, size_t count) {
    printf("%s bytes %zu\n", head, bytes);
    for (size_t i = 0; i < count; i++) {
        printf("%s %s %zu %zu\n", head, fields[i].name, fields[i].offset, fields[i].bytes);
    }
}

#define PRINT(type) print(#type, sizeof(struct type), type##_fields, ARRAY_SIZE(type##_fields))

int main(void) {
    PRINT(log_record);
    PRINT(ring_header);
    PRINT(ring_start);
    PRINT(ring_newest);
    PRINT(log_superblock);
    PRINT(log_batch);
    PRINT(store_label);
    return 0;
}
