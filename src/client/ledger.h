/* What this client was answered by one server and does not know to be on disk, by inode.
 *
 *     place of an inode (hash):   position: newest record that a change of it was answered with
 *                                 lost: when such a change was lost last, 0: never
 *     of the server:              term, survived: its newest start
 *                                 synced: all up to here is on disk
 *
 * A server that lost power starts anew behind what it had acknowledged. Its answer to our attaching
 * says how much has survived of the term that we knew; places with more have lost something. Each
 * start that lost something of ours gets a number, the client's count of losses: whoever has an
 * inode open remembers the count up to which it was told (file_tell_losses in file.h).
 *
 * Inodes share places, so that this needs little memory, survives the file's last close, and covers
 * directories that nobody has open. It errs on one side: who shares a place with a loser is told of
 * a loss that it has not had. Only "told", which keeps later opens from hearing of what somebody
 * was told already, may hide the loss of one inode behind another's, for opens that come after.
 *
 * Thread: noting and asking from any; ledger_restart from the session's step. Memory: from init to
 * deinit. */
#pragma once
#include "base/types.h"
#include <stdatomic.h>

enum { LEDGER_PLACES = 4096 };

struct ledger_place {
    _Atomic uint64_t position;
    _Atomic uint64_t lost; /* count << 1 | told */
};

struct ledger {
    _Atomic uint64_t term; /* 0: none yet */
    _Atomic uint64_t survived;
    _Atomic uint64_t synced;
    _Atomic uint64_t *losses; /* the client's count */
    struct ledger_place *places;
};

MUST_CHECK int ledger_init(struct ledger *ledger, _Atomic uint64_t *losses);
void ledger_deinit(struct ledger *ledger);

/* A change of the inode was answered in that term, by the record at position. */
void ledger_note(struct ledger *ledger, struct ino ino, uint64_t term, uint64_t position);
/* A sync was answered in that term. */
void ledger_note_synced(struct ledger *ledger, uint64_t term, uint64_t position);
/* We are attached to that term; of what was answered in the one that we knew everything up to
 * `survived` is there. */
void ledger_restart(struct ledger *ledger, uint64_t term, uint64_t survived);

/* The server is lost for good: what is not known to be on disk there counts as lost by a start. */
void ledger_lose(struct ledger *ledger);

/* The position that must be on disk for all changes of the inode to be; 0 when it is. */
uint64_t ledger_unsynced(const struct ledger *ledger, struct ino ino);
/* The count of the inode's last loss that is above `seen` and either above `opened` or told to
 * nobody; 0 when there is none. */
uint64_t ledger_loss(const struct ledger *ledger, struct ino ino, uint64_t seen, uint64_t opened);
/* Somebody has been told of the inode's losses up to that count. */
void ledger_tell(struct ledger *ledger, struct ino ino, uint64_t count);
