/* What is known of the root. */
#include "parents.h"
#include <inttypes.h>
#include <stdio.h>

enum { CLOCK_DRIFT_PART = 500 }; /* clocks may go wrong by a thousandth (faults.c) */

void parents_ask(struct shoal_request *ret_request, uint64_t number) {
    static const uint64_t ages[] = {0, NS_PER_S, 20 * NS_PER_MS, NS_PER_S};

    *ret_request = (struct shoal_request){.operation = SHOAL_GETATTR,
                                          .ino = SHOAL_INO_ROOT,
                                          .age_max_ns = ages[number % ARRAY_SIZE(ages)]};
}

static void newest(struct parent_made *made, const struct parent_made *other) {
    if (other->asked_ns > 0 && (made->asked_ns == 0 || other->born_ns > made->born_ns)) {
        *made = *other;
    }
}

struct parent_floor parents_floor(const struct parents *parents, uint32_t client, uint64_t now_ns,
                                  uint64_t age_max_ns) {
    struct parent_floor floor = {.own = parents->own[client], .all = parents->all};
    uint64_t age_ns = age_max_ns + age_max_ns / CLOCK_DRIFT_PART;

    for (uint32_t i = 0; i < PARENTS_RECENT; i++) {
        if (parents->recent[i].answered_ns + age_ns <= now_ns) {
            newest(&floor.all, &parents->recent[i].made);
        }
    }
    return floor;
}

void parents_note(struct parents *parents, uint32_t client, const struct shoal_request *request,
                  uint64_t asked_ns, uint64_t now_ns) {
    bool named = (request->flags & (SHOAL_OPEN_MADE | SHOAL_OPEN_UNNAMED)) == SHOAL_OPEN_MADE;
    bool makes = request->operation == SHOAL_MKDIR || (request->operation == SHOAL_CREATE && named);
    struct parent_made made = {asked_ns, request->attributes.btime_ns};

    if (!makes || request->result < 0 || request->ino != SHOAL_INO_ROOT) {
        return;
    }
    newest(&parents->own[client], &made);
    /* It is older than any age that is asked for, or counts for less than it could. */
    if (parents->recent[parents->next].answered_ns + NS_PER_S + NS_PER_S / CLOCK_DRIFT_PART <=
        now_ns) {
        newest(&parents->all, &parents->recent[parents->next].made);
    }
    parents->recent[parents->next].made = made;
    parents->recent[parents->next].answered_ns = now_ns;
    parents->next = (parents->next + 1) % PARENTS_RECENT;
}

static bool is_behind(const struct parent_made *made, const struct shoal_request *request,
                      uint64_t lost_ns) {
    bool undone = made->asked_ns == 0 || (lost_ns > 0 && lost_ns >= made->asked_ns);

    return !undone && request->attributes.mtime_ns < made->born_ns;
}

bool parents_answered(struct parents *parents, const struct parent_floor *floor,
                      const struct shoal_request *request, uint64_t lost_ns,
                      char problem[PARENTS_PROBLEM_BYTES]) {
    bool own = is_behind(&floor->own, request, lost_ns);

    parents->known += request->age_ns > 0;
    if (!own && !is_behind(&floor->all, request, lost_ns)) {
        return true;
    }
    snprintf(problem, PARENTS_PROBLEM_BYTES,
             "the root's mtime %" PRId64 " is behind what %s made at %" PRId64 ", age %" PRIu64
             " of %" PRIu64,
             request->attributes.mtime_ns, own ? "the client itself" : "somebody",
             own ? floor->own.born_ns : floor->all.born_ns, request->age_ns, request->age_max_ns);
    return false;
}
