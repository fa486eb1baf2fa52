/* A target that stays away for longer than clients wait, once in every second seed whose patience
 * is short; and the oracle of that.
 *
 * The oracle: once a call of a client at a target that is down has ended because its patience was
 * over, each later one ends at once, until the target is up again. It knows which nodes are down,
 * and each call as it leaves; not what the transport knows of who is away.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "world.h"

struct absences;

/* operations: of the whole seed. */
struct absences *absences_new(struct world *world, uint64_t operations);
void absences_free(struct absences *absences);
/* A call of a client, right before it leaves. */
void absences_sent(struct absences *absences, const struct node *client, const struct call *call);
/* The node that is to go down now; NULL: none. */
struct node *absences_begin(struct absences *absences, uint64_t submitted);
/* Until when it stays down: sooner when enough was seen. */
uint64_t absences_end_ns(const struct absences *absences);
/* Every few milliseconds. False: failure says what is wrong. */
bool absences_look(struct absences *absences, char failure[600]);
/* Times that the client's life has found a target more starts further on than its log remembers:
 * all that it had not synced there counts as lost then. */
uint32_t absences_forgotten(struct absences *absences, const struct node *client);
/* Calls that ended since their patience was over, while the target was down; and of these, those
 * that did so at once. */
uint64_t absences_given_up(const struct absences *absences);
uint64_t absences_at_once(const struct absences *absences);
