/* States, steps, and all crashes of them. */
#include "small.h"
#include "group.h"
#include "kv/kv_internal.h"

enum { TRIES_MAX = 4000, LONG_BYTES = 8192, SHORT_BYTES = 512, KEPT_LEFT = 1 };

/* The account of one sequence. */
struct small {
    struct seed seed;
    struct owner *owner;
    uint32_t long_bytes; /* of the long record, as the state wants it */
};

static int ask_record(struct small *small, enum kv_class class, uint32_t record_bytes) {
    const struct group_wish wish = {
        .class = class, .record_bytes = record_bytes, .session = GROUP_NO_SESSION};
    int r = group_ask(small->owner, &wish);

    if (r == 0) {
        group_seal_told(small->owner);
    }
    return r;
}

/* The next record begins at that running offset. */
static void head_to(struct small *small, uint64_t target) {
    struct kv *kv = small->owner->kv;

    for (int i = 0; kv->ring.head < target; i++) {
        uint64_t left = target - kv->ring.head;
        uint64_t bytes = left >= 2 * LONG_BYTES ? LONG_BYTES
                         : left > LONG_BYTES    ? (left / 2) & ~7U
                                                : left;

        MUST(i < TRIES_MAX, "the state is not reached");
        if (ask_record(small, KV_CLASS_REQUEST, (uint32_t)bytes) < 0) {
            owner_sync(small->owner);
            owner_checkpoint(small->owner);
        }
    }
    owner_sync(small->owner);
}

/* A record begins where the longest one fits; so only that one can end at the ring's end. */
static void state_end(struct small *small, uint32_t before_end) {
    const struct ring *ring = &small->owner->kv->ring;

    head_to(small, ring->record_bytes - ring->record_bytes_max);
    small->long_bytes = (uint32_t)ring->record_bytes_max - before_end;
}

static void state_fresh(struct small *small) {
    (void)small;
}
static void state_end_0(struct small *small) {
    state_end(small, 0);
}
static void state_end_8(struct small *small) {
    state_end(small, 8);
}
static void state_end_48(struct small *small) {
    state_end(small, 48);
}
static void state_end_56(struct small *small) {
    state_end(small, 56);
}

static void state_at_end(struct small *small) {
    state_end(small, 0);
    MUST(ask_record(small, KV_CLASS_REQUEST, small->long_bytes) == 0, "no room for it");
    small->long_bytes = LONG_BYTES;
    owner_sync(small->owner);
}

/* In the lap before, a filler began where the next record will. */
static void state_old_filler(struct small *small) {
    const struct ring *ring = &small->owner->kv->ring;
    uint64_t place = ring->record_bytes - LONG_BYTES / 2;

    head_to(small, place);
    MUST(ask_record(small, KV_CLASS_REQUEST, SHORT_BYTES) == 0, "no room for it");
    head_to(small, ring->record_bytes + place);
}

static int ask_data(struct small *small) {
    const struct group_wish wish = {.class = KV_CLASS_REQUEST,
                                    .rows = 1,
                                    .value_bytes = 64,
                                    .data_bytes = BLOCK_BYTES,
                                    .session = GROUP_NO_SESSION};
    return group_ask(small->owner, &wish);
}

static void state_data_end(struct small *small) {
    const struct ring *ring = &small->owner->kv->ring;

    while (ring->data_head % ring->data_bytes != ring->data_bytes - BLOCK_BYTES) {
        MUST(ask_data(small) == 0, "no room for data");
        group_seal_told(small->owner);
        owner_sync(small->owner);
    }
}

static void state_log_end(struct small *small) {
    const struct disk_log *log = &small->owner->kv->log;

    for (int i = 0; log->head % log->region_bytes != log->region_bytes - BLOCK_BYTES; i++) {
        MUST(i < TRIES_MAX, "the state is not reached");
        if (ask_record(small, KV_CLASS_REQUEST, SHORT_BYTES) < 0) {
            owner_checkpoint(small->owner);
        }
        owner_sync(small->owner);
    }
}

static void disk_full(struct small *small) {
    machine_capacity_set(small->seed.machine, machine_used_bytes(small->seed.machine));
}

static void state_base_full(struct small *small) {
    disk_full(small);
    kv_checkpoint_want(small->owner->kv);
}

static void state_log_full(struct small *small) {
    state_base_full(small);
    for (int i = 0; ask_record(small, KV_CLASS_CONTROL, SHORT_BYTES) == 0; i++) {
        MUST(i < TRIES_MAX, "the state is not reached");
        owner_sync(small->owner);
    }
}

static void changes_to(struct small *small, size_t bytes) {
    struct kv_counters counters = {0};

    disk_full(small);
    for (int i = 0; counters.changes_bytes < bytes; i++) {
        if (i == TRIES_MAX || ask_record(small, KV_CLASS_CONTROL, LONG_BYTES) < 0) {
            break;
        }
        owner_sync(small->owner);
        kv_counters_get(small->owner->kv, &counters);
    }
}

static void state_changes_half(struct small *small) {
    changes_to(small, small->owner->kv->options.changes_bytes_max / 2);
}
static void state_changes_most(struct small *small) {
    changes_to(small, small->owner->kv->options.changes_bytes_max / 4 * 3);
}

static int ask_outcome(struct small *small, bool lazy, bool drops) {
    const struct group_wish wish = {.class = drops ? KV_CLASS_CONTROL : KV_CLASS_REQUEST,
                                    .rows = 1,
                                    .value_bytes = 64,
                                    .lazy = lazy,
                                    .drops = drops};
    return group_ask(small->owner, &wish);
}

static void state_outcomes(struct small *small) {
    uint32_t most = MIN(small->owner->kv->options.outcomes_max, 8U);

    for (uint32_t i = 0; i + KEPT_LEFT < most; i++) {
        MUST(ask_outcome(small, true, false) == 0, "no room for an outcome");
    }
    group_seal_told(small->owner);
    owner_sync(small->owner);
}

/* Goes on completion by completion until the engine is at it. */
static void stage_to(struct small *small, enum sync_stage sync, enum checkpoint_stage checkpoint) {
    struct kv *kv = small->owner->kv;

    for (int i = 0; kv->sync.stage != sync || kv->checkpoint.stage != checkpoint; i++) {
        MUST(i < TRIES_MAX, "the stage is not reached");
        if (kv->sync.stage != sync || sync == SYNC_IDLE || i % 8 == 7) {
            (void)machine_pump(small->seed.machine, 1);
        }
        small->owner->ops->turn(small->owner);
    }
}

static void sync_begin(struct small *small) {
    MUST(ask_record(small, KV_CLASS_REQUEST, LONG_BYTES) == 0, "no room for it");
    group_sync_want(small->owner);
}

static void state_sync_data(struct small *small) {
    sync_begin(small);
    stage_to(small, SYNC_DATA, CHECKPOINT_IDLE);
}
static void state_sync_records(struct small *small) {
    sync_begin(small);
    stage_to(small, SYNC_RECORDS, CHECKPOINT_IDLE);
}
static void state_sync_flush(struct small *small) {
    sync_begin(small);
    stage_to(small, SYNC_FLUSH, CHECKPOINT_IDLE);
}

static void checkpoint_begin(struct small *small) {
    MUST(ask_record(small, KV_CLASS_REQUEST, LONG_BYTES) == 0, "no room for it");
    owner_sync(small->owner);
    kv_checkpoint_want(small->owner->kv);
}

static void state_commit(struct small *small) {
    checkpoint_begin(small);
    stage_to(small, SYNC_IDLE, CHECKPOINT_COMMIT);
}
static void state_superblock(struct small *small) {
    checkpoint_begin(small);
    stage_to(small, SYNC_IDLE, CHECKPOINT_SUPERBLOCK_FLUSH);
}
static void state_superblock_flush(struct small *small) {
    state_superblock(small);
    (void)machine_pump(small->seed.machine, 1);
    small->owner->ops->turn(small->owner);
}

static const struct {
    const char *name;
    void (*reach)(struct small *small);
} states[] = {
    {"fresh", state_fresh},
    {"the next long record ends at the ring's end", state_end_0},
    {"8 bytes before it", state_end_8},
    {"48 bytes before it", state_end_48},
    {"56 bytes before it", state_end_56},
    {"the head is at the ring's end", state_at_end},
    {"an old filler behind the head", state_old_filler},
    {"the data area one block before its end", state_data_end},
    {"the log one batch before its end", state_log_end},
    {"the log full", state_log_full},
    {"changes at half", state_changes_half},
    {"changes at three quarters", state_changes_most},
    {"outcomes one below full", state_outcomes},
    {"a sync point at its data", state_sync_data},
    {"a sync point at its records", state_sync_records},
    {"a sync point at its flush", state_sync_flush},
    {"a checkpoint at its commit", state_commit},
    {"a checkpoint at its superblock", state_superblock},
    {"a checkpoint at its superblock's flush", state_superblock_flush},
    {"the base full", state_base_full},
};

/* Steps. What is refused is part of it. */
static void step_short(struct small *small) {
    (void)ask_record(small, KV_CLASS_REQUEST, SHORT_BYTES);
}
static void step_long(struct small *small) {
    (void)ask_record(small, KV_CLASS_REQUEST, small->long_bytes);
}
static void step_open(struct small *small) {
    const struct group_wish wish = {
        .class = KV_CLASS_REQUEST, .record_bytes = SHORT_BYTES, .session = GROUP_NO_SESSION};

    (void)group_ask(small->owner, &wish);
}
static void step_abort(struct small *small) {
    const struct group_wish wish = {.class = KV_CLASS_REQUEST,
                                    .record_bytes = LONG_BYTES,
                                    .session = GROUP_NO_SESSION,
                                    .aborts = true};

    (void)group_ask(small->owner, &wish);
}
static void step_data(struct small *small) {
    (void)ask_data(small);
    group_seal_told(small->owner);
}
static void step_outcome(struct small *small) {
    (void)ask_outcome(small, false, false);
    group_seal_told(small->owner);
}
static void step_lazy(struct small *small) {
    (void)ask_outcome(small, true, false);
    group_seal_told(small->owner);
}
static void step_drop(struct small *small) {
    (void)ask_outcome(small, false, true);
    group_seal_told(small->owner);
}
static void step_sync(struct small *small) {
    group_sync_want(small->owner);
    for (int i = 0; i < 16; i++) {
        (void)machine_pump(small->seed.machine, 1);
        small->owner->ops->turn(small->owner);
    }
}
static void step_sync_begun(struct small *small) {
    group_sync_want(small->owner);
    small->owner->ops->turn(small->owner);
}
static void step_checkpoint(struct small *small) {
    kv_checkpoint_want(small->owner->kv);
    for (int i = 0; i < 24; i++) {
        (void)machine_pump(small->seed.machine, 1);
        small->owner->ops->turn(small->owner);
    }
}
static void step_time(struct small *small) {
    machine_advance(small->seed.machine, NS_PER_S + 1);
    small->owner->ops->turn(small->owner);
    (void)machine_pump(small->seed.machine, 1);
    small->owner->ops->turn(small->owner);
}

static void (*const steps[])(struct small *) = {
    step_short, step_long, step_open, step_abort,      step_data,       step_outcome,
    step_lazy,  step_drop, step_sync, step_sync_begun, step_checkpoint, step_time};

enum { STEPS = ARRAY_SIZE(steps), SEQUENCES = 1 + STEPS + STEPS * STEPS };

uint64_t small_count(void) {
    return ARRAY_SIZE(states) * SEQUENCES;
}

static void crash_everywhere(struct small *small, size_t from) {
    static const enum crash_kind kinds[] = {CRASH_KILL, CRASH_POWER_LOST, CRASH_POWER_KEPT,
                                            CRASH_POWER_ONE_TORN, CRASH_POWER_MIXED};
    struct seed *seed = &small->seed;

    recover_begin(seed);
    for (size_t point = machine_event_count(seed->machine); point > from; point--) {
        if (recover_back(seed, point - 1)) {
            for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                recover_short(seed, point - 1, kinds[i]);
            }
        }
    }
}

static void play(struct small *small, uint64_t sequence) {
    static const struct group_plan plan = {.smallest = true, .data_bytes = 4 * BLOCK_BYTES};
    struct seed *seed = &small->seed;
    struct owner *owner = group_new(seed->machine, &seed->prng, &plan);
    char problem[256] = "";

    small->owner = owner;
    seed->owners[0] = owner;
    seed->owner_count = 1;
    owner->counts = seed->counts[OWNER_GROUP].of;
    group_be_plain(owner);
    int r = owner->ops->open(owner, problem);
    MUST(r == 0, "it does not open: %s: %s", err_name(r), problem);
    owner->ops->resume(owner);
    states[seed->number / SEQUENCES].reach(small);
    size_t from = machine_event_count(seed->machine);
    if (sequence > 0 && sequence <= STEPS) {
        steps[sequence - 1](small);
    } else if (sequence > STEPS) {
        steps[(sequence - STEPS - 1) / STEPS](small);
        steps[(sequence - STEPS - 1) % STEPS](small);
    }
    owner->ops->abandon(owner);
    machine_forget(seed->machine);
    crash_everywhere(small, from > 0 ? from - 1 : 0);
}

void small_run(struct machine *machine, uint64_t number, FILE *trace,
               struct seed_report *ret_report) {
    static struct small small;

    small =
        (struct small){.seed = {.number = number, .machine = machine}, .long_bytes = LONG_BYTES};
    prng_init(&small.seed.prng, number);
    machine_reset(machine, number);
    machine_trace_to(machine, trace);
    seed_mark(&small.seed);
    small.seed.what = states[number / SEQUENCES].name;
    fail_where("%s", small.seed.what);
    ret_report->seed = number;
    ret_report->clean = true;
    fail_report_to(ret_report);
    play(&small, number % SEQUENCES);
    seed_end(&small.seed);
    ret_report->hash = machine_hash(machine);
    memcpy(ret_report->counts, small.seed.counts, sizeof ret_report->counts);
}
