/* The oracle of what clients know of a directory that they change: the root, which all change.
 *
 * A directory's mtime is never behind the birth of what was made in it. So attributes of the root
 * that a client is told, whoever knew them, are not behind
 *
 *     what the client itself was told to have made before it asked,
 *     what anybody was told to have made before that, less the age that the question allows.
 *
 * Only a power failure of the metadata target since the making was asked for takes that back.
 *
 * Thread: the world's.  Memory: the caller's, zeroed at the start. */
#pragma once
#include "base/types.h"
#include "shoal/shoal.h"
#include "world_options.h"

enum { PARENTS_RECENT = 256, PARENTS_PROBLEM_BYTES = 200 };

/* The newest thing made, as far as one knows. */
struct parent_made {
    uint64_t asked_ns; /* 0: none */
    int64_t born_ns;   /* by the metadata target's clock */
};

struct parents {
    struct parent_made own[WORLD_CLIENTS_MAX];
    struct parent_made all; /* of those that made way in `recent` */
    struct {
        struct parent_made made;
        uint64_t answered_ns;
    } recent[PARENTS_RECENT];
    uint32_t next;
    uint64_t known; /* questions that a client answered from its own memory */
};

/* What the answer to a question may not be behind. */
struct parent_floor {
    struct parent_made own, all;
};

/* A question about the root's attributes: of what age, by the number of the question. */
void parents_ask(struct shoal_request *ret_request, uint64_t number);
struct parent_floor parents_floor(const struct parents *parents, uint32_t client, uint64_t now_ns,
                                  uint64_t age_max_ns);
/* Something was answered: what makes names in the root is noted. */
void parents_note(struct parents *parents, uint32_t client, const struct shoal_request *request,
                  uint64_t asked_ns, uint64_t now_ns);
/* The question has succeeded. lost_ns: when the metadata target lost power last; 0: never. False:
 * it cannot be. */
bool parents_answered(struct parents *parents, const struct parent_floor *floor,
                      const struct shoal_request *request, uint64_t lost_ns,
                      char problem[PARENTS_PROBLEM_BYTES]);
