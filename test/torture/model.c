/* Folding what was asked. */
#include "model.h"
#include <assert.h>
#include <stdlib.h>

static void grow(void **items, size_t *capacity, size_t count, size_t item_bytes) {
    if (count > *capacity) {
        *capacity = *capacity > 0 ? 2 * *capacity : 256;
        *items = realloc(*items, *capacity * item_bytes);
        if (!*items) {
            abort();
        }
    }
}

void model_init(struct model *model, uint64_t first) {
    *model = (struct model){.first = first};
}

void model_deinit(struct model *model) {
    free(model->operations);
    claims_deinit(&model->claims);
    *model = (struct model){0};
}

void model_add(struct model *model, const struct model_operation *operation) {
    grow((void **)&model->operations, &model->capacity, model->count + 1,
         sizeof *model->operations);
    model->operations[model->count] = *operation;
    model->operations[model->count].lost = SIZE_MAX;
    model->count++;
}

void model_resume(struct model *model, uint64_t position, size_t event) {
    for (size_t i = 0; i < model->count; i++) {
        struct model_operation *operation = &model->operations[i];

        if (operation->position > position && operation->lost == SIZE_MAX) {
            operation->lost = event;
        }
    }
    claims_add(&model->claims, CLAIM_RESUMED, position, event);
}

static bool is_valid(const struct model_operation *operation, size_t point) {
    return operation->event <= point && operation->lost >= point;
}

struct bounds model_bounds(const struct model *model, size_t point) {
    struct bounds bounds = claims_bounds(&model->claims, point, model->first);

    for (size_t i = 0; i < model->count; i++) {
        if (is_valid(&model->operations[i], point)) {
            bounds.most = MAX(bounds.most, model->operations[i].position);
        }
    }
    return bounds;
}

void model_fill(uint32_t key, uint32_t stamp, uint8_t *ret_data, size_t size_bytes) {
    uint64_t word = ((uint64_t)key << 32 | stamp) * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t at = 0; at < size_bytes; at += sizeof word) {
        word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(ret_data + at, &word, MIN(size_bytes - at, sizeof word));
    }
}

struct kv_key model_key(uint32_t index) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT,
                                              .slot = (uint16_t)(index % 7),
                                              .type = 'T',
                                              .id = index,
                                              .index = index * 3});
}

struct session_id model_session_id(uint32_t index, uint32_t generation) {
    return (struct session_id){UINT64_C(1000003) * (index + 1) + generation};
}

static void row_patch(struct model_row *row, const struct model_operation *operation) {
    size_t end = operation->offset + operation->size;

    if (!row->present) {
        row->present = true;
        row->size = 0;
    }
    if (end > row->size) {
        memset(row->value + row->size, 0, end - row->size);
        row->size = end;
    }
    model_fill(operation->key, operation->stamp, row->value + operation->offset, operation->size);
}

static void session_floor(struct model_session *session, uint64_t floor) {
    size_t left = 0;

    session->floor = MAX(session->floor, floor);
    for (size_t i = 0; i < session->kept_count; i++) {
        if (session->kept[i].sequence >= session->floor) {
            session->kept[left++] = session->kept[i];
        }
    }
    session->kept_count = left;
}

static void session_outcome(struct model_session *session,
                            const struct model_operation *operation) {
    session->known = true;
    session_floor(session, operation->floor);
    if (operation->sequence >= session->floor) {
        assert(session->kept_count < ARRAY_SIZE(session->kept));
        session->kept[session->kept_count++] =
            (struct model_kept){operation->sequence, operation->stamp, operation->size};
    }
}

static void fold_one(struct model_state *state, const struct model_operation *operation) {
    struct model_row *row = &state->rows[operation->key % MODEL_KEYS];

    switch (operation->kind) {
    case MODEL_PUT:
        row->present = true;
        row->size = operation->size;
        model_fill(operation->key, operation->stamp, row->value, operation->size);
        break;
    case MODEL_PATCH:
        row_patch(row, operation);
        break;
    case MODEL_DELETE:
        row->present = false;
        row->size = 0;
        break;
    case MODEL_NOTE:
        break;
    case MODEL_OUTCOME:
        session_outcome(&state->sessions[operation->key], operation);
        break;
    case MODEL_DROP:
        state->sessions[operation->key] =
            (struct model_session){.generation = state->sessions[operation->key].generation + 1};
        break;
    }
}

/* What is folded, as a number, and of each row the newest operation that needs no older one. */
static uint64_t fold_plan(const struct model *model, size_t point, uint64_t position,
                          size_t ret_first[MODEL_KEYS]) {
    uint64_t hash = UINT64_C(0x243f6a8885a308d3);

    memset(ret_first, 0, MODEL_KEYS * sizeof *ret_first);
    for (size_t i = 0; i < model->count; i++) {
        const struct model_operation *operation = &model->operations[i];

        if (operation->position > position || !is_valid(operation, point)) {
            continue;
        }
        hash = (hash ^ (i + 1)) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        if (operation->kind == MODEL_PUT || operation->kind == MODEL_DELETE) {
            ret_first[operation->key % MODEL_KEYS] = i;
        }
    }
    return hash;
}

static bool is_of_row(const struct model_operation *operation) {
    return operation->kind == MODEL_PUT || operation->kind == MODEL_PATCH ||
           operation->kind == MODEL_DELETE;
}

void model_fold(const struct model *model, size_t point, uint64_t position,
                struct model_state *ret_state) {
    size_t first[MODEL_KEYS];
    uint64_t folded = fold_plan(model, point, position, first);

    if (ret_state->folded == folded) {
        return;
    }
    ret_state->folded = folded;
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        ret_state->rows[i].present = false;
        ret_state->rows[i].size = 0;
    }
    memset(ret_state->sessions, 0, sizeof ret_state->sessions);
    for (size_t i = 0; i < model->count; i++) {
        const struct model_operation *operation = &model->operations[i];

        if (operation->position <= position && is_valid(operation, point) &&
            !(is_of_row(operation) && i < first[operation->key % MODEL_KEYS])) {
            fold_one(ret_state, operation);
        }
    }
}
