/* Open addressing; the contract is in log_table.h. */
#include "rpc/log_table.h"
#include <stdatomic.h>
#include <stdlib.h>

struct entry {
    _Atomic uint64_t key; /* the log; 0: free */
    _Atomic(struct actor *) actor;
};

struct log_table {
    uint32_t entry_count;
    struct entry entries[];
};

int log_table_new(uint32_t logs_max, struct log_table **ret_table) {
    struct log_table *table;

    if (logs_max == 0) {
        return -ERR_INVALID;
    }
    table = calloc(1, sizeof *table + logs_max * sizeof table->entries[0]);
    if (!table) {
        return -ERR_NO_MEMORY;
    }
    table->entry_count = logs_max;
    *ret_table = table;
    return 0;
}

void log_table_free(struct log_table *table) {
    free(table);
}

/* The log's entry, or the free one where it would be, or NULL. */
static struct entry *entry_find(struct log_table *table, struct log_id log) {
    for (uint32_t i = 0; i < table->entry_count; i++) {
        struct entry *entry = &table->entries[(log.value + i) % table->entry_count];
        uint64_t key = atomic_load_explicit(&entry->key, memory_order_acquire);

        if (key == 0 || key == log.value) {
            return entry;
        }
    }
    return NULL;
}

int log_table_add(struct log_table *table, struct log_id log, struct actor *actor) {
    struct entry *entry = entry_find(table, log);

    if (!entry) {
        return -ERR_TOO_MANY_OPEN;
    }
    if (atomic_load_explicit(&entry->actor, memory_order_relaxed)) {
        return -ERR_EXISTS;
    }
    atomic_store_explicit(&entry->actor, actor, memory_order_release);
    atomic_store_explicit(&entry->key, log.value, memory_order_release);
    return 0;
}

void log_table_remove(struct log_table *table, struct log_id log) {
    struct entry *entry = entry_find(table, log);

    if (entry) {
        atomic_store_explicit(&entry->actor, NULL, memory_order_release);
    }
}

struct actor *log_table_find(struct log_table *table, struct log_id log) {
    struct entry *entry = entry_find(table, log);

    return entry ? atomic_load_explicit(&entry->actor, memory_order_acquire) : NULL;
}
