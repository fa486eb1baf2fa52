/* Open addressing, at most three quarters full. */
#include "check/fsck_table.h"
#include <stdlib.h>
#include <string.h>

int fsck_table_init(struct fsck_table *table, size_t bytes) {
    uint32_t slots = 64;

    while (slots * 2 * sizeof(struct fsck_node) <= bytes) {
        slots *= 2;
    }
    table->nodes = calloc(slots, sizeof *table->nodes);
    table->mask = slots - 1;
    table->count = 0;
    table->count_max = slots / 4 * 3;
    return table->nodes ? 0 : -ERR_NO_MEMORY;
}

void fsck_table_deinit(struct fsck_table *table) {
    free(table->nodes);
    table->nodes = NULL;
}

void fsck_table_clear(struct fsck_table *table) {
    memset(table->nodes, 0, (table->mask + (size_t)1) * sizeof *table->nodes);
    table->count = 0;
}

static struct fsck_node *place_of(const struct fsck_table *table, uint64_t ino) {
    uint32_t at = (uint32_t)fsck_hash(ino) & table->mask;

    while (table->nodes[at].ino != 0 && table->nodes[at].ino != ino) {
        at = (at + 1) & table->mask;
    }
    return &table->nodes[at];
}

struct fsck_node *fsck_table_find(const struct fsck_table *table, uint64_t ino) {
    struct fsck_node *node = place_of(table, ino);

    return node->ino == 0 ? NULL : node;
}

struct fsck_node *fsck_table_add(struct fsck_table *table, uint64_t ino) {
    struct fsck_node *node = place_of(table, ino);

    if (node->ino == 0) {
        if (ino == 0 || table->count == table->count_max) {
            return NULL;
        }
        node->ino = ino;
        table->count++;
    }
    return node;
}
