/* Watched descriptors: what is wanted, what the kernel has of it, what it has said. */
#include "env/env_linux_watch.h"
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The low bits of a completion's user_data; the others are the watch. */
enum {
    TAG_IN = 7,
    TAG_OUT = 15,
    TAG_BITS = 15,
    TAG_IGNORED = 3,
    EPOLL_BATCH = 32,
    BATCHES_MAX = 64
};
enum { CHANGES_AGAIN_NS = 10000000 };

void watches_init(struct watches *watches) {
    list_init(&watches->changes);
    list_init(&watches->ready);
    list_init(&watches->timers);
    list_init(&watches->awaiting);
    watches->due_ns = UINT64_MAX;
    watches->epoll_fd = -1;
}

void watches_deinit(struct watches *watches) {
    assert(watches->count == 0 && list_is_empty(&watches->changes));
    assert(list_is_empty(&watches->ready) && list_is_empty(&watches->timers));
    if (watches->epoll_fd >= 0) {
        close(watches->epoll_fd);
    }
}

static void list_enter(struct list *list, struct list_node *node) {
    if (!list_contains(node)) {
        list_push_back(list, node);
    }
}

static void watch_seen(struct watch *watch, unsigned seen) {
    if (!watch->released) {
        watch->seen |= seen;
        list_enter(&watch->loop->watches.ready, &watch->ready);
    }
}

int watch_start(struct watch *watch, struct env_loop *loop) {
    struct watches *watches = &loop->watches;

    assert((uintptr_t)watch % (TAG_BITS + 1) == 0);
    if (!loop_has_ring(loop) && watches->epoll_fd < 0) {
        watches->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (watches->epoll_fd < 0) {
            return err_from_errno(errno);
        }
    }
    watch->loop = loop;
    watch->fd = -1;
    watch->due_ns = UINT64_MAX;
    watches->count++;
    watches->open_count++;
    return 0;
}

void watch_want(struct watch *watch, enum watch_side side, bool wanted) {
    assert(watch->fd >= 0 && !watch->released);
    watch->wanted[side] = wanted;
    if (wanted != watch->armed[side]) {
        list_enter(&watch->loop->watches.changes, &watch->change);
    }
}

void watch_nudge(struct watch *watch) {
    watch_seen(watch, WATCH_NUDGED);
}

void watch_set_due(struct watch *watch, uint64_t due_ns) {
    struct watches *watches = &watch->loop->watches;

    list_remove(&watch->timer);
    watch->due_ns = due_ns;
    if (due_ns != UINT64_MAX) {
        list_push_back(&watches->timers, &watch->timer);
        watches->due_ns = MIN(watches->due_ns, due_ns);
    }
}

void watch_await_room(struct watch *watch) {
    list_enter(&watch->loop->watches.awaiting, &watch->await);
}

void watch_release(struct watch *watch) {
    assert(!watch->released);
    watch->released = true;
    watch->wanted[WATCH_IN] = false;
    watch->wanted[WATCH_OUT] = false;
    watch->seen = 0;
    list_remove(&watch->ready);
    list_remove(&watch->await);
    watch_set_due(watch, UINT64_MAX);
    watch->loop->watches.open_count--;
    list_enter(&watch->loop->watches.changes, &watch->change);
}

static void ring_prepare(struct watch *watch, enum watch_side side, struct io_uring_sqe *sqe) {
    uint64_t tag = (uintptr_t)watch | (side == WATCH_IN ? TAG_IN : TAG_OUT);

    if (!watch->wanted[side]) {
        /* Not poll_remove, which gives up when the poll is just about to answer. */
        io_uring_prep_cancel64(sqe, tag, 0);
        sqe->user_data = TAG_IGNORED;
        watch->cancelled[side] = true;
        return;
    }
    if (side == WATCH_OUT) {
        io_uring_prep_poll_add(sqe, watch->fd, POLLOUT);
    } else if (watch->listens) {
        /* One of the loops that wait is woken. With its first answer it goes to the end of their
         * queue, so that they take turns. */
        io_uring_prep_poll_add(sqe, watch->fd, POLLIN | EPOLLEXCLUSIVE);
    } else {
        io_uring_prep_poll_multishot(sqe, watch->fd, POLLIN | POLLRDHUP);
    }
    sqe->user_data = tag;
    watch->armed[side] = true;
}

/* False: the kernel takes no more for now. */
static bool ring_apply(struct watch *watch) {
    for (unsigned side = 0; side < WATCH_SIDE_COUNT; side++) {
        if (watch->wanted[side] != watch->armed[side] && !watch->cancelled[side]) {
            struct io_uring_sqe *sqe = loop_sqe(watch->loop);

            if (!sqe) {
                return false;
            }
            ring_prepare(watch, (enum watch_side)side, sqe);
        }
    }
    return true;
}

static uint32_t epoll_events(const struct watch *watch, const bool *sides) {
    uint32_t in = watch->listens ? EPOLLIN | EPOLLEXCLUSIVE : EPOLLIN | EPOLLRDHUP | EPOLLET;

    return (sides[WATCH_IN] ? in : 0) | (sides[WATCH_OUT] ? EPOLLOUT | EPOLLET : 0);
}

/* Fails only for lack of memory, or of the user's share of watches: tried again with the next turn.
 */
static bool epoll_apply(struct watch *watch) {
    struct epoll_event event = {.events = epoll_events(watch, watch->wanted), .data.ptr = watch};
    bool was_armed = watch->armed[WATCH_IN] || watch->armed[WATCH_OUT];
    int action = was_armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (event.events == epoll_events(watch, watch->armed)) {
        return true;
    }
    if (event.events == 0) {
        action = EPOLL_CTL_DEL;
    }
    if (epoll_ctl(watch->loop->watches.epoll_fd, action, watch->fd, &event) != 0) {
        return false;
    }
    watch->armed[WATCH_IN] = watch->wanted[WATCH_IN];
    watch->armed[WATCH_OUT] = watch->wanted[WATCH_OUT];
    return true;
}

/* Lets the owner have it back, once the kernel has. */
static void watch_try_end(struct watch *watch) {
    if (watch->released && !watch->armed[WATCH_IN] && !watch->armed[WATCH_OUT]) {
        list_remove(&watch->change);
        watch->loop->watches.count--;
        watch->released = false;
        watch->end(watch);
    }
}

bool watches_apply(struct env_loop *loop) {
    struct watches *watches = &loop->watches;
    bool ring = loop->ring_state == RING_READY;
    bool changed = !list_is_empty(&watches->changes);
    struct list_node *node;

    while ((node = list_first(&watches->changes)) != NULL) {
        struct watch *watch = CONTAINER_OF(node, struct watch, change);

        if (!(ring ? ring_apply(watch) : epoll_apply(watch))) {
            break;
        }
        list_remove(node);
        watch_try_end(watch);
    }
    return changed;
}

bool watch_owns(uint64_t user_data) {
    return (user_data & TAG_IN) == TAG_IN;
}

void watch_complete(uint64_t user_data, int answer, unsigned flags) {
    struct watch *watch = (struct watch *)(uintptr_t)(user_data & ~(uint64_t)TAG_BITS);
    enum watch_side side = (user_data & TAG_BITS) == TAG_IN ? WATCH_IN : WATCH_OUT;

    if (answer > 0) {
        /* Room to send is asked for once. */
        watch->wanted[side] = watch->wanted[side] && side == WATCH_IN;
        watch_seen(watch, (unsigned)answer);
    } else if (answer != -ECANCELED && answer != -ENOMEM && answer != -EAGAIN) {
        watch->wanted[side] = false;
        watch_seen(watch, POLLERR);
    }
    if (!(flags & IORING_CQE_F_MORE)) {
        watch->armed[side] = false;
        watch->cancelled[side] = false;
        list_enter(&watch->loop->watches.changes, &watch->change);
        watch_try_end(watch);
    }
}

void watches_poll(struct env_loop *loop) {
    struct epoll_event events[EPOLL_BATCH];
    unsigned batches = loop->watches.epoll_fd >= 0 && loop->watches.count > 0 ? BATCHES_MAX : 0;

    while (batches > 0) {
        int count = epoll_wait(loop->watches.epoll_fd, events, EPOLL_BATCH, 0);

        batches = count == EPOLL_BATCH ? batches - 1 : 0;
        for (int i = 0; i < count; i++) {
            struct watch *watch = events[i].data.ptr;

            if (events[i].events & EPOLLOUT && !watch->released) {
                watch_want(watch, WATCH_OUT, false);
            }
            watch_seen(watch, events[i].events);
        }
    }
}

/* Moves what is due to the ready ones. */
static void timers_run(struct watches *watches) {
    uint64_t next_ns = UINT64_MAX;
    struct list_node *node = list_first(&watches->timers);

    while (node) {
        struct watch *watch = CONTAINER_OF(node, struct watch, timer);

        node = list_next(&watches->timers, node);
        if (watch->due_ns <= watches->poll_ns) {
            watch_set_due(watch, UINT64_MAX);
            watch_seen(watch, WATCH_DUE);
        } else {
            next_ns = MIN(next_ns, watch->due_ns);
        }
    }
    watches->due_ns = next_ns;
}

static bool awaited_is_there(const struct env_loop *loop) {
    return !list_is_empty(&loop->watches.awaiting) && sockets_have_room(&loop->env->sockets);
}

bool watches_have_news(const struct env_loop *loop) {
    return !list_is_empty(&loop->watches.ready) || awaited_is_there(loop);
}

unsigned watches_fire(struct env_loop *loop) {
    struct watches *watches = &loop->watches;
    struct list now;
    struct list_node *node;
    unsigned fired = 0;

    if (awaited_is_there(loop)) {
        while ((node = list_pop_front(&watches->awaiting)) != NULL) {
            watch_seen(CONTAINER_OF(node, struct watch, await), WATCH_NUDGED);
        }
    }
    if (list_is_empty(&watches->ready) && list_is_empty(&watches->timers)) {
        return 0;
    }
    watches->poll_ns = env_now_ns(&loop->env->env);
    if (watches->due_ns <= watches->poll_ns) {
        timers_run(watches);
    }
    /* What becomes ready meanwhile is of the next turn. */
    list_init(&now);
    while ((node = list_pop_front(&watches->ready)) != NULL) {
        list_push_back(&now, node);
    }
    while ((node = list_pop_front(&now)) != NULL) {
        struct watch *watch = CONTAINER_OF(node, struct watch, ready);
        unsigned seen = watch->seen;

        watch->seen = 0;
        fired++;
        watch->fire(watch, seen);
    }
    return fired;
}

uint64_t watches_timeout(struct env_loop *loop, uint64_t timeout_ns) {
    if (!list_is_empty(&loop->watches.changes)) {
        timeout_ns = MIN(timeout_ns, (uint64_t)CHANGES_AGAIN_NS);
    }
    if (list_is_empty(&loop->watches.timers) || timeout_ns == 0) {
        return timeout_ns;
    }
    uint64_t now_ns = env_now_ns(&loop->env->env);
    uint64_t due_ns = loop->watches.due_ns;

    return MIN(timeout_ns, due_ns > now_ns ? due_ns - now_ns : 0);
}
