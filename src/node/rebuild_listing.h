/* What a log is asked for a manager to be rebuilt, one call behind another, and what its answers
 * add to that. Whoever asks waits in his own way: the node in its start, the simulator by events.
 *
 *     init --> { next --> the call is made, and answered --> take } until next has none
 *
 *     fsck_list{SESSIONS}, {ENDED}, of a metadata target {SLOTS}, page by page --> rebuilt
 *     sync: what was listed is on disk, so no power takes back what the manager goes by --> life
 *
 * Thread: one.  Memory: a page of rows; the rebuilt one is the caller's. */
#pragma once
#include "node/rebuild_pages.h"
#include "rpc/call.h"

enum { REBUILD_PAGE_BYTES = 64 * 1024 };

struct rebuild_listing {
    struct rebuilt *rebuilt;
    enum target_kind kind;
    struct rebuilt_life life; /* as of the last answer */
    uint32_t stage;
    struct rebuild_pages pages; /* of this stage */
    uint8_t *page;
};

/* -ERR_NO_MEMORY. */
MUST_CHECK int rebuild_listing_init(struct rebuild_listing *listing, struct rebuilt *rebuilt,
                                    const struct map_target *target);
void rebuild_listing_deinit(struct rebuild_listing *listing);
/* Opcode, log, request and bulk, the rest zeroed; its bytes are the listing's until it is answered.
 * False: there is none, all is told. */
bool rebuild_listing_next(const struct rebuild_listing *listing, struct call *ret_call);
/* The answer to it: its own error, or those of rebuild_pages_take for what no log can tell. */
MUST_CHECK int rebuild_listing_take(struct rebuild_listing *listing, const struct call *call);
