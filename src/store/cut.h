/* Truncation of chunks, and marks of truncated files. */
#pragma once
#include "store/request.h"

/* cut.c: bytes at or beyond length go, and the head bears seq. Several transactions when there are
 * many segments. The chunk's head was read and is older than seq. */
struct cut_order {
    struct chunk_id id;
    struct store_head head;
    uint32_t length;
    uint32_t truncate_seq;
};
MUST_CHECK int chunk_cut(struct ost *ost, struct request *request, const struct cut_order *order);
/* For somebody who knows a newer truncation than the chunk: it is cut first if anything of it lies
 * behind. True: done, so the head is to be read anew. */
MUST_CHECK int chunk_cut_for(struct ost *ost, struct request *request,
                             const struct capability *capability, const struct store_head *head,
                             bool *ret_done);
/* cut_mark.c: the newest truncation of a file whose chunks were cut here; 0: none. */
MUST_CHECK int cut_mark_get(struct ost *ost, const struct chunk_id *id, uint32_t *ret_truncate_seq);
/* Notes one; REQUEST_WAITS. */
MUST_CHECK int cut_mark_raise(struct ost *ost, struct request *request, const struct chunk_id *id,
                              uint32_t truncate_seq);
/* The file is gone; REQUEST_WAITS. */
MUST_CHECK int cut_mark_drop(struct ost *ost, struct request *request, const struct chunk_id *id);
