/* Whether what has opened is what the model says. */
#include "group_internal.h"
#include "kv/kv_internal.h"
#include "kv/outcomes_internal.h"

static int get_now(struct group *group, const struct kv_key *key, struct bytes *ret_value) {
    struct owner *owner = &group->owner;
    int r;

    for (int i = 0; (r = kv_get(owner->kv, key, ret_value)) == -ERR_PENDING; i++) {
        MUST(i < 1000, "a row stays on its way");
        (void)machine_pump(owner->machine, 8);
        group_step(group);
    }
    return r;
}

static void check_rows(struct group *group, const struct model_state *state, uint64_t position) {
    struct bytes value;

    for (uint32_t i = 0; i < MODEL_KEYS; i++) {
        const struct model_row *row = &state->rows[i];
        struct kv_key key = model_key(i);
        int r = get_now(group, &key, &value);

        if (kv_failure(group->owner.kv) < 0) {
            return; /* meanwhile: then there is nothing to be had */
        }
        MUST(r == (row->present ? 0 : -ERR_NOT_FOUND), "at record %llu key %u answers %s, it is %s",
             (unsigned long long)position, i, err_name(r), row->present ? "there" : "not there");
        MUST(!row->present || (value.size == row->size &&
                               (value.size == 0 || memcmp(value.data, row->value, row->size) == 0)),
             "at record %llu key %u has other bytes (%zu, must be %zu)",
             (unsigned long long)position, i, value.size, row->size);
    }
}

static int next_now(struct group *group, struct kv_cursor *cursor, struct bytes *ret_value) {
    struct owner *owner = &group->owner;
    int r;

    for (int i = 0; (r = kv_next(owner->kv, cursor, ret_value)) == -ERR_PENDING; i++) {
        MUST(i < 1000, "a walk stays on its way");
        (void)machine_pump(owner->machine, 8);
        group_step(group);
    }
    return r;
}

/* A walk over a base that cannot be read stays where it is. */
static void check_unreadable(struct group *group, struct kv_cursor *cursor) {
    struct kv_base *base = group->owner.kv->base;
    struct kv_key key = cursor->key;
    struct bytes value;

    machine_base_unreadable_set(base, true);
    int r = next_now(group, cursor, &value);
    machine_base_unreadable_set(base, false);
    MUST(kv_failure(group->owner.kv) < 0 ||
             (r == -ERR_CORRUPT && cursor->inclusive && kv_key_compare(&cursor->key, &key) == 0),
         "a walk over a base that cannot be read answers %s, or moves", err_name(r));
}

/* A walk gives as many rows as are there, in order, and none of the engine's own. */
static void check_walk(struct group *group, const struct model_state *state) {
    struct kv_key from = {{0}}, to = {{KV_SPACE_ENGINE}}, last = {{0}};
    struct kv_cursor cursor;
    struct bytes value;
    size_t present = 0, walked = 0;
    int r;

    for (uint32_t i = 0; i < MODEL_KEYS; i++) {
        present += state->rows[i].present;
    }
    kv_cursor_init(&cursor, &from, &to);
    if (kv_failure(group->owner.kv) < 0) {
        return;
    }
    check_unreadable(group, &cursor);
    while ((r = next_now(group, &cursor, &value)) == 0) {
        MUST(walked == 0 || kv_key_compare(&last, &cursor.key) < 0, "a walk goes back");
        last = cursor.key;
        walked++;
    }
    MUST(kv_failure(group->owner.kv) < 0 || (r == -ERR_NOT_FOUND && walked == present),
         "a walk of %zu rows gives %zu, then %s", present, walked, err_name(r));
}

static void check_outcome(struct group *group, uint32_t index, uint64_t sequence,
                          const struct model_session *session) {
    const struct model_kept *kept = NULL;
    struct kv_outcome outcome;
    uint8_t reply[KV_REPLY_BYTES_MAX];
    int r = kv_outcome_get(group->owner.kv, (struct slot){0},
                           model_session_id(index, session->generation), sequence, &outcome);
    int must = sequence < session->floor ? -ERR_OUTDATED : -ERR_NOT_FOUND;

    for (size_t i = 0; i < session->kept_count; i++) {
        kept = session->kept[i].sequence == sequence ? &session->kept[i] : kept;
    }
    must = kept ? 0 : must;
    MUST(r == must, "outcome %llu of session %u.%u answers %s, must be %s",
         (unsigned long long)sequence, index, session->generation, err_name(r), err_name(must));
    if (kept) {
        model_fill(index, kept->stamp, reply, kept->reply_bytes);
        MUST(outcome.result == (int)kept->stamp && outcome.reply.size == kept->reply_bytes &&
                 memcmp(outcome.reply.data, reply, kept->reply_bytes) == 0,
             "outcome %llu of session %u.%u has another result", (unsigned long long)sequence,
             index, session->generation);
    }
}

static void check_outcomes(struct group *group, const struct model_state *state) {
    if (kv_failure(group->owner.kv) < 0) {
        return;
    }
    for (uint32_t i = 0; i < MODEL_SESSIONS; i++) {
        const struct model_session *session = &state->sessions[i];
        uint64_t next = group->sessions[i].next;
        uint64_t first = MAX(session->floor - MIN(session->floor, UINT64_C(2)), UINT64_C(1));

        for (uint64_t sequence = first; sequence <= next && sequence < first + 80; sequence++) {
            check_outcome(group, i, sequence, session);
        }
    }
}

static uint32_t count_waiting(const struct outcomes *outcomes) {
    uint32_t waiting = 0;

    for (uint32_t at = outcomes->superfluous_first; at != NONE;
         at = outcomes->entries[at].next_of_session) {
        waiting++;
    }
    return waiting;
}

/* A walk over a cold base lets the engine go on, and delete some. */
void group_check_outcome_rows(struct group *group) {
    const struct outcomes *outcomes = group->owner.kv->outcomes;
    uint32_t waiting = count_waiting(outcomes);
    struct kv_key from =
        kv_key_make((struct kv_key_fields){.space = KV_SPACE_ENGINE, .type = KV_ROW_OUTCOME});
    struct kv_key to =
        kv_key_make((struct kv_key_fields){.space = KV_SPACE_ENGINE, .type = KV_ROW_OUTCOME + 1});
    uint32_t rows = 0;
    struct kv_cursor cursor;
    struct bytes value;

    kv_cursor_init(&cursor, &from, &to);
    while (next_now(group, &cursor, &value) == 0) {
        struct kv_key_fields fields = kv_key_split(&cursor.key);
        struct kv_outcome kept;

        rows += outcomes_find(outcomes, (struct session_id){fields.id}, fields.index, &kept) < 0;
    }
    MUST(kv_failure(group->owner.kv) < 0 || rows <= waiting,
         "%u rows of outcomes that nobody awaits, %u wait to be deleted", rows, waiting);
}

static bool note_matches(const struct group_note *note, const struct model_operation *operation) {
    return note->position == operation->position && note->stamp == operation->stamp &&
           note->size == operation->size && note->ring_offset == operation->ring_offset;
}

/* Its bytes are in the ring's data area only. */
static void check_data(struct group *group, const struct group_note *note) {
    static uint8_t data[64 * KIB + 8];
    const uint8_t *found = kv_data_at(group->owner.kv, note->ring_offset, note->size);

    MUST(note->in_ring, "a note of record %llu came from the disk log, which lacks it",
         (unsigned long long)note->position);
    model_fill(MODEL_KEYS, note->stamp, data, note->size);
    MUST(found && memcmp(found, data, note->size) == 0,
         "the data of record %llu (%u bytes at %llu) is gone", (unsigned long long)note->position,
         note->size, (unsigned long long)note->ring_offset);
}

/* What came back are the newest notes, in order, and at the least those that no sync point took. */
static void check_notes(struct group *group, size_t point, uint64_t position, uint64_t synced) {
    const struct model *model = &group->model;
    size_t left = group->note_count;

    for (size_t i = model->count; i > 0; i--) {
        const struct model_operation *operation = &model->operations[i - 1];

        if (operation->kind != MODEL_NOTE || operation->position > position ||
            operation->event > point || operation->lost < point) {
            continue;
        }
        if (left == 0) {
            MUST(operation->position <= synced, "the note of record %llu did not come back",
                 (unsigned long long)operation->position);
            break;
        }
        left--;
        MUST(note_matches(&group->notes[left], operation), "note %zu is of record %llu, not %llu",
             left, (unsigned long long)group->notes[left].position,
             (unsigned long long)operation->position);
        if (operation->position > synced) {
            check_data(group, &group->notes[left]);
        }
    }
    MUST(left == 0, "%zu notes came back that nobody made", left);
}

void group_check(struct owner *owner, size_t point, bool power) {
    struct group *group = group_of(owner);
    struct bounds bounds = model_bounds(&group->model, point);
    uint64_t position = kv_position(owner->kv);
    uint64_t synced = kv_synced_position(owner->kv);
    uint64_t least = power ? bounds.least_by_power : bounds.least_by_kill;

    machine_say(owner->machine,
                "       %s opened: record %llu, synced %llu; owed %llu, at most %llu", owner->name,
                (unsigned long long)position, (unsigned long long)synced, (unsigned long long)least,
                (unsigned long long)bounds.most);
    MUST(position >= least, "record %llu was acknowledged, the newest is %llu",
         (unsigned long long)least, (unsigned long long)position);
    MUST(position <= bounds.most, "record %llu was never made, %llu was",
         (unsigned long long)position, (unsigned long long)bounds.most);
    MUST(synced >= bounds.least_by_power && synced <= position, "synced is %llu, was %llu",
         (unsigned long long)synced, (unsigned long long)bounds.least_by_power);
    MUST(power || bounds.powered || owner->may_lose || kv_losses(owner->kv) == owner->losses,
         "a loss is counted where nothing was lost");
    model_fold(&group->model, point, position, &group->state);
    check_rows(group, &group->state, position);
    check_walk(group, &group->state);
    check_outcomes(group, &group->state);
    check_notes(group, point, position, synced);
}

void group_check_now(struct group *group) {
    size_t now = machine_event_count(group->owner.machine) + 1;

    model_fold(&group->model, now, UINT64_MAX, &group->state);
    check_rows(group, &group->state, kv_position(group->owner.kv));
    check_walk(group, &group->state);
    check_outcomes(group, &group->state);
    group_check_outcome_rows(group);
}
