/* What trees and bases are compared with: rows in a sorted array, found by memcmp. */
#pragma once
#include "base/prng.h"
#include "kv/kv_key.h"
#include <stdlib.h>

enum { MODEL_ROWS_MAX = 8192, MODEL_VALUE_BYTES_MAX = 4096 };

struct model_row {
    struct kv_key key;
    bool deleted;
    size_t size;
    uint8_t *value;
};

struct row_model {
    struct model_row *rows[MODEL_ROWS_MAX];
    size_t count;
};

static inline size_t model_place(const struct row_model *model, const struct kv_key *key) {
    size_t low = 0, high = model->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (kv_key_compare(&model->rows[middle]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static inline bool model_has(const struct row_model *model, size_t place,
                             const struct kv_key *key) {
    return place < model->count && kv_key_compare(&model->rows[place]->key, key) == 0;
}

/* The row of key, made if need be, with value_bytes of random value. */
static inline struct model_row *model_put(struct row_model *model, const struct kv_key *key,
                                          struct prng *prng, size_t value_bytes) {
    size_t place = model_place(model, key);
    struct model_row *row;

    if (!model_has(model, place, key)) {
        if (model->count == MODEL_ROWS_MAX) {
            abort();
        }
        memmove(&model->rows[place + 1], &model->rows[place],
                (model->count - place) * sizeof(struct model_row *));
        model->rows[place] = calloc(1, sizeof(struct model_row));
        model->rows[place]->key = *key;
        model->count++;
    }
    row = model->rows[place];
    row->deleted = false;
    row->size = value_bytes;
    row->value = realloc(row->value, value_bytes + 1);
    for (size_t i = 0; i < value_bytes; i++) {
        row->value[i] = (uint8_t)prng_next(prng);
    }
    return row;
}

static inline void model_remove(struct row_model *model, size_t place) {
    free(model->rows[place]->value);
    free(model->rows[place]);
    model->count--;
    memmove(&model->rows[place], &model->rows[place + 1],
            (model->count - place) * sizeof(struct model_row *));
}

static inline void model_clear(struct row_model *model) {
    while (model->count > 0) {
        model_remove(model, model->count - 1);
    }
}
