/* What a group has asked of its engine, in order, and what must be there after a crash.
 *
 *     operations: kind, position of its record, event of the trace at which it was committed
 *     claims:     what somebody was told: sealed (survives kill -9), synced (survives power)
 *
 * A recovered engine says how far it got; the model then says whether it may have got there, and
 * what its rows and outcomes are.
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "claim.h"
#include "kv/kv.h"

enum { MODEL_KEYS = 112, MODEL_SESSIONS = 24 };

enum model_kind { MODEL_PUT, MODEL_PATCH, MODEL_DELETE, MODEL_NOTE, MODEL_OUTCOME, MODEL_DROP };

struct model_operation {
    enum model_kind kind;
    uint64_t position;
    size_t event; /* events before it was committed */
    size_t lost;  /* event at which it was known to be gone, or SIZE_MAX */
    uint32_t key; /* or index of the session */
    uint32_t stamp;
    uint32_t offset, size; /* of the value, the reply, or the data that a note names */
    uint64_t sequence, floor;
    uint64_t ring_offset; /* of a note */
};

struct model {
    uint64_t first; /* position that the log began at */
    uint64_t session_base;
    struct model_operation *operations;
    size_t count, capacity;
    struct claims claims;
};

struct model_row {
    bool present;
    size_t size;
    uint8_t value[KV_VALUE_BYTES_MAX];
};
struct model_kept {
    uint64_t sequence;
    uint32_t stamp;
    uint32_t reply_bytes;
};
struct model_session {
    bool known;
    uint32_t generation; /* rises with each drop: another session */
    uint64_t floor;
    size_t kept_count;
    struct model_kept kept[64];
};
struct model_state {
    uint64_t folded; /* of what it is the state; 0: of nothing */
    struct model_row rows[MODEL_KEYS];
    struct model_session sessions[MODEL_SESSIONS];
};

void model_init(struct model *model, uint64_t first);
void model_deinit(struct model *model);
void model_add(struct model *model, const struct model_operation *operation);
/* An engine has opened with that position: what lies above never happened. */
void model_resume(struct model *model, uint64_t position, size_t event);
/* What a crash before event `point` may leave. */
struct bounds model_bounds(const struct model *model, size_t point);
/* All operations up to `position` that were not lost before `point`. */
void model_fold(const struct model *model, size_t point, uint64_t position,
                struct model_state *ret_state);
/* The bytes of a value, or of a reply, or of the data of a note. */
void model_fill(uint32_t key, uint32_t stamp, uint8_t *ret_data, size_t size_bytes);
struct kv_key model_key(uint32_t index);
struct session_id model_session_id(uint32_t index, uint32_t generation);
