/* Partitions and entries. A directory has one partition for now: depth 0, on its own slot. */
#include "meta/directory.h"
#include "meta/crossing.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/names.h"
#include <assert.h>
#include <string.h>

static int partition_look(struct transaction *transaction, struct ino ino,
                          const struct partition_row **ret_row) {
    const struct look_answer *answer;

    int r = crossing_look(transaction, &(struct look_what){LOOK_INODE, ino, {0}, {0}}, &answer);
    if (r < 0) {
        return r;
    }
    *ret_row = &answer->partition;
    return answer->has_partition ? 0 : answer->has_inode ? -ERR_NOT_DIRECTORY : -ERR_NOT_FOUND;
}

int directory_get(struct transaction *transaction, struct ino ino,
                  const struct partition_row **ret_row) {
    struct kv_key key = key_partition(ino);
    struct bytes value;

    if (transaction->call && crossing_is_elsewhere(transaction, ino)) {
        return partition_look(transaction, ino, ret_row);
    }
    int r = stakes_meet(transaction, stake_of(STAKE_INODE, ino), STAKE_READ);
    r = r < 0 ? r : transaction_get(transaction, &key, &value);
    if (r == 0) {
        return partition_row_check(value, ret_row);
    }
    if (r != -ERR_NOT_FOUND) {
        return r;
    }
    key = key_inode(ino);
    r = transaction_get(transaction, &key, &value);
    return r == 0 ? -ERR_NOT_DIRECTORY : r;
}

static bool name_is(const struct dentry_row *row, struct bytes name) {
    return !(row->flags & DENTRY_HOLE) && row->name_bytes == name.size &&
           memcmp(row->name, name.data, name.size) == 0;
}

static int dentry_look(struct transaction *transaction, struct ino directory, struct bytes name,
                       struct dentry *ret_dentry) {
    const struct look_answer *answer;

    int r =
        crossing_look(transaction, &(struct look_what){LOOK_NAME, directory, {0}, name}, &answer);
    if (r < 0) {
        return r;
    }
    *ret_dentry =
        (struct dentry){.index = answer->index, .ino = {answer->name_ino}, .type = answer->type};
    return answer->has_name ? 0 : -ERR_NOT_FOUND;
}

/* Behind the last rank that a name of its hash may have. */
static uint64_t ranks_end(const struct transaction *transaction, struct bytes name) {
    return name_index(&transaction->group->hash, name) + NAME_RANKS_MAX - COOKIE_OFFSET;
}

bool dentry_has_place(const struct transaction *transaction, struct bytes name,
                      const struct dentry *dentry) {
    return dentry->index < ranks_end(transaction, name);
}

int dentry_find(struct transaction *transaction, struct ino directory, struct bytes name,
                struct dentry *ret_dentry) {
    if (crossing_is_elsewhere(transaction, directory)) {
        return dentry_look(transaction, directory, name, ret_dentry);
    }
    uint64_t index = name_index(&transaction->group->hash, name);
    uint64_t end = ranks_end(transaction, name);
    struct dentry place = {.index = index};
    bool have_hole = false;
    int met = stakes_meet(transaction, stake_name(directory, index), STAKE_READ);

    if (met < 0) {
        return met;
    }

    for (; index < end; index++) {
        struct kv_key key = key_dentry(directory, index);
        const struct dentry_row *row;
        struct bytes value;
        int r = transaction_get(transaction, &key, &value);

        if (r == -ERR_NOT_FOUND) {
            break;
        }
        r = r < 0 ? r : dentry_row_check(value, &row);
        if (r < 0) {
            return r;
        }
        if (name_is(row, name)) {
            *ret_dentry =
                (struct dentry){index, {row->ino}, row->epoch, row->type, row->flags, false};
            return 0;
        }
        if ((row->flags & DENTRY_HOLE) && !have_hole) {
            have_hole = true;
            place = (struct dentry){.index = index, .flags = row->flags};
        }
        if (!(row->flags & DENTRY_MORE)) {
            index++;
            break;
        }
    }
    if (!have_hole) {
        bool first = index == place.index;
        place = (struct dentry){.index = index, .flag_below = !first};
    }
    *ret_dentry = place;
    return -ERR_NOT_FOUND;
}

static int dentry_put(struct transaction *transaction, struct ino directory, struct bytes name,
                      const struct dentry *dentry) {
    struct kv_key key = key_dentry(directory, dentry->index);
    uint8_t value[sizeof(struct dentry_row) + NAME_BYTES_MAX];
    struct dentry_row row = {.format = META_FORMAT,
                             .type = dentry->type,
                             .flags = dentry->flags & (uint8_t)~DENTRY_HOLE,
                             .name_bytes = (uint8_t)name.size,
                             .epoch = transaction->epoch,
                             .ino = dentry->ino.value};

    memcpy(value, &row, sizeof row);
    memcpy(value + sizeof row, name.data, name.size);
    return transaction_put(transaction, &key, value, sizeof row + name.size);
}

/* Sets the flags of a row that has just been read. */
static int dentry_flag(struct transaction *transaction, struct ino directory, uint64_t index,
                       uint8_t flags) {
    struct kv_key key = key_dentry(directory, index);

    return transaction_patch(transaction, &key, offsetof(struct dentry_row, flags),
                             (struct bytes){&flags, sizeof flags});
}

static int dentry_flags_get(struct transaction *transaction, struct ino directory, uint64_t index,
                            uint8_t *ret_flags) {
    struct kv_key key = key_dentry(directory, index);
    const struct dentry_row *row;
    struct bytes value;

    int r = transaction_get(transaction, &key, &value);
    if (r == 0) {
        r = dentry_row_check(value, &row);
    } else if (r == -ERR_NOT_FOUND) {
        r = -ERR_CORRUPT;
    }
    if (r == 0) {
        *ret_flags = row->flags;
    }
    return r;
}

/* What the name is to be, for who has the directory: he sees to its counts and times as well. */
static int dentry_send(struct transaction *transaction, struct ino directory, struct bytes name,
                       const struct dentry *dentry) {
    const struct look_answer *answer;

    int r =
        crossing_look(transaction, &(struct look_what){LOOK_NAME, directory, {0}, name}, &answer);
    if (r < 0) {
        return r;
    }
    const struct partition_row *row = &answer->partition;
    struct half half = {.kind = HALF_NAME,
                        .type = dentry->type,
                        .old_type = answer->has_name ? answer->type : 0,
                        .mode = row->mode,
                        .uid = row->uid,
                        .gid = row->gid,
                        .domain = row->domain,
                        .ino = directory.value,
                        .from = answer->has_name ? answer->name_ino : 0,
                        .to = dentry->ino.value,
                        .from_index = answer->index};
    return crossing_half(transaction, crossing_log(transaction, directory), &half, name);
}

int dentry_add(struct transaction *transaction, struct ino directory, struct bytes name,
               const struct dentry *dentry) {
    if (crossing_is_elsewhere(transaction, directory)) {
        return dentry_send(transaction, directory, name, dentry);
    }
    assert(!dentry->flag_below || dentry->index % NAME_RANKS_MAX > 0);
    if (!dentry_has_place(transaction, name, dentry)) {
        return -ERR_NO_SPACE;
    }
    if (dentry->flag_below) {
        uint8_t flags = 0;
        int r = dentry_flags_get(transaction, directory, dentry->index - 1, &flags);

        r = r < 0 ? r : dentry_flag(transaction, directory, dentry->index - 1, flags | DENTRY_MORE);
        if (r < 0) {
            return r;
        }
    }
    return dentry_put(transaction, directory, name, dentry);
}

int dentry_replace(struct transaction *transaction, struct ino directory, struct bytes name,
                   const struct dentry *dentry) {
    if (crossing_is_elsewhere(transaction, directory)) {
        return dentry_send(transaction, directory, name, dentry);
    }
    return dentry_put(transaction, directory, name, dentry);
}

int dentry_remove(struct transaction *transaction, struct ino directory,
                  const struct dentry *dentry) {
    struct kv_key key = key_dentry(directory, dentry->index);

    assert(!crossing_is_elsewhere(transaction, directory)); /* It is the coordinator's. */
    if (dentry->flags & DENTRY_MORE) {
        struct dentry_row hole = {
            .format = META_FORMAT, .flags = DENTRY_MORE | DENTRY_HOLE, .epoch = transaction->epoch};
        return transaction_put(transaction, &key, &hole, sizeof hole);
    }
    /* It was the last of its hash: holes below it are of no use any more. */
    for (uint64_t index = dentry->index;; index--) {
        uint8_t below = 0;

        key = key_dentry(directory, index);
        int r = transaction_delete(transaction, &key);
        if (r < 0 || index % NAME_RANKS_MAX == 0) {
            return r;
        }
        r = dentry_flags_get(transaction, directory, index - 1, &below);
        if (r < 0) {
            return r;
        }
        if (!(below & DENTRY_HOLE)) {
            return dentry_flag(transaction, directory, index - 1, below & (uint8_t)~DENTRY_MORE);
        }
    }
}

int directory_changed(struct transaction *transaction, struct ino directory,
                      const struct partition_row *row, struct directory_change change) {
    struct kv_key key = key_partition(directory);
    struct partition_row changed = *row;

    if (crossing_is_elsewhere(transaction, directory)) {
        return 0; /* With the half of the name. */
    }
    changed.file_count += (uint64_t)(int64_t)change.files;
    changed.directory_count += (uint64_t)(int64_t)change.directories;
    if (changed.directory_count > DIRECTORIES_MAX) {
        return -ERR_TOO_MANY_LINKS;
    }
    changed.epoch = transaction->epoch;
    changed.ctime_ns = MAX(transaction->now_ns, row->ctime_ns);
    changed.mtime_ns = changed.ctime_ns;
    return TRANSACTION_PATCH(transaction, &key, &changed, epoch, uid);
}

/* "." and "..": the parent stands in the directory's inode. */
static int dots_find(struct transaction *transaction, struct place *place) {
    const struct inode_row *row;

    place->dentry = (struct dentry){.ino = place->parent, .type = MODE_DIRECTORY >> 12};
    if (name_kind(place->name) == NAME_SELF) {
        return 0;
    }
    int r = stakes_meet(transaction, stake_of(STAKE_MOVED, place->parent), STAKE_READ);
    r = r < 0 ? r : inode_get(transaction, place->parent, &row);
    if (r == 0 && row->nlink == 0) {
        r = -ERR_NOT_FOUND; /* of a removed directory the parent may be gone too */
    } else if (r == 0) {
        place->dentry.ino.value = row->parent;
    }
    return r;
}

int place_find(struct transaction *transaction, struct place *place) {
    int r = name_check(place->name);
    if (r < 0) {
        return r;
    }
    r = directory_get(transaction, place->parent, &place->directory);
    if (r < 0) {
        return r;
    }
    r = permission_check(place->who, partition_ownership(place->directory), ACCESS_EXECUTE);
    if (r < 0) {
        return r;
    }
    if (name_kind(place->name) != NAME_PLAIN) {
        return dots_find(transaction, place);
    }
    return dentry_find(transaction, place->parent, place->name, &place->dentry);
}

int place_find_free(struct transaction *transaction, struct place *place) {
    int r = place_find(transaction, place);
    if (r != -ERR_NOT_FOUND) {
        return r < 0 ? r : -ERR_EXISTS;
    }
    if (!place->directory || place->directory->state != PARTITION_LIVE) {
        return -ERR_NOT_FOUND;
    }
    return permission_check(place->who, partition_ownership(place->directory),
                            ACCESS_WRITE | ACCESS_EXECUTE);
}

int place_remove_lost(struct transaction *transaction, const struct place *place, bool directory) {
    struct directory_change change = change_of(place->dentry.type, -1);

    crossing_drop(transaction);
    int r = permission_remove(place->who, partition_ownership(place->directory), UINT32_MAX);

    if (r == 0 && (change.directories != 0) != directory) {
        r = directory ? -ERR_NOT_DIRECTORY : -ERR_IS_DIRECTORY;
    }
    r = r < 0 ? r : dentry_remove(transaction, place->parent, &place->dentry);
    return r < 0 ? r : directory_changed(transaction, place->parent, place->directory, change);
}
