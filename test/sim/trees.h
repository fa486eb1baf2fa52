/* The oracle of names: small trees that all clients change at once, and what they may be.
 *
 *     asked:   rename a b |------------------|
 *              mkdir b         |------|            which took effect first? Either: two ways.
 *     ways:    {a}             {b}, {a b}  {b}     An answer ends those that it speaks against;
 *                                                  when none is left, it cannot be.
 *
 * Each operation takes effect at one moment between question and answer, and each look sees what
 * all before it have done, whoever asked. A power failure of the metadata target puts the names
 * back to what they were at some moment since the last sync point: all ways since then are kept.
 * What was asked by a client that is gone may take effect until all metadata targets know that its
 * session is over.
 *
 * Thread: the world's.  Memory: the heap. */
#pragma once
#include "base/prng.h"
#include "tree_model.h"

enum {
    TREES_PROBLEM_BYTES = 300,
    TREES_COUNT = 3,
    TREES_NAME_BYTES = 256,
};

struct trees;

struct trees_counters {
    uint64_t renames; /* that succeeded */
    uint64_t replaced;
    uint64_t exchanged;
    uint64_t refused; /* renames */
};

/* Zeroed at the start; the caller's until its answer. */
struct tree_question {
    uint64_t number; /* of its tree */
    uint8_t tree;
    uint8_t slot;
    char name[TREES_NAME_BYTES];
    char new_name[TREES_NAME_BYTES];
};

/* many: names and inodes may be kept by different targets. Then a look at a name tells of its inode
 * as it was a moment later, and a power failure takes each target back to another moment: what is
 * there then is not one of the ways, so all trees are left to themselves. moves: mostly directories
 * are renamed to another parent. */
struct trees *trees_new(bool many, bool moves);
void trees_free(struct trees *trees);
/* False: too much is open. */
bool trees_ask(struct trees *trees, struct prng *prng, uint32_t client,
               struct tree_question *question, struct shoal_request *ret_request);
/* A look at the next place of all; *at begins with 0. False: that was the last one. */
bool trees_review(struct trees *trees, uint32_t *at, uint32_t client,
                  struct tree_question *question, struct shoal_request *ret_request);
/* False: it cannot be. excused: a fault explains an error that names do not; it was refused. */
bool trees_answered(struct trees *trees, const struct tree_question *question,
                    const struct shoal_request *request, bool excused,
                    char problem[TREES_PROBLEM_BYTES]);
/* Nobody will know the answer. */
void trees_lost(struct trees *trees, const struct tree_question *question);
/* What the client had asked by then takes no effect any more. */
void trees_session_over(struct trees *trees, uint32_t client, uint64_t asked_by);
/* The metadata target lost power. */
void trees_power(struct trees *trees);
/* A count of what was told here; all that was answered before `begin` is on disk. */
uint64_t trees_now(const struct trees *trees);
void trees_synced(struct trees *trees, uint64_t begin);
const struct trees_counters *trees_counters_get(const struct trees *trees);
