/* Calls that wait for a reply that comes as bytes, by the number that they were sent under.
 *
 * A number is generation << 32 | place: one that is not in use any more is a late reply's, or a
 * copy's, and finds nothing.
 *
 * Thread: one. Memory: places grow by doubling and are kept until deinit. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct call;
struct awaited_place;

struct awaited {
    struct awaited_place *places;
    uint32_t place_count;
    uint32_t first_free; /* place_count: none */
    uint32_t call_count;
};

void awaited_init(struct awaited *awaited);
void awaited_deinit(struct awaited *awaited);
/* The number of the call, which it keeps until awaited_remove; a call that has one gets the same.
 * -ERR_NO_MEMORY. Uses call->transport_context. */
MUST_CHECK int awaited_add(struct awaited *awaited, struct call *call, uint64_t *ret_id);
bool awaited_contains(const struct call *call);
void awaited_remove(struct awaited *awaited, struct call *call);
/* NULL when nobody waits under this number. */
struct call *awaited_find(const struct awaited *awaited, uint64_t id);
/* The calls one after the other, from *at = 0 on, which it moves; NULL: there are no more. Nothing
 * may be added or removed meanwhile. */
struct call *awaited_next(const struct awaited *awaited, uint32_t *at);
