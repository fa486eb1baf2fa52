/* A target that is gone for good, which somebody declares lost: a storage target in half of the
 * seeds in which one joins, a metadata target in the others in which one joins as the third or
 * later; and the oracle of that.
 *
 *     joined --> its power fails, and it never starts again --> asked of the manager, again and
 *                again, from a process that may die itself --> answered: lost
 *
 * The oracle: what only that target had answers EIO, and nothing else does; a read that begins when
 * its client knows of the loss never gives a byte of what was there; and nothing waits for it, so
 * that all calls are answered, all orders carried out and all files settled at the end, as in any
 * other seed.
 *
 * A metadata target goes, where such a moment comes in time, while a decision of it has reached
 * some of its participants and not others: a cut of one link sees to that; else while one is on its
 * way to its disk, of which nobody has heard. What the others then have must be whole (whole.h),
 * and nothing of its transactions may be left (strays.h). Directories that it had are asked about,
 * and must answer EIO. Another metadata target loses its power then, and with it what it has done
 * of such transactions and not synced.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "base/prng.h"
#include "totals.h"
#include "world.h"
#include <shoal/shoal.h>

struct losses;

/* operations: of the whole seed. */
struct losses *losses_new(struct world *world, uint64_t operations);
/* Takes NULL. */
void losses_free(struct losses *losses);
/* A target whose power is to fail now: once one that goes for good, and within some seconds behind
 * the loss of a metadata target another one, which starts again. NULL: not now. Looked at again and
 * again. */
struct node *losses_begin(struct losses *losses, uint64_t submitted);
/* A link was cut just now, which the caller heals some time later. */
bool losses_cut(struct losses *losses);
/* It is not to start any more. */
bool losses_has(const struct losses *losses, const struct node *node);
/* Nobody is gone whose loss the manager has not answered yet. */
bool losses_are_over(const struct losses *losses);
/* Whether the EIO of a read or write of this handle is explained by it. */
bool losses_explain(struct losses *losses, const struct shoal_request *request);
/* Whether the client knows by now that a part of the file is lost, and which; asked before a read
 * is submitted. */
struct lost_part {
    bool is_known;
    uint32_t generation; /* of the file's chunks */
};
struct lost_part losses_known(const struct losses *losses, struct node *client,
                              const struct shoal_request *request);
/* False: the read has given bytes that are lost. */
bool losses_check(const struct losses *losses, const struct lost_part *part,
                  const struct shoal_request *request);
/* A directory that was made; one that is lost, as the client knows; 0: there is none. */
void losses_note(struct losses *losses, uint64_t ino);
uint64_t losses_probe(const struct losses *losses, struct node *client, uint64_t lot);
void losses_probe_answered(struct losses *losses);
/* Whether it explains the error of an operation on names. */
bool losses_explain_name(const struct losses *losses, const struct shoal_request *request);
/* A target that the map says is lost. */
bool node_is_lost(const struct node *node);
/* Whether the later map names a lost metadata target that the earlier one does not. */
bool losses_add_mdt(const struct cluster_map *earlier, const struct cluster_map *later);
/* NULL, or what was wrong. */
const char *losses_failure(const struct losses *losses);
/* Declared, and answers of EIO that it explained, or was asked for. */
void losses_sum(const struct losses *losses, uint64_t counts[TOTAL_COUNT]);
