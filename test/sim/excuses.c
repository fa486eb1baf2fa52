/* Intervals of damaged blocks and the fewest points in them. */
#include "excuses.h"
#include "shoal/shoal.h"
#include <errno.h>
#include <stdlib.h>

/* Blocks [first, last] of a file, of which one at least was damaged. */
struct damage {
    uint64_t ino;
    uint64_t first;
    uint64_t last;
};

struct excuses {
    bool no_space;
    bool names_full;
    uint64_t flips;
    uint64_t no_space_count;
    uint64_t names_full_count; /* of those, of the metadata target */
    struct damage *damages;    /* by file, then by last */
    size_t damage_count;
    size_t damage_capacity;
};

struct excuses *excuses_new(void) {
    struct excuses *excuses = calloc(1, sizeof *excuses);

    if (!excuses) {
        abort();
    }
    return excuses;
}

void excuses_free(struct excuses *excuses) {
    if (excuses) {
        free(excuses->damages);
        free(excuses);
    }
}

void excuses_no_space(struct excuses *excuses) {
    excuses->no_space = true;
}

bool excuses_has_no_space(const struct excuses *excuses) {
    return excuses->no_space;
}

void excuses_names_full(struct excuses *excuses, bool full) {
    excuses->names_full = full;
}

void excuses_flipped(struct excuses *excuses, unsigned count) {
    excuses->flips += count;
}

static bool comes_before(const struct damage *a, const struct damage *b) {
    return a->ino != b->ino ? a->ino < b->ino : a->last < b->last;
}

static void damage_add(struct excuses *excuses, const struct damage *damage) {
    size_t at = excuses->damage_count;

    if (at == excuses->damage_capacity) {
        excuses->damage_capacity = at > 0 ? 2 * at : 16;
        excuses->damages =
            realloc(excuses->damages, excuses->damage_capacity * sizeof *excuses->damages);
        if (!excuses->damages) {
            abort();
        }
    }
    for (; at > 0 && comes_before(damage, &excuses->damages[at - 1]); at--) {
        excuses->damages[at] = excuses->damages[at - 1];
    }
    excuses->damages[at] = *damage;
    excuses->damage_count++;
}

/* A point at the end of each interval that the last point does not lie in. */
static uint64_t blocks_least(const struct excuses *excuses) {
    const struct damage *point = NULL;
    uint64_t count = 0;

    for (size_t i = 0; i < excuses->damage_count; i++) {
        const struct damage *damage = &excuses->damages[i];

        if (!point || point->ino != damage->ino || point->last < damage->first) {
            point = damage;
            count++;
        }
    }
    return count;
}

/* What changes something waits for nothing; what looks needs no room, and a close stays with the
 * client. */
static bool needs_room(enum shoal_operation operation) {
    switch (operation) {
    case SHOAL_CREATE:
    case SHOAL_MKNOD:
    case SHOAL_MKDIR:
    case SHOAL_LINK:
    case SHOAL_UNLINK:
    case SHOAL_RMDIR:
    case SHOAL_RENAME:
    case SHOAL_OPEN:
    case SHOAL_SETATTR:
    case SHOAL_LAYOUT_SET:
    case SHOAL_FSYNC: /* tells size and times, as does flush */
    case SHOAL_FLUSH:
    case SHOAL_WRITE: /* the first one past what an inode holds makes chunks */
    case SHOAL_ALLOCATE:
        return true;
    default:
        return false;
    }
}

static bool explain_no_space(struct excuses *excuses, enum shoal_operation operation) {
    bool names = excuses->names_full && needs_room(operation);

    excuses->no_space_count++;
    excuses->names_full_count += names && operation != SHOAL_WRITE;
    return names ||
           ((operation == SHOAL_WRITE || operation == SHOAL_ALLOCATE) && excuses->no_space);
}

/* Which blocks can have made it fail. A read fails at each, a write only at those at its ends that
 * it does not cover, as it needs what else is in them. False: none can. */
static bool damage_of(const struct shoal_request *request, uint64_t ino,
                      struct damage *ret_damage) {
    uint64_t end = request->offset + request->size;
    struct damage damage = {
        .ino = ino, .first = request->offset / BLOCK_BYTES, .last = (end - 1) / BLOCK_BYTES};

    if (request->operation != SHOAL_READ) {
        bool covers_first = request->offset % BLOCK_BYTES == 0;
        bool covers_last = end % BLOCK_BYTES == 0;

        if (covers_first && covers_last) {
            return false;
        }
        damage.first = covers_first ? damage.last : damage.first;
        damage.last = covers_last ? damage.first : damage.last;
    }
    *ret_damage = damage;
    return true;
}

bool excuses_explain_late(const struct excuses *excuses) {
    return excuses->names_full;
}

bool excuses_explain(struct excuses *excuses, const struct shoal_request *request, uint64_t ino) {
    bool reads = request->operation == SHOAL_READ;
    bool writes = request->operation == SHOAL_WRITE || request->operation == SHOAL_ALLOCATE;
    struct damage damage;

    if (request->result == -ENOSPC) {
        return explain_no_space(excuses, request->operation);
    }
    if (request->result != -EIO || !(reads || writes) || request->size == 0 ||
        !damage_of(request, ino, &damage)) {
        return false;
    }
    damage_add(excuses, &damage);
    return blocks_least(excuses) <= excuses->flips;
}

uint64_t excuses_no_space_count(const struct excuses *excuses) {
    return excuses->no_space_count;
}

uint64_t excuses_names_full_count(const struct excuses *excuses) {
    return excuses->names_full_count;
}

uint64_t excuses_damaged_count(const struct excuses *excuses) {
    return excuses->damage_count;
}
