/* The contract is in half.h. */
#include "meta/half.h"
#include "meta/count.h"
#include "meta/directory.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/make.h"
#include "meta/promise.h"

int half_next(struct bytes *halves, const struct half **ret_half) {
    const struct half *half = (const void *)halves->data;

    if (halves->size < sizeof *half || half->format != META_FORMAT || half->kind < HALF_MAKE ||
        half->kind > HALF_COUNT || (half->kind == HALF_NAME) != (half->name_bytes > 0) ||
        halves->size < sizeof *half + half->name_bytes) {
        return -ERR_MALFORMED;
    }
    if (half->kind == HALF_NAME &&
        (half->to == 0 || half->type == 0 || half->from == half->to ||
         (half->from == 0) != (half->old_type == 0) || name_check(half_name(half)) < 0)) {
        return -ERR_MALFORMED;
    }
    if (half->kind == HALF_MAKE && (!mode_is_directory(half->mode) || half->to == 0)) {
        return -ERR_MALFORMED;
    }
    *ret_half = half;
    halves->data += sizeof *half + half->name_bytes;
    halves->size -= sizeof *half + half->name_bytes;
    return 0;
}

void half_stakes(const struct transaction *transaction, const struct half *half,
                 struct stake_what ret_what[2], uint32_t *ret_count) {
    struct ino ino = {half->ino};

    *ret_count = 1;
    switch ((enum half_kind)half->kind) {
    case HALF_NAME:
        ret_what[0] = stake_name(ino, name_index(&transaction->group->hash, half_name(half)));
        ret_what[1] = stake_of(STAKE_WITHIN, ino);
        *ret_count = 2;
        break;
    case HALF_MOVED:
        ret_what[0] = stake_of(STAKE_MOVED, ino);
        break;
    case HALF_COUNT:
        ret_what[0] = stake_of(STAKE_COUNT, (struct ino){0});
        break;
    case HALF_MAKE:
    case HALF_LINK:
    case HALF_UNLINK:
        ret_what[0] = stake_of(STAKE_INODE, ino);
        break;
    }
}

static int or_changed(int result) {
    return result == -ERR_STALE || result == -ERR_NOT_FOUND || result == -ERR_NOT_DIRECTORY
               ? -ERR_CHANGED
               : result;
}

static bool relies_on(const struct half *half, struct ownership owner, uint32_t domain) {
    return half->mode == owner.mode && half->uid == owner.uid && half->gid == owner.gid &&
           half->domain == domain;
}

static int inode_check(struct transaction *transaction, const struct half *half,
                       const struct inode_row **ret_row) {
    const struct inode_row *row;

    int r = or_changed(inode_get(transaction, (struct ino){half->ino}, &row));
    if (r < 0) {
        return r;
    }
    *ret_row = row;
    bool there = half->kind == HALF_LINK ? inode_may_be_named(row) : row->nlink > 0;
    return there && relies_on(half, inode_ownership(row), row->domain) ? 0 : -ERR_CHANGED;
}

static int link_check(struct transaction *transaction, const struct half *half) {
    const struct inode_row *row = NULL;

    int r = inode_check(transaction, half, &row);
    if (r < 0) {
        return r;
    }
    bool changed = mode_is_directory(row->mode) || row->nlink != half->from;
    return changed ? -ERR_CHANGED : row->nlink >= LINKS_MAX ? -ERR_TOO_MANY_LINKS : 0;
}

static int unlink_check(struct transaction *transaction, const struct half *half) {
    struct ino ino = {half->ino};
    const struct partition_row *partition;
    const struct inode_row *row = NULL;

    int r = inode_check(transaction, half, &row);
    if (r == 0 && row->nlink != half->from) {
        r = -ERR_CHANGED;
    }
    if (r < 0 || !mode_is_directory(row->mode)) {
        return r;
    }
    r = or_changed(directory_get(transaction, ino, &partition));
    r = r < 0 ? r : stakes_meet(transaction, stake_of(STAKE_WITHIN, ino), STAKE_CHANGE);
    if (r < 0) {
        return r;
    }
    bool empty = partition->file_count + partition->directory_count == 0;
    return empty && partition->state == PARTITION_LIVE ? 0 : -ERR_CHANGED;
}

static int name_is_as(struct transaction *transaction, const struct half *half) {
    struct ino directory = {half->ino};
    const struct partition_row *partition;
    struct dentry dentry;

    int r = or_changed(directory_get(transaction, directory, &partition));
    if (r < 0) {
        return r;
    }
    if (partition->state != PARTITION_LIVE ||
        !relies_on(half, partition_ownership(partition), partition->domain)) {
        return -ERR_CHANGED;
    }
    if (half->type == MODE_DIRECTORY >> 12 && partition->directory_count >= DIRECTORIES_MAX) {
        return -ERR_TOO_MANY_LINKS;
    }
    r = dentry_find(transaction, directory, half_name(half), &dentry);
    if (r < 0 && r != -ERR_NOT_FOUND) {
        return r;
    }
    if (r < 0 && !dentry_has_place(transaction, half_name(half), &dentry)) {
        return -ERR_NO_SPACE;
    }
    uint64_t found = r == 0 ? dentry.ino.value : 0;
    bool same = found == half->from && dentry.index == half->from_index &&
                (found == 0 || dentry.type == half->old_type);
    return same ? 0 : -ERR_CHANGED;
}

static int count_check(struct transaction *transaction, const struct half *half) {
    const struct cross_prepare_request *request = &transaction->call->request.cross_prepare;
    struct turn_id id = {request->coordinator, request->term, request->turn};
    uint64_t moves = 0;
    int r = count_get(transaction, &moves);

    if (r < 0) {
        return r;
    }
    bool taken = moves == half->from && turns_left_ns(transaction->group, id) == 0;
    return taken ? 0 : -ERR_CHANGED;
}

static int make_draw(struct transaction *transaction, struct half *half) {
    struct group *group = transaction->group;
    struct ino ino;

    if (group->slots.opened == 0) {
        return -ERR_CHANGED; /* Another group, for now. */
    }
    int r = transaction_ino(transaction, make_slot(group), &ino);
    if (r == 0) {
        half->ino = ino.value;
    }
    return r;
}

static bool is_elsewhere(const struct transaction *transaction, const struct half *half) {
    struct ino ino = {half->kind == HALF_COUNT ? INO_ROOT.value : half->ino};

    return half->kind != HALF_MAKE && slots_check(&transaction->group->slots, ino_slot(ino)) < 0;
}

int half_check(struct transaction *transaction, struct half *half) {
    const struct inode_row *row = NULL;
    struct stake_what what[2];
    uint32_t count;
    int r = 0;

    if (is_elsewhere(transaction, half)) {
        return -ERR_STALE_MAP;
    }
    half_stakes(transaction, half, what, &count);
    if (half->kind != HALF_MAKE) {
        r = stakes_meet(transaction, what[0], STAKE_CHANGE);
    }
    if (r < 0) {
        return r;
    }
    switch ((enum half_kind)half->kind) {
    case HALF_MAKE:
        return make_draw(transaction, half);
    case HALF_LINK:
        return link_check(transaction, half);
    case HALF_UNLINK:
        return unlink_check(transaction, half);
    case HALF_NAME:
        return name_is_as(transaction, half);
    case HALF_MOVED:
        return inode_check(transaction, half, &row);
    case HALF_COUNT:
        return count_check(transaction, half);
    }
    return -ERR_MALFORMED;
}

static int make_apply(struct transaction *transaction, const struct half *half) {
    struct ownership owner = {half->mode, half->uid, half->gid};
    struct partition_row like = {
        .domain = half->domain,
        .pool_version = half->pool_version,
        .chunk_bytes = half->chunk_bytes,
        .stripe_count = half->stripe_count,
        .redundancy = half->redundancy,
    };
    struct made made = {.ino = {half->ino}};

    made.row = inode_make(transaction, owner, made.ino, &like);
    made.row.parent = half->to;
    made.row.parent_name = half->to_index;
    struct partition_row partition = make_partition(transaction, &made.row);
    struct kv_key key = key_partition(made.ino);
    transaction->inode_delta++;
    transaction->directory_delta++;
    int r = transaction_put(transaction, &key, &partition, sizeof partition);
    return r < 0 ? r : inode_put(transaction, made.ino, &made.row);
}

static int name_apply(struct transaction *transaction, const struct half *half) {
    struct ino directory = {half->ino};
    struct directory_change change = change_of(half->type, 1);
    const struct partition_row *partition;
    struct dentry dentry;

    int r = directory_get(transaction, directory, &partition);
    if (r < 0) {
        return r;
    }
    const struct partition_row before = *partition;
    r = dentry_find(transaction, directory, half_name(half), &dentry);
    if (r < 0 && r != -ERR_NOT_FOUND) {
        return r;
    }
    bool taken = r == 0;
    if (taken) {
        struct directory_change lost = change_of(dentry.type, -1);

        change.files += lost.files;
        change.directories += lost.directories;
    }
    dentry.ino.value = half->to;
    dentry.type = half->type;
    r = (taken ? dentry_replace : dentry_add)(transaction, directory, half_name(half), &dentry);
    return r < 0 ? r : directory_changed(transaction, directory, &before, change);
}

static int moved_apply(struct transaction *transaction, const struct half *half) {
    struct ino ino = {half->ino};
    const struct inode_row *row;

    int r = inode_get(transaction, ino, &row);
    return r < 0 ? r
                 : inode_moved(transaction, ino, row,
                               &(struct link_move){
                                   {half->from}, half->from_index, {half->to}, half->to_index});
}

int half_apply(struct transaction *transaction, const struct half *half) {
    struct ino ino = {half->ino};
    const struct inode_row *row;
    uint32_t nlink;
    int r = 0;

    switch ((enum half_kind)half->kind) {
    case HALF_MAKE:
        r = make_apply(transaction, half);
        break;
    case HALF_LINK:
        r = inode_get(transaction, ino, &row);
        r = r < 0 ? r
                  : inode_link(transaction, ino, row,
                               &(struct link_move){.to = {half->to}, .to_index = half->to_index});
        break;
    case HALF_UNLINK:
        r = inode_get(transaction, ino, &row);
        r = r < 0 ? r : inode_unlink(transaction, ino, row, &nlink);
        break;
    case HALF_NAME:
        r = name_apply(transaction, half);
        break;
    case HALF_MOVED:
        r = moved_apply(transaction, half);
        break;
    case HALF_COUNT:
        r = count_put(transaction, half->from + 1);
        break;
    }
    if (r == -ERR_CORRUPT || r == -ERR_STALE || r == -ERR_NOT_FOUND || r == -ERR_NOT_DIRECTORY) {
        transaction->damaged = ino;
        transaction->damage = "what was promised of it can not be done";
        return 0;
    }
    return r;
}
