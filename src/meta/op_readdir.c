/* readdir: entries behind a cookie, in the order of their hash, with attributes if asked.
 *
 * The place is a key, not a count: an entry that stays while others come and go is given exactly
 * once. What must be waited for ends a listing early once it holds something, and the rows of the
 * following entries are asked for meanwhile. A long one lets others run between, and goes on with
 * what it holds: who asks from afar is not to ask for each piece. */
#include "base/endian.h"
#include "meta/directory.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/operations.h"
#include <assert.h>
#include <string.h>

enum { LISTING_PREFETCH = 31, LISTING_SKIPS_MAX = 4096 };
/* In steps of listing_step: what it takes to tell of an entry. */
enum { LISTING_NAME = 1, LISTING_ATTRIBUTES = 3 };

struct listing {
    struct transaction *transaction;
    struct call *call;
    struct ino directory;
    size_t limit; /* bytes of bulk that may be used */
    uint64_t last_cookie;
};

struct listed {
    uint64_t cookie;
    struct ino ino;
    uint8_t type;
    struct bytes name;
};

/* 0, -ERR_PENDING, or -ERR_TOO_SMALL when the entry does not fit any more. */
static int listing_add(struct listing *listing, const struct listed *entry) {
    /* Who serves the inode tells of it. */
    bool plus = listing->call->request.readdir.plus &&
                !crossing_is_elsewhere(listing->transaction, entry->ino);
    bool room = listing->call->request.readdir.plus;
    struct buffer *out = &listing->call->bulk_in;
    size_t head = sizeof(struct wire_dirent) + entry->name.size;
    size_t total = (head + (room ? WIRE_ATTRIBUTES_BYTES : 0) + 7) / 8 * 8;
    struct attributes attributes;
    const struct inode_row *row;
    int r = 0;

    assert(out->size <= listing->limit);
    if (total > listing->limit - out->size) {
        return -ERR_TOO_SMALL;
    }
    if (plus) {
        r = inode_get(listing->transaction, entry->ino, &row);
        r = r < 0 ? r : attributes_read(listing->transaction, entry->ino, row, &attributes);
        if (r < 0 && r != -ERR_STALE) {
            return r;
        }
    }
    struct wire_dirent dirent = {
        .cookie = entry->cookie,
        .ino = entry->ino.value,
        .entry_bytes = (uint16_t)total,
        .attribute_bytes = plus && r == 0 ? WIRE_ATTRIBUTES_BYTES : 0,
        .type = entry->type,
        .name_bytes = (uint8_t)entry->name.size,
    };
    uint8_t *to = out->data + out->size;
    memcpy(to, &dirent, sizeof dirent);
    memcpy(to + sizeof dirent, entry->name.data, entry->name.size);
    struct buffer tail = {.data = to + head, .capacity = total - head};
    if (dirent.attribute_bytes) {
        wire_encode_attributes(&attributes, &tail);
    }
    assert(tail.size <= total - head);
    memset(to + head + tail.size, 0, total - head - tail.size);
    out->size += total;
    listing->last_cookie = entry->cookie;
    return 0;
}

/* "." and "..", as far as the cookie is before them. */
static int listing_dots(struct listing *listing, uint64_t cookie) {
    const struct inode_row *row;
    struct listed entry = {.type = MODE_DIRECTORY >> 12};
    int r = 0;

    if (cookie < COOKIE_SELF) {
        entry.cookie = COOKIE_SELF;
        entry.ino = listing->directory;
        entry.name = (struct bytes){(const uint8_t *)".", 1};
        r = listing_add(listing, &entry);
    }
    if (r == 0 && cookie < COOKIE_PARENT) {
        r = stakes_meet(listing->transaction, stake_of(STAKE_MOVED, listing->directory),
                        STAKE_READ);
        r = r < 0 ? r : inode_get(listing->transaction, listing->directory, &row);
        if (r < 0) {
            return r;
        }
        entry.cookie = COOKIE_PARENT;
        entry.ino.value = row->parent;
        entry.name = (struct bytes){(const uint8_t *)"..", 2};
        r = listing_add(listing, &entry);
    }
    return r;
}

/* Asks for the inodes behind the cursor, so that they are there when the client comes again. */
static void listing_prefetch(struct listing *listing, struct kv_cursor cursor) {
    struct bytes value;

    for (int i = 0; i < LISTING_PREFETCH; i++) {
        const struct dentry_row *row;

        if (transaction_next(listing->transaction, &cursor, &value) < 0 ||
            dentry_row_check(value, &row) < 0) {
            return;
        }
        struct kv_key key = key_inode((struct ino){row->ino});
        (void)!transaction_get(listing->transaction, &key, &value);
    }
}

/* Behind an entry. PENDING: it is others' turn. */
static int listing_pace(struct listing *listing, const struct kv_cursor *cursor,
                        uint32_t *ret_steps) {
    bool plus = listing->call->request.readdir.plus;

    *ret_steps += LISTING_NAME + (plus ? LISTING_ATTRIBUTES : 0);
    return *ret_steps < listing->transaction->group->options.listing_step
               ? 0
               : transaction_walk_yield(listing->transaction, cursor);
}

static int listing_entries(struct listing *listing, uint64_t first_index) {
    struct kv_key from = key_dentry(listing->directory, first_index);
    struct kv_key to = key_dentry(listing->directory, UINT64_MAX);
    struct kv_cursor cursor;
    struct bytes value;
    uint32_t steps = 0;
    int r;

    kv_cursor_init(&cursor, &from, &to);
    cursor.skips_max = LISTING_SKIPS_MAX;
    transaction_walk_resume(listing->call, &cursor);
    if (transaction_walk_goes_on(listing->call)) {
        listing->last_cookie = cookie_of(kv_key_split(&cursor.key).index);
    }
    while ((r = transaction_next(listing->transaction, &cursor, &value)) == 0) {
        const struct dentry_row *row;

        r = dentry_row_check(value, &row);
        if (r < 0) {
            return r;
        }
        if (row->flags & DENTRY_HOLE) {
            continue;
        }
        struct listed entry = {.cookie = cookie_of(kv_key_split(&cursor.key).index),
                               .ino = {row->ino},
                               .type = row->type,
                               .name = {row->name, row->name_bytes}};
        r = listing_add(listing, &entry);
        if (r == -ERR_PENDING) {
            listing_prefetch(listing, cursor);
            cursor.inclusive = true;
        }
        r = r < 0 ? r : listing_pace(listing, &cursor, &steps);
        if (r < 0) {
            break;
        }
    }
    if (r == -ERR_PENDING && listing->call->bulk_in.size == 0) {
        transaction_walk_keep(listing->call, &cursor);
    }
    return r;
}

int op_readdir(struct transaction *transaction, struct call *call) {
    const struct readdir_request *request = &call->request.readdir;
    const struct partition_row *partition;
    struct listing listing = {
        .transaction = transaction,
        .call = call,
        .directory = request->ino,
        .limit = MIN((size_t)request->bytes_max, call->bulk_in.capacity),
        .last_cookie = request->cookie,
    };
    uint64_t first_index = 0;

    int r = cookie_next_index(request->cookie, &first_index);
    r = r < 0 ? r : directory_get(transaction, request->ino, &partition);
    if (r < 0) {
        return r == -ERR_NOT_FOUND ? -ERR_STALE : r;
    }
    if (inode_is_open(transaction, request->ino, OPEN_READ) < 0) {
        r = permission_check(&request->who, partition_ownership(partition), ACCESS_READ);
    }
    if (r < 0) {
        return r;
    }
    bool goes_on = transaction_walk_goes_on(call);
    call->bulk_in.size = goes_on ? call->bulk_in.size : 0;
    if (partition->state == PARTITION_DYING) {
        r = -ERR_NOT_FOUND;
    } else {
        r = goes_on ? 0 : listing_dots(&listing, request->cookie);
        r = r < 0 ? r : listing_entries(&listing, first_index);
    }
    if (transaction->yields) {
        return r;
    }
    bool partial = (r == -ERR_TOO_SMALL || r == -ERR_PENDING) && call->bulk_in.size > 0;
    if (r != -ERR_NOT_FOUND && !partial) {
        return r;
    }
    call->reply.readdir.next_cookie = listing.last_cookie;
    call->reply.readdir.end = r == -ERR_NOT_FOUND;
    return 0;
}
