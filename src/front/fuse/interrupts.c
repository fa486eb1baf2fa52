/* Programs that don't wait any more; the picture is in interrupts.h. */
#include "front/fuse/interrupts.h"
#include "env/env_signals.h"
#include "front/fuse/request.h"
#include <errno.h>

/* A free place; where none is, the next one's number goes. */
static _Atomic uint64_t *keep(struct interrupts *interrupts, uint64_t number) {
    for (uint32_t i = 0; i < INTERRUPTS_KEPT; i++) {
        uint64_t none = 0;

        if (atomic_compare_exchange_strong(&interrupts->numbers[i], &none, number))
            return &interrupts->numbers[i];
    }
    uint32_t place = atomic_fetch_add(&interrupts->next, 1) % INTERRUPTS_KEPT;
    atomic_store(&interrupts->numbers[place], number);
    return &interrupts->numbers[place];
}

/* Kept only until its request is met: of a flood of them none pushes out another that is. */
void interrupts_note(struct front *front, uint64_t number) {
    _Atomic uint64_t *kept = keep(&front->interrupts, number);
    uint64_t noted = number;

    for (uint32_t i = 0; i < front->requests.free.capacity; i++) {
        struct fuse_request *request = &front->requests.requests[i];

        if (atomic_load(&request->number) == number) {
            atomic_store(&request->interrupted, number);
            (void)atomic_compare_exchange_strong(kept, &noted, 0);
        }
    }
}

/* Numbers are not used again, so one that is noted for a request that has ended says nothing of
 * the next one there. */
void interrupts_meet(struct fuse_request *request, uint64_t number) {
    struct interrupts *interrupts = &request->front->interrupts;

    atomic_store(&request->number, number);
    for (uint32_t i = 0; i < INTERRUPTS_KEPT; i++) {
        uint64_t noted = number;

        if (atomic_load(&interrupts->numbers[i]) == number) {
            atomic_store(&request->interrupted, number);
            (void)atomic_compare_exchange_strong(&interrupts->numbers[i], &noted, 0);
        }
    }
}

static bool is_interrupted(const struct fuse_request *request) {
    struct front *front = request->front;

    if (atomic_load(&request->interrupted) == atomic_load(&request->number))
        return true;
    /* Who asks may be the only thread that reads: so this is not whether one waits for a buffer. */
    return 2 * atomic_load(&front->requests.detached_count) >= (int)front->requests.free.capacity &&
           env_signal_is_pending((int)request_header(request)->pid);
}

int interrupts_asked(struct shoal_request *shoal) {
    struct fuse_request *request = shoal->context;

    if (!is_interrupted(request))
        return 0;
    if (shoal->operation == SHOAL_OPEN || shoal->operation == SHOAL_CREATE)
        fuse_request_answer_early(request, -EINTR);
    return 1;
}
