/* The list as a table. */
#include "fuzz.h"

const struct fuzz_target fuzz_targets[] = {
#define FUZZ(name, what) {#name, what, fuzz_##name, seed_##name},
#include "targets.def"
#undef FUZZ
};
const size_t fuzz_target_count = ARRAY_SIZE(fuzz_targets);

const struct fuzz_target *fuzz_target_find(const char *name) {
    for (size_t i = 0; i < fuzz_target_count; i++) {
        if (strcmp(fuzz_targets[i].name, name) == 0) {
            return &fuzz_targets[i];
        }
    }
    return NULL;
}
