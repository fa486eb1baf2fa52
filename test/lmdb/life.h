/* The life of a process that opens a base and gives it commits, in a child; and what its parent
 * knows of it afterwards, also when it was killed.
 *
 * Commit i writes some of ROWS rows and deletes some, and writes the applied row with i. So what a
 * base must hold follows from the list of the commits in it.
 *
 * Memory: a ledger is shared by parent and children. */
#pragma once
#include "faults.h"
#include "kv/kv_lmdb.h"

enum { LIFE_COMMITS_MAX = 16, LIFE_PROBLEM_BYTES = 512 };

struct ledger {
    struct faults faults;
    uint8_t held[LIFE_COMMITS_MAX]; /* commits that were acknowledged, or found at an open */
    unsigned held_count;
    uint8_t pending; /* may be in the base as well; 0: none */
    uint8_t next;    /* commit to be given */
    bool stop_at_failure;
    char problem[LIFE_PROBLEM_BYTES]; /* what was wrong; empty: nothing */
};

/* Makes the env that bases are opened with: files below the root. */
void life_place(const char *root);
/* Opens the base with a map of so many bytes; 0: as the server does. */
int life_open(uint64_t map_bytes, struct kv_base **ret_base);
/* Gives commits from ledger->next to last, looks at the rows behind each, opens anew what takes no
 * more of them. Runs in a child. */
void life_run(struct ledger *ledger, uint8_t last);
/* The base holds the commits of the ledger, with or without the pending one; then one more is
 * taken. Runs in a child, without faults. */
void life_check(struct ledger *ledger);
/* Runs a play in a child; answers how waitpid says that it ended. */
int life_fork(struct ledger *ledger, void (*play)(struct ledger *ledger));
