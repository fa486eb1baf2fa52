/* Outcomes in two open-addressing tables: sessions by id, entries by (session, sequence).
 *
 * Both tables are half empty at the least, so that linear probing stays short; removal moves later
 * entries of a run back (no tombstones). Entries are indices into a pool with a free list. Those of
 * a session form a list, since floors rise in order of sequence only roughly; superfluous ones with
 * a row are in no table and form one list of all sessions. */
#include "kv/outcomes_internal.h"
#include "base/bug.h"
#include "kv/windows.h"
#include <assert.h>

/* Moves back what a hole at `place` would hide from its probe. */
static void close_hole(struct outcomes *outcomes, uint32_t place) {
    uint32_t mask = outcomes->place_mask;
    uint32_t hole = place;

    for (uint32_t at = (place + 1) & mask; outcomes->places[at] != NONE; at = (at + 1) & mask) {
        const struct outcome_entry *entry = &outcomes->entries[outcomes->places[at]];
        uint32_t home = outcome_entry_home(entry->session, entry->sequence) & mask;

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
        uint32_t home = outcome_hash(outcomes->sessions[at].session, 0) & mask;

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            outcomes->sessions[hole] = outcomes->sessions[at];
            hole = at;
        }
    }
    outcomes->sessions[hole] = (struct session_entry){0};
}

static void entry_give_back(struct outcomes *outcomes, uint32_t index) {
    outcomes->entries[index].next_of_session = outcomes->free_first;
    outcomes->free_first = index;
    outcomes->count--;
}

/* It is no longer kept: gone, or waiting for its row to be deleted. */
static void entry_remove(struct outcomes *outcomes, struct session_entry *session, uint32_t index) {
    struct outcome_entry *entry = &outcomes->entries[index];

    close_hole(outcomes, outcome_entry_place(outcomes, entry->session, entry->sequence));
    if (entry->previous_of_session != NONE) {
        outcomes->entries[entry->previous_of_session].next_of_session = entry->next_of_session;
    } else {
        session->first = entry->next_of_session;
    }
    if (entry->next_of_session != NONE) {
        outcomes->entries[entry->next_of_session].previous_of_session = entry->previous_of_session;
    }
    session->kept_count--;
    if (!entry->stored) {
        outcomes->unstored_rows--;
        outcomes->unstored_bytes -= entry->reply_bytes;
    }
    if (entry->has_row) {
        entry->next_of_session = outcomes->superfluous_first;
        outcomes->superfluous_first = index;
        session->superfluous_count++;
    } else {
        entry_give_back(outcomes, index);
    }
}

int outcomes_find(const struct outcomes *outcomes, struct session_id session, uint64_t sequence,
                  struct kv_outcome *ret_outcome) {
    const struct session_entry *of =
        &outcomes->sessions[outcome_session_place(outcomes, session.value)];

    if (of->session == 0) {
        return -ERR_NOT_FOUND;
    }
    if (sequence < of->floor) {
        return -ERR_OUTDATED;
    }
    uint32_t index = outcomes->places[outcome_entry_place(outcomes, session.value, sequence)];
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

/* How many the session would keep behind a floor. */
static uint32_t kept_behind(const struct outcomes *outcomes, const struct session_entry *of,
                            uint64_t floor) {
    uint32_t count = 0;

    for (uint32_t at = of->first; at != NONE; at = outcomes->entries[at].next_of_session) {
        count += outcomes->entries[at].sequence >= floor;
    }
    return count;
}

int outcomes_admit(const struct outcomes *outcomes, struct session_id session, uint64_t floor,
                   uint32_t window) {
    const struct session_entry *of =
        &outcomes->sessions[outcome_session_place(outcomes, session.value)];
    uint32_t limit = MAX(window, (uint32_t)WINDOW_LEAST);
    uint32_t kept = of->session == 0 ? 0 : of->kept_count;

    if (of->session == 0 && outcomes->session_count >= outcomes->sessions_max) {
        return -ERR_BUSY;
    }
    if (of->session != 0 && of->floor == UINT64_MAX) {
        return -ERR_BUSY;
    }
    if (outcomes->count < outcomes->entries_max && kept < limit) {
        return 0;
    }
    /* The floor comes first: what it makes superfluous leaves its place to the newcomer, also in a
     * table that is longer than it may be now. So does what was superfluous before. */
    uint32_t behind = kept > 0 ? kept_behind(outcomes, of, floor) : 0;
    bool place = outcomes->count < outcomes->entries_max || outcomes->superfluous_first != NONE;

    if (BUG(FULL_OUTCOMES)) {
        return -ERR_BUSY;
    }
    return behind < kept || (behind < limit && place) ? 0 : -ERR_BUSY;
}

bool outcomes_floor_is_due(const struct outcomes *outcomes, struct session_id session,
                           uint64_t floor) {
    const struct session_entry *of =
        &outcomes->sessions[outcome_session_place(outcomes, session.value)];

    if (of->session == 0) {
        return floor > 1 && outcomes->session_count < outcomes->sessions_max;
    }
    return of->floor < MIN(floor, UINT64_MAX - 1);
}

uint32_t outcomes_kept(const struct outcomes *outcomes, struct session_id session) {
    return outcomes->sessions[outcome_session_place(outcomes, session.value)].kept_count;
}

static struct session_entry *session_get(struct outcomes *outcomes, uint64_t session) {
    struct session_entry *of = &outcomes->sessions[outcome_session_place(outcomes, session)];

    if (of->session == 0) {
        assert(outcomes->session_count < outcomes->sessions_had && session != 0);
        *of = (struct session_entry){.session = session};
        outcomes->session_count++;
        outcomes->unstored_rows++;
    }
    return of;
}

static void floor_set(struct outcomes *outcomes, struct session_entry *of, uint64_t floor) {
    of->floor = floor;
    outcomes->unstored_rows += of->floor_stored;
    of->floor_stored = false;
}

static void raise_floor(struct outcomes *outcomes, struct session_entry *of, uint64_t floor) {
    if (floor <= of->floor) {
        return;
    }
    floor_set(outcomes, of, floor);
    for (uint32_t index = of->first; index != NONE;) {
        uint32_t next = outcomes->entries[index].next_of_session;

        if (outcomes->entries[index].sequence < floor) {
            entry_remove(outcomes, of, index);
        }
        index = next;
    }
}

static bool has_free_entry(const struct outcomes *outcomes) {
    return outcomes->free_first != NONE || outcomes->fresh <= outcomes->entries_had;
}

static struct outcome_entry *entry_insert(struct outcomes *outcomes, struct session_entry *of,
                                          uint64_t sequence) {
    uint32_t place = outcome_entry_place(outcomes, of->session, sequence);
    uint32_t index = outcomes->places[place];

    if (index == NONE) {
        index = outcomes->free_first;
        if (index != NONE) {
            outcomes->free_first = outcomes->entries[index].next_of_session;
        } else {
            assert(outcomes->fresh <= outcomes->entries_had);
            index = outcomes->fresh++;
        }
        outcomes->places[place] = index;
        outcomes->count++;
        of->kept_count++;
        outcomes->unstored_rows++;
        struct outcome_entry *entry = &outcomes->entries[index];
        entry->session = of->session;
        entry->sequence = sequence;
        entry->stored = false;
        entry->has_row = false;
        entry->reply_bytes = 0;
        entry->previous_of_session = NONE;
        entry->next_of_session = of->first;
        if (of->first != NONE) {
            outcomes->entries[of->first].previous_of_session = index;
        }
        of->first = index;
    }
    return &outcomes->entries[index];
}

static void entry_fill(struct outcomes *outcomes, struct outcome_entry *entry,
                       const struct kv_outcome *outcome, bool stored) {
    assert(outcome->reply.size <= sizeof entry->reply);
    if (!entry->stored) {
        outcomes->unstored_rows--;
        outcomes->unstored_bytes -= entry->reply_bytes;
    }
    entry->result = outcome->result;
    entry->slot = outcome->slot.value;
    entry->reply_bytes = (uint16_t)outcome->reply.size;
    entry->stored = stored;
    if (!stored) {
        outcomes->unstored_rows++;
        outcomes->unstored_bytes += entry->reply_bytes;
    }
    if (outcome->reply.size > 0) {
        memcpy(entry->reply, outcome->reply.data, outcome->reply.size);
    }
}

static void session_remove(struct outcomes *outcomes, struct session_entry *of) {
    assert(of->first == NONE && of->superfluous_count == 0);
    outcomes->unstored_rows -= !of->floor_stored;
    outcomes->ended_count -= of->floor == UINT64_MAX;
    outcomes->session_count--;
    close_session_hole(outcomes, (uint32_t)(of - outcomes->sessions));
}

/* Deletes the row of the first superfluous one. */
static bool clean_entry(struct outcomes *outcomes, outcomes_delete_fn *delete_row, void *context) {
    uint32_t index = outcomes->superfluous_first;
    struct outcome_entry *entry = &outcomes->entries[index];
    struct session_entry *of = &outcomes->sessions[outcome_session_place(outcomes, entry->session)];

    assert(of->session == entry->session && of->superfluous_count > 0);
    if (!delete_row(context, (struct session_id){entry->session}, entry->sequence) &&
        !BUG(DROP_ROWS)) {
        return false;
    }
    outcomes->superfluous_first = entry->next_of_session;
    of->superfluous_count--;
    entry_give_back(outcomes, index);
    return true;
}

void outcomes_put(struct outcomes *outcomes, const struct kv_outcome *outcome,
                  outcomes_delete_fn *delete_row, void *context) {
    struct session_entry *of = session_get(outcomes, outcome->session.value);

    /* The highest number says that a session has ended, whatever a client sends. */
    raise_floor(outcomes, of, MIN(outcome->floor, UINT64_MAX - 1));
    if (outcome->sequence < of->floor || outcome->sequence == 0) {
        return;
    }
    if (!has_free_entry(outcomes)) {
        bool cleaned = clean_entry(outcomes, delete_row, context);

        assert(cleaned);
        (void)cleaned;
    }
    entry_fill(outcomes, entry_insert(outcomes, of, outcome->sequence), outcome, false);
}

void outcomes_drop(struct outcomes *outcomes, struct session_id session) {
    struct session_entry *of = &outcomes->sessions[outcome_session_place(outcomes, session.value)];

    if (of->session == 0 || of->floor == UINT64_MAX) {
        return;
    }
    while (of->first != NONE) {
        entry_remove(outcomes, of, of->first);
    }
    if (of->has_row) {
        floor_set(outcomes, of, UINT64_MAX);
        outcomes->ended_count++;
    } else {
        assert(of->superfluous_count == 0);
        session_remove(outcomes, of);
    }
}

bool outcomes_are_clean(const struct outcomes *outcomes) {
    return outcomes->superfluous_first == NONE && outcomes->ended_count == 0;
}

void outcomes_clean(struct outcomes *outcomes, outcomes_delete_fn *delete_row, void *context) {
    while (outcomes->superfluous_first != NONE) {
        if (!clean_entry(outcomes, delete_row, context)) {
            return;
        }
    }
    for (uint32_t place = 0; outcomes->ended_count > 0 && place <= outcomes->session_mask;) {
        struct session_entry *of = &outcomes->sessions[place];

        if (of->session == 0 || of->floor != UINT64_MAX) {
            place++;
        } else if (delete_row(context, (struct session_id){of->session}, 0)) {
            session_remove(outcomes, of); /* another one may have moved here */
        } else {
            return;
        }
    }
}

static void store_session(struct outcomes *outcomes, struct session_entry *of,
                          void (*store)(void *context, const struct kv_outcome *outcome),
                          void *context) {
    struct session_id session = {of->session};

    if (!of->floor_stored) {
        struct kv_outcome floor = {.session = session, .floor = of->floor};

        store(context, &floor);
        of->floor_stored = true;
        of->has_row = true;
        outcomes->unstored_rows--;
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

            store(context, &outcome);
            entry->stored = true;
            entry->has_row = true;
            outcomes->unstored_rows--;
            outcomes->unstored_bytes -= entry->reply_bytes;
        }
        index = entry->next_of_session;
    }
}

void outcomes_store(struct outcomes *outcomes,
                    void (*store)(void *context, const struct kv_outcome *outcome), void *context) {
    for (uint32_t place = 0; place <= outcomes->session_mask; place++) {
        struct session_entry *of = &outcomes->sessions[place];

        if (of->session != 0) {
            store_session(outcomes, of, store, context);
        }
    }
    assert(outcomes->unstored_rows == 0 && outcomes->unstored_bytes == 0);
}

uint32_t outcomes_unstored_rows(const struct outcomes *outcomes) {
    return outcomes->unstored_rows;
}

size_t outcomes_unstored_bytes(const struct outcomes *outcomes) {
    return outcomes->unstored_bytes;
}

bool outcomes_restore(struct outcomes *outcomes, const struct kv_outcome *outcome) {
    struct session_entry *of =
        &outcomes->sessions[outcome_session_place(outcomes, outcome->session.value)];

    if (outcome->session.value == 0 || (outcome->sequence == 0 && outcome->floor == UINT64_MAX)) {
        return false;
    }
    if (outcome->sequence == 0) {
        of = session_get(outcomes, outcome->session.value);
        of->floor = outcome->floor;
        outcomes->unstored_rows -= !of->floor_stored;
        of->floor_stored = true;
        of->has_row = true;
        return true;
    }
    if (BUG(CUT_FLOORS) && of->session == 0) {
        of = session_get(outcomes, outcome->session.value);
    }
    if (of->session == 0 || (outcome->sequence < of->floor && !BUG(CUT_FLOORS))) {
        return false;
    }
    struct outcome_entry *entry = entry_insert(outcomes, of, outcome->sequence);
    entry_fill(outcomes, entry, outcome, true);
    entry->has_row = true;
    return true;
}

uint32_t outcomes_count(const struct outcomes *outcomes) {
    return outcomes->count;
}
