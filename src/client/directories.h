/* Attributes of directories, as answers to this client's own changes in them have told.
 *
 * A kernel asks for a directory's attributes again behind each name that is made or taken there.
 * The answer to that change has them (`parent` in messages.def), so the question ends here: a round
 * trip less. It is answered only where its caller takes attributes of some age (age_max_ns of
 * shoal.h): what others have changed since is not seen.
 *
 *     slot by inode number: attributes, when they were asked for, changes_seen
 *                           changes: rises with each change that was not told
 *
 * What a slot has is valid while changes_seen = changes. Who changes a directory reads `changes`
 * before the request leaves (a ticket). Of the answers the latest by epoch is kept, and becomes
 * valid where nothing has risen since its ticket; where it is not, it still keeps older ones out,
 * though they may have been asked for later. So no answer that comes late hides a change that this
 * client was acknowledged. A slot that another directory takes counts as changed.
 *
 * Thread: any. Nobody waits: who finds a slot taken asks the server, or counts a change.
 * Memory: the client's, fixed. */
#pragma once
#include "rpc/call.h"
#include <stdatomic.h>
#include <stdbool.h>

enum { DIRECTORY_SLOTS = 1024 };

struct directory_slot {
    atomic_bool taken; /* by who reads or writes what is below `changes` */
    _Atomic uint64_t changes;
    uint64_t changes_seen;
    uint64_t asked_ns;            /* no older than that */
    struct attributes attributes; /* of the latest answer, valid or not; ino 0: none */
};

struct directories {
    struct directory_slot slots[DIRECTORY_SLOTS];
};

/* What is asked of a directory's names, from before the request leaves. */
struct directory_ticket {
    uint64_t asked_ns;
    uint64_t changes;
};

/* Around each call of an operation. Before it leaves: */
void directories_asked(struct directories *directories, uint16_t opcode, struct call *call,
                       uint64_t now_ns, struct directory_ticket ret_tickets[WIRE_PARENTS_MAX]);
/* When it has ended, before the program hears of it; is_over: by an answer of a term that is. */
void directories_answered(struct directories *directories, struct call *call, bool is_over,
                          const struct directory_ticket tickets[WIRE_PARENTS_MAX]);

/* Their parts. It has changed, or may have, and nobody told how: */
void directories_changed(struct directories *directories, struct ino ino);
struct directory_ticket directories_ticket(struct directories *directories, struct ino ino,
                                           uint64_t now_ns);
/* Attributes without a number were not told. */
void directories_see(struct directories *directories, struct ino ino,
                     const struct directory_ticket *ticket, const struct attributes *attributes);
/* Answers their age in ns; -1: not known, or not younger than age_max_ns. */
int64_t directories_find(struct directories *directories, struct ino ino, uint64_t now_ns,
                         uint64_t age_max_ns, struct attributes *ret_attributes);
