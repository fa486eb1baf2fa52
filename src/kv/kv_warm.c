/* Rows of a cold base: a job reads them into the page cache before the step does. */
#include "kv/kv_internal.h"
#include "base/endian.h"
#include <stdlib.h>
#include <string.h>

int kv_warmth_init(struct kv *kv) {
    struct kv_warmth *warmth = &kv->warmth;

    for (size_t i = 0; i < ARRAY_SIZE(warmth->jobs); i++) {
        warmth->jobs[i].kv = kv;
    }
    warmth->set_count = kv->options.warm_sets > 0 ? kv->options.warm_sets : KV_WARM_SETS;
    warmth->points = calloc(warmth->set_count, sizeof *warmth->points);
    return warmth->points ? 0 : -ERR_NO_MEMORY;
}

bool kv_warmth_is_idle(const struct kv *kv) {
    for (size_t i = 0; i < ARRAY_SIZE(kv->warmth.jobs); i++) {
        const struct kv_warm *warm = &kv->warmth.jobs[i];

        if (warm->busy && !atomic_load(&warm->finished)) {
            return false;
        }
    }
    return true;
}

static void warm_run(struct env_job *job) {
    struct kv_warm *warm = CONTAINER_OF(job, struct kv_warm, job);

    warm->kv->options.base->warm(warm->kv->base, &warm->stretch);
}

static void warm_done(struct env_job *job) {
    struct kv_warm *warm = CONTAINER_OF(job, struct kv_warm, job);

    atomic_store(&warm->finished, true);
    kv_wake(warm->kv);
}

/* Never 0, which stands for none. */
static uint64_t hash_of(const struct kv_key *key) {
    uint64_t hash = 0;

    for (size_t at = 0; at < KV_KEY_BYTES; at += sizeof hash) {
        /* Each bit of a key goes into all of the hash: down by the shift, then up again. */
        hash = (hash ^ load_be64(key->bytes + at)) * UINT64_C(0x9e3779b97f4a7c15);
        hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash | 1;
}

/* By bits that all of the key's bits have gone into. */
static uint64_t *set_of(const struct kv_warmth *warmth, uint64_t hash) {
    return warmth->points[hash >> 40 & (warmth->set_count - 1)];
}

static bool point_is_warm(const struct kv_warmth *warmth, const struct kv_key *key) {
    uint64_t hash = hash_of(key);
    const uint64_t *set = set_of(warmth, hash);

    for (size_t i = 0; i < KV_WARM_WAYS; i++) {
        if (set[i] == hash) {
            return true;
        }
    }
    return false;
}

/* A next from the last key reads the row behind that. */
static bool stretch_has(const struct kv_stretch *stretch, const struct kv_key *key, bool walks) {
    return kv_key_compare(&stretch->first, key) <= 0 &&
           kv_key_compare(key, &stretch->last) < (walks ? 0 : 1);
}

static bool is_warm(struct kv_warmth *warmth, const struct kv_key *key, bool walks) {
    if (stretch_has(&warmth->stretches[warmth->stretch_hit], key, walks) ||
        point_is_warm(warmth, key)) {
        return true;
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(warmth->stretches); i++) {
        if (stretch_has(&warmth->stretches[i], key, walks)) {
            warmth->stretch_hit = i;
            return true;
        }
    }
    return false;
}

bool kv_must_warm(struct kv *kv, const struct kv_key *key, bool walks) {
    struct kv_warmth *warmth = &kv->warmth;
    struct kv_warm *idle = NULL;

    if (!kv->options.base->is_cold(kv->base) || is_warm(warmth, key, walks)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(warmth->jobs); i++) {
        struct kv_warm *warm = &warmth->jobs[i];

        if (!warm->busy) {
            idle = warm;
        } else if (kv_key_compare(&warm->stretch.first, key) == 0) {
            return true;
        }
    }
    /* All are busy: the end of any of them wakes the owner, who tries again. */
    if (idle) {
        idle->busy = true;
        warmth->busy_count++;
        idle->stretch.first = *key;
        idle->job = (struct env_job){.lane = ENV_LANE_READ, .run = warm_run, .done = warm_done};
        atomic_store(&idle->finished, false);
        kv->counters.pending_reads++;
        env_job_submit(kv->env, &idle->job);
    }
    return true;
}

/* The oldest of its set makes way. */
static void point_add(struct kv_warmth *warmth, const struct kv_key *key) {
    uint64_t hash = hash_of(key);
    uint64_t *set = set_of(warmth, hash);

    if (!point_is_warm(warmth, key)) {
        memmove(set + 1, set, (KV_WARM_WAYS - 1) * sizeof *set);
        set[0] = hash;
    }
}

void kv_warmth_step(struct kv *kv) {
    struct kv_warmth *warmth = &kv->warmth;

    for (size_t i = 0; warmth->busy_count > 0 && i < ARRAY_SIZE(warmth->jobs); i++) {
        struct kv_warm *warm = &warmth->jobs[i];

        if (warm->busy && atomic_load(&warm->finished)) {
            warm->busy = false;
            warmth->busy_count--;
            point_add(warmth, &warm->stretch.first);
            warmth->stretches[warmth->stretch_next] = warm->stretch;
            warmth->stretch_next = (warmth->stretch_next + 1) % ARRAY_SIZE(warmth->stretches);
        }
    }
}
