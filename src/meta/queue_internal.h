/* What the files of the queue share: queue.c (jobs), order_rows.c (which rows become jobs),
 * order_syncs.c (what OSTs have on disk). */
#pragma once
#include "meta/group_internal.h"

/* Takes rows into idle jobs, as far as their records are on disk. */
void order_rows_take(struct group *group);
/* After an OST has returned: rows that were put aside are gone through again. */
void order_rows_rescan(struct group *group);
/* The row is taken later, when an OST has returned. */
void order_row_put_aside(struct order_queue *queue, const struct kv_key *key);
/* False: the map does not name the order's pool version: a newer one is waited for. */
bool order_pool(const struct group *group, const struct order_row *row,
                struct pool_version *ret_pool, uint32_t *ret_width);

/* waiting_count: orders that wait for syncs; hurry: nothing else can go on before. Also asks those
 * that are away, to hear when they are back. */
void order_syncs_step(struct group *group, uint32_t waiting_count, bool hurry);
uint32_t order_syncs_out(const struct group *group);
void order_syncs_cancel(struct group *group);
/* The OST has done something for the job, in that term. */
void order_owe(struct order_job *job, struct ost_peer *peer, uint64_t term, uint64_t position);
bool order_is_owed_by(const struct order_job *job, const struct ost_peer *peer);
/* Whether all have on disk what they have done for the job, which is WAITING. */
bool order_is_synced(struct group *group, struct order_job *job);
/* Whether one of those that have not is away. */
bool order_waits_for_away(const struct group *group, const struct order_job *job);
/* From its beginning, whatever has been done. */
void order_begin_anew(struct order_job *job);
