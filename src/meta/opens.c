/* A hash table of opens, chained, by ino: all of one ino are in one bucket. */
#include "meta/opens.h"
#include "base/err.h"
#include "meta/session.h"
#include <assert.h>
#include <stdlib.h>

/* Memory for some entries. */
struct open_block {
    struct open_block *next;
    struct open_entry entries[];
};

static int entries_add(struct opens *opens, uint32_t count) {
    struct open_block *block = calloc(1, sizeof *block + count * sizeof block->entries[0]);

    if (!block) {
        return -ERR_NO_MEMORY;
    }
    block->next = opens->blocks;
    opens->blocks = block;
    for (uint32_t i = count; i > 0; i--) {
        block->entries[i - 1].next = opens->free;
        opens->free = &block->entries[i - 1];
    }
    opens->entry_count += count;
    return 0;
}

int opens_init(struct opens *opens, uint32_t opens_max) {
    uint32_t bucket_count = 16;

    list_init(&opens->left);
    while (bucket_count < opens_max) {
        bucket_count *= 2;
    }
    opens->buckets = calloc(bucket_count, sizeof(struct open_entry *));
    opens->bucket_mask = bucket_count - 1;
    opens->count_max = opens_max;
    if (user_shares_init(&opens->shares, opens_max) < 0 || !opens->buckets ||
        entries_add(opens, opens_max) < 0) {
        opens_deinit(opens);
        return -ERR_NO_MEMORY;
    }
    return 0;
}

void opens_deinit(struct opens *opens) {
    while (opens->blocks) {
        struct open_block *block = opens->blocks;

        opens->blocks = block->next;
        free(block);
    }
    free(opens->buckets);
    user_shares_deinit(&opens->shares);
    *opens = (struct opens){0};
}

int opens_reserve(struct opens *opens) {
    if (opens->free) {
        return 0;
    }
    if (opens->entry_count >= OPENS_MOST) {
        return -ERR_TOO_MANY_OPEN;
    }
    return entries_add(opens, MIN(opens->entry_count, OPENS_MOST - opens->entry_count));
}

static struct open_entry **bucket_of(const struct opens *opens, struct ino ino) {
    /* Fibonacci hashing: inos are counted up, their upper half is the slot. */
    uint64_t mixed = ino.value * UINT64_C(0x9e3779b97f4a7c15);

    return &opens->buckets[(mixed >> 32) & opens->bucket_mask];
}

struct open_entry *opens_find(const struct opens *opens, struct ino ino,
                              const struct session *session) {
    struct open_entry *entry = *bucket_of(opens, ino);

    while (entry && (entry->ino.value != ino.value || entry->session != session)) {
        entry = entry->next;
    }
    return entry;
}

bool opens_any_other(const struct opens *opens, struct ino ino, const struct open_entry *except) {
    for (struct open_entry *entry = *bucket_of(opens, ino); entry; entry = entry->next) {
        if (entry->ino.value == ino.value && entry != except && open_entry_is_open(entry)) {
            return true;
        }
    }
    return false;
}

bool opens_any(const struct opens *opens, struct ino ino) {
    return opens_any_other(opens, ino, NULL);
}

bool opens_any_writer(const struct opens *opens, struct ino ino, const struct session *except) {
    for (struct open_entry *entry = *bucket_of(opens, ino); entry; entry = entry->next) {
        bool writer = entry->write_count > 0 || entry->has_row;

        if (entry->ino.value == ino.value && entry->session != except && writer) {
            return true;
        }
    }
    return false;
}

bool opens_any_evicted_writer(const struct opens *opens, struct ino ino) {
    for (struct open_entry *entry = *bucket_of(opens, ino); entry; entry = entry->next) {
        if (entry->ino.value == ino.value && entry->has_row &&
            entry->session->state == SESSION_EVICTING) {
            return true;
        }
    }
    return false;
}

bool opens_may(struct opens *opens, struct ino ino, const struct session *session, uint32_t uid) {
    return opens_find(opens, ino, session) ||
           (opens->count < opens->count_max && user_shares_may(&opens->shares, uid));
}

void opens_own(struct opens *opens, struct open_entry *entry, uint32_t uid) {
    if (entry->uid == 0) {
        entry->uid = uid;
        user_shares_add(&opens->shares, uid);
    }
}

struct open_entry *opens_get(struct opens *opens, struct ino ino, struct session *session,
                             uint32_t uid) {
    struct open_entry *entry = opens_find(opens, ino, session);

    if (entry) {
        return entry;
    }
    entry = opens->free;
    assert(entry && opens->count < opens->entry_count);
    opens->free = entry->next;
    opens->count++;
    struct open_entry **bucket = bucket_of(opens, ino);
    *entry = (struct open_entry){.next = *bucket, .session = session, .ino = ino};
    opens_own(opens, entry, uid);
    *bucket = entry;
    list_push_back(&session->opens, &entry->by_session);
    return entry;
}

void opens_trim(struct opens *opens, struct open_entry *entry) {
    assert(opens->count > 0 && list_contains(&entry->by_session));
    assert(entry->has_row || (entry->write_count == 0 && entry->move_count == 0));
    if (open_entry_is_open(entry)) {
        return;
    }
    if (entry->name != 0 && entry->name >= entry->session->floor) {
        if (!list_contains(&entry->shut)) {
            list_push_back(&entry->session->shut, &entry->shut);
        }
        return;
    }
    if (list_contains(&entry->shut)) {
        list_remove(&entry->shut);
    }
    struct open_entry **link = bucket_of(opens, entry->ino);
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    list_remove(&entry->by_session);
    list_remove(&entry->left);
    user_shares_put(&opens->shares, entry->uid);
    entry->next = opens->free;
    opens->free = entry;
    opens->count--;
}

/* In the order in which they were shut: who is behind one that the floor has not passed waits. */
void opens_pass(struct opens *opens, struct session *session) {
    struct list_node *node;

    while ((node = list_first(&session->shut)) != NULL) {
        struct open_entry *entry = CONTAINER_OF(node, struct open_entry, shut);

        if (entry->name >= session->floor) {
            break;
        }
        list_remove(&entry->shut);
        opens_trim(opens, entry);
    }
}
