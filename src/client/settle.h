/* Settling: telling the group the size and the time of writes that only this client knows. */
#pragma once
#include "client/file.h"

/* Fills a settle of the operation's file; open_flags are those of a handle that goes, 0: none. */
void settle_fill(struct operation *operation, struct call *call, uint32_t open_flags);
/* Takes the answer. */
void settle_done(struct operation *operation);
