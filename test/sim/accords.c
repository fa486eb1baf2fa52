/* A table of transactions by open addressing. */
#include "accords.h"
#include "losses.h"
#include "meta/promise.h"
#include <inttypes.h>
#include <stdlib.h>

enum { PLACES = 1 << 14, PLACES_USED_MAX = PLACES / 4 * 3 };

enum end { END_NONE, END_KEPT, END_GIVEN_UP, END_FORGOTTEN /* and it was kept */ };

struct accord {
    struct cross_id id; /* log 0: free */
    uint8_t ends[WORLD_MDTS_MAX];
};

struct accords {
    struct accord places[PLACES];
    uint32_t used;
};

struct accords *accords_new(void) {
    struct accords *accords = calloc(1, sizeof *accords);

    if (!accords) {
        abort();
    }
    return accords;
}

void accords_free(struct accords *accords) {
    free(accords);
}

static bool is_id(const struct cross_id *a, const struct cross_id *b) {
    return a->log == b->log && a->term == b->term && a->number == b->number;
}

static struct accord *accord_of(struct accords *accords, const struct cross_id *id) {
    uint64_t mixed = (id->log ^ id->term << 40 ^ id->number) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(mixed >> 32) % PLACES;

    while (accords->places[at].id.log != 0 && !is_id(&accords->places[at].id, id)) {
        at = (at + 1) % PLACES;
    }
    return &accords->places[at];
}

void accords_note(struct node *mdt, const struct cross_id *id, enum promise_end end) {
    struct accords *accords = mdt->world->accords;
    struct accord *accord = accord_of(accords, id);
    uint8_t *was = &accord->ends[mdt->index];

    if (accord->id.log == 0 && accords->used == PLACES_USED_MAX) {
        return;
    }
    accords->used += accord->id.log == 0;
    accord->id = *id;
    if (*was != END_FORGOTTEN) {
        *was = end == PROMISE_KEPT       ? END_KEPT
               : end == PROMISE_GIVEN_UP ? END_GIVEN_UP
                                         : END_FORGOTTEN;
    }
}

void accords_power(struct node *node) {
    struct accords *accords = node->world->accords;

    for (uint32_t i = 0; node->role == NODE_MDT && i < PLACES; i++) {
        uint8_t *end = &accords->places[i].ends[node->index];

        *end = *end == END_FORGOTTEN ? END_KEPT : *end;
    }
}

static bool accord_check(struct world *world, const struct accord *accord, char failure[600]) {
    const struct node *keeps = NULL;
    const struct node *gives_up = NULL;

    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        const struct node *mdt = &world->mdts[i];
        uint8_t end = node_is_lost(mdt) ? END_NONE : accord->ends[i];

        keeps = end == END_KEPT || end == END_FORGOTTEN ? mdt : keeps;
        gives_up = end == END_GIVEN_UP ? mdt : gives_up;
    }
    if (keeps && gives_up) {
        snprintf(failure, 600,
                 "transaction %" PRIu64 ".%" PRIu64 " of log %" PRIx64
                 ": %s has done its part, and %s has given it up",
                 accord->id.term, accord->id.number, accord->id.log,
                 sim_process_name(keeps->process), sim_process_name(gives_up->process));
    }
    return !keeps || !gives_up;
}

bool accords_check(struct world *world, char failure[600]) {
    bool good = true;

    for (uint32_t i = 0; good && i < PLACES; i++) {
        good = accord_check(world, &world->accords->places[i], failure);
    }
    return good;
}

uint64_t accords_count(const struct world *world) {
    uint64_t count = 0;

    for (uint32_t i = 0; i < PLACES; i++) {
        uint32_t participants = 0;

        for (uint32_t j = 0; j < WORLD_MDTS_MAX; j++) {
            participants += world->accords->places[i].ends[j] != END_NONE;
        }
        count += participants > 1;
    }
    return count;
}
