/* Outcomes in two open-addressing tables: sessions by id, entries by (session, sequence).
 *
 * Both tables are half empty at the most, so that linear probing stays short; removal moves later
 * entries of a run back (no tombstones). Entries are indices into a pool with a free list, and the
 * entries of a session form a list, since floors rise in order of sequence only roughly. */
#include "kv/outcomes.h"
#include <assert.h>
#include <stdlib.h>

enum { NONE = 0 };

struct outcome_entry {
    uint64_t session;
    uint64_t sequence;
    uint32_t next_of_session; /* also the free list */
    uint32_t previous_of_session;
    int32_t result;
    uint16_t slot;
    uint16_t reply_bytes;
    bool stored;
    uint8_t reply[KV_REPLY_BYTES_MAX];
};

struct session_entry {
    uint64_t session; /* 0: free */
    uint64_t floor;
    uint32_t first; /* entry index + 0; NONE: none */
    bool floor_stored;
};

struct outcomes {
    struct outcome_entry *entries; /* [0] is not used */
    uint32_t *places;              /* hash table of entry indices */
    struct session_entry *sessions;
    uint32_t entries_max;
    uint32_t place_mask;
    uint32_t sessions_max;
    uint32_t session_mask;
    uint32_t free_first;
    uint32_t fresh; /* entries from here on were never used */
    uint32_t count;
    uint32_t session_count;
};

static uint32_t mask_for(uint32_t count) {
    uint32_t size = 4;

    while (size < 2 * count) {
        size *= 2;
    }
    return size - 1;
}

static uint32_t hash_of(uint64_t session, uint64_t sequence) {
    uint64_t value = session * UINT64_C(0x9e3779b97f4a7c15) + sequence;

    value ^= value >> 31;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(value >> 32);
}

int outcomes_new(uint32_t entries_max, uint32_t sessions_max, struct outcomes **ret_outcomes) {
    struct outcomes *outcomes = calloc(1, sizeof *outcomes);

    if (!outcomes) {
        return -ERR_NO_MEMORY;
    }
    outcomes->entries_max = entries_max;
    outcomes->sessions_max = sessions_max;
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

/* The session's place, or the free one where it would go. */
static uint32_t session_place(const struct outcomes *outcomes, uint64_t session) {
    uint32_t place = hash_of(session, 0) & outcomes->session_mask;

    while (outcomes->sessions[place].session != 0 && outcomes->sessions[place].session != session) {
        place = (place + 1) & outcomes->session_mask;
    }
    return place;
}

static uint32_t entry_place(const struct outcomes *outcomes, uint64_t session, uint64_t sequence) {
    uint32_t place = hash_of(session, sequence) & outcomes->place_mask;

    while (outcomes->places[place] != NONE) {
        const struct outcome_entry *entry = &outcomes->entries[outcomes->places[place]];

        if (entry->session == session && entry->sequence == sequence) {
            break;
        }
        place = (place + 1) & outcomes->place_mask;
    }
    return place;
}

/* Moves back what a hole at `place` would hide from its probe. */
static void close_hole(struct outcomes *outcomes, uint32_t place) {
    uint32_t mask = outcomes->place_mask;
    uint32_t hole = place;

    for (uint32_t at = (place + 1) & mask; outcomes->places[at] != NONE; at = (at + 1) & mask) {
        const struct outcome_entry *entry = &outcomes->entries[outcomes->places[at]];
        uint32_t home = hash_of(entry->session, entry->sequence) & mask;

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            outcomes->places[hole] = outcomes->places[at];
            hole = at;
        }
    }
    outcomes->places[hole] = NONE;
}

static void close_session_hole(struct outcomes *outcomes, uint32_t place) {
    uint32_t mask = outcomes->session_mask;
    uint32_t hole = place;

    for (uint32_t at = (place + 1) & mask; outcomes->sessions[at].session != 0;
         at = (at + 1) & mask) {
        uint32_t home = hash_of(outcomes->sessions[at].session, 0) & mask;

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            outcomes->sessions[hole] = outcomes->sessions[at];
            hole = at;
        }
    }
    outcomes->sessions[hole] = (struct session_entry){0};
}

static void entry_remove(struct outcomes *outcomes, struct session_entry *session, uint32_t index) {
    struct outcome_entry *entry = &outcomes->entries[index];

    close_hole(outcomes, entry_place(outcomes, entry->session, entry->sequence));
    if (entry->previous_of_session != NONE) {
        outcomes->entries[entry->previous_of_session].next_of_session = entry->next_of_session;
    } else {
        session->first = entry->next_of_session;
    }
    if (entry->next_of_session != NONE) {
        outcomes->entries[entry->next_of_session].previous_of_session = entry->previous_of_session;
    }
    entry->next_of_session = outcomes->free_first;
    outcomes->free_first = index;
    outcomes->count--;
}

int outcomes_find(const struct outcomes *outcomes, struct session_id session, uint64_t sequence,
                  struct kv_outcome *ret_outcome) {
    const struct session_entry *of = &outcomes->sessions[session_place(outcomes, session.value)];

    if (of->session == 0) {
        return -ERR_NOT_FOUND;
    }
    if (sequence < of->floor) {
        return -ERR_OUTDATED;
    }
    uint32_t index = outcomes->places[entry_place(outcomes, session.value, sequence)];
    if (index == NONE) {
        return -ERR_NOT_FOUND;
    }
    const struct outcome_entry *entry = &outcomes->entries[index];
    *ret_outcome = (struct kv_outcome){.slot = {entry->slot},
                                       .session = session,
                                       .sequence = sequence,
                                       .floor = of->floor,
                                       .result = entry->result,
                                       .reply = {entry->reply, entry->reply_bytes}};
    return 0;
}

bool outcomes_has_room(const struct outcomes *outcomes, struct session_id session) {
    return outcomes->count < outcomes->entries_max &&
           (outcomes->session_count < outcomes->sessions_max ||
            outcomes->sessions[session_place(outcomes, session.value)].session != 0);
}

static struct session_entry *session_get(struct outcomes *outcomes, uint64_t session) {
    struct session_entry *of = &outcomes->sessions[session_place(outcomes, session)];

    if (of->session == 0) {
        assert(outcomes->session_count < outcomes->sessions_max && session != 0);
        *of = (struct session_entry){.session = session};
        outcomes->session_count++;
    }
    return of;
}

static void raise_floor(struct outcomes *outcomes, struct session_entry *of, uint64_t floor,
                        outcomes_forgotten_fn *forgotten, void *context) {
    if (floor <= of->floor) {
        return;
    }
    of->floor = floor;
    of->floor_stored = false;
    for (uint32_t index = of->first; index != NONE;) {
        struct outcome_entry *entry = &outcomes->entries[index];
        uint32_t next = entry->next_of_session;

        if (entry->sequence < floor) {
            if (entry->stored && forgotten) {
                forgotten(context, (struct session_id){of->session}, entry->sequence, false);
            }
            entry_remove(outcomes, of, index);
        }
        index = next;
    }
}

static struct outcome_entry *entry_insert(struct outcomes *outcomes, struct session_entry *of,
                                          uint64_t sequence) {
    uint32_t place = entry_place(outcomes, of->session, sequence);
    uint32_t index = outcomes->places[place];

    if (index == NONE) {
        index = outcomes->free_first;
        if (index != NONE) {
            outcomes->free_first = outcomes->entries[index].next_of_session;
        } else {
            assert(outcomes->fresh <= outcomes->entries_max);
            index = outcomes->fresh++;
        }
        outcomes->places[place] = index;
        outcomes->count++;
        struct outcome_entry *entry = &outcomes->entries[index];
        entry->session = of->session;
        entry->sequence = sequence;
        entry->previous_of_session = NONE;
        entry->next_of_session = of->first;
        if (of->first != NONE) {
            outcomes->entries[of->first].previous_of_session = index;
        }
        of->first = index;
    }
    return &outcomes->entries[index];
}

static void entry_fill(struct outcome_entry *entry, const struct kv_outcome *outcome, bool stored) {
    assert(outcome->reply.size <= sizeof entry->reply);
    entry->result = outcome->result;
    entry->slot = outcome->slot.value;
    entry->reply_bytes = (uint16_t)outcome->reply.size;
    entry->stored = stored;
    if (outcome->reply.size > 0) {
        memcpy(entry->reply, outcome->reply.data, outcome->reply.size);
    }
}

void outcomes_put(struct outcomes *outcomes, const struct kv_outcome *outcome,
                  outcomes_forgotten_fn *forgotten, void *context) {
    struct session_entry *of = session_get(outcomes, outcome->session.value);

    raise_floor(outcomes, of, outcome->floor, forgotten, context);
    if (outcome->sequence >= of->floor && outcome->sequence != 0) {
        entry_fill(entry_insert(outcomes, of, outcome->sequence), outcome, false);
    }
}

void outcomes_drop(struct outcomes *outcomes, struct session_id session,
                   outcomes_forgotten_fn *forgotten, void *context) {
    uint32_t place = session_place(outcomes, session.value);
    struct session_entry *of = &outcomes->sessions[place];

    if (of->session == 0) {
        return;
    }
    while (of->first != NONE) {
        struct outcome_entry *entry = &outcomes->entries[of->first];

        if (entry->stored && forgotten) {
            forgotten(context, session, entry->sequence, false);
        }
        entry_remove(outcomes, of, of->first);
    }
    if (forgotten) {
        forgotten(context, session, 0, true);
    }
    close_session_hole(outcomes, place);
    outcomes->session_count--;
}

static int store_session(struct outcomes *outcomes, struct session_entry *of,
                         int (*store)(void *context, const struct kv_outcome *outcome),
                         void *context) {
    struct session_id session = {of->session};

    if (!of->floor_stored) {
        struct kv_outcome floor = {.session = session, .floor = of->floor};
        int r = store(context, &floor);

        if (r < 0) {
            return r;
        }
        of->floor_stored = true;
    }
    for (uint32_t index = of->first; index != NONE;) {
        struct outcome_entry *entry = &outcomes->entries[index];

        if (!entry->stored) {
            struct kv_outcome outcome = {.slot = {entry->slot},
                                         .session = session,
                                         .sequence = entry->sequence,
                                         .floor = of->floor,
                                         .result = entry->result,
                                         .reply = {entry->reply, entry->reply_bytes}};
            int r = store(context, &outcome);

            if (r < 0) {
                return r;
            }
            entry->stored = true;
        }
        index = entry->next_of_session;
    }
    return 0;
}

int outcomes_store(struct outcomes *outcomes,
                   int (*store)(void *context, const struct kv_outcome *outcome), void *context) {
    for (uint32_t place = 0; place <= outcomes->session_mask; place++) {
        struct session_entry *of = &outcomes->sessions[place];
        int r = of->session == 0 ? 0 : store_session(outcomes, of, store, context);

        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int outcomes_restore(struct outcomes *outcomes, const struct kv_outcome *outcome) {
    if (!outcomes_has_room(outcomes, outcome->session) || outcome->session.value == 0) {
        return -ERR_BUSY;
    }
    struct session_entry *of = session_get(outcomes, outcome->session.value);
    if (outcome->sequence == 0) {
        of->floor = outcome->floor;
        of->floor_stored = true;
    } else {
        entry_fill(entry_insert(outcomes, of, outcome->sequence), outcome, true);
    }
    return 0;
}

uint32_t outcomes_count(const struct outcomes *outcomes) {
    return outcomes->count;
}
