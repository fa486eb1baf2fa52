/* The contract is in asked_files.h. */
#include "meta/asked_files.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int asked_files_init(struct asked_files *files) {
    *files = (struct asked_files){.place_count = 2 * ASKED_FILES_LEAST};
    files->places = calloc(files->place_count, sizeof *files->places);
    return files->places ? 0 : -ERR_NO_MEMORY;
}

void asked_files_deinit(struct asked_files *files) {
    free(files->places);
    *files = (struct asked_files){0};
}

/* Where the number is, or would be put. */
static uint64_t *place_of(const struct asked_files *files, struct ino ino) {
    uint32_t mask = files->place_count - 1;
    uint32_t at = (uint32_t)(ino.value * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;

    assert(2 * files->count <= files->place_count && (files->place_count & mask) == 0);
    while (files->places[at] != 0 && files->places[at] != ino.value) {
        at = (at + 1) & mask;
    }
    return &files->places[at];
}

static bool places_grow(struct asked_files *files) {
    struct asked_files larger = {.place_count = 2 * files->place_count};

    if (files->place_count >= 2 * ASKED_FILES_MAX) {
        return false;
    }
    larger.places = calloc(larger.place_count, sizeof *larger.places);
    if (!larger.places) {
        return false;
    }
    for (uint32_t i = 0; i < files->place_count; i++) {
        if (files->places[i] != 0) {
            *place_of(&larger, (struct ino){files->places[i]}) = files->places[i];
            larger.count++;
        }
    }
    assert(larger.count == files->count);
    free(files->places);
    *files = larger;
    return true;
}

void asked_files_add(struct asked_files *files, struct ino ino) {
    assert(ino.value != 0);
    if (asked_files_have(files, ino)) {
        return;
    }
    if (2 * (files->count + 1) > files->place_count && !places_grow(files)) {
        asked_files_empty(files);
    }
    *place_of(files, ino) = ino.value;
    files->count++;
}

bool asked_files_have(const struct asked_files *files, struct ino ino) {
    return *place_of(files, ino) == ino.value;
}

void asked_files_empty(struct asked_files *files) {
    memset(files->places, 0, files->place_count * sizeof *files->places);
    files->count = 0;
}
