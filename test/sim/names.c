/* Questions and answers about names. */
#include "names.h"
#include "shoal/shoal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum shoal_operation operation_of(const struct name_slot *slot, uint64_t lot) {
    if (!slot->name[0]) {
        return SHOAL_MKDIR;
    }
    if (!slot->there) {
        return SHOAL_LOOKUP;
    }
    switch (lot % 4) {
    case 0:
        return SHOAL_LOOKUP;
    case 1:
        return SHOAL_RENAME;
    default:
        return SHOAL_RMDIR;
    }
}

void names_ask(struct name_slot *slot, uint64_t lot, uint64_t number, uint64_t now_ns,
               struct shoal_request *ret_request) {
    enum shoal_operation operation = operation_of(slot, lot);

    slot->asked_ns = now_ns;
    if (operation == SHOAL_MKDIR) {
        snprintf(slot->name, sizeof slot->name, "d%" PRIu64, number);
    }
    snprintf(slot->new_name, sizeof slot->new_name, "m%" PRIu64, number);
    *ret_request = (struct shoal_request){.operation = operation,
                                          .ino = SHOAL_INO_ROOT,
                                          .name = slot->name,
                                          .name_bytes = strlen(slot->name),
                                          .mode = 0755};
    if (operation == SHOAL_RENAME) {
        ret_request->new_ino = SHOAL_INO_ROOT;
        ret_request->new_name = slot->new_name;
        ret_request->new_name_bytes = strlen(slot->new_name);
    }
}

static void changed(struct name_slot *slot, enum shoal_operation operation) {
    slot->changed_ns = slot->asked_ns;
    slot->there = operation != SHOAL_RMDIR;
    if (operation == SHOAL_RENAME) {
        memcpy(slot->name, slot->new_name, sizeof slot->name);
    }
}

bool names_answered(struct name_slot *slot, const struct shoal_request *request, uint64_t lost_ns,
                    char problem[NAMES_PROBLEM_BYTES]) {
    bool makes = request->operation == SHOAL_MKDIR;
    bool looks = request->operation == SHOAL_LOOKUP;
    /* The last change, or the one that was asked for, may be undone. */
    bool doubtful = lost_ns > 0 && lost_ns >= slot->changed_ns;
    bool there = slot->there;

    if (request->result == 0 && !looks) {
        changed(slot, request->operation);
        return true;
    }
    bool found = request->result == 0;
    bool gone = request->result == -ENOENT && !makes;
    bool right = looks ? found == there : false;
    if ((found || gone) && (right || doubtful)) {
        /* Gone for sure, or in doubt: another name tells more. */
        if (!found || doubtful) {
            names_forget(slot);
        }
        return true;
    }
    snprintf(problem, NAMES_PROBLEM_BYTES, "name %s, which is %s", slot->name,
             makes   ? "new"
             : there ? "there"
                     : "gone");
    return false;
}

void names_forget(struct name_slot *slot) {
    *slot = (struct name_slot){.there = false};
}
