/* The list of verbs: shoal finds them here, help, completion and manual go through it. */
#include "cmd/verb.h"
#include <string.h>

const struct verb *const verb_list[] = {
    &verb_up,    &verb_down, &verb_mount,      &verb_umount, &verb_status,  &verb_df,  &verb_stats,
    &verb_sync,  &verb_stat, &verb_stripe,     &verb_fsck,   &verb_target,  &verb_key, &verb_doctor,
    &verb_bench, &verb_plan, &verb_completion, &verb_manual, &verb_version, NULL,
};

const struct verb *verb_find(const char *name) {
    for (size_t i = 0; verb_list[i]; i++) {
        if (strcmp(name, verb_list[i]->name) == 0) {
            return verb_list[i];
        }
    }
    return NULL;
}

const struct verb *verb_find_any(const char *name) {
    return strcmp(name, verb_shoald.name) == 0 ? &verb_shoald : verb_find(name);
}
