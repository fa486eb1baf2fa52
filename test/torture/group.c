/* A group's life: sizes, opening, turns, endings. */
#include "group_internal.h"
#include "kv/kv_internal.h"
#include <stdlib.h>

enum { RING_BYTES_MIN = 64 * 1024, CHANGES_BYTES_MIN = 256 * 1024, DATA_BYTES_MAX = 96 * 1024 };

void group_count(struct group *group, enum total total) {
    if (!group->owner.recovering) {
        group->owner.counts[total]++;
    }
}

static void hook_wake(void *context) {
    ((struct group *)context)->due = true;
}

static void hook_data_sync(void *context, uint64_t cut) {
    struct group *group = context;

    MUST(!group->hook_called, "%s: a sync point begins data twice", group->owner.name);
    group->hook_called = true;
    group->hook_cut = cut;
    if (group->temper.hook_of_16 == 16) {
        group->hook_called = false;
        kv_data_synced(group->owner.kv, 0);
    }
}

static int hook_replay_note(void *context, struct bytes note, uint64_t position, bool in_ring) {
    struct group *group = context;

    MUST(note.size == 24 && group->note_count < GROUP_NOTES_MAX, "%s: a note of %zu bytes, %zu.",
         group->owner.name, note.size, group->note_count);
    group->notes[group->note_count++] = (struct group_note){.position = position,
                                                            .ring_offset = load_le64(note.data),
                                                            .size = load_le32(note.data + 8),
                                                            .stamp = load_le32(note.data + 12),
                                                            .in_ring = in_ring};
    return 0;
}

static void log_line(void *context, const char *line) {
    struct group *group = context;

    group->lines_failed += strstr(line, " failed: ") != NULL;
    group->lines_full += strstr(line, " is full: a checkpoint waits") != NULL;
    group->lines_room += strstr(line, " has space again") != NULL;
    group->lines_gone += strstr(line, " is gone, though ") != NULL;
    machine_say(group->owner.machine, "       %s says: %s", group->owner.name, line);
}

/* The smallest, one and a half times that, four times, or an odd number of blocks between. */
static size_t size_draw(struct prng *prng, size_t least, bool smallest) {
    switch (smallest ? 0 : prng_below(prng, 4)) {
    case 0:
        return least;
    case 1:
        return least / 2 * 3;
    case 2:
        return least * (prng_chance(prng, 1, 4) ? 4 : 2);
    default:
        return least + (2 * prng_below(prng, least / BLOCK_BYTES) + 1) * BLOCK_BYTES;
    }
}

static size_t data_draw(struct prng *prng) {
    switch (prng_below(prng, 3)) {
    case 0:
        return 0;
    case 1:
        return BLOCK_BYTES * (1 + prng_below(prng, 4)) + prng_below(prng, 2);
    default:
        return BLOCK_BYTES * (1 + prng_below(prng, DATA_BYTES_MAX / BLOCK_BYTES));
    }
}

static void options_draw(struct group *group, bool smallest) {
    struct prng *prng = group->owner.prng;
    struct kv_options *options = &group->options;

    options->ring_bytes = size_draw(prng, RING_BYTES_MIN, smallest);
    options->ring_data_bytes = data_draw(prng);
    options->disk_log_bytes = size_draw(prng, 8 * options->ring_bytes, smallest);
    options->disk_log_bytes = MIN(options->disk_log_bytes, (uint64_t)MACHINE_FILE_BYTES_MAX / 2);
    options->changes_bytes_max = size_draw(prng, CHANGES_BYTES_MIN, smallest);
    options->outcomes_max = smallest ? 8 : 4 + (uint32_t)prng_below(prng, 61);
    options->sessions_max = smallest ? 2 : 2 + (uint32_t)prng_below(prng, 15);
    if (!smallest && prng_chance(prng, 1, 2)) {
        /* Their rows take more of a small memory than is kept for anything else. */
        options->changes_bytes_max = size_draw(prng, CHANGES_BYTES_MIN, prng_chance(prng, 1, 2));
        options->outcomes_max = (uint32_t)prng_between(prng, 256, GROUP_OUTCOMES_MANY);
        options->sessions_max = MODEL_SESSIONS + (uint32_t)prng_below(prng, MODEL_SESSIONS);
    }
    options->checkpoint_ns = prng_chance(prng, 1, 3) ? 3 * NS_PER_S : 0;
}

static int open_group(struct owner *owner, char problem[256]) {
    struct group *group = group_of(owner);

    group->hook_called = false;
    group->note_count = 0;
    group->due = true;
    group->committed = 0;
    group->flooded = false;
    group->lines_failed = 0;
    group->lines_full = 0;
    group->lines_room = 0;
    group->lines_gone = 0;
    struct group_findings found = group_find(group);
    group->options.ring_expected = found.log;
    owner->opening = true;
    int r = kv_open(&group->options, &owner->kv, problem);
    owner->opening = false;
    if (r < 0) {
        owner->kv = NULL;
    } else {
        group_step_begin(group);
        group_check_opened(group, &found);
    }
    return r;
}

static void waits_forget(struct group *group) {
    for (size_t i = 0; i < GROUP_WAITS_MAX; i++) {
        group->waits[i].busy = false;
    }
}

static void abandon(struct owner *owner) {
    kv_abandon(owner->kv);
    owner->kv = NULL;
    waits_forget(group_of(owner));
}

static void close_group(struct owner *owner) {
    kv_close(owner->kv);
    owner->kv = NULL;
    waits_forget(group_of(owner));
}

static void stop(struct owner *owner, void (*done)(void *context, int result), void *context) {
    kv_stop_start(owner->kv, done, context);
    group_step_note(group_of(owner));
}

static void named(struct bytes note, uint64_t *ret_offset, uint64_t *ret_size) {
    *ret_offset = load_le64(note.data);
    *ret_size = load_le32(note.data + 8);
}

static void hook_turn(struct group *group) {
    struct group_temper *temper = &group->temper;

    if (group->hook_called &&
        (group->owner.recovering || prng_chance(group->owner.prng, temper->hook_of_16, 16))) {
        group->hook_called = false;
        kv_data_synced(group->owner.kv, 0);
    }
}

/* What the engine says to be durable is believed at once by those who ask it. */
static void claim_synced(struct group *group) {
    uint64_t synced = kv_synced_position(group->owner.kv);

    if (!group->owner.recovering && synced > group->told_synced) {
        group->told_synced = synced;
        claims_add(&group->model.claims, CLAIM_SYNCED, synced,
                   machine_told(group->owner.machine, CLAIM_SYNCED, synced));
    }
}

static void turn(struct owner *owner) {
    struct group *group = group_of(owner);

    hook_turn(group);
    group_step(group);
    if (kv_failure(owner->kv) == 0) {
        owner_kv_check(owner);
        claim_synced(group);
        if (group->flooded) {
            group->flooded = false;
            group_check_outcome_rows(group);
        }
    }
}

static void resume(struct owner *owner) {
    struct group *group = group_of(owner);
    uint64_t position = kv_position(owner->kv);

    model_fold(&group->model, machine_event_count(owner->machine), position, &group->state);
    for (size_t i = 0; i < MODEL_SESSIONS; i++) {
        group->sessions[i].generation = group->state.sessions[i].generation;
    }
    model_resume(&group->model, position, machine_told(owner->machine, CLAIM_RESUMED, position));
    group->told_sealed = position;
    group->told_synced = 0;
    claim_synced(group);
}

static void powered(struct owner *owner) {
    claims_add(&group_of(owner)->model.claims, CLAIM_POWER, 0,
               machine_told(owner->machine, CLAIM_POWER, 0));
}

static void settings_keep(struct group *group) {
    MUST(group->settings_count < GROUP_LIVES_MAX, "too many lives");
    group->settings[group->settings_count++] =
        (struct group_settings){machine_event_count(group->owner.machine), group->options};
}

/* What eight rings of fit into the disk log. */
static size_t ring_limit(const struct group *group, size_t ring_bytes) {
    return MIN(ring_bytes, (size_t)(group->options.disk_log_bytes / 8 / BLOCK_BYTES * BLOCK_BYTES));
}

static void settings(struct owner *owner) {
    struct group *group = group_of(owner);
    struct kv_options old = group->options;

    options_draw(group, prng_chance(owner->prng, 1, 2));
    group->options.disk_log_bytes = old.disk_log_bytes;
    group->options.ring_bytes = ring_limit(group, group->options.ring_bytes);
    group_temper_draw(group);
    settings_keep(group);
}

static void resize(struct owner *owner, struct prng *prng) {
    struct group *group = group_of(owner);

    group->options.ring_bytes = ring_limit(group, size_draw(prng, RING_BYTES_MIN, false));
    group->options.ring_data_bytes = data_draw(prng);
    if (prng_chance(prng, 1, 2)) {
        group->options.changes_bytes_max = CHANGES_BYTES_MIN;
    }
}

static bool ring_be(struct owner *owner, size_t ring_bytes, size_t data_bytes) {
    struct group *group = group_of(owner);

    if (group->options.ring_bytes == ring_bytes &&
        group->options.ring_data_bytes / BLOCK_BYTES * BLOCK_BYTES == data_bytes) {
        return false;
    }
    group->options.ring_bytes = ring_bytes;
    group->options.ring_data_bytes = data_bytes;
    if (!owner->recovering) {
        group_temper_draw(group);
        settings_keep(group);
    }
    return true;
}

static void settings_of(struct owner *owner, size_t point) {
    struct group *group = group_of(owner);

    for (size_t i = 0; i < group->settings_count; i++) {
        if (group->settings[i].event <= point) {
            group->options = group->settings[i].options;
        }
    }
}

static void free_group(struct owner *owner) {
    struct group *group = group_of(owner);

    kv_abandon(owner->kv);
    model_deinit(&group->model);
    free(group);
}

static void check(struct owner *owner, size_t point, bool power) {
    group_check(owner, point, power);
}

static const struct owner_ops group_ops = {
    .open = open_group,
    .abandon = abandon,
    .close = close_group,
    .stop = stop,
    .named = named,
    .act = group_act,
    .turn = turn,
    .check = check,
    .resume = resume,
    .powered = powered,
    .content = group_content,
    .left = group_left,
    .settings = settings,
    .settings_of = settings_of,
    .resize = resize,
    .ring_be = ring_be,
    .free = free_group,
};

static void group_options(struct group *group, unsigned index) {
    (void)snprintf(group->directory, sizeof group->directory, "g%u", index);
    (void)snprintf(group->ring_name, sizeof group->ring_name, "ring-g%u", index);
    (void)snprintf(group->log_path, sizeof group->log_path, "g%u/log", index);
    group->options = (struct kv_options){
        .env = machine_env(group->owner.machine),
        .directory = group->directory,
        .shared_name = group->ring_name,
        .base = &machine_base_ops,
        .warm_sets = 8,
        .base_store = machine_base(group->owner.machine, index),
        .sync_interval_ns = NS_PER_S,
        .hooks = {hook_wake, hook_data_sync, NULL, hook_replay_note},
        .hook_context = group,
        .log = log_line,
        .log_context = group,
    };
    memset(group->options.owner_id, 'a' + (int)index, sizeof group->options.owner_id);
}

struct owner *group_new(struct machine *machine, struct prng *prng, const struct group_plan *plan) {
    struct group *group = calloc(1, sizeof *group);

    if (!group) {
        abort();
    }
    group->owner = (struct owner){.ops = &group_ops,
                                  .name = "group",
                                  .machine = machine,
                                  .prng = prng,
                                  .ring_name = group->ring_name,
                                  .log_path = group->log_path,
                                  .base = plan->index};
    group_options(group, plan->index);
    options_draw(group, plan->smallest || plan->fills);
    if (plan->fills) {
        group->options.changes_bytes_max = 8 * CHANGES_BYTES_MIN;
    }
    if (plan->data_bytes > 0) {
        group->options.ring_data_bytes = plan->data_bytes;
    }
    group_temper_draw(group);
    settings_keep(group);
    model_init(&group->model, plan->first);
    group->next_stamp = 1;
    group->told_sealed = plan->first;
    group->told_synced = plan->first;
    for (uint32_t i = 0; i < MODEL_SESSIONS; i++) {
        group->sessions[i] = (struct group_session){.next = plan->first + 1, .floor = plan->first};
    }
    return &group->owner;
}
