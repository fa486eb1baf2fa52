/* The storage target's side of fulls.h. */
#include "fulls.h"
#include "store/ost_internal.h"

uint32_t fulls_of_ost(const struct ost *ost) {
    bool requests = ost->free_request_count == 0 || !list_is_empty(&ost->io_waiting);
    bool blocks = ost->blocks.block_count > 0 && ost->blocks.free_count <= ost->reserve_blocks;

    return (uint32_t)requests << FULL_REQUESTS | (uint32_t)blocks << FULL_BLOCKS;
}
