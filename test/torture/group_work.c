/* What the clients of a group want: transactions of many lengths, seals, sync points. */
#include "base/crc32c.h"
#include "group_internal.h"
#include "kv/kv_internal.h"

enum { OUTCOME_BYTES = 40, REPLY_BYTES = 8, FIXED_CHOICES = 6 };

static const uint32_t row_bytes = 32; /* of a put in a record, without its value */

/* A length that divides the ring, or nearly: so that a record ends at its end, or a little off. */
static uint32_t fixed_draw(struct group *group) {
    struct prng *prng = group->owner.prng;
    uint32_t ring = (uint32_t)group->options.ring_bytes;
    uint32_t most = ring / 4;
    uint32_t bytes = ring / (uint32_t)prng_between(prng, 5, 40);
    static const int32_t off[FIXED_CHOICES] = {0, 0, 8, -8, 48, -56};

    bytes = (bytes & ~7U) + (uint32_t)off[prng_below(prng, FIXED_CHOICES)];
    return MIN(MAX(bytes, 256U), most);
}

void group_temper_draw(struct group *group) {
    struct prng *prng = group->owner.prng;
    struct group_temper *temper = &group->temper;
    bool syncs = prng_chance(prng, 1, 8);
    bool many = group->options.outcomes_max > GROUP_OUTCOMES_FEW;
    uint32_t share = many ? group->options.outcomes_max / GROUP_WINDOW_SHARE - 1 : 7;

    *temper = (struct group_temper){
        .pattern = (enum pattern)prng_below(prng, PATTERN_COUNT),
        .fixed_bytes = fixed_draw(group),
        .abort_of_16 = (uint32_t)prng_below(prng, 5),
        .pend_of_16 = (uint32_t)prng_below(prng, 5),
        .note_of_16 = (uint32_t)prng_below(prng, 9),
        .outcome_of_16 = (uint32_t)prng_between(prng, 4, 16),
        .drop_of_64 = (uint32_t)prng_below(prng, 5),
        .lazy_of_16 = (uint32_t)prng_below(prng, 6),
        .sync_of_64 = syncs ? 32 : (uint32_t)prng_below(prng, 6),
        .checkpoint_of_64 = (uint32_t)prng_below(prng, 4),
        .seal_of_4 = (uint32_t)prng_between(prng, 1, 4),
        .hook_of_16 = (uint32_t)(prng_chance(prng, 1, 4) ? 16 : prng_between(prng, 1, 12)),
        .sessions = many ? MODEL_SESSIONS : 1 + (uint32_t)prng_below(prng, MODEL_SESSIONS),
        .crowd = prng_chance(prng, many ? 2 : 1, 3) ? share : 0,
        .reply_bytes_max = prng_chance(prng, 1, 2) ? KV_REPLY_BYTES_MAX : REPLY_BYTES,
        .flood_of_256 = prng_chance(prng, 1, 2) ? (uint32_t)prng_between(prng, 1, 8) : 0,
    };
}

static uint32_t outcome_of(const struct plan *plan) {
    return plan->outcome ? OUTCOME_BYTES + plan->reply_bytes : 0;
}

/* As many rows as it takes, their values as long as they must be for the record's length. */
static void rows_fixed(struct plan *plan, uint32_t record_bytes) {
    uint32_t body = record_bytes - (uint32_t)sizeof(struct log_record) - outcome_of(plan);
    uint32_t count = (body + KV_VALUE_BYTES_MAX + row_bytes - 1) / (KV_VALUE_BYTES_MAX + row_bytes);
    uint32_t values = body - count * row_bytes;

    plan->row_count = MIN(count, (uint32_t)GROUP_ROWS_MAX);
    for (uint32_t i = 0; i < plan->row_count; i++) {
        uint32_t left = plan->row_count - i;

        plan->value_bytes[i] = MIN((values + left - 1) / left, (uint32_t)KV_VALUE_BYTES_MAX);
        values -= plan->value_bytes[i];
    }
}

static void rows_draw(struct group *group, struct plan *plan) {
    struct prng *prng = group->owner.prng;
    uint32_t most = (uint32_t)group->options.ring_bytes / 4 - 512;
    enum pattern pattern = group->temper.pattern;

    if (pattern == PATTERN_FIXED && !prng_chance(prng, 1, 16)) {
        plan->note = false;
        rows_fixed(plan, group->temper.fixed_bytes);
        return;
    }
    if ((pattern == PATTERN_LONG || group->owner.holds_up) && prng_chance(prng, 3, 4)) {
        rows_fixed(plan, (uint32_t)prng_between(prng, 1600, MIN(most, 16U * 1024)));
        return;
    }
    if (pattern == PATTERN_PATCH) {
        plan->row_count =
            prng_chance(prng, 1, 2) ? 1 : (uint32_t)prng_between(prng, 1, GROUP_ROWS_MAX);
        for (uint32_t i = 0; i < plan->row_count; i++) {
            plan->value_bytes[i] = 1 + (uint32_t)prng_below(prng, 8);
        }
        return;
    }
    plan->row_count = (uint32_t)prng_between(prng, plan->outcome || plan->drops ? 0 : 1, 4);
    for (uint32_t i = 0; i < plan->row_count; i++) {
        plan->value_bytes[i] =
            (uint32_t)prng_below(prng, pattern == PATTERN_SMALL ? 64 : KV_VALUE_BYTES_MAX + 1);
    }
}

/* At a row's end: a short record takes a long row of memory. */
static uint32_t offset_draw(struct group *group, uint32_t size) {
    uint32_t most = (uint32_t)KV_VALUE_BYTES_MAX - size;

    return group->temper.pattern == PATTERN_PATCH
               ? most
               : (uint32_t)prng_below(group->owner.prng, most + 1);
}

/* A patched row may be as long as a row can be. */
static void kinds_draw(struct group *group, struct plan *plan) {
    struct prng *prng = group->owner.prng;

    for (uint32_t i = 0; i < plan->row_count; i++) {
        plan->keys[i] = (uint32_t)prng_below(prng, MODEL_KEYS);
        plan->offsets[i] = offset_draw(group, plan->value_bytes[i]);
        plan->kinds[i] = MODEL_PUT;
        if (group->temper.pattern != PATTERN_FIXED && prng_chance(prng, 1, 3)) {
            plan->kinds[i] = prng_chance(prng, 1, 2) ? MODEL_DELETE : MODEL_PATCH;
        }
        if (group->temper.pattern == PATTERN_PATCH && prng_chance(prng, 7, 8)) {
            plan->kinds[i] = MODEL_PATCH;
        }
        plan->need.value_bytes += plan->kinds[i] == MODEL_PATCH ? (uint32_t)KV_VALUE_BYTES_MAX
                                  : plan->kinds[i] == MODEL_PUT ? plan->value_bytes[i]
                                                                : 0;
    }
}

static uint32_t data_draw(struct group *group) {
    uint32_t most = (uint32_t)MIN(group->options.ring_data_bytes, (size_t)64 * KIB);

    return most == 0 ? 0 : (uint32_t)prng_between(group->owner.prng, 1, most / 3);
}

static enum kv_class class_draw(const struct group *group) {
    struct prng *prng = group->owner.prng;

    return !group->owner.holds_up && !group->owner.in_batch && prng_chance(prng, 3, 4)
               ? KV_CLASS_REQUEST
               : (enum kv_class)prng_below(prng, KV_CLASS_COUNT);
}

struct session_id group_session_id(const struct group *group, uint32_t index) {
    return model_session_id(index, group->sessions[index].generation);
}

static uint32_t reply_draw(struct group *group) {
    uint32_t most = group->temper.reply_bytes_max;

    return group->temper.pattern == PATTERN_FIXED || group->owner.holds_up ||
                   prng_chance(group->owner.prng, 1, 2)
               ? MIN(most, (uint32_t)REPLY_BYTES)
           : prng_chance(group->owner.prng, 1, 2) ? most
                                                  : (uint32_t)prng_below(group->owner.prng, most);
}

static void session_choose(struct group *group, struct plan *plan) {
    struct prng *prng = group->owner.prng;

    plan->session = (uint32_t)prng_below(prng, group->temper.sessions);
    struct group_session *session = &group->sessions[plan->session];
    plan->outcome = prng_chance(prng, group->temper.outcome_of_16, 16);
    plan->drops = !plan->outcome && prng_chance(prng, group->temper.drop_of_64, 64);
    if (group->temper.crowd > 0) {
        session->lazy = session->next - session->floor < group->temper.crowd;
    } else if (prng_chance(prng, 1, 32)) {
        session->lazy = prng_chance(prng, group->temper.lazy_of_16, 16);
    }
    if (!session->lazy) {
        session->floor =
            MAX(session->floor, session->next - MIN(session->next, prng_below(prng, 4)));
    }
    plan->need.floor = session->floor;
    plan->need.window = group->options.outcomes_max / GROUP_WINDOW_SHARE;
    if (plan->outcome) {
        plan->reply_bytes = reply_draw(group);
    }
}

static void plan_draw(struct group *group, struct plan *plan) {
    struct prng *prng = group->owner.prng;

    *plan = (struct plan){.class = class_draw(group),
                          .note = prng_chance(prng, group->temper.note_of_16, 16)};
    session_choose(group, plan);
    rows_draw(group, plan);
    plan->note = plan->note && group->options.ring_data_bytes > 0;
    kinds_draw(group, plan);
    plan->need.rows = plan->row_count;
    for (uint32_t i = 0; i < plan->row_count; i++) {
        plan->need.record_bytes += (uint32_t)record_patch_bytes(plan->value_bytes[i]);
    }
    if (plan->note) {
        plan->need.data_bytes = data_draw(group);
        plan->need.record_bytes += (uint32_t)record_note_bytes(24);
    }
    plan->need.drops = plan->drops;
    if (plan->drops) {
        plan->need.record_bytes += (uint32_t)record_drop_bytes();
    }
    if (plan->outcome || plan->drops) {
        plan->need.session = group_session_id(group, plan->session);
    }
}

/* The operations of the transaction at hand, until it is committed. */
struct staged {
    struct model_operation operations[GROUP_ROWS_MAX + 4];
    size_t count;
};

static void staged_add(struct staged *staged, const struct model_operation *operation) {
    staged->operations[staged->count++] = *operation;
}

static int stage_row(struct group *group, struct staged *staged, const struct plan *plan,
                     uint32_t row) {
    struct kv *kv = group->owner.kv;
    uint8_t value[KV_VALUE_BYTES_MAX + 8];
    uint32_t size = plan->value_bytes[row];
    struct model_operation operation = {.kind = plan->kinds[row],
                                        .key = plan->keys[row],
                                        .stamp = group->next_stamp++,
                                        .size = size};
    struct kv_key key = model_key(operation.key);
    struct bytes old = {0};
    int r = 0;

    model_fill(operation.key, operation.stamp, value, size);
    if (operation.kind == MODEL_DELETE) {
        r = kv_delete(kv, &key);
    } else if (operation.kind == MODEL_PUT) {
        r = kv_put(kv, &key, (struct bytes){value, size});
    } else {
        operation.offset = plan->offsets[row];
        r = kv_get(kv, &key, &old);
        r = r == -ERR_NOT_FOUND ? 0 : r;
        if (r == 0) {
            r = kv_patch(kv, &key, operation.offset, (struct bytes){value, size});
        }
    }
    staged_add(staged, &operation);
    if (r == 0) {
        group_check_staged(group, &operation, old);
    }
    return r;
}

void group_note_write(const struct model_operation *operation, uint8_t ret_note[24]) {
    memset(ret_note, 0, 24);
    store_le64(ret_note, operation->ring_offset);
    store_le32(ret_note + 8, operation->size);
    store_le32(ret_note + 12, operation->stamp);
}

static int stage_note(struct group *group, struct staged *staged, uint32_t size) {
    struct model_operation operation = {
        .kind = MODEL_NOTE, .stamp = group->next_stamp++, .size = size};
    uint8_t note[24];
    uint8_t *data = kv_data_allocate(group->owner.kv, size, &operation.ring_offset);

    MUST(data, "group: no data area for %u bytes that were granted", size);
    model_fill(MODEL_KEYS, operation.stamp, data, size);
    group_note_write(&operation, note);
    staged_add(staged, &operation);
    return kv_note(group->owner.kv, (struct bytes){note, sizeof note});
}

static int stage_outcome(struct group *group, const struct plan *plan, struct staged *staged) {
    struct group_session *session = &group->sessions[plan->session];
    struct model_operation operation = {.kind = MODEL_OUTCOME,
                                        .key = plan->session,
                                        .stamp = group->next_stamp++,
                                        .size = plan->reply_bytes,
                                        .sequence = session->next,
                                        .floor = plan->need.floor};
    uint8_t reply[KV_REPLY_BYTES_MAX];
    struct kv_outcome outcome = {.session = group_session_id(group, plan->session),
                                 .sequence = operation.sequence,
                                 .floor = operation.floor,
                                 .result = (int)operation.stamp,
                                 .reply = {reply, operation.size}};

    model_fill(plan->session, operation.stamp, reply, operation.size);
    staged_add(staged, &operation);
    return kv_outcome_put(group->owner.kv, &outcome);
}

static int stage(struct group *group, const struct plan *plan, struct staged *staged) {
    int r = 0;

    staged->count = 0;
    if (plan->note) {
        r = stage_note(group, staged, plan->need.data_bytes);
    }
    for (uint32_t i = 0; i < plan->row_count && r == 0; i++) {
        r = stage_row(group, staged, plan, i);
    }
    if (r == 0 && plan->drops) {
        staged_add(staged, &(struct model_operation){.kind = MODEL_DROP, .key = plan->session});
        r = kv_outcome_drop(group->owner.kv, group_session_id(group, plan->session));
    }
    return r == 0 && plan->outcome ? stage_outcome(group, plan, staged) : r;
}

static void committed(struct group *group, const struct plan *plan, struct staged *staged) {
    uint64_t position = kv_commit(group->owner.kv);
    size_t event = machine_event_count(group->owner.machine);

    group->committed = position;
    for (size_t i = 0; i < staged->count; i++) {
        staged->operations[i].position = position;
        staged->operations[i].event = event;
        model_add(&group->model, &staged->operations[i]);
    }
    if (plan->outcome) {
        group->sessions[plan->session].next++;
    }
    if (plan->drops) {
        group->sessions[plan->session].generation++;
        group->sessions[plan->session].lazy = false;
        group_count(group, TOTAL_DROPS);
    }
    group_count(group, TOTAL_TRANSACTIONS);
    if (plan->note) {
        group_count(group, TOTAL_NOTES);
    }
}

/* Staging within a grant fails for a row that is on its way only. */
static bool transact(struct group *group, const struct plan *plan, const struct kv_grant *grant) {
    struct prng *prng = group->owner.prng;
    struct staged staged;
    struct bytes value;
    int r = 0;

    kv_begin(group->owner.kv, grant);
    if (prng_chance(prng, group->temper.pend_of_16, 16)) {
        struct kv_key key = model_key((uint32_t)prng_below(prng, MODEL_KEYS));

        r = kv_get(group->owner.kv, &key, &value);
        r = r == -ERR_NOT_FOUND ? 0 : r;
    }
    r = r == 0 ? stage(group, plan, &staged) : r;
    MUST(r == 0 || r == -ERR_PENDING || kv_failure(group->owner.kv) < 0,
         "group: staging within its grant answers %s", err_name(r));
    if (r < 0 || plan->aborts || prng_chance(prng, group->temper.abort_of_16, 16)) {
        kv_abort(group->owner.kv);
        group_count(group, r == -ERR_PENDING ? TOTAL_PENDING : TOTAL_ABORTS);
        return false;
    }
    committed(group, plan, &staged);
    return true;
}

static void refused(struct group *group, enum kv_class class, int r) {
    static const enum total first[] = {TOTAL_CONTROL_WAITS, TOTAL_RELEASE_WAITS,
                                       TOTAL_BACKGROUND_WAITS, TOTAL_FREEING_WAITS,
                                       TOTAL_REQUEST_WAITS};

    if (r == -ERR_BUSY) {
        group_count(group, TOTAL_BUSY);
    } else if (r == -ERR_NO_SPACE) {
        group_count(group, (enum total)(first[class] + TOTAL_CONTROL_FULL - TOTAL_CONTROL_WAITS));
    } else if (r == -ERR_PENDING) {
        group_count(group, first[class]);
    } else {
        MUST(kv_failure(group->owner.kv) < 0, "group: admission answers %s", err_name(r));
    }
}

int group_transact(struct group *group, const struct plan *plan) {
    struct kv_grant grant;
    int r = kv_admit(group->owner.kv, plan->class, &plan->need, &grant);

    if (r < 0) {
        refused(group, plan->class, r);
        return r;
    }
    bool done = transact(group, plan, &grant);
    if (!done && kv_failure(group->owner.kv) == 0 && prng_chance(group->owner.prng, 1, 2)) {
        group_count(group, TOTAL_GRANTS_AGAIN);
        done = transact(group, plan, &grant);
    }
    return done ? 0 : 1;
}

static void transaction(struct group *group) {
    struct plan plan;

    plan_draw(group, &plan);
    if (kv_failure(group->owner.kv) < 0) {
        return;
    }
    (void)group_transact(group, &plan);
    if (group->temper.pattern == PATTERN_FIXED) {
        group_seal(group);
    }
}

static void wish_need(struct group *group, const struct group_wish *wish, struct plan *plan) {
    struct group_session *session = &group->sessions[plan->session];

    for (uint32_t i = 0; i < plan->row_count; i++) {
        plan->value_bytes[i] = wish->value_bytes;
    }
    if (wish->record_bytes > 0) {
        rows_fixed(plan, wish->record_bytes);
    }
    kinds_draw(group, plan);
    plan->need.rows = plan->row_count;
    plan->need.data_bytes = wish->data_bytes;
    plan->need.record_bytes = plan->note ? (uint32_t)record_note_bytes(24) : 0;
    for (uint32_t i = 0; i < plan->row_count; i++) {
        plan->need.record_bytes += (uint32_t)(group->temper.pattern == PATTERN_FIXED
                                                  ? record_put_bytes(plan->value_bytes[i])
                                                  : record_patch_bytes(plan->value_bytes[i]));
    }
    if (plan->drops) {
        plan->need.drops = true;
        plan->need.record_bytes += (uint32_t)record_drop_bytes();
    }
    if (plan->drops || plan->outcome) {
        session->floor = wish->lazy ? session->floor : session->next;
        plan->need.floor = session->floor;
        plan->need.window = group->options.outcomes_max / GROUP_WINDOW_SHARE;
        plan->need.session = group_session_id(group, plan->session);
    }
}

int group_ask(struct owner *owner, const struct group_wish *wish) {
    struct group *group = group_of(owner);
    struct plan plan = {.class = wish->class,
                        .row_count = wish->rows,
                        .note = wish->data_bytes > 0,
                        .aborts = wish->aborts,
                        .outcome = wish->session < MODEL_SESSIONS && !wish->drops,
                        .drops = wish->drops,
                        .session = wish->session % MODEL_SESSIONS,
                        .reply_bytes = REPLY_BYTES};
    struct kv_grant grant;

    wish_need(group, wish, &plan);
    int r = kv_admit(owner->kv, plan.class, &plan.need, &grant);
    if (r < 0) {
        return r;
    }
    return transact(group, &plan, &grant) ? 0 : -ERR_PENDING;
}

void group_be_plain(struct owner *owner) {
    struct group_temper *temper = &group_of(owner)->temper;

    temper->pattern = PATTERN_FIXED;
    temper->abort_of_16 = 0;
    temper->pend_of_16 = 0;
    temper->hook_of_16 = 4;
}

void group_seal_told(struct owner *owner) {
    group_seal(group_of(owner));
}

/* Replies leave behind a seal: they are told. */
void group_seal(struct group *group) {
    uint64_t position = kv_seal(group->owner.kv);

    if (kv_failure(group->owner.kv) < 0 || position <= group->told_sealed) {
        return;
    }
    group->told_sealed = position;
    claims_add(&group->model.claims, CLAIM_SEALED, position,
               machine_told(group->owner.machine, CLAIM_SEALED, position));
}

static void sync_done(struct kv_waiter *waiter, int result) {
    struct group_wait *wait = CONTAINER_OF(waiter, struct group_wait, waiter);
    struct group *group = wait->group;

    wait->busy = false;
    if (result == 0 && !group->owner.recovering && waiter->position > group->told_synced) {
        group->told_synced = waiter->position;
        claims_add(&group->model.claims, CLAIM_SYNCED, waiter->position,
                   machine_told(group->owner.machine, CLAIM_SYNCED, waiter->position));
    }
}

static void sync_want(struct group *group) {
    for (size_t i = 0; i < GROUP_WAITS_MAX; i++) {
        struct group_wait *wait = &group->waits[i];

        if (!wait->busy) {
            *wait =
                (struct group_wait){.group = group, .busy = true, .waiter = {.done = sync_done}};
            group_seal(group);
            kv_sync(group->owner.kv, &wait->waiter, kv_position(group->owner.kv));
            return;
        }
    }
}

void group_sync_want(struct owner *owner) {
    sync_want(group_of(owner));
}

void group_act(struct owner *owner) {
    struct group *group = group_of(owner);
    const struct group_temper *temper = &group->temper;

    if (owner->may_flood && prng_chance(owner->prng, temper->flood_of_256, 256)) {
        group_flood(group);
    } else if (owner->may_flood && temper->pattern == PATTERN_FIXED &&
               prng_chance(owner->prng, 1, 16)) {
        group_batch(group);
    } else if (prng_chance(owner->prng, owner->holds_up ? 32 : temper->sync_of_64, 64)) {
        sync_want(group);
    } else if (prng_chance(owner->prng, temper->checkpoint_of_64, 64)) {
        kv_checkpoint_want(owner->kv);
    } else {
        transaction(group);
    }
    if (prng_chance(owner->prng, temper->seal_of_4, 4)) {
        group_seal(group);
    }
    group->content_begun = false;
    if (prng_chance(owner->prng, 1, 64)) {
        group_stage_nothing(group);
    }
    if (kv_failure(owner->kv) == 0 && prng_chance(owner->prng, 1, 128)) {
        group_check_now(group);
    }
}
