/* A base in the machine: versions of sorted rows. A commit is under way until it ends; then, or at
 * a crash by lot, its version becomes the current one as a whole. */
#include "kv/kv_base.h"
#include "machine_internal.h"
#include <assert.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 1 << 20, ROW_OVERHEAD_BYTES = 16 };

struct base_row {
    struct kv_key key;
    uint32_t size;
    uint8_t value[];
};

struct base_version {
    size_t row_count;
    uint64_t bytes;
    const struct base_row *rows[];
};

/* Rows of a version that were made for it lie behind it; others are shared with older ones, which
 * stay until the seed ends. */
struct machine_base {
    struct machine *machine;
    unsigned index;
    bool is_open;
};

struct kv_base {
    struct machine_base *store;
    const struct base_version *reading; /* NULL between reads */
    bool unreadable;
};

/* The commit's job has no place for it. */
struct commit_flight {
    const struct kv_base_commit *commit;
    uint32_t flight;
};
static struct commit_flight commits[PENDING_MAX];

static const struct base_version *current_of(const struct machine *machine, unsigned index) {
    uint32_t version = STATE(machine)->base_versions[index];

    return version == 0 ? NULL : machine->versions[version - 1];
}

uint64_t base_bytes(const struct machine *machine, unsigned index) {
    const struct base_version *version = current_of(machine, index);

    return version ? version->bytes : 0;
}

void bases_reset(struct machine *machine) {
    for (size_t i = 0; i < machine->version_count; i++) {
        free(machine->versions[i]);
    }
    machine->version_count = 0;
    for (size_t i = 0; i < MACHINE_BASES_MAX; i++) {
        free(machine->bases[i]);
        machine->bases[i] = NULL;
    }
}

void bases_forget(void) {
    memset(commits, 0, sizeof commits);
}

struct machine_base *machine_base(struct machine *machine, unsigned index) {
    if (!machine->bases[index]) {
        struct machine_base *base = calloc(1, sizeof *base);

        if (!base) {
            abort();
        }
        *base = (struct machine_base){.machine = machine, .index = index};
        machine->bases[index] = base;
    }
    return machine->bases[index];
}

static int open_base(const struct kv_base_options *options, struct kv_base **ret_base,
                     char ret_problem[256]) {
    struct kv_base *base = calloc(1, sizeof *base);

    (void)ret_problem;
    if (!base) {
        return -ERR_NO_MEMORY;
    }
    base->store = options->store;
    *ret_base = base;
    return 0;
}

static bool is_cold(struct kv_base *base) {
    struct machine *machine = base->store->machine;

    return machine->cold_of_16 > 0 && prng_chance(&machine->prng, machine->cold_of_16, 16);
}

/* Who is found by one comparison of words after the other need not call a function for each. */
static int key_compare(const struct kv_key *left, const struct kv_key *right) {
    for (size_t at = 0; at < sizeof left->bytes; at += sizeof(uint64_t)) {
        uint64_t a = load_be64(left->bytes + at), b = load_be64(right->bytes + at);

        if (a != b) {
            return a < b ? -1 : 1;
        }
    }
    return 0;
}

/* The first row at or behind key. */
static size_t place_of(const struct base_version *version, const struct kv_key *key) {
    size_t low = 0, high = version ? version->row_count : 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (key_compare(&version->rows[middle]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool has(const struct base_version *version, size_t place, const struct kv_key *key) {
    return version && place < version->row_count &&
           key_compare(&version->rows[place]->key, key) == 0;
}

static const struct base_version *reading_of(struct kv_base *base) {
    if (!base->reading) {
        base->reading = current_of(base->store->machine, base->store->index);
    }
    return base->reading;
}

static int answer(const struct base_version *version, size_t place, struct kv_key *ret_key,
                  struct bytes *ret_value) {
    if (!version || place >= version->row_count) {
        return -ERR_NOT_FOUND;
    }
    const struct base_row *row = version->rows[place];

    if (ret_key) {
        *ret_key = row->key;
    }
    *ret_value = (struct bytes){row->value, row->size};
    return 0;
}

static int get(struct kv_base *base, const struct kv_key *key, struct bytes *ret_value) {
    const struct base_version *version = reading_of(base);
    size_t place = place_of(version, key);

    return has(version, place, key) ? answer(version, place, NULL, ret_value) : -ERR_NOT_FOUND;
}

static int next(struct kv_base *base, const struct kv_key *key, bool inclusive,
                struct kv_key *ret_key, struct bytes *ret_value) {
    const struct base_version *version = reading_of(base);
    size_t place = place_of(version, key);

    if (base->unreadable) {
        return -ERR_CORRUPT;
    }
    place += !inclusive && has(version, place, key);
    return answer(version, place, ret_key, ret_value);
}

static int previous(struct kv_base *base, const struct kv_key *key, struct kv_key *ret_key,
                    struct bytes *ret_value) {
    const struct base_version *version = reading_of(base);
    size_t place = place_of(version, key);

    return place == 0 ? -ERR_NOT_FOUND : answer(version, place - 1, ret_key, ret_value);
}

void machine_base_unreadable_set(struct kv_base *base, bool unreadable) {
    base->unreadable = unreadable;
}

bool machine_base_is_read(const struct kv_base *base) {
    return base->reading != NULL;
}

static void read_end(struct kv_base *base) {
    base->reading = NULL;
}

static void warm(struct kv_base *base, struct kv_stretch *stretch) {
    (void)base;
    stretch->last = stretch->first;
}

static size_t row_bytes(const struct kv_base_row *row) {
    return (sizeof(struct base_row) + row->value.size + 7) & ~(size_t)7;
}

static const struct base_row *row_put(uint8_t **to, const struct kv_base_row *from) {
    struct base_row *row = (void *)*to;

    row->key = from->key;
    row->size = (uint32_t)from->value.size;
    if (from->value.size > 0) {
        memcpy(row->value, from->value.data, from->value.size);
    }
    *to += row_bytes(from);
    return row;
}

static struct base_version *version_new(const struct base_version *old,
                                        const struct kv_base_commit *commit, uint8_t **ret_rows) {
    size_t rows_max = (old ? old->row_count : 0) + commit->row_count;
    size_t bytes = sizeof(struct base_version) + rows_max * sizeof(const struct base_row *);
    size_t head = bytes;

    for (size_t i = 0; i < commit->row_count; i++) {
        bytes += commit->rows[i].deleted ? 0 : row_bytes(&commit->rows[i]);
    }
    struct base_version *version = calloc(1, bytes);
    if (!version) {
        abort();
    }
    *ret_rows = (uint8_t *)version + head;
    return version;
}

static struct base_version *version_merge(const struct base_version *old,
                                          const struct kv_base_commit *commit) {
    uint8_t *to;
    struct base_version *version = version_new(old, commit, &to);
    size_t count = old ? old->row_count : 0;
    size_t place = 0;

    for (size_t i = 0; i <= commit->row_count; i++) {
        const struct kv_base_row *change = i < commit->row_count ? &commit->rows[i] : NULL;

        assert(!change || i == 0 || kv_key_compare(&commit->rows[i - 1].key, &change->key) < 0);
        while (place < count &&
               (!change || kv_key_compare(&old->rows[place]->key, &change->key) < 0)) {
            version->rows[version->row_count++] = old->rows[place++];
        }
        place += change && has(old, place, &change->key);
        if (change && !change->deleted) {
            version->rows[version->row_count++] = row_put(&to, change);
        }
    }
    for (size_t i = 0; i < version->row_count; i++) {
        version->bytes += sizeof(struct kv_key) + version->rows[i]->size + ROW_OVERHEAD_BYTES;
    }
    return version;
}

static uint32_t version_keep(struct machine *machine, struct base_version *version) {
    machine_grow((void **)&machine->versions, &machine->version_capacity,
                 machine->version_count + 1, sizeof(struct base_version *));
    machine->versions[machine->version_count++] = version;
    return (uint32_t)machine->version_count;
}

void machine_base_put(struct machine *machine, unsigned index, const struct kv_key *key,
                      struct bytes value) {
    const struct kv_base_row row = {.key = *key, .value = value};
    const struct kv_base_commit commit = {.rows = &row, .row_count = 1};
    uint32_t version = version_keep(machine, version_merge(current_of(machine, index), &commit));

    machine_event_add(machine, EVENT_EDIT, index, 1);
    machine_change(machine, &STATE(machine)->base_versions[index], &version, sizeof version);
}

static uint32_t *flight_of(const struct kv_base_commit *commit, bool make) {
    for (size_t i = 0; i < ARRAY_SIZE(commits); i++) {
        if (commits[i].commit == (make ? NULL : commit)) {
            commits[i].commit = commit;
            return &commits[i].flight;
        }
    }
    abort();
}

/* Rows stay as they were given until the commit has ended. */
static void rows_check(const struct base_version *version, const struct kv_base_commit *commit) {
    for (size_t i = 0; i < commit->row_count; i++) {
        const struct kv_base_row *row = &commit->rows[i];
        size_t place = place_of(version, &row->key);

        assert(has(version, place, &row->key) == !row->deleted);
        assert(row->deleted ||
               (version->rows[place]->size == row->value.size &&
                (row->value.size == 0 ||
                 memcmp(version->rows[place]->value, row->value.data, row->value.size) == 0)));
    }
}

/* A commit writes pages beside the old ones: it needs room for what it brings, always. */
static int flight_commit(struct kv_base_commit *commit, uint32_t flight) {
    struct machine *machine = commit->base->store->machine;
    const struct base_version *version = machine->versions[machine->flights[flight].version - 1];
    uint64_t old = base_bytes(machine, commit->base->store->index);
    uint64_t grows = version->bytes > old ? version->bytes - old : 0;

    rows_check(version, commit);
    bool fails = machine->faults.commit_fails > 0 &&
                 prng_chance(&machine->prng, machine->faults.commit_fails, 1000);
    bool full = machine_used_bytes(machine) + grows + BLOCK_BYTES > machine->capacity;
    int result = full ? -ERR_NO_SPACE : fails ? -ERR_IO : 0;

    flight_end(machine, flight, result == 0);
    return result;
}

static void commit_run(struct env_job *job) {
    struct kv_base_commit *commit = CONTAINER_OF(job, struct kv_base_commit, job);
    uint32_t flight = *flight_of(commit, false);

    for (size_t i = 0; i < ARRAY_SIZE(commits); i++) {
        if (commits[i].commit == commit) {
            commits[i].commit = NULL;
        }
    }
    commit->result = flight_commit(commit, flight);
}

static void commit_done(struct env_job *job) {
    struct kv_base_commit *commit = CONTAINER_OF(job, struct kv_base_commit, job);

    commit->done(commit);
}

static uint32_t commit_submit(struct kv_base *base, struct kv_base_commit *commit) {
    struct machine *machine = base->store->machine;
    struct base_version *version = version_merge(current_of(machine, base->store->index), commit);
    const struct flight flight = {.is_commit = true,
                                  .file = (uint8_t)base->store->index,
                                  .size = (uint32_t)commit->row_count,
                                  .data = machine->old_count,
                                  .version = version_keep(machine, version)};

    commit->base = base;
    return flight_add(machine, &flight);
}

static void commit(struct kv_base *base, struct kv_base_commit *commit) {
    *flight_of(commit, true) = commit_submit(base, commit);
    commit->job = (struct env_job){.lane = ENV_LANE_WRITE, .run = commit_run, .done = commit_done};
    env_job_submit(&base->store->machine->env, &commit->job);
}

static int commit_now(struct kv_base *base, struct kv_base_commit *commit) {
    commit->result = flight_commit(commit, commit_submit(base, commit));
    return commit->result;
}

static uint64_t file_bytes(struct kv_base *base) {
    return base_bytes(base->store->machine, base->store->index);
}

static void space(struct kv_base *base, struct kv_base_space *ret_space) {
    *ret_space = (struct kv_base_space){.used_bytes = file_bytes(base), .bytes_max = UINT64_MAX};
}

static void close_base(struct kv_base *base) {
    free(base);
}

const struct kv_base_ops machine_base_ops = {
    .open = open_base,
    .is_cold = is_cold,
    .get = get,
    .next = next,
    .previous = previous,
    .read_end = read_end,
    .warm = warm,
    .commit = commit,
    .commit_now = commit_now,
    .file_bytes = file_bytes,
    .space = space,
    .close = close_base,
};
