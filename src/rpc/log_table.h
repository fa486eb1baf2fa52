/* Which actor of this process serves a log.
 *
 * An entry keeps its log for ever and loses only its actor, so that a look-up is two loads.
 *
 * Thread: add and remove one at a time, beside any look-ups. Memory: from new to free. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct actor;
struct log_table;

/* -ERR_INVALID for no logs, -ERR_NO_MEMORY. */
MUST_CHECK int log_table_new(uint32_t logs_max, struct log_table **ret_table);
/* Takes NULL. */
void log_table_free(struct log_table *table);
/* -ERR_EXISTS, or -ERR_TOO_MANY_OPEN when the table is full. The actor takes messages of kind
 * CALL_MESSAGE_KIND. */
MUST_CHECK int log_table_add(struct log_table *table, struct log_id log, struct actor *actor);
/* Who looks later does not find the actor; what is posted already it must still answer. */
void log_table_remove(struct log_table *table, struct log_id log);
/* NULL: not served here. */
struct actor *log_table_find(struct log_table *table, struct log_id log);
