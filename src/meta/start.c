/* A start: format or check the state, then read into memory what the group must know before it
 * serves: sessions, and who had what open for writing. Reading may have to wait for the disk. */
#include "meta/group_internal.h"
#include "layout/map_slots.h"
#include "meta/inode.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct kv_need start_need = {.rows = 3, .value_bytes = 1000, .record_bytes = 1000};
enum { SLOTS_ROW_RECORD_BYTES = sizeof(struct slots_row) + KV_ROW_RECORD_BYTES };

static int problem_say(const struct group *group, char problem[256], int result, const char *text) {
    const char *directory = group->options.kv.directory;

    (void)snprintf(problem, 256, "%.100s: %s", directory ? directory : "metadata", text);
    return result;
}

static int format_root(struct transaction *transaction) {
    const struct group_options *options = &transaction->group->options;
    struct layout layout = options->default_layout;
    struct partition_row partition = {
        .format = META_FORMAT,
        .state = PARTITION_LIVE,
        .mode = MODE_DIRECTORY | (options->root_mode & MODE_BITS),
        .epoch = transaction->epoch,
        .ctime_ns = transaction->now_ns,
        .mtime_ns = transaction->now_ns,
        .uid = options->root_uid,
        .gid = options->root_gid,
        .pool_version = layout.pool_version,
        .chunk_bytes = layout.chunk_bytes,
        .stripe_count = layout.stripe_count,
        .redundancy = layout.redundancy,
    };
    struct ownership owner = {partition.mode, partition.uid, partition.gid};
    struct inode_row row = inode_make(transaction, owner, INO_ROOT, &partition);
    struct kv_key key = key_partition(INO_ROOT);

    row.parent = INO_ROOT.value;
    transaction->inode_delta = 1;
    transaction->directory_delta = 1;
    int r = transaction_put(transaction, &key, &partition, sizeof partition);
    return r < 0 ? r : inode_put(transaction, INO_ROOT, &row);
}

/* The run of slots that are the group's by no hand-over, from *slot on; 0: there is none any more.
 */
static uint32_t slots_run(const struct group *group, uint32_t *slot) {
    struct map_slots run = {0};

    while (group->map_group < MAP_GROUPS_MAX &&
           cluster_map_slots_next(group->map, (uint16_t)group->map_group, *slot, &run) &&
           run.handover != 0) {
        *slot = run.first + run.count;
        run.count = 0;
    }
    *slot = run.count > 0 ? run.first : (uint32_t)SLOT_COUNT;
    return run.count;
}

static struct kv_need format_need(const struct group *group) {
    struct kv_need need = start_need;
    uint32_t slot = 0;
    uint32_t count;

    while ((count = slots_run(group, &slot)) > 0) {
        need.rows++;
        need.value_bytes += (uint32_t)sizeof(struct slots_row);
        need.record_bytes += SLOTS_ROW_RECORD_BYTES;
        slot += count;
    }
    return need;
}

static int format_slots(struct transaction *transaction) {
    uint32_t slot = 0;
    uint32_t count;
    int r = 0;

    while (r == 0 && (count = slots_run(transaction->group, &slot)) > 0) {
        struct slots_row row = slots_row_first(count);
        struct kv_key key = key_owner(ROW_SLOTS, slot, 0, 0);

        r = transaction_put(transaction, &key, &row, sizeof row);
        slot += count;
    }
    return r;
}

/* Root's number is 1, so counting begins behind it. */
static int format(struct group *group) {
    const struct cluster_map *map = group->map;
    const struct group_options *options = &group->options;
    struct counters_row counters = {
        .format = META_FORMAT, .ino_reserved = INO_ROOT.value + 1, .generation_reserved = 0};
    struct group_row row = {
        .format = META_FORMAT,
        .hash_bits = options->name_hash_bits ? options->name_hash_bits : NAME_HASH_BITS,
        .hash_key = {map->name_hash_key[0], map->name_hash_key[1]},
        .group = options->target.value,
        .target = options->target.value,
    };
    struct kv_key key = key_owner(ROW_GROUP, 0, 0, 0);
    struct transaction transaction;

    if (!layout_is_valid(&options->default_layout) || row.hash_bits > NAME_HASH_BITS) {
        return -ERR_INVALID;
    }
    memcpy(row.cluster_id, map->cluster_id, sizeof row.cluster_id);
    numbers_load(&group->numbers, &counters);
    const struct kv_need need = format_need(group);
    int r = transaction_begin(&transaction, group, KV_CLASS_CONTROL, &need);
    r = r < 0 ? r : transaction_put(&transaction, &key, &row, sizeof row);
    if (r == 0 && map->slot_groups[0] == group->map_group) {
        r = format_root(&transaction);
    }
    r = r < 0 ? r : format_slots(&transaction);
    if (r < 0) {
        transaction_abort(&transaction);
        return r;
    }
    (void)transaction_commit(&transaction);
    group_seal(group);
    return kv_failure(group->kv);
}

/* Where there is any row, it is of the group that is gone. A log of the first term has none. */
static int format_checked(struct group *group) {
    struct kv_key from = kv_key_make((struct kv_key_fields){.space = KV_SPACE_OWNER});
    struct kv_key to = kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT + 1});
    struct kv_cursor cursor;
    struct bytes value;

    kv_cursor_init(&cursor, &from, &to);
    int r = kv_next(group->kv, &cursor, &value);
    return r == -ERR_NOT_FOUND ? format(group) : r < 0 ? r : -ERR_CORRUPT;
}

static int identity_check(struct group *group, const struct group_row *row, char problem[256]) {
    const struct cluster_map *map = group->map;

    if (memcmp(row->cluster_id, map->cluster_id, sizeof row->cluster_id) != 0) {
        return problem_say(group, problem, -ERR_NOT_OURS,
                           "its rows are another cluster's: put the right base.mdb and log back");
    }
    if (row->target != group->options.target.value || row->group != group->options.target.value) {
        return problem_say(group, problem, -ERR_NOT_OURS,
                           "its rows are another target's: put the right base.mdb and log back");
    }
    if (memcmp(row->hash_key, map->name_hash_key, sizeof row->hash_key) != 0) {
        return problem_say(group, problem, -ERR_NOT_OURS,
                           "its names were hashed by another key: put name_hash_key of shoal.conf "
                           "back");
    }
    group->hash = (struct name_hash){{{row->hash_key[0], row->hash_key[1]}}, row->hash_bits};
    return 0;
}

/* After a loss: what the records that are gone can have numbered. Before the C row says that all of
 * it is used, in the same record or an earlier one. */
static int lost_note(struct group *group, const struct counters_row *counters) {
    struct kv_key key = key_owner(ROW_LOST, kv_losses(group->kv), 0, 0);
    struct lost_row row = {.format = META_FORMAT,
                           .epoch = counters->epoch,
                           .counter_to = counters->ino_reserved,
                           .generation_from = counters->generation_next,
                           .generation_to = counters->generation_reserved};
    struct bytes value;

    if (kv_losses(group->kv) == 0) {
        return 0;
    }
    int r = kv_get(group->kv, &key, &value);
    if (r != -ERR_NOT_FOUND) {
        return r;
    }
    memcpy(&row.counter_from, counters->ino_next, sizeof counters->ino_next);
    struct kv_grant grant;
    r = kv_admit(group->kv, KV_CLASS_CONTROL, &start_need, &grant);
    if (r < 0) {
        return -ERR_PENDING;
    }
    kv_begin(group->kv, &grant);
    r = kv_put(group->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row});
    if (r < 0) {
        kv_abort(group->kv);
        return r;
    }
    (void)kv_commit(group->kv);
    return 0;
}

/* Rows G and C are the first that a start asks for: should they have to be warmed, load_step goes
 * on with it when they are there. */
static int identity_read(struct group *group, char problem[256]) {
    struct kv_key key = key_owner(ROW_GROUP, 0, 0, 0);
    const struct counters_row *counters;
    const struct group_row *row;
    struct bytes value;

    int r = kv_get(group->kv, &key, &value);
    if (r == -ERR_NOT_FOUND) {
        r = kv_term(group->kv) > 1 ? format_checked(group) : format(group);
        r = r < 0 ? r : kv_get(group->kv, &key, &value);
    }
    r = r < 0 ? r : group_row_check(value, &row);
    r = r < 0 ? r : identity_check(group, row, problem);
    if (r < 0) {
        return r;
    }
    key = key_owner(ROW_COUNTERS, 0, 0, 0);
    r = kv_get(group->kv, &key, &value);
    r = r == -ERR_NOT_FOUND ? -ERR_CORRUPT : r;
    r = r < 0 ? r : counters_row_check(value, &counters);
    if (r < 0) {
        return r;
    }
    const struct counters_row copy = *counters; /* the next look-up may overwrite it */
    r = lost_note(group, &copy);
    if (r == 0 && group->numbers.inos.reserved == 0) {
        numbers_load(&group->numbers, &copy);
    }
    return r < 0 ? r : ended_load(group);
}

static void load_range(struct group *group, enum row_type type) {
    struct kv_key from = key_owner(type, 0, 0, 0);
    struct kv_key to = key_owner(type, UINT64_MAX, UINT32_MAX, UINT64_MAX);

    kv_cursor_init(&group->load_cursor, &from, &to);
}

int start_read(struct group *group, char ret_problem[256]) {
    group->term = kv_term(group->kv);
    group->wall_ns = env_wall_ns(group->env);
    group->stage = GROUP_LOADING;
    group->load_stage = LOAD_IDENTITY;
    group->sessions.losses = kv_losses(group->kv);
    group_map_read(group);
    int r = load_step(group, ret_problem);
    if (r < 0 && r != -ERR_PENDING && ret_problem[0] == '\0') {
        return problem_say(group, ret_problem, r,
                           r == -ERR_CORRUPT
                               ? "a row of the metadata group's own is damaged: restore DIR from a "
                                 "backup"
                               : err_text(r));
    }
    if (r == 0) {
        group->stage = GROUP_SERVING;
    }
    return r == -ERR_PENDING ? 0 : r;
}

static int load_slots(struct group *group, const struct kv_key *key, struct bytes value) {
    const struct slots_row *row;
    int r = slots_row_check(value, &row);

    return r < 0 ? r : slots_load(&group->slots, kv_key_split(key).id, row);
}

static int load_session(struct group *group, const struct kv_key *key, struct bytes value) {
    struct session_id id = {kv_key_split(key).id};
    const struct session_row *row;

    int r = session_row_check(value, &row);
    if (r == 0 && row->state == SESSION_LIVE && id.value < group->ended.list.lowest) {
        r = -ERR_CORRUPT; /* All below have ended. */
    }
    if (r < 0) {
        return r;
    }
    return sessions_add(&group->sessions, id, row) ? 0 : -ERR_NO_MEMORY;
}

/* A W row without its session would never go: it is a broken promise of an earlier life. */
static int load_writer(struct group *group, const struct kv_key *key, struct bytes value) {
    struct kv_key_fields fields = kv_key_split(key);
    struct session *session = sessions_find(&group->sessions, (struct session_id){fields.index});
    const struct mark_row *row;

    int r = mark_row_check(value, &row);
    if (r < 0 || !session) {
        return r < 0 ? r : -ERR_CORRUPT;
    }
    r = opens_reserve(&group->opens);
    if (r < 0) {
        return r;
    }
    opens_get(&group->opens, (struct ino){fields.id}, session, 0)->has_row = true;
    return 0;
}

/* A row that makes no sense is no move. */
static int load_move(struct group *group, const struct kv_key *key, struct bytes value) {
    struct kv_key_fields fields = kv_key_split(key);
    struct session *session = sessions_find(&group->sessions, (struct session_id){fields.index});
    struct open_entry *entry =
        session ? opens_find(&group->opens, (struct ino){fields.id}, session) : NULL;
    const struct order_row *row;

    int r = order_row_check(value, &row);
    if (r == 0 && entry) {
        entry->move_count++;
    }
    return r == -ERR_CORRUPT ? 0 : r;
}

static int load_promise(struct group *group, const struct kv_key *key, struct bytes value) {
    const struct transaction_row *row;
    struct bytes halves;
    int r = transaction_row_check(value, &row, &halves);

    return r < 0 ? r : promises_load(&group->promises, key, row, halves);
}

static int load_decision(struct group *group, const struct kv_key *key, struct bytes value) {
    const struct decision_row *row;
    int r = decision_row_check(value, &row);

    return r < 0 ? r : crossings_load(&group->crossings, key, row);
}

/* What their keys have besides an id. */
enum key_parts { KEY_GENERATION = 1, KEY_INDEX = 2 };

typedef int load_fn(struct group *group, const struct kv_key *key, struct bytes value);

/* What is read from rows, in this order: sessions before what is theirs. */
static const struct {
    enum row_type type;
    load_fn *load;
    enum key_parts parts;
} load_kinds[LOAD_SYNC] = {
    [LOAD_SLOTS] = {ROW_SLOTS, load_slots, 0},
    [LOAD_SESSIONS] = {ROW_SESSION, load_session, 0},
    [LOAD_OVER] = {ROW_OVER, fences_over_load, 0},
    [LOAD_FENCES] = {ROW_FENCE, fences_load, 0},
    [LOAD_WRITERS] = {ROW_WRITER, load_writer, KEY_INDEX},
    [LOAD_MOVES] = {ROW_MOVE, load_move, KEY_GENERATION | KEY_INDEX},
    [LOAD_PROMISES] = {ROW_TRANSACTION, load_promise, KEY_GENERATION | KEY_INDEX},
    [LOAD_DECISIONS] = {ROW_DECISION, load_decision, KEY_INDEX},
};

/* One by whose key nobody would find it again would outlast what it belongs to. */
static bool key_is_of(enum key_parts parts, const struct kv_key *key) {
    struct kv_key_fields fields = kv_key_split(key);

    return (fields.generation == 0 || (parts & KEY_GENERATION)) &&
           (fields.index == 0 || (parts & KEY_INDEX));
}

static int load_rows(struct group *group, enum load_stage stage) {
    const struct kv_key *key = &group->load_cursor.key;
    struct bytes value;
    int r;

    while ((r = kv_next(group->kv, &group->load_cursor, &value)) == 0) {
        r = key_is_of(load_kinds[stage].parts, key) ? load_kinds[stage].load(group, key, value)
                                                    : -ERR_CORRUPT;
        if (r < 0) {
            return r;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static void load_next(struct group *group) {
    group->load_stage++;
    if (group->load_stage < LOAD_SYNC) {
        load_range(group, load_kinds[group->load_stage].type);
    } else {
        group->promised_epoch = group->numbers.epoch;
        group_seal(group);
    }
}

/* What the ring held beyond the disk log is on disk before anybody is told of it. */
static int load_sync(struct group *group) {
    if (kv_position(group->kv) > kv_synced_position(group->kv)) {
        group_sync_want(group, kv_position(group->kv));
        return -ERR_PENDING;
    }
    assert(group->sessions.unattached_count == group->sessions.count);
    group->load_stage = LOAD_DONE;
    return 0;
}

int load_step(struct group *group, char problem[256]) {
    int r = 0;

    while (r == 0 && group->load_stage != LOAD_DONE) {
        if (group->load_stage == LOAD_SYNC) {
            r = load_sync(group);
            continue;
        }
        r = group->load_stage == LOAD_IDENTITY ? identity_read(group, problem)
                                               : load_rows(group, group->load_stage);
        if (r == 0 && group->load_stage == LOAD_SLOTS && group->slots.opened == 0 &&
            group->numbers.inode_count > 0) {
            r = -ERR_CORRUPT;
        }
        if (r == 0) {
            load_next(group);
        }
    }
    return r;
}
