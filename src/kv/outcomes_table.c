/* Outcomes: the memory of their tables, and a check of them. See outcomes.h. */
#include "kv/outcomes_internal.h"
#include <stdlib.h>

static uint32_t mask_for(uint32_t count) {
    uint32_t size = 4;

    while (size < 2 * count) {
        size *= 2;
    }
    return size - 1;
}

int outcomes_new(uint32_t entries_max, uint32_t sessions_max, struct outcomes **ret_outcomes) {
    struct outcomes *outcomes = calloc(1, sizeof *outcomes);

    if (!outcomes) {
        return -ERR_NO_MEMORY;
    }
    outcomes->entries_max = entries_max;
    outcomes->entries_had = entries_max;
    outcomes->sessions_max = sessions_max;
    outcomes->sessions_had = sessions_max;
    outcomes->place_mask = mask_for(entries_max);
    outcomes->session_mask = mask_for(sessions_max);
    outcomes->fresh = 1;
    outcomes->entries = malloc(((size_t)entries_max + 1) * sizeof *outcomes->entries);
    outcomes->places = calloc((size_t)outcomes->place_mask + 1, sizeof *outcomes->places);
    outcomes->sessions = calloc((size_t)outcomes->session_mask + 1, sizeof *outcomes->sessions);
    if (!outcomes->entries || !outcomes->places || !outcomes->sessions) {
        outcomes_free(outcomes);
        return -ERR_NO_MEMORY;
    }
    *ret_outcomes = outcomes;
    return 0;
}

void outcomes_free(struct outcomes *outcomes) {
    if (outcomes) {
        free(outcomes->entries);
        free(outcomes->places);
        free(outcomes->sessions);
        free(outcomes);
    }
}

static int entries_grow(struct outcomes *outcomes) {
    uint32_t had = outcomes->entries_had * 2;
    uint32_t mask = mask_for(had);
    struct outcome_entry *entries =
        realloc(outcomes->entries, ((size_t)had + 1) * sizeof *outcomes->entries);
    uint32_t *places = calloc((size_t)mask + 1, sizeof *places);

    outcomes->entries = entries ? entries : outcomes->entries;
    if (!entries || !places) {
        free(places);
        return -ERR_NO_MEMORY;
    }
    for (uint32_t old = 0; old <= outcomes->place_mask; old++) {
        uint32_t index = outcomes->places[old];

        if (index != NONE) {
            uint32_t place =
                outcome_entry_home(entries[index].session, entries[index].sequence) & mask;

            while (places[place] != NONE) {
                place = (place + 1) & mask;
            }
            places[place] = index;
        }
    }
    free(outcomes->places);
    outcomes->places = places;
    outcomes->place_mask = mask;
    outcomes->entries_had = had;
    return 0;
}

static int sessions_grow(struct outcomes *outcomes) {
    uint32_t had = outcomes->sessions_had * 2;
    uint32_t mask = mask_for(had);
    struct session_entry *old = outcomes->sessions;
    struct session_entry *sessions = calloc((size_t)mask + 1, sizeof *sessions);

    if (!sessions) {
        return -ERR_NO_MEMORY;
    }
    uint32_t old_mask = outcomes->session_mask;
    outcomes->sessions = sessions;
    outcomes->session_mask = mask;
    outcomes->sessions_had = had;
    for (uint32_t i = 0; i <= old_mask; i++) {
        if (old[i].session != 0) {
            sessions[outcome_session_place(outcomes, old[i].session)] = old[i];
        }
    }
    free(old);
    return 0;
}

int outcomes_make_room(struct outcomes *outcomes) {
    int r = 0;

    if (outcomes->free_first == NONE && outcomes->fresh > outcomes->entries_had) {
        r = entries_grow(outcomes);
    }
    if (r == 0 && outcomes->session_count == outcomes->sessions_had) {
        r = sessions_grow(outcomes);
    }
    return r;
}

/* What the entries of a session add up to. */
struct outcome_sums {
    uint32_t kept, superfluous, unstored_rows, sessions, ended;
    size_t unstored_bytes;
};

static const char *session_check(const struct outcomes *outcomes, const struct session_entry *of,
                                 struct outcome_sums *sums) {
    uint32_t kept = 0;

    for (uint32_t at = of->first; at != NONE; at = outcomes->entries[at].next_of_session) {
        const struct outcome_entry *entry = &outcomes->entries[at];

        if (entry->session != of->session || entry->sequence < of->floor) {
            return "an outcome is kept below its session's floor";
        }
        if (outcomes->places[outcome_entry_place(outcomes, of->session, entry->sequence)] != at) {
            return "an outcome is kept and not found";
        }
        kept++;
        sums->unstored_rows += !entry->stored;
        sums->unstored_bytes += entry->stored ? 0 : entry->reply_bytes;
    }
    sums->kept += kept;
    sums->superfluous += of->superfluous_count;
    sums->unstored_rows += !of->floor_stored;
    sums->sessions++;
    sums->ended += of->floor == UINT64_MAX;
    return kept == of->kept_count ? NULL : "a session's count of outcomes is wrong";
}

const char *outcomes_check(const struct outcomes *outcomes) {
    struct outcome_sums sums = {0};
    uint32_t superfluous = 0;

    for (uint32_t place = 0; place <= outcomes->session_mask; place++) {
        const struct session_entry *of = &outcomes->sessions[place];
        const char *wrong = of->session != 0 ? session_check(outcomes, of, &sums) : NULL;

        if (wrong) {
            return wrong;
        }
    }
    for (uint32_t at = outcomes->superfluous_first; at != NONE;
         at = outcomes->entries[at].next_of_session) {
        superfluous++;
    }
    if (superfluous != sums.superfluous || sums.kept + superfluous != outcomes->count) {
        return "the count of outcomes is wrong";
    }
    if (sums.unstored_rows != outcomes->unstored_rows ||
        sums.unstored_bytes != outcomes->unstored_bytes) {
        return "the count of outcomes that are not stored is wrong";
    }
    return sums.sessions == outcomes->session_count && sums.ended == outcomes->ended_count
               ? NULL
               : "the count of sessions with outcomes is wrong";
}
