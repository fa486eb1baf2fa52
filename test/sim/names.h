/* Names that one asker alone makes, moves and removes: what they are is known exactly.
 *
 *     (none) --mkdir--> there --rename--> there, under the new name --rmdir--> gone --> (none)
 *
 * No name is used twice, so a second run of an operation that had been done shows: EEXIST for a
 * mkdir, ENOENT for the others. Only a power failure of the metadata target since a change was
 * asked for may have undone it. Lookups in between must agree.
 *
 * Thread: the world's.  Memory: the caller's. */
#pragma once
#include "base/types.h"

struct shoal_request;

enum { NAMES_BYTES = 32, NAMES_PROBLEM_BYTES = 200 };

/* Zeroed at the start. */
struct name_slot {
    char name[NAMES_BYTES];     /* "": none yet */
    char new_name[NAMES_BYTES]; /* of the rename that is open */
    bool there;
    uint64_t changed_ns; /* when the last change was asked for */
    uint64_t asked_ns;
};

/* The next question about the slot's name: lot chooses, number makes names unique. */
void names_ask(struct name_slot *slot, uint64_t lot, uint64_t number, uint64_t now_ns,
               struct shoal_request *ret_request);
/* lost_ns: when the metadata target lost power last; 0: never. False: it cannot be. */
bool names_answered(struct name_slot *slot, const struct shoal_request *request, uint64_t lost_ns,
                    char problem[NAMES_PROBLEM_BYTES]);
/* Nobody knows what became of it. */
void names_forget(struct name_slot *slot);
