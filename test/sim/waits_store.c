/* The storage target's side of waits.h. */
#include "waits.h"
#include "store/ost_internal.h"
#include <assert.h>
#include <string.h>

size_t waits_of_ost(const struct ost *ost, struct wait ret_waits[WAITS_OF_TARGET]) {
    uint64_t calls = 0;

    for (int i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        calls += list_count(&ost->calls[i]);
    }
    const struct wait waits[] = {
        {"calls", calls},
        {"requests at work", ost->options.requests_max - ost->free_request_count},
        {"operations of the data file", ost->options.io_max - ost->free_io_count},
        {"buffers taken", ost->options.bounce_max - ost->free_bounce_count},
        {"blocks held for writes", ost->held_blocks},
        {"reads that hold freed blocks", list_count(&ost->pins)},
        {"blocks freed", ost->blocks.quarantine_blocks},
    };

    static_assert(ARRAY_SIZE(waits) <= WAITS_OF_TARGET, "there is room for all");
    memcpy(ret_waits, waits, sizeof waits);
    return ARRAY_SIZE(waits);
}
