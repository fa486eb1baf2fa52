/* What the clients of a group do once nothing is in their way: each session that is known sends one
 * more request with all of its floor, then each class asks for its largest. */
#include "group_internal.h"
#include "kv/kv_internal.h"

static bool ask(struct group *group, const struct group_wish *plan) {
    int r = group_ask(&group->owner, plan);

    group->asked = r;
    MUST(r == 0 || r == -ERR_PENDING || r == -ERR_BUSY || r == -ERR_NO_SPACE,
         "a request of class %d answers %s", (int)plan->class, err_name(r));
    (void)snprintf(group->owner.waits, sizeof group->owner.waits, "; class %d of session %u: %s",
                   (int)plan->class, plan->session, err_name(r));
    return r == 0;
}

/* The longest that an owner may ask for: an eighth of the ring, a quarter of its data area. */
static struct group_wish largest(const struct group *group, enum kv_class class) {
    uint32_t bytes = (uint32_t)group->options.ring_bytes / 8;
    uint32_t rows = MIN(bytes / 2048, (uint32_t)GROUP_ROWS_MAX);

    return (struct group_wish){
        .class = class,
        .rows = rows,
        .value_bytes = KV_VALUE_BYTES_MAX - 64,
        .data_bytes = (uint32_t)MIN(group->options.ring_data_bytes / 4, (size_t)64 * KIB),
        .session = GROUP_NO_SESSION};
}

/* Ends a session that has all its answers, so that another one finds a place. */
static void close_one(struct group *group) {
    for (uint32_t i = 0; i < MODEL_SESSIONS; i++) {
        const struct group_wish plan = {.class = KV_CLASS_CONTROL, .session = i, .drops = true};

        if (group->state.sessions[i].known && group->content_done[i]) {
            (void)ask(group, &plan);
            group->content_done[i] = false;
            group->state.sessions[i].known = false;
            return;
        }
    }
}

/* Each session that is known sends one more request; all try beside each other. */
static bool sessions_content(struct group *group) {
    bool moved = false;
    bool all = true;

    for (uint32_t i = 0; i < MODEL_SESSIONS; i++) {
        const struct group_wish plan = {
            .class = KV_CLASS_REQUEST, .rows = 1, .value_bytes = 16, .session = i};

        if (!group->state.sessions[i].known || group->content_done[i]) {
            continue;
        }
        group->content_done[i] = ask(group, &plan);
        moved = moved || group->content_done[i] || group->asked != -ERR_BUSY;
        all = all && group->content_done[i];
    }
    if (!all && !moved) {
        close_one(group);
    }
    return all;
}

static void content_begin(struct group *group) {
    model_fold(&group->model, machine_event_count(group->owner.machine) + 1, UINT64_MAX,
               &group->state);
    memset(group->content_done, 0, sizeof group->content_done);
    group->content_class = 0;
    group->content_begun = true;
}

bool group_content(struct owner *owner) {
    struct group *group = group_of(owner);

    if (!group->content_begun) {
        content_begin(group);
    }
    if (!sessions_content(group)) {
        return false;
    }
    for (; group->content_class < KV_CLASS_COUNT; group->content_class++) {
        const struct group_wish plan = largest(group, (enum kv_class)group->content_class);

        if (!ask(group, &plan)) {
            return false;
        }
        group_seal(group);
    }
    return true;
}

/* Rows of outcomes and floors that nobody awaits are deleted, in the base as well: a session has
 * its floor and, at the most, its last outcome there. */
static void check_base(struct group *group, uint32_t known) {
    struct kv *kv = group->owner.kv;
    struct kv_key key = kv_key_make((struct kv_key_fields){.space = KV_SPACE_ENGINE});
    uint32_t floors = 0, outcomes = 0;
    uint64_t last = 0;
    struct bytes value;
    int r = kv->options.base->next(kv->base, &key, true, &key, &value);

    for (; r == 0; r = kv->options.base->next(kv->base, &key, false, &key, &value)) {
        struct kv_key_fields fields = kv_key_split(&key);
        struct kv_outcome outcome;

        floors += fields.type == KV_ROW_FLOOR;
        if (fields.type != KV_ROW_OUTCOME) {
            continue;
        }
        MUST(outcomes_find(kv->outcomes, (struct session_id){fields.id}, fields.index, &outcome) ==
                     0 &&
                 fields.id != last,
             "the row of outcome %llu of session %llu stays in the base",
             (unsigned long long)fields.index, (unsigned long long)fields.id);
        last = fields.id;
        outcomes++;
    }
    MUST(floors <= known && outcomes <= known,
         "rows of %u floors and %u outcomes stay in the base, of %u sessions", floors, outcomes,
         known);
    kv->options.base->read_end(kv->base);
}

void group_left(struct owner *owner) {
    struct group *group = group_of(owner);
    const struct kv *kv = owner->kv;
    uint32_t known = 0;

    group->content_begun = false;
    model_fold(&group->model, machine_event_count(owner->machine) + 1, UINT64_MAX, &group->state);
    for (size_t i = 0; i < MODEL_SESSIONS; i++) {
        known += group->state.sessions[i].known;
    }
    MUST(outcomes_count(kv->outcomes) <= known, "%u outcomes are kept of %u sessions",
         outcomes_count(kv->outcomes), known);
    if (!kv->frozen && changes_row_count(kv->changes) == 0) {
        check_base(group, known); /* as it was found */
    }
    owner_checkpoint(owner);
    check_base(group, known);
    group_check_now(group);
}
