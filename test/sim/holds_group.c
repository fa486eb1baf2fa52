/* The group's side of holds.h. */
#include "holds.h"
#include "meta/group_internal.h"

void holds_of_group(const struct group *group, void (*look)(void *context, const struct held *held),
                    void *context) {
    const struct opens *opens = &group->opens;

    for (uint32_t bucket = 0; bucket <= opens->bucket_mask; bucket++) {
        for (struct open_entry *entry = opens->buckets[bucket]; entry; entry = entry->next) {
            const struct held held = {.session = entry->session->id.value,
                                      .ino = entry->ino,
                                      .read_count = entry->read_count,
                                      .write_count = entry->write_count,
                                      .named = entry->named,
                                      .has_row = entry->has_row};

            if (entry->session->attached) {
                look(context, &held);
            }
        }
    }
}
