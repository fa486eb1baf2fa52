/* Entries of a directory as they lie in the answer of a readdir (struct wire_dirent). */
#pragma once
#include "base/err.h"
#include "wire/wire.h"

struct listed_entry {
    struct wire_dirent head;
    const char *name; /* head.name_bytes, 1 at least; within the answer */
    bool has_attributes;
    struct attributes attributes;
};

/* The first one of what is left of an answer; its head.entry_bytes lead to the next.
 * -ERR_MALFORMED. */
MUST_CHECK int listed_entry_parse(struct bytes left, struct listed_entry *ret_entry);
