/* Admission: what a transaction may take is set aside before it begins, so that nothing that was
 * begun, and no sync point or checkpoint of what was admitted, finds itself without room.
 *
 * Thread: the kv's owner. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct kv;

/* Message classes share memory, ring and log: what is left for the others when one is refused is in
 * log.md (its reserves). FREEING: requests that free space, on a full disk. */
enum kv_class {
    KV_CLASS_CONTROL,
    KV_CLASS_RELEASE,
    KV_CLASS_BACKGROUND,
    KV_CLASS_FREEING,
    KV_CLASS_REQUEST,
    KV_CLASS_COUNT
};
/* What a transaction takes at the most. */
struct kv_need {
    uint32_t rows;             /* put, patched or deleted; one several times in a row counts once */
    uint32_t value_bytes;      /* of these rows, as they are then */
    uint32_t record_bytes;     /* of the record, for all but the outcome */
    uint32_t data_bytes;       /* of the ring's data area */
    bool drops;                /* kv_outcome_drop of `session` */
    bool floors;               /* an outcome of sequence 0: it takes no place */
    struct session_id session; /* that an outcome is kept of; 0: none */
    uint64_t floor;            /* that the outcome will carry */
    uint32_t window;           /* outcomes that the session may keep; below 8 as 8 */
};
/* What is used of what there is, in thousandths (UINT16_MAX: that or more), and since when nothing
 * makes room. */
struct kv_levels {
    uint16_t ring, data, memory, log, outcomes;
    uint64_t full_ns; /* that a checkpoint has been waiting for space below; 0: none does */
};
/* What kv_admit set aside. Good for one transaction that begins before anything else is sealed,
 * begun or stepped; after kv_abort for one more. */
struct kv_grant {
    struct kv_need need;
    size_t memory_bytes; /* of changes */
    uint64_t number;
};
/* 0: it fits, and staging it cannot fail. -ERR_PENDING: a sync point or a checkpoint is under way
 * that makes room, and wake follows. -ERR_NO_SPACE: the same, but the file system below is full.
 * -ERR_BUSY: too many outcomes are kept, of this session or of all. -ERR_INVALID: more than ring or
 * memory could ever take. */
MUST_CHECK int kv_admit(struct kv *kv, enum kv_class message_class, const struct kv_need *need,
                        struct kv_grant *ret_grant);

/* Whether kv_begin would seal the open record, which is too long for that. */
bool kv_must_seal(const struct kv *kv, const struct kv_need *need);
