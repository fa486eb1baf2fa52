/* A base in memory: a chain of versions, each a sorted array of rows.
 *
 *     current --> version n --older--> version n-1 (until the step ends)
 *                  rows [] -> row       rows [] -> row    replaced: rows that n has no more
 *
 * A commit's job builds version n from version n-1 and the changes, then makes it current with one
 * store. The job touches older versions no more; the owner frees them when no read is open.
 *
 * Thread: the job writes `current`, the owner reads it; all else belongs to one of the two. */
#include "kv/kv_mem.h"
#include "kv/kv_base_row.h"
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct mem_row {
    struct kv_key key;
    uint32_t size; /* with the CRC */
    uint8_t stored[];
};

struct version {
    struct version *older;
    struct mem_row **replaced; /* of this version, not in the next */
    size_t replaced_count;
    size_t row_count;
    uint64_t bytes;
    struct mem_row *rows[];
};

struct kv_mem_store {
    struct kv_mem_options options;
    _Atomic(struct version *) current;
    bool is_open;
    atomic_bool full;
};

struct kv_base {
    struct kv_mem_store *store;
    struct env *env;
    struct version *reading; /* NULL between reads */
};

static void version_free(struct version *version) {
    if (version) {
        for (size_t i = 0; i < version->replaced_count; i++) {
            free(version->replaced[i]);
        }
        free(version->replaced);
        free(version);
    }
}

int kv_mem_store_new(const struct kv_mem_options *options, struct kv_mem_store **ret_store) {
    struct kv_mem_store *store = calloc(1, sizeof *store);
    struct version *empty = calloc(1, sizeof *empty);

    if (!store || !empty) {
        free(store);
        free(empty);
        return -ERR_NO_MEMORY;
    }
    store->options = *options;
    atomic_init(&store->current, empty);
    *ret_store = store;
    return 0;
}

/* No read is open: only the current version is needed. */
static struct version *store_tidy(struct kv_mem_store *store) {
    struct version *current = atomic_load_explicit(&store->current, memory_order_acquire);
    struct version *older = current->older;

    current->older = NULL;
    while (older) {
        struct version *next = older->older;

        version_free(older);
        older = next;
    }
    return current;
}

void kv_mem_store_free(struct kv_mem_store *store) {
    struct version *current;

    if (!store) {
        return;
    }
    current = store_tidy(store);
    for (size_t i = 0; i < current->row_count; i++) {
        free(current->rows[i]);
    }
    version_free(current);
    free(store);
}

/* The first row at or behind key. */
static size_t version_place(const struct version *version, const struct kv_key *key) {
    size_t low = 0, high = version->row_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (kv_key_compare(&version->rows[middle]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool version_has(const struct version *version, size_t place, const struct kv_key *key) {
    return place < version->row_count && kv_key_compare(&version->rows[place]->key, key) == 0;
}

int kv_mem_store_damage(struct kv_mem_store *store, const struct kv_key *key) {
    struct version *version = store_tidy(store);
    size_t place = version_place(version, key);

    if (!version_has(version, place, key)) {
        return -ERR_NOT_FOUND;
    }
    version->rows[place]->stored[0] ^= 1;
    return 0;
}

void kv_mem_store_full(struct kv_mem_store *store, bool full) {
    atomic_store(&store->full, full);
}

int kv_mem_store_drop(struct kv_mem_store *store, const struct kv_key *key) {
    struct version *version = store_tidy(store);
    size_t place = version_place(version, key);

    if (!version_has(version, place, key)) {
        return -ERR_NOT_FOUND;
    }
    version->bytes -= sizeof(struct mem_row) + version->rows[place]->size;
    free(version->rows[place]);
    version->row_count--;
    memmove(&version->rows[place], &version->rows[place + 1],
            (version->row_count - place) * sizeof version->rows[0]);
    return 0;
}

static int mem_open(const struct kv_base_options *options, struct kv_base **ret_base,
                    char ret_problem[256]) {
    struct kv_mem_store *store = options->store;
    struct kv_base *base;

    if (!store || store->is_open) {
        (void)snprintf(ret_problem, 256, "the store in memory is %s",
                       store ? "open already" : "missing");
        return store ? -ERR_IN_USE : -ERR_INVALID;
    }
    base = calloc(1, sizeof *base);
    if (!base) {
        return -ERR_NO_MEMORY;
    }
    base->store = store;
    base->env = options->env;
    store->is_open = true;
    *ret_base = base;
    return 0;
}

static bool mem_is_cold(struct kv_base *base) {
    const struct kv_mem_options *options = &base->store->options;

    return options->prng &&
           prng_chance(options->prng, options->cold_numerator, options->cold_denominator);
}

static const struct version *mem_read(struct kv_base *base) {
    if (!base->reading) {
        base->reading = store_tidy(base->store);
    }
    return base->reading;
}

static int mem_answer(const struct version *version, size_t place, struct kv_key *ret_key,
                      struct bytes *ret_value) {
    const struct mem_row *row;

    if (place >= version->row_count) {
        return -ERR_NOT_FOUND;
    }
    row = version->rows[place];
    if (ret_key) {
        *ret_key = row->key;
    }
    return base_row_check(&row->key, (struct bytes){row->stored, row->size}, ret_value);
}

static int mem_get(struct kv_base *base, const struct kv_key *key, struct bytes *ret_value) {
    const struct version *version = mem_read(base);
    size_t place = version_place(version, key);

    if (!version_has(version, place, key)) {
        return -ERR_NOT_FOUND;
    }
    return mem_answer(version, place, NULL, ret_value);
}

static int mem_next(struct kv_base *base, const struct kv_key *key, bool inclusive,
                    struct kv_key *ret_key, struct bytes *ret_value) {
    const struct version *version = mem_read(base);
    size_t place = version_place(version, key);

    if (!inclusive && version_has(version, place, key)) {
        place++;
    }
    return mem_answer(version, place, ret_key, ret_value);
}

static int mem_previous(struct kv_base *base, const struct kv_key *key, struct kv_key *ret_key,
                        struct bytes *ret_value) {
    const struct version *version = mem_read(base);
    size_t place = version_place(version, key);

    if (place == 0) {
        return -ERR_NOT_FOUND;
    }
    return mem_answer(version, place - 1, ret_key, ret_value);
}

static void mem_read_end(struct kv_base *base) {
    base->reading = NULL;
    (void)store_tidy(base->store);
}

static void mem_warm(struct kv_base *base, struct kv_stretch *stretch) {
    (void)base;
    stretch->last = stretch->first;
}

static struct mem_row *row_new(const struct kv_base_row *from) {
    size_t size = from->value.size + BASE_ROW_CRC_BYTES;
    struct mem_row *row = malloc(sizeof *row + size);

    if (row) {
        row->key = from->key;
        row->size = (uint32_t)size;
        base_row_write(row->stored, &row->key, from->value);
    }
    return row;
}

/* One of the changes: its row goes to the new version, the old row of the key to `replaced`. */
static int version_change(struct version *next, struct version *old, size_t *old_place,
                          const struct kv_base_row *change) {
    if (*old_place < old->row_count &&
        kv_key_compare(&old->rows[*old_place]->key, &change->key) == 0) {
        struct mem_row *row = old->rows[(*old_place)++];

        old->replaced[old->replaced_count++] = row;
        next->bytes -= sizeof *row + row->size;
    }
    if (!change->deleted) {
        struct mem_row *row = row_new(change);

        if (!row) {
            return -ERR_NO_MEMORY;
        }
        next->rows[next->row_count++] = row;
        next->bytes += sizeof *row + row->size;
    }
    return 0;
}

static int version_merge(struct version *next, struct version *old,
                         const struct kv_base_commit *commit) {
    size_t place = 0;

    next->bytes = old->bytes;
    for (size_t i = 0; i < commit->row_count; i++) {
        const struct kv_base_row *change = &commit->rows[i];
        int r;

        assert(i == 0 || kv_key_compare(&commit->rows[i - 1].key, &change->key) < 0);
        while (place < old->row_count && kv_key_compare(&old->rows[place]->key, &change->key) < 0) {
            next->rows[next->row_count++] = old->rows[place++];
        }
        r = version_change(next, old, &place, change);
        if (r < 0) {
            return r;
        }
    }
    while (place < old->row_count) {
        next->rows[next->row_count++] = old->rows[place++];
    }
    return 0;
}

/* Takes back a version that memory did not suffice for: frees the rows that only it has. */
static void version_abandon(struct version *next, struct version *old) {
    size_t place = 0;

    for (size_t i = 0; next && i < next->row_count; i++) {
        while (place < old->row_count &&
               kv_key_compare(&old->rows[place]->key, &next->rows[i]->key) < 0) {
            place++;
        }
        if (place == old->row_count || old->rows[place] != next->rows[i]) {
            free(next->rows[i]);
        }
    }
    free(next);
    free(old->replaced);
    old->replaced = NULL;
    old->replaced_count = 0;
}

static void mem_commit_run(struct env_job *job) {
    struct kv_base_commit *commit = CONTAINER_OF(job, struct kv_base_commit, job);
    struct kv_mem_store *store = commit->base->store;

    if (atomic_load(&store->full)) {
        commit->result = -ERR_NO_SPACE;
        return;
    }
    struct version *old = atomic_load_explicit(&store->current, memory_order_relaxed);
    size_t rows_max = old->row_count + commit->row_count;
    struct version *next = calloc(1, sizeof *next + rows_max * sizeof next->rows[0]);

    old->replaced = malloc((commit->row_count + 1) * sizeof old->replaced[0]);
    commit->result = next && old->replaced ? version_merge(next, old, commit) : -ERR_NO_MEMORY;
    if (commit->result < 0) {
        version_abandon(next, old);
        return;
    }
    next->older = old;
    atomic_store_explicit(&store->current, next, memory_order_release);
}

static void mem_commit_done(struct env_job *job) {
    struct kv_base_commit *commit = CONTAINER_OF(job, struct kv_base_commit, job);

    commit->done(commit);
}

static int mem_commit_now(struct kv_base *base, struct kv_base_commit *commit) {
    commit->base = base;
    mem_commit_run(&commit->job);
    return commit->result;
}

static void mem_commit(struct kv_base *base, struct kv_base_commit *commit) {
    assert(commit->row_count <= KV_BASE_COMMIT_ROWS_MAX);
    commit->base = base;
    commit->job = (struct env_job){
        .lane = ENV_LANE_WRITE,
        .run = mem_commit_run,
        .done = mem_commit_done,
    };
    env_job_submit(base->env, &commit->job);
}

static uint64_t mem_file_bytes(struct kv_base *base) {
    return atomic_load_explicit(&base->store->current, memory_order_acquire)->bytes;
}

static void mem_space(struct kv_base *base, struct kv_base_space *ret_space) {
    *ret_space =
        (struct kv_base_space){.used_bytes = mem_file_bytes(base), .bytes_max = UINT64_MAX};
}

static void mem_close(struct kv_base *base) {
    if (base) {
        mem_read_end(base);
        base->store->is_open = false;
        free(base);
    }
}

const struct kv_base_ops kv_mem_ops = {
    .open = mem_open,
    .is_cold = mem_is_cold,
    .get = mem_get,
    .next = mem_next,
    .previous = mem_previous,
    .read_end = mem_read_end,
    .warm = mem_warm,
    .commit = mem_commit,
    .commit_now = mem_commit_now,
    .file_bytes = mem_file_bytes,
    .space = mem_space,
    .close = mem_close,
};
