/* Places, and what a new start means for them. */
#include "client/ledger.h"
#include "base/err.h"
#include <assert.h>
#include <stdlib.h>

int ledger_init(struct ledger *ledger, _Atomic uint64_t *losses) {
    *ledger = (struct ledger){.losses = losses};
    ledger->places = calloc(LEDGER_PLACES, sizeof *ledger->places);
    return ledger->places ? 0 : -ERR_NO_MEMORY;
}

void ledger_deinit(struct ledger *ledger) {
    free(ledger->places);
    ledger->places = NULL;
}

static struct ledger_place *place_of(const struct ledger *ledger, struct ino ino) {
    uint64_t hash = ino.value * UINT64_C(0x9e3779b97f4a7c15);

    return &ledger->places[(hash >> 40) % LEDGER_PLACES];
}

static void raise_to(_Atomic uint64_t *number, uint64_t least) {
    uint64_t now = atomic_load(number);

    while (now < least && !atomic_compare_exchange_weak(number, &now, least)) {
    }
}

/* A later loss begins untold. */
static void place_lost(struct ledger_place *place, uint64_t count) {
    raise_to(&place->lost, count << 1);
}

/* The answer is of a term that has been judged already: its place was looked at before it came.
 * The two numbers of a start are read as one. Positions rise along the terms, so what a later start
 * has found says enough of an earlier term only when the term that followed it is the newest. */
static void judge_late(struct ledger *ledger, struct ledger_place *place, uint64_t term,
                       uint64_t position) {
    uint64_t newest;
    uint64_t survived;

    do {
        newest = atomic_load(&ledger->term);
        survived = atomic_load(&ledger->survived);
    } while (newest != atomic_load(&ledger->term));
    if (term + 1 != newest || position > survived) {
        place_lost(place, atomic_fetch_add(ledger->losses, 1) + 1);
    }
}

/* The place first: a start that is judged meanwhile either finds it there, or is seen here. */
void ledger_note(struct ledger *ledger, struct ino ino, uint64_t term, uint64_t position) {
    struct ledger_place *place = place_of(ledger, ino);

    raise_to(&place->position, position);
    if (atomic_load(&ledger->term) != term) {
        judge_late(ledger, place, term, position);
    }
}

void ledger_note_synced(struct ledger *ledger, uint64_t term, uint64_t position) {
    if (atomic_load(&ledger->term) == term) {
        raise_to(&ledger->synced, position);
    }
}

static void places_judge(struct ledger *ledger, uint64_t survived) {
    uint64_t count = 0;

    for (uint32_t i = 0; i < LEDGER_PLACES; i++) {
        struct ledger_place *place = &ledger->places[i];
        uint64_t position = atomic_load(&place->position);

        if (position > survived) {
            count = count ? count : atomic_fetch_add(ledger->losses, 1) + 1;
            place_lost(place, count);
            (void)atomic_compare_exchange_strong(&place->position, &position, 0);
        }
    }
}

/* An answer that is noted later is of a term that is over, and judged by itself: it is lost. */
void ledger_lose(struct ledger *ledger) {
    atomic_store(&ledger->survived, 0);
    atomic_store(&ledger->term, UINT64_MAX);
    places_judge(ledger, atomic_load(&ledger->synced));
}

/* Calls go with the new term only when this is done, so whatever is above `survived` is of an old
 * one. */
void ledger_restart(struct ledger *ledger, uint64_t term, uint64_t survived) {
    if (atomic_load(&ledger->term) == term) {
        return;
    }
    atomic_store(&ledger->survived, survived);
    atomic_store(&ledger->term, term);
    places_judge(ledger, survived);
}

uint64_t ledger_unsynced(const struct ledger *ledger, struct ino ino) {
    uint64_t position = atomic_load(&place_of(ledger, ino)->position);

    return position > atomic_load(&ledger->synced) ? position : 0;
}

uint64_t ledger_loss(const struct ledger *ledger, struct ino ino, uint64_t seen, uint64_t opened) {
    uint64_t lost = atomic_load(&place_of(ledger, ino)->lost);
    uint64_t count = lost >> 1;

    return count > seen && (count > opened || !(lost & 1)) ? count : 0;
}

void ledger_tell(struct ledger *ledger, struct ino ino, uint64_t count) {
    _Atomic uint64_t *lost = &place_of(ledger, ino)->lost;
    uint64_t told = count << 1;

    assert(count > 0 && count <= atomic_load(ledger->losses));
    (void)atomic_compare_exchange_strong(lost, &told, count << 1 | 1);
}
