/* A client that writes on when it was evicted, and the metadata target does not know what it had
 * open; once in each seed without keys that may leave a file; and the oracle of that.
 *
 *     a client makes a file, which is on disk, and opens it for writing --answered--> the power of
 *       the file's metadata target fails; the client is cut off from all but storage targets, and
 *       these from the manager, until it is evicted and some time after
 *     it writes on; another client asks for the file's size and opens it, again and again
 *
 * The oracle: once the other client was answered, which had asked when the metadata target had the
 * end of the session on disk, no write succeeds that began after that answer. It reads the list of
 * the ended; not who is fenced.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "world.h"

struct stragglers;

struct stragglers_turn {
    struct node *powerless; /* its power is to fail now; NULL: none's */
    struct node *killed;    /* likewise */
    uint64_t heal_ns;       /* when what was cut now is to heal; 0: nothing was */
};

/* operations: of the whole seed. leaves: a file may stay. */
struct stragglers *stragglers_new(struct world *world, uint64_t operations, bool leaves);
void stragglers_free(struct stragglers *stragglers);
/* The file has just been opened: stragglers_go_on is to be called before anything else happens. */
bool stragglers_are_due(const struct stragglers *stragglers);
/* Every few milliseconds. may_cut: nothing else is cut. failure says what is wrong, if anything. */
struct stragglers_turn stragglers_go_on(struct stragglers *stragglers, uint64_t submitted,
                                        bool may_cut, char failure[600]);
/* This client asks nothing else. */
bool stragglers_has(const struct stragglers *stragglers, const struct node *client);
/* Somebody writes on, and the node has to run for that. */
bool stragglers_need(const struct stragglers *stragglers, const struct node *node);
/* Nothing is cut, and nothing more is to be seen. */
bool stragglers_are_over(const struct stragglers *stragglers);
/* Clients that wrote on; answers to others while they might; of them, whose writes were refused.
 */
uint64_t stragglers_count(const struct stragglers *stragglers);
uint64_t stragglers_told(const struct stragglers *stragglers);
uint64_t stragglers_refused(const struct stragglers *stragglers);
