/* The memory for changes is filled within one step, to the last grant: each class takes what it
 * may, the last one by rows of a byte. So the next freeze has what was kept for it, and no more.
 *
 * Rows grow: what they outgrow stays taken, so few keys fill any memory, by patches of a byte that
 * take little of the ring. Some keys are kept for the last bytes. */
#include "group_internal.h"
#include "kv/kv_internal.h"

enum { POURS_MAX = 600, REFUSALS_MAX = 6, DROPS_MAX = 24, PUT_BYTES_MAX = 64 };
/* Of the last bytes. */
enum { KEYS_OF_A_SIZE = 10, LAST_KEYS = 40, LAST_TRIES = 40 };

struct flood {
    struct group *group;
    uint32_t first_key;         /* keys are counted from here on, so that they take turns */
    uint32_t bytes[MODEL_KEYS]; /* that a row has grown to; 0: it was not touched */
    uint32_t outcome_of_16, delete_of_16, raise_of_16;
};

static uint32_t next_bytes(const struct flood *flood, uint32_t key, uint32_t first) {
    uint32_t bytes = flood->bytes[key];

    return bytes == 0 ? first : MIN(bytes + bytes / 2 + 8, (uint32_t)KV_VALUE_BYTES_MAX);
}

static void add_row(struct flood *flood, struct plan *plan, uint32_t key, uint32_t bytes) {
    uint32_t row = plan->row_count++;
    bool patches = bytes > PUT_BYTES_MAX;

    plan->keys[row] = key;
    plan->kinds[row] = bytes == 0 ? MODEL_DELETE : patches ? MODEL_PATCH : MODEL_PUT;
    plan->value_bytes[row] = patches ? 1 : bytes;
    plan->offsets[row] = patches ? bytes - 1 : 0;
    plan->need.rows++;
    plan->need.value_bytes += patches ? (uint32_t)KV_VALUE_BYTES_MAX : bytes;
    plan->need.record_bytes += (uint32_t)record_patch_bytes(plan->value_bytes[row]);
    flood->bytes[key] = MAX(bytes, 1U);
}

static uint32_t key_draw(struct flood *flood, uint32_t from, uint32_t to) {
    return (uint32_t)((flood->first_key + prng_between(flood->group->owner.prng, from, to - 1)) %
                      MODEL_KEYS);
}

static void add_outcome(struct flood *flood, struct plan *plan) {
    struct group *group = flood->group;
    struct prng *prng = group->owner.prng;

    plan->session = (uint32_t)prng_below(prng, group->temper.sessions);
    struct group_session *session = &group->sessions[plan->session];
    if (prng_chance(prng, flood->raise_of_16, 16)) {
        session->floor = session->next;
    }
    plan->outcome = true;
    plan->reply_bytes = group->temper.reply_bytes_max;
    plan->need.floor = session->floor;
    plan->need.window = group->options.outcomes_max / GROUP_WINDOW_SHARE;
    plan->need.session = group_session_id(group, plan->session);
}

/* What a class may take; its longest rows are refused first. */
static void pour(struct flood *flood, enum kv_class class) {
    struct prng *prng = flood->group->owner.prng;

    for (int i = 0, refusals = 0; i < POURS_MAX && refusals < REFUSALS_MAX; i++) {
        struct plan plan = {.class = class};

        if (prng_chance(prng, flood->outcome_of_16, 16)) {
            add_outcome(flood, &plan);
        } else {
            for (uint64_t rows = prng_between(prng, 1, 3); rows > 0; rows--) {
                uint32_t key = key_draw(flood, LAST_KEYS, MODEL_KEYS);
                uint32_t first = prng_chance(prng, flood->delete_of_16, 16)
                                     ? 0
                                     : (uint32_t)prng_between(prng, 8, KV_VALUE_BYTES_MAX);

                add_row(flood, &plan, key, next_bytes(flood, key, first));
            }
        }
        refusals += group_transact(flood->group, &plan) < 0;
        if (prng_chance(prng, 1, 16)) {
            group_seal(flood->group);
        }
    }
}

/* Sessions end, and there is no room left for the deletion of their rows. */
static void drop_some(struct flood *flood) {
    struct group *group = flood->group;
    uint64_t count = prng_below(group->owner.prng, DROPS_MAX);

    while (count-- > 0) {
        struct plan plan = {.class = KV_CLASS_CONTROL, .drops = true};

        plan.session = (uint32_t)prng_below(group->owner.prng, group->temper.sessions);
        plan.need.drops = true;
        plan.need.session = group_session_id(group, plan.session);
        (void)group_transact(group, &plan);
    }
}

/* By less and less, each time until the least is refused. */
static void last_bytes(struct flood *flood) {
    static const uint32_t firsts[] = {300, 60, 16, 1};

    for (uint32_t k = 0; k < ARRAY_SIZE(firsts); k++) {
        for (int i = 0; i < LAST_TRIES; i++) {
            struct plan plan = {.class = KV_CLASS_CONTROL};
            uint32_t key = key_draw(flood, k * KEYS_OF_A_SIZE, (k + 1) * KEYS_OF_A_SIZE);
            uint32_t before = flood->bytes[key];

            add_row(flood, &plan, key, next_bytes(flood, key, firsts[k]));
            int r = group_transact(flood->group, &plan);
            if (r != 0) {
                flood->bytes[key] = before;
            }
            if (r < 0 && before == 0) {
                break;
            }
        }
    }
}

static void count(struct group *group) {
    const struct kv *kv = group->owner.kv;

    if (kv_failure(kv) == 0 && !kv_changes_have_room(kv, 1, 0, 0)) {
        if (kv->frozen == NULL) {
            group_count(group, TOTAL_FLOODS);
        }
        if (!outcomes_are_clean(kv->outcomes)) {
            group_count(group, TOTAL_STUCK_ROWS);
        }
    }
}

/* Four records of a quarter each: the sync point writes them as the longest batch that there is. */
void group_batch(struct group *group) {
    const struct kv *kv = group->owner.kv;
    const struct group_wish wish = {.class = KV_CLASS_CONTROL,
                                    .record_bytes = (uint32_t)kv->log.payload_bytes_max / 4,
                                    .session = GROUP_NO_SESSION};

    if (kv_failure(kv) < 0 || kv->synced < kv->ring.position || kv->ring.open_bytes > 0 ||
        wish.record_bytes % LOG_ALIGN != 0 || wish.record_bytes > kv->ring.record_bytes_max) {
        return;
    }
    for (int i = 0; i < 4 && group_ask(&group->owner, &wish) == 0; i++) {
        group_seal(group);
    }
    group_sync_want(&group->owner);
}

void group_flood(struct group *group) {
    struct prng *prng = group->owner.prng;
    struct flood flood = {.group = group,
                          .first_key = (uint32_t)prng_below(prng, MODEL_KEYS),
                          .outcome_of_16 = (uint32_t)prng_below(prng, 13),
                          .delete_of_16 = (uint32_t)prng_below(prng, 9),
                          .raise_of_16 = prng_chance(prng, 1, 2) ? 0 : 8};

    for (int class = KV_CLASS_COUNT - 1; class >= 0; class --) {
        pour(&flood, (enum kv_class) class);
    }
    drop_some(&flood);
    last_bytes(&flood);
    count(group);
    group->flooded = true;
    group_seal(group);
    if (prng_chance(prng, 3, 4)) {
        kv_checkpoint_want(group->owner.kv);
    }
}
