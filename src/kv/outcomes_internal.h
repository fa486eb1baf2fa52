/* The tables of outcomes, shared by outcomes*.c only. */
#pragma once
#include "kv/outcomes.h"

enum { NONE = 0 };

struct outcome_entry {
    uint64_t session;
    uint64_t sequence;
    uint32_t next_of_session; /* also the free list, and that of the superfluous */
    uint32_t previous_of_session;
    int32_t result;
    uint16_t slot;
    uint16_t reply_bytes;
    bool stored; /* the row says what this does */
    bool has_row;
    uint8_t reply[KV_REPLY_BYTES_MAX];
};

struct session_entry {
    uint64_t session; /* 0: free */
    uint64_t floor;   /* UINT64_MAX: it has ended */
    uint32_t first;   /* entry index; NONE: none */
    uint32_t kept_count;
    uint32_t superfluous_count;
    bool floor_stored; /* the row says what `floor` does */
    bool has_row;
};

struct outcomes {
    struct outcome_entry *entries; /* [0] is not used */
    uint32_t *places;              /* hash table of entry indices */
    struct session_entry *sessions;
    uint32_t entries_max;
    uint32_t entries_had; /* entries_max, or more of an earlier life's */
    uint32_t place_mask;
    uint32_t sessions_max;
    uint32_t sessions_had;
    uint32_t session_mask;
    uint32_t free_first;
    uint32_t fresh; /* entries from here on were never used */
    uint32_t count; /* kept and superfluous */
    uint32_t session_count;
    uint32_t ended_count;
    uint32_t superfluous_first;
    uint32_t unstored_rows;
    size_t unstored_bytes; /* of replies */
};

static inline uint32_t outcome_hash(uint64_t session, uint64_t sequence) {
    uint64_t value = session * UINT64_C(0x9e3779b97f4a7c15) + sequence;

    value ^= value >> 31;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(value >> 32);
}

/* Where the probe for an entry begins, before the table's mask. Sequences rise by one, so 16 that
 * follow each other share a line of the cache: mutations do not each touch, and miss, another page
 * of a table that is mostly empty. */
static inline uint32_t outcome_entry_home(uint64_t session, uint64_t sequence) {
    return outcome_hash(session, sequence >> 4) << 4 | (uint32_t)(sequence & 15);
}

/* The session's place, or the free one where it would go. */
static inline uint32_t outcome_session_place(const struct outcomes *outcomes, uint64_t session) {
    uint32_t place = outcome_hash(session, 0) & outcomes->session_mask;

    while (outcomes->sessions[place].session != 0 && outcomes->sessions[place].session != session) {
        place = (place + 1) & outcomes->session_mask;
    }
    return place;
}

static inline uint32_t outcome_entry_place(const struct outcomes *outcomes, uint64_t session,
                                           uint64_t sequence) {
    uint32_t place = outcome_entry_home(session, sequence) & outcomes->place_mask;

    while (outcomes->places[place] != NONE) {
        const struct outcome_entry *entry = &outcomes->entries[outcomes->places[place]];

        if (entry->session == session && entry->sequence == sequence) {
            break;
        }
        place = (place + 1) & outcomes->place_mask;
    }
    return place;
}
