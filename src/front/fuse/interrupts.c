/* Programs that don't wait any more; the picture is in interrupts.h. */
#include "front/fuse/interrupts.h"
#include "env/env_signals.h"
#include "front/fuse/request.h"
#include <errno.h>

/* A free place; where none is, the next one's number goes. */
static _Atomic uint64_t *keep(struct interrupts *interrupts, uint64_t number) {
    atomic_fetch_add(&interrupts->count, 1);
    for (uint32_t i = 0; i < INTERRUPTS_KEPT; i++) {
        uint64_t none = 0;

        if (atomic_compare_exchange_strong(&interrupts->numbers[i], &none, number))
            return &interrupts->numbers[i];
    }
    uint32_t place = atomic_fetch_add(&interrupts->next, 1) % INTERRUPTS_KEPT;
    if (atomic_exchange(&interrupts->numbers[place], number) != 0)
        atomic_fetch_sub(&interrupts->count, 1);
    return &interrupts->numbers[place];
}

static void let_go(struct interrupts *interrupts, _Atomic uint64_t *kept, uint64_t number) {
    if (atomic_compare_exchange_strong(kept, &number, 0))
        atomic_fetch_sub(&interrupts->count, 1);
}

/* Kept only until its request is met: of a flood of them none pushes out another that is. */
void interrupts_note(struct front *front, uint64_t number) {
    _Atomic uint64_t *kept = keep(&front->interrupts, number);

    for (uint32_t i = 0; i < front->requests.free.capacity; i++) {
        struct fuse_request *request = &front->requests.requests[i];

        if (atomic_load(&request->number) == number) {
            atomic_store(&request->interrupted, number);
            atomic_store(&front->fair.interrupted, true);
            let_go(&front->interrupts, kept, number);
        }
    }
}

/* Numbers are not used again, so one that is noted for a request that has ended says nothing of
 * the next one there. */
void interrupts_meet(struct fuse_request *request, uint64_t number) {
    struct interrupts *interrupts = &request->front->interrupts;

    atomic_store(&request->number, number);
    if (atomic_load(&interrupts->count) == 0)
        return;
    for (uint32_t i = 0; i < INTERRUPTS_KEPT; i++) {
        if (atomic_load(&interrupts->numbers[i]) == number) {
            atomic_store(&request->interrupted, number);
            let_go(interrupts, &interrupts->numbers[i], number);
        }
    }
}

/* Asked again and again, of each call that waits: so what was found not to be is not looked for
 * again for a while. */
static bool process_is_interrupted(struct fuse_request *request) {
    uint64_t now_ns = env_now_ns(request->front->env);
    uint64_t looked_ns = atomic_load_explicit(&request->looked_ns, memory_order_relaxed);

    if (looked_ns != 0 && now_ns - looked_ns < INTERRUPTS_LOOK_NS)
        return false;
    if (env_signal_is_pending((int)request_header(request)->pid))
        return true;
    atomic_store_explicit(&request->looked_ns, now_ns, memory_order_relaxed);
    return false;
}

static bool is_interrupted(struct fuse_request *request) {
    struct front *front = request->front;

    if (atomic_load(&request->interrupted) == atomic_load(&request->number))
        return true;
    /* Who asks may be the only thread that reads: so this is not whether one waits for a buffer. */
    bool may_miss =
        request->entry || request->carrier ||
        2 * atomic_load(&front->requests.detached_count) >= (int)front->requests.free.capacity;

    return may_miss && process_is_interrupted(request);
}

int interrupts_asked(struct shoal_request *shoal) {
    struct fuse_request *request = shoal->context;

    if (atomic_load(&request->front->is_over))
        return SHOAL_ABANDONED;
    if (!is_interrupted(request))
        return 0;
    if (shoal->operation == SHOAL_OPEN || shoal->operation == SHOAL_CREATE)
        fuse_request_answer_early(request, -EINTR);
    return 1;
}
