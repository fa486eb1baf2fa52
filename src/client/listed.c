/* The contract is in listed.h. */
#include "client/listed.h"
#include <string.h>

int listed_entry_parse(struct bytes left, struct listed_entry *ret_entry) {
    struct listed_entry entry = {.has_attributes = false};
    size_t used = sizeof entry.head;

    if (left.size < sizeof entry.head) {
        return -ERR_MALFORMED;
    }
    memcpy(&entry.head, left.data, sizeof entry.head);
    used += (size_t)entry.head.name_bytes + entry.head.attribute_bytes;
    if (entry.head.name_bytes == 0 || used > entry.head.entry_bytes ||
        entry.head.entry_bytes > left.size) {
        return -ERR_MALFORMED;
    }
    entry.name = (const char *)left.data + sizeof entry.head;
    if (entry.head.attribute_bytes > 0) {
        struct bytes bytes = {left.data + sizeof entry.head + entry.head.name_bytes,
                              entry.head.attribute_bytes};
        int r = wire_decode_attributes(bytes, &entry.attributes);

        if (r < 0) {
            return r;
        }
        entry.has_attributes = true;
    }
    *ret_entry = entry;
    return 0;
}
