/* What happens to the owners, in turn and by lot: clients, completions, clocks, full disks, errors,
 * the ends of lives. */
#include "kv/kv_internal.h"
#include "seed.h"

/* How the outside is, for a life. */
struct weather {
    uint32_t pump_of_8;   /* chance that something completes in a step */
    uint32_t clock_of_16; /* that time passes */
    bool jumps;
    uint32_t full_of_256, end_of_64; /* that the disk becomes full; that it has room again */
    uint32_t fault_of_1000;
    uint32_t batch_of_16; /* that many clients come at once */
    bool full;
};

enum crash_kind crash_draw(struct prng *prng) {
    return (enum crash_kind)prng_between(prng, CRASH_KILL + 1, CRASH_KIND_COUNT - 1);
}

static void weather_draw(struct seed *seed, struct weather *weather) {
    struct prng *prng = &seed->prng;
    bool fills = prng_chance(prng, 1, 3);
    bool lasts = prng_chance(prng, 1, 3);

    *weather = (struct weather){
        .pump_of_8 = (uint32_t)prng_between(prng, 1, 8),
        .clock_of_16 = (uint32_t)prng_below(prng, 9),
        .jumps = prng_chance(prng, 1, 4),
        .full_of_256 = fills ? (uint32_t)prng_between(prng, 2, 16) : 0,
        .end_of_64 = lasts ? 0 : (uint32_t)prng_between(prng, 1, 6),
        .fault_of_1000 = prng_chance(prng, 1, 2) ? (uint32_t)prng_between(prng, 5, 60) : 0,
    };
    if (weather->fault_of_1000 > 0) {
        weather->pump_of_8 = 2; /* so that something else is under way when one fails */
    }
    if (prng_chance(prng, 1, 3)) {
        weather->batch_of_16 = (uint32_t)prng_between(prng, 1, 4);
    }
    if (seed->holds_up) {
        /* The disk is full all life long, and all else is prompt. */
        *weather = (struct weather){.pump_of_8 = 8, .clock_of_16 = 1, .full_of_256 = 64};
    }
    uint32_t cold_of_16 = (uint32_t)prng_below(prng, 5);
    machine_cold_set(seed->machine, seed->number % 16 == 5 ? 16 : cold_of_16);
}

static void weather_turn(struct seed *seed, struct weather *weather) {
    struct prng *prng = &seed->prng;
    struct machine_faults faults = {0};

    if (!weather->full && prng_chance(prng, weather->full_of_256, 256)) {
        weather->full = true;
        machine_capacity_set(seed->machine,
                             machine_used_bytes(seed->machine) + prng_below(prng, 3 * BLOCK_BYTES));
    } else if (weather->full && prng_chance(prng, weather->end_of_64, 64)) {
        weather->full = false;
        machine_capacity_set(seed->machine, UINT64_MAX);
    }
    if (prng_chance(prng, weather->fault_of_1000, 1000)) {
        faults = (struct machine_faults){.write_fails = 300,
                                         .flush_fails = 300,
                                         .commit_fails = 300,
                                         .no_space = prng_chance(prng, 1, 3)};
    }
    machine_faults_set(seed->machine, &faults);
    if (prng_chance(prng, weather->clock_of_16, 16)) {
        machine_advance(seed->machine, weather->jumps ? prng_below(prng, 11) * NS_PER_S
                                                      : prng_below(prng, 400) * NS_PER_MS);
    }
}

static void owners_turn(struct seed *seed) {
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->active = i;
        seed->owners[i]->ops->turn(seed->owners[i]);
    }
}

static bool has_failed(const struct seed *seed) {
    for (size_t i = 0; i < seed->owner_count; i++) {
        if (kv_failure(seed->owners[i]->kv) < 0) {
            return true;
        }
    }
    return false;
}

/* What has failed may be on its way to its engine still. */
static bool has_met_failure(const struct seed *seed) {
    return has_failed(seed) || machine_failure_count(seed->machine) != seed->failures_before;
}

static void calm(struct seed *seed) {
    machine_capacity_set(seed->machine, UINT64_MAX);
    machine_faults_set(seed->machine, &(struct machine_faults){0});
    machine_cold_set(seed->machine, 0);
}

static void life_count(struct seed *seed) {
    for (size_t i = 0; i < seed->owner_count; i++) {
        struct owner *owner = seed->owners[i];
        const struct kv *kv = owner->kv;

        owner->counts[TOTAL_LIVES]++;
        owner->counts[TOTAL_RECORDS] += kv->counters.records;
        owner->counts[TOTAL_SYNC_POINTS] += kv->counters.sync_points;
        owner->counts[TOTAL_CHECKPOINTS] += kv->counters.checkpoints;
        owner->counts[TOTAL_FAILURES] += kv->failed < 0;
        if (seed->kinds[i] == OWNER_STORE) {
            owner->counts[TOTAL_PENDING] += kv->counters.pending_reads;
            owner->counts[TOTAL_REQUEST_WAITS] += kv->counters.stalls;
        }
    }
}

/* What lies before a life. */
enum ending { ENDING_NONE, ENDING_KILL, ENDING_POWER, ENDING_STOP };

static void ring_count(struct owner *owner, enum ending ending, enum total what) {
    const struct ring *ring = &owner->kv->ring;
    bool other = ring->record_bytes != owner->ring_bytes || ring->data_bytes != owner->data_bytes;

    owner->counts[TOTAL_RINGS_BY_KILL] += other && ending == ENDING_KILL;
    owner->counts[TOTAL_RINGS_BY_STOP] += other && ending == ENDING_STOP;
    if (what < TOTAL_COUNT) {
        owner->counts[what]++;
    }
    owner->ring_bytes = ring->record_bytes;
    owner->data_bytes = ring->data_bytes;
}

static void owners_open(struct seed *seed, size_t point, enum ending ending) {
    bool power = ending == ENDING_POWER;

    for (size_t i = 0; i < seed->owner_count; i++) {
        struct owner *owner = seed->owners[i];

        seed->active = i;
        if (ending != ENDING_NONE && prng_chance(&seed->prng, ending == ENDING_KILL ? 7 : 4, 8)) {
            owner->ops->settings(owner);
        }
        ring_count(owner, ending, owner_open(owner));
        owner_kv_check(owner);
        owner->found = UINT64_MAX;
        owner->ops->check(owner, point, power);
        owner->ops->resume(owner);
        owner->losses = kv_losses(owner->kv);
    }
}

void schedule_crash(struct seed *seed, enum crash_kind kind) {
    size_t point = machine_event_count(seed->machine);
    bool power = kind != CRASH_KILL;

    life_count(seed);
    calm(seed);
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->owners[i]->ops->abandon(seed->owners[i]);
    }
    machine_crash(seed->machine, kind);
    for (size_t i = 0; i < seed->owner_count; i++) {
        scramble(seed->owners[i]);
        if (power) {
            seed->owners[i]->ops->powered(seed->owners[i]);
        }
    }
    owners_open(seed, point, power ? ENDING_POWER : ENDING_KILL);
}

/* Of a ring that holds something still, or of one that has come to rest. */
static void kill_and_open(struct seed *seed) {
    if (!has_met_failure(seed) && prng_chance(&seed->prng, 1, 2)) {
        calm(seed);
        for (size_t i = 0; i < seed->owner_count; i++) {
            seed->active = i;
            owner_sync(seed->owners[i]);
        }
    }
    schedule_crash(seed, CRASH_KILL);
}

static void stop_all(struct seed *seed) {
    life_count(seed);
    calm(seed);
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->active = i;
        owner_stop(seed->owners[i]);
        seed->owners[i]->counts[TOTAL_STOPS]++;
    }
}

/* A stop in the weather that there is, also of a log that has failed; the next life finds what it
 * has left. */
static void end_and_open(struct seed *seed) {
    life_count(seed);
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->active = i;
        int r = owner_end(seed->owners[i]);
        seed->owners[i]->counts[r == 0 ? TOTAL_STOPS_IN_WEATHER : TOTAL_STOPS_FAILED]++;
    }
    calm(seed);
    owners_open(seed, machine_event_count(seed->machine), ENDING_STOP);
}

static void stop_and_open(struct seed *seed) {
    stop_all(seed);
    owners_open(seed, machine_event_count(seed->machine), ENDING_STOP);
}

static void life_play(struct seed *seed, uint64_t steps) {
    struct weather weather;

    seed->failures_before = machine_failure_count(seed->machine);
    weather_draw(seed, &weather);
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->owners[i]->holds_up = seed->holds_up;
        /* A log that is to be filled must find memory. */
        seed->owners[i]->may_flood = !seed->every_point && !seed->holds_up;
    }
    for (uint64_t i = 0; i < steps && !has_failed(seed); i++) {
        /* Messages of a batch are all handled before the engine goes on. */
        uint64_t batch = prng_chance(&seed->prng, weather.batch_of_16, 16)
                             ? prng_between(&seed->prng, 2, 80)
                             : 1;

        seed->active = prng_below(&seed->prng, seed->owner_count);
        seed->owners[seed->active]->in_batch = batch > 1;
        for (uint64_t k = 0; k < batch; k++) {
            seed->owners[seed->active]->ops->act(seed->owners[seed->active]);
        }
        weather_turn(seed, &weather);
        if (prng_chance(&seed->prng, weather.pump_of_8, 8)) {
            (void)machine_pump(seed->machine, 1 + prng_below(&seed->prng, 3));
        }
        owners_turn(seed);
    }
}

/* Disks fail while much is under way: an engine fails with I/O in flight, and stops. */
static void storm(struct seed *seed) {
    enum { STORM_TURNS = 60 };
    const struct machine_faults faults = {.write_fails = 200, .flush_fails = 300};

    calm(seed);
    for (int i = 0; i < STORM_TURNS && !has_failed(seed); i++) {
        for (size_t k = 0; k < seed->owner_count; k++) {
            seed->active = k;
            seed->owners[k]->ops->act(seed->owners[k]);
            kv_checkpoint_want(seed->owners[k]->kv);
        }
        owners_turn(seed);
        if (i == STORM_TURNS / 4) {
            machine_faults_set(seed->machine, &faults);
        }
        (void)machine_pump(seed->machine, i % 2);
    }
    end_and_open(seed);
}

/* Once everything is well, everything moves; the next start finds no more than what was left. */
static void mend(struct seed *seed) {
    calm(seed);
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->active = i;
        owner_lively(seed->owners[i]);
        seed->owners[i]->counts[TOTAL_LIVELY]++;
    }
    stop_and_open(seed);
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->active = i;
        seed->owners[i]->ops->left(seed->owners[i]);
    }
}

void schedule_play(struct seed *seed) {
    struct prng *prng = &seed->prng;
    bool store = seed->kinds[0] == OWNER_STORE;
    uint64_t lives = store ? prng_between(prng, 2, 4) : prng_between(prng, 1, 3);

    fail_where("schedule");
    owners_open(seed, machine_event_count(seed->machine), ENDING_NONE);
    for (uint64_t life = 0; life < lives; life++) {
        uint64_t steps = prng_between(prng, 40, 200);

        seed->holds_up = seed->fills && life == 0;
        steps = seed->every_point ? prng_between(prng, 5, 30) : seed->holds_up ? 400 : steps;
        life_play(seed, steps);
        if (life + 1 == lives && !has_met_failure(seed)) {
            if (prng_chance(prng, 1, 4)) {
                storm(seed);
            }
            break;
        }
        if (!has_met_failure(seed) && prng_chance(prng, 1, 4)) {
            stop_and_open(seed);
        } else if (!has_met_failure(seed) && prng_chance(prng, 1, 4)) {
            storm(seed);
        } else if (prng_chance(prng, 2, has_met_failure(seed) ? 3 : 6)) {
            end_and_open(seed);
        } else if (prng_chance(prng, 2, 3)) {
            kill_and_open(seed);
        } else {
            schedule_crash(seed, crash_draw(prng));
        }
    }
    if (prng_chance(prng, 1, 2)) {
        mend(seed);
    }
    if (prng_chance(prng, 1, 3)) {
        stop_and_open(seed);
    }
    life_count(seed);
}
