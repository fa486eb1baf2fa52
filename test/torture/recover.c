/* Crash points: the machine goes back to before an event, crashes, and fresh engines open on what
 * is left, are compared with what had been told, and go on to a sync point, a checkpoint, a stop.
 * The opening is traced too, and cut again. */
#include "claim.h"
#include "seed.h"
#include "kv/kv_internal.h"
#include <stdlib.h>

enum { POINTS_DRAWN = 16, POINTS_OF_STAGES = 4, CUT_AGAIN_TRIES = 8 };
/* Of so many recoveries one comes behind something else. */
enum { DAMAGED_OF = 12, FAILING_OF = 24, FORGETFUL_OF = 4 };

/* What the engine was at: of an owner a stage of the sync point and one of the checkpoint. */
enum { STATES_MAX = SEED_OWNERS_MAX * TOTALS_SYNC_STAGES * TOTALS_CHECKPOINT_STAGES };

static void ring_count(struct seed *seed, enum total what) {
    if (what < TOTAL_COUNT) {
        seed->counts[seed->kinds[seed->active]].of[what]++;
    }
}

/* What a group replays finds no room in its base, and may have less memory than it takes. */
static void disk_fill(struct seed *seed, const struct owner *owner) {
    if (seed->kinds[seed->active] == OWNER_GROUP && owner_superblock(owner).magic != 0 &&
        prng_chance(machine_prng(seed->machine), 1, 2)) {
        machine_capacity_set(seed->machine, machine_used_bytes(seed->machine));
    }
}

static void owners_open(struct seed *seed, size_t point, bool power) {
    for (size_t i = 0; i < seed->owner_count; i++) {
        struct owner *owner = seed->owners[i];

        seed->active = i;
        owner->ops->settings_of(owner, point);
        if (seed->resizes && prng_chance(machine_prng(seed->machine), 1, 8)) {
            owner->ops->resize(owner, machine_prng(seed->machine));
            disk_fill(seed, owner);
        }
        ring_count(seed, owner_open(owner));
        machine_capacity_set(seed->machine, UINT64_MAX);
        owner_kv_check(owner);
        owner->ops->check(owner, point, power);
    }
}

static void owners_abandon(struct seed *seed) {
    for (size_t i = 0; i < seed->owner_count; i++) {
        if (seed->owners[i]->kv) {
            seed->owners[i]->ops->abandon(seed->owners[i]);
        }
    }
    machine_forget(seed->machine);
}

static void found_forget(struct seed *seed) {
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->owners[i]->found = UINT64_MAX;
    }
}

static void crash(struct seed *seed, enum crash_kind kind) {
    machine_crash(seed->machine, kind);
    for (size_t i = 0; i < seed->owner_count; i++) {
        scramble(seed->owners[i]);
    }
}

/* The recovered engine serves: all that it will do first. Then it opens once more, and there is
 * nothing left to replay. */
static void settle(struct seed *seed, size_t index, size_t point, bool power) {
    struct owner *owner = seed->owners[index];
    struct kv_counters counters;
    char problem[256] = "";

    seed->active = index;
    uint64_t position = kv_position(owner->kv);
    owner_sync(owner);
    owner_checkpoint(owner);
    owner_stop(owner);
    int r = owner->ops->open(owner, problem);
    MUST(r == 0, "%s does not open behind a stop: %s: %s", owner->name, err_name(r), problem);
    kv_counters_get(owner->kv, &counters);
    MUST(counters.replayed_records == 0, "%s replays %llu records behind a stop", owner->name,
         (unsigned long long)counters.replayed_records);
    MUST(kv_position(owner->kv) >= position, "%s is at record %llu behind a stop, was at %llu",
         owner->name, (unsigned long long)kv_position(owner->kv), (unsigned long long)position);
    owner->ops->check(owner, point, power);
}

static bool is_point(const struct seed *seed, size_t index) {
    const struct event *event = machine_event(seed->machine, index);

    return event->kind != EVENT_LAND && event->kind != EVENT_CRASH && event->kind != EVENT_EDIT &&
           !(event->kind == EVENT_TOLD && event->size == CLAIM_POWER);
}

/* In the middle of a store; an instruction is whole, or has not begun. */
static size_t cut_draw(struct seed *seed, size_t index) {
    const struct event *event = machine_event(seed->machine, index);
    struct prng *prng = machine_prng(seed->machine);

    return !machine_is_stepped() && event->kind == EVENT_STORE && event->size > 1 &&
                   prng_chance(prng, 1, 2)
               ? prng_between(prng, 1, event->size - 1)
               : 0;
}

/* Somewhere in the opening that lies between two events, all is cut once more. */
static void cut_again(struct seed *seed, size_t from, size_t to, size_t point, bool power) {
    struct prng *prng = machine_prng(seed->machine);

    for (int i = 0; i < CUT_AGAIN_TRIES && to > from; i++) {
        size_t index = from + prng_below(prng, to - from);

        if (!is_point(seed, index)) {
            continue;
        }
        enum crash_kind kind = prng_chance(prng, 2, 3) ? CRASH_KILL : crash_draw(prng);

        machine_back(seed->machine, index, cut_draw(seed, index));
        machine_say(seed->machine, "-- again before %zu: %s", index, crash_names[kind]);
        crash(seed, kind);
        owners_open(seed, point, power || kind != CRASH_KILL);
        owners_abandon(seed);
        seed->counts[seed->kinds[0]].of[TOTAL_CUT_AGAIN]++;
        return;
    }
}

static void before_opening(struct seed *seed, size_t point, enum crash_kind kind) {
    struct prng *prng = machine_prng(seed->machine);
    bool killed = kind == CRASH_KILL;

    seed->owners[0]->may_lose = false;
    if (prng_chance(prng, 1, DAMAGED_OF)) {
        damage_play(seed, point, killed);
    }
    if (prng_chance(prng, 1, FAILING_OF)) {
        opening_fail(seed, point);
    }
    if (killed && prng_chance(prng, 1, FORGETFUL_OF)) {
        newest_forget(seed->owners[0]);
    }
}

static void recover(struct seed *seed, size_t point, enum crash_kind kind) {
    struct machine *machine = seed->machine;
    size_t mark = machine_event_count(machine);
    bool power = kind != CRASH_KILL;

    machine_draw_from(machine, seed->number * 1000003 + point * 16 + (uint64_t)kind);
    machine_cold_set(machine, prng_chance(machine_prng(machine), 1, 4) ? 4 : 0);
    machine_say(machine, "== before %zu: %s", point, crash_names[kind]);
    fail_where("crash before event %zu, %s", point, crash_names[kind]);
    found_forget(seed);
    crash(seed, kind);
    before_opening(seed, point, kind);
    size_t from = machine_event_count(machine);
    owners_open(seed, point, power);
    size_t to = machine_event_count(machine);
    for (size_t i = 0; i < seed->owner_count; i++) {
        settle(seed, i, point, power);
    }
    owners_abandon(seed);
    cut_again(seed, from, to, point, power);
    machine_back(machine, mark, 0);
    for (size_t i = 0; i < seed->owner_count; i++) {
        struct counts *counts = &seed->counts[seed->kinds[i]];

        counts->of[TOTAL_RECOVERIES]++;
        counts->of[TOTAL_KILLED + (unsigned)kind]++;
    }
}

/* What the engine was at when it was cut there. */
static void count_cut(struct seed *seed, size_t index, size_t cut) {
    const struct event *event = machine_event(seed->machine, index);
    struct mark mark = mark_split(event->mark);
    struct counts *counts = &seed->counts[seed->kinds[mark.owner]];
    uint64_t *of = counts->of;

    of[TOTAL_CUT_STORE] += cut > 0;
    if (mark.opening) {
        of[TOTAL_CUT_OPEN]++;
        return;
    }
    if (!mark.is_open) {
        return;
    }
    counts->cut[mark.sync][mark.checkpoint]++;
    of[TOTAL_CUT_RELEASE] += mark.part == MARK_RELEASE;
    of[TOTAL_CUT_SEAL] += mark.part == MARK_SEAL;
    of[TOTAL_CUT_FILLER] += mark.filler && !mark.record;
    of[TOTAL_CUT_FILLED] += mark.filler && mark.record;
}

/* Whether a loss of power right behind the event leaves another disk than one right before it. */
static bool is_of_disk(const struct event *event) {
    return event->kind == EVENT_SUBMIT || event->kind == EVENT_END || event->kind == EVENT_FLUSH ||
           event->kind == EVENT_FILE;
}

/* Whether the event changes nothing but bytes of a ring's header or records. What is told makes
 * more owed, not less. */
static bool is_of_ring(const struct event *event) {
    struct mark mark = mark_split(event->mark);

    return (event->kind == EVENT_STORE && !mark.opening) ||
           (event->kind == EVENT_TOLD && event->size != CLAIM_RESUMED);
}

static uint64_t rings_seen(const struct seed *seed) {
    uint64_t seen = 0;

    for (size_t i = 0; i < seed->owner_count; i++) {
        seen = seen * UINT64_C(0x9e3779b97f4a7c15) + ring_seen(seed->owners[i]);
    }
    return seen;
}

/* behind: what a start sees of the rings at the point behind, which was played, and from which this
 * one differs in nothing else; UINT64_MAX: there is none. Answers what it sees here. */
static uint64_t point_play(struct seed *seed, size_t point, uint64_t behind) {
    struct prng prng;

    prng_init(&prng, seed->number * 77777 + point);
    machine_draw_from(seed->machine, prng_next(&prng));
    size_t cut = cut_draw(seed, point);
    bool by_power = !seed->every_point || is_of_disk(machine_event(seed->machine, point));

    count_cut(seed, point, cut);
    machine_back(seed->machine, point, cut);
    uint64_t seen = rings_seen(seed);
    if (seen != behind) {
        recover(seed, point, CRASH_KILL);
    }
    if (by_power) {
        recover(seed, point,
                (enum crash_kind)prng_between(&prng, CRASH_KILL + 1, CRASH_KIND_COUNT - 1));
    }
    return seen;
}

static int downwards(const void *a, const void *b) {
    size_t left = *(const size_t *)a, right = *(const size_t *)b;

    return (left < right) - (left > right);
}

void recover_begin(struct seed *seed) {
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->owners[i]->recovering = true;
        seed->owners[i]->counts = seed->unseen.of;
    }
    machine_capacity_set(seed->machine, UINT64_MAX);
    machine_faults_set(seed->machine, &(struct machine_faults){0});
}

bool recover_back(struct seed *seed, size_t point) {
    machine_draw_from(seed->machine, seed->number * 77777 + point);
    bool is_one = is_point(seed, point);
    size_t cut = is_one ? cut_draw(seed, point) : 0;

    if (is_one) {
        count_cut(seed, point, cut);
    }
    machine_back(seed->machine, point, cut);
    return is_one;
}

void recover_short(struct seed *seed, size_t point, enum crash_kind kind) {
    struct machine *machine = seed->machine;
    size_t mark = machine_event_count(machine);
    bool power = kind != CRASH_KILL;

    machine_draw_from(machine, seed->number * 1000003 + point * 16 + (uint64_t)kind);
    machine_cold_set(machine, 0);
    machine_say(machine, "== before %zu: %s", point, crash_names[kind]);
    fail_where("%s, crash before event %zu, %s", seed->what, point, crash_names[kind]);
    found_forget(seed);
    crash(seed, kind);
    owners_open(seed, point, power);
    owner_sync(seed->owners[0]);
    owners_abandon(seed);
    machine_back(machine, mark, 0);
    seed->counts[OWNER_GROUP].of[TOTAL_RECOVERIES]++;
    seed->counts[OWNER_GROUP].of[TOTAL_KILLED + (unsigned)kind]++;
}

static size_t state_of(const struct mark *mark) {
    return (mark->owner * TOTALS_SYNC_STAGES + mark->sync) * TOTALS_CHECKPOINT_STAGES +
           mark->checkpoint;
}

/* Of each state that was met one event, each as likely as the others. Answers how many. */
static size_t states_draw(struct seed *seed, size_t ret_events[STATES_MAX]) {
    size_t met[STATES_MAX] = {0}, chosen[STATES_MAX] = {0};
    size_t count = 0;

    for (size_t i = seed->first_point; i < machine_event_count(seed->machine); i++) {
        struct mark mark = mark_split(machine_event(seed->machine, i)->mark);
        size_t state = state_of(&mark);

        if (mark.is_open && is_point(seed, i) && prng_chance(&seed->prng, 1, ++met[state])) {
            chosen[state] = i;
        }
    }
    for (size_t state = 0; state < STATES_MAX; state++) {
        if (met[state] > 0) {
            ret_events[count++] = chosen[state];
        }
    }
    return count;
}

/* Some of them are of states that seldom last. */
static void drawn_play(struct seed *seed) {
    size_t end = machine_event_count(seed->machine);
    size_t drawn[POINTS_DRAWN];
    size_t states[STATES_MAX];
    size_t state_count = states_draw(seed, states);

    for (size_t i = 0; i < POINTS_DRAWN; i++) {
        drawn[i] = i < POINTS_OF_STAGES && state_count > 0
                       ? states[prng_below(&seed->prng, state_count)]
                       : seed->first_point + prng_below(&seed->prng, end - seed->first_point);
    }
    qsort(drawn, POINTS_DRAWN, sizeof drawn[0], downwards);
    for (size_t i = 0; i < POINTS_DRAWN; i++) {
        if ((i == 0 || drawn[i] != drawn[i - 1]) && is_point(seed, drawn[i])) {
            (void)point_play(seed, drawn[i], UINT64_MAX);
        }
    }
}

void recover_all(struct seed *seed) {
    recover_begin(seed);
    seed->resizes = true;
    if (!seed->every_point) {
        drawn_play(seed);
        return;
    }
    uint64_t behind = UINT64_MAX;
    for (size_t point = machine_event_count(seed->machine); point > seed->first_point; point--) {
        bool same = is_of_ring(machine_event(seed->machine, point - 1));

        behind = is_point(seed, point - 1) ? point_play(seed, point - 1, same ? behind : UINT64_MAX)
                                           : UINT64_MAX;
    }
}
