/* The label of a data file, block 0: which target and which index the file belongs to. */
#pragma once
#include "base/err.h"
#include "base/types.h"

/* The block as a target writes it; label is not 0. */
void label_encode(struct target_id target, uint64_t label, uint8_t ret_block[BLOCK_BYTES]);
/* What the block of the target's data file says; *ret_label 0: none was written yet. Of what is
 * refused, problem tells; path is the file's name in it. */
MUST_CHECK int label_decode(const uint8_t block[BLOCK_BYTES], struct target_id target,
                            const char *path, uint64_t *ret_label, char problem[256]);
