/* The contract is in fair.h. */
#include "front/fuse/fair.h"
#include "front/fuse/ops.h"
#include "front/fuse/request.h"
#include <assert.h>

enum { OF_USER = 2, OF_ROOT = 16 }; /* one in so many */
enum { LARGE_MIN = 2 };

static_assert(FAIR_USERS == 64, "a bit of a word each");

void fair_init(struct fair *fair, struct env *env, uint32_t requests_max, unsigned thread_count) {
    *fair = (struct fair){
        .env = env,
        .requests_max = requests_max,
        .large_max = MAX(thread_count, (unsigned)LARGE_MIN),
    };
    pthread_mutex_init(&fair->mutex, NULL);
}

void fair_deinit(struct fair *fair) {
    pthread_mutex_destroy(&fair->mutex);
}

uint32_t fair_of_user(const struct fair *fair) {
    return MAX(fair->requests_max / OF_USER, UINT32_C(1));
}

static uint32_t of_others(const struct fair *fair) {
    return MAX(fair->requests_max - fair->requests_max / OF_ROOT, UINT32_C(1));
}

/* What the kernel asks for as nobody: it is short, and others may wait for what it frees. */
static bool is_nobodys(uint32_t opcode) {
    return opcode == OPCODE_FORGET || opcode == OPCODE_RELEASE || opcode == OPCODE_RELEASEDIR ||
           opcode == OPCODE_INTERRUPT || opcode == OPCODE_DESTROY || opcode == OPCODE_BATCH_FORGET;
}

bool fair_is_mixed(struct fair *fair) {
    uint64_t mixed_ns = atomic_load_explicit(&fair->mixed_ns, memory_order_relaxed);
    uint64_t now_ns;

    if (mixed_ns == 0)
        return false;
    now_ns = env_now_ns(fair->env);
    return now_ns - MIN(now_ns, mixed_ns) < FAIR_MIXED_NS;
}

bool fair_wanted(struct fair *fair, const struct fuse_request *request, size_t in_bytes,
                 bool at_once) {
    const struct abi_in_header *header = request_header(request);

    if (in_bytes < sizeof *header || is_nobodys(header->opcode))
        return false;
    if (header->uid != atomic_load_explicit(&fair->last_uid, memory_order_relaxed)) {
        atomic_store_explicit(&fair->last_uid, header->uid, memory_order_relaxed);
        atomic_store_explicit(&fair->mixed_ns, env_now_ns(fair->env), memory_order_relaxed);
    }
    return at_once && fair_is_mixed(fair);
}

/* What others wait behind at the daemon. A listing is work of one metadata target, however much of
 * it is asked for. */
static bool is_large(const struct fuse_request *request, size_t in_bytes) {
    uint32_t opcode = request_header(request)->opcode;

    return opcode == OPCODE_READDIR || opcode == OPCODE_READDIRPLUS ||
           fuse_request_is_large(request, in_bytes);
}

static bool is_interrupted(const struct fuse_request *request) {
    return atomic_load(&request->interrupted) == request_header(request)->unique;
}

void fair_put(struct fair *fair, struct fuse_request *request, size_t in_bytes) {
    uint32_t uid = request_header(request)->uid;
    unsigned place = uid % FAIR_USERS;
    struct turn *turn = &fair->users[place];

    request->in_bytes = in_bytes;
    request->next = NULL;
    request->large = is_large(request, in_bytes);
    request->turn = (uint8_t)(place + 1);
    pthread_mutex_lock(&fair->mutex);
    assert(!turn->first == !(fair->waiting >> place & 1));
    if (turn->first)
        turn->last->next = request;
    else
        turn->first = request;
    turn->last = request;
    turn->uid = uid;
    fair->waiting |= UINT64_C(1) << place;
    atomic_fetch_add(&fair->count, 1);
    if (is_interrupted(request)) /* That was read ahead of it. */
        atomic_store(&fair->interrupted, true);
    pthread_mutex_unlock(&fair->mutex);
    atomic_fetch_add_explicit(&fair->put_count, 1, memory_order_relaxed);
}

static bool large_have_room(struct fair *fair, struct turn *turn) {
    uint32_t large = atomic_load(&turn->large);
    uint64_t now_ns;

    if (large == 0)
        turn->stuck = 0;
    if (large < fair->large_max + turn->stuck)
        return true;
    now_ns = env_now_ns(fair->env);
    return now_ns - MIN(now_ns, atomic_load(&fair->mixed_ns)) >= FAIR_LARGE_NS;
}

static bool large_are_stuck(struct fair *fair, struct turn *turn) {
    uint64_t now_ns = env_now_ns(fair->env);

    return now_ns - MIN(now_ns, atomic_load(&turn->moved_ns)) >= FAIR_STUCK_NS;
}

/* What a server that is away keeps at work is no more counted, so that it holds up no other. */
static bool may_begin_large(struct fair *fair, struct turn *turn) {
    if (large_have_room(fair, turn))
        return true;
    if (!large_are_stuck(fair, turn))
        return false;
    turn->stuck = atomic_load(&turn->large) + 1 - fair->large_max;
    return true;
}

/* One that was interrupted. Where large ones are stuck it is counted as none of them, so that all
 * such may begin at once. */
static bool may_hurry(struct fair *fair, struct turn *turn, struct fuse_request *request) {
    if (!request->large || large_have_room(fair, turn))
        return true;
    if (!large_are_stuck(fair, turn))
        return false;
    request->large = false;
    return true;
}

/* Whether one more of this user may be at work. Whose number only ends like root's is not root. */
static bool may_begin(struct fair *fair, struct turn *turn) {
    if (turn->first->large && !may_begin_large(fair, turn))
        return false;
    if (request_header(turn->first)->uid == 0)
        return true;
    return atomic_load(&turn->begun) < fair_of_user(fair) &&
           atomic_load(&fair->others) < of_others(fair);
}

static struct fuse_request *take_behind(struct fair *fair, unsigned place,
                                        struct fuse_request *before) {
    struct turn *turn = &fair->users[place];
    struct fuse_request *request = before ? before->next : turn->first;

    if (before)
        before->next = request->next;
    else
        turn->first = request->next;
    if (turn->last == request)
        turn->last = before;
    if (!turn->first)
        fair->waiting &= ~(UINT64_C(1) << place);
    atomic_fetch_sub(&fair->count, 1);
    atomic_fetch_add(&turn->begun, 1);
    if (request->large) {
        atomic_fetch_add(&turn->large, 1);
        atomic_store(&turn->moved_ns, env_now_ns(fair->env));
    }
    if (request_header(request)->uid != 0)
        atomic_fetch_add(&fair->others, 1);
    return request;
}

/* Whether one of a user's was interrupted, and the one before it. */
static bool find_interrupted(const struct turn *turn, struct fuse_request **ret_before) {
    struct fuse_request *before = NULL;

    for (struct fuse_request *at = turn->first; at; at = at->next) {
        if (is_interrupted(at)) {
            *ret_before = before;
            return true;
        }
        before = at;
    }
    return false;
}

/* In its user's turn, as anybody can interrupt his own programs. */
static struct fuse_request *take_interrupted(struct fair *fair, unsigned place, bool *ret_found) {
    struct turn *turn = &fair->users[place];
    struct fuse_request *before;

    if (!find_interrupted(turn, &before))
        return NULL;
    *ret_found = true;
    return may_hurry(fair, turn, before ? before->next : turn->first)
               ? take_behind(fair, place, before)
               : NULL;
}

static void note_share_met(struct fair *fair, struct turn *turn) {
    atomic_fetch_add_explicit(&fair->share_count, 1, memory_order_relaxed);
    atomic_store_explicit(&fair->last_met, (uint64_t)turn->uid + 1, memory_order_relaxed);
    atomic_store_explicit(&turn->met, (uint64_t)turn->uid + 1, memory_order_relaxed);
}

static struct fuse_request *take_next(struct fair *fair, bool hurry, bool *ret_found) {
    uint64_t left = fair->waiting;

    while (left) {
        uint64_t from = left >> fair->next << fair->next; /* of those behind the last */
        unsigned place = (unsigned)__builtin_ctzll(from ? from : left);
        struct turn *turn = &fair->users[place];
        struct fuse_request *request = hurry ? take_interrupted(fair, place, ret_found) : NULL;

        if (!request && may_begin(fair, turn))
            request = take_behind(fair, place, NULL);
        if (request) {
            fair->next = (place + 1) % FAIR_USERS;
            return request;
        }
        note_share_met(fair, turn);
        left &= ~(UINT64_C(1) << place);
    }
    return NULL;
}

struct fuse_request *fair_take(struct fair *fair) {
    struct fuse_request *request;
    bool found = false;
    bool hurry;

    if (atomic_load(&fair->count) == 0)
        return NULL;
    pthread_mutex_lock(&fair->mutex);
    /* One that is noted while this looks sets the flag anew. */
    hurry = atomic_load(&fair->interrupted) && atomic_exchange(&fair->interrupted, false);
    request = take_next(fair, hurry, &found);
    if (hurry && (found || request)) /* There may be more, here or with users behind. */
        atomic_store(&fair->interrupted, true);
    pthread_mutex_unlock(&fair->mutex);
    return request;
}

void fair_end(struct fair *fair, struct fuse_request *request) {
    struct turn *turn = &fair->users[request->turn - 1];
    uint32_t before = atomic_fetch_sub(&turn->begun, 1);

    assert(before > 0);
    if (request->large) {
        before = atomic_fetch_sub(&turn->large, 1);
        assert(before > 0);
        atomic_store(&turn->moved_ns, env_now_ns(fair->env));
    }
    if (request_header(request)->uid != 0)
        atomic_fetch_sub(&fair->others, 1);
    request->turn = 0;
}

bool fair_to_tell(struct fair *fair, uint64_t now_ns, uint32_t *ret_uid) {
    for (unsigned place = 0; place < FAIR_USERS; place++) {
        struct turn *turn = &fair->users[place];
        bool too_soon = turn->told_ns > 0 && now_ns - turn->told_ns < FAIR_TOLD_NS;

        if (too_soon || atomic_load_explicit(&turn->met, memory_order_relaxed) == 0)
            continue;
        *ret_uid = (uint32_t)(atomic_exchange(&turn->met, 0) - 1);
        turn->told_ns = now_ns;
        return true;
    }
    return false;
}
