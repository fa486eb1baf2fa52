/* The contract is in awaited.h. */
#include "rpc/awaited.h"
#include "rpc/call.h"
#include <assert.h>
#include <stdlib.h>

enum { PLACES_AT_START = 64 };

struct awaited_place {
    struct call *call; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

void awaited_init(struct awaited *awaited) {
    *awaited = (struct awaited){0};
}

void awaited_deinit(struct awaited *awaited) {
    free(TAKE_PTR(awaited->places));
}

static int places_grow(struct awaited *awaited) {
    uint32_t count = MAX(2 * awaited->place_count, (uint32_t)PLACES_AT_START);
    struct awaited_place *places = realloc(awaited->places, count * sizeof *places);

    if (!places) {
        return -ERR_NO_MEMORY;
    }
    for (uint32_t i = awaited->place_count; i < count; i++) {
        places[i] = (struct awaited_place){.next_free = i + 1};
    }
    awaited->places = places;
    awaited->place_count = count;
    return 0;
}

static uint32_t place_of(const struct call *call) {
    return (uint32_t)(uintptr_t)call->transport_context - 1;
}

bool awaited_contains(const struct call *call) {
    return call->transport_context != NULL;
}

int awaited_add(struct awaited *awaited, struct call *call, uint64_t *ret_id) {
    uint32_t index = awaited->first_free;

    if (awaited_contains(call)) {
        index = place_of(call);
    } else if (index == awaited->place_count && places_grow(awaited) < 0) {
        return -ERR_NO_MEMORY;
    } else {
        awaited->first_free = awaited->places[index].next_free;
        awaited->places[index].call = call;
        awaited->call_count++;
        call->transport_context = (void *)(uintptr_t)(index + 1);
    }
    *ret_id = (uint64_t)awaited->places[index].generation << 32 | index;
    return 0;
}

void awaited_remove(struct awaited *awaited, struct call *call) {
    uint32_t index = place_of(call);
    struct awaited_place *place = &awaited->places[index];

    assert(place->call == call);
    place->call = NULL;
    place->generation++;
    place->next_free = awaited->first_free;
    awaited->first_free = index;
    awaited->call_count--;
    call->transport_context = NULL;
}

struct call *awaited_find(const struct awaited *awaited, uint64_t id) {
    uint32_t index = (uint32_t)id;

    if (index >= awaited->place_count ||
        awaited->places[index].generation != (uint32_t)(id >> 32)) {
        return NULL;
    }
    return awaited->places[index].call;
}

struct call *awaited_next(const struct awaited *awaited, uint32_t *at) {
    while (*at < awaited->place_count) {
        struct call *call = awaited->places[(*at)++].call;

        if (call) {
            return call;
        }
    }
    return NULL;
}
