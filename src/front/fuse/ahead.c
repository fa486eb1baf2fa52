/* Listings that go on ahead of their program. */
#include "front/fuse/ahead.h"
#include "front/fuse/ops.h"
#include <string.h>

void ahead_init(struct ahead *ahead) {
    *ahead = (struct ahead){0};
    pthread_mutex_init(&ahead->mutex, NULL);
}

void ahead_deinit(struct ahead *ahead) {
    pthread_mutex_destroy(&ahead->mutex);
}

/* Locked. */
static void slot_clear(struct front *front, struct ahead_slot *slot) {
    if (slot->request)
        fuse_request_put(front, TAKE_PTR(slot->request));
    slot->state = AHEAD_IDLE;
    atomic_fetch_sub(&front->ahead.used_count, 1);
}

/* Locked. That of a directory's handle, or NULL. */
static struct ahead_slot *slot_of(struct ahead *ahead, uint64_t handle) {
    for (unsigned i = 0; atomic_load(&ahead->used_count) > 0 && i < AHEAD_SLOTS; i++)
        if (ahead->slots[i].state != AHEAD_IDLE && ahead->slots[i].in.handle == handle)
            return &ahead->slots[i];
    return NULL;
}

/* Locked. One that is idle, or too old for whoever comes. */
static struct ahead_slot *slot_get(struct front *front, uint64_t now_ns) {
    for (unsigned i = 0; i < AHEAD_SLOTS; i++) {
        struct ahead_slot *slot = &front->ahead.slots[i];

        if (slot->state != AHEAD_IDLE && slot->state != AHEAD_FILLING &&
            now_ns - slot->begun_ns >= AHEAD_NS)
            slot_clear(front, slot);
        if (slot->state == AHEAD_IDLE)
            return slot;
    }
    return NULL;
}

static bool slot_fits(const struct ahead_slot *slot, const struct fuse_request *request) {
    const struct abi_in_header *header = request_header(request);
    const struct abi_read_in *in = request_body(request);

    return !slot->dropped && slot->header.opcode == header->opcode &&
           slot->header.uid == header->uid && slot->header.gid == header->gid &&
           slot->in.offset == in->offset && slot->in.size == in->size;
}

/* Where something else was told since, more of that will be: what is listed ahead then is listed
 * in vain, so nothing is for some time. */
static bool slot_holds(const struct ahead_slot *slot, struct front *front) {
    uint64_t now_ns = env_now_ns(front->env);

    if (slot->changes != atomic_load(&front->ahead.changes)) {
        atomic_store(&front->ahead.rest_ns, now_ns + AHEAD_REST_NS);
        return false;
    }
    return now_ns - slot->begun_ns < AHEAD_NS;
}

/* What the kernel is told of now, and was not when it was listed. */
static void entries_tell(const struct fuse_request *request) {
    size_t head_bytes = request->shoal.plus ? sizeof(struct abi_entry_out) : 0;
    const uint8_t *at = request_payload(request);

    for (size_t done = 0; request->shoal.plus && done < request->data_bytes;) {
        const struct abi_entry_out *entry = (const void *)(at + done);
        const struct abi_dirent *dirent = (const void *)(at + done + head_bytes);

        if (entry->nodeid != 0)
            encode_entry_told(request, entry);
        done += (head_bytes + sizeof(*dirent) + dirent->name_bytes + 7) & ~(size_t)7;
    }
}

static void slot_give(struct ahead_slot *slot, struct fuse_request *request) {
    const struct fuse_request *from = slot->request;

    memcpy(request_payload(request), request_payload(from), from->data_bytes);
    request->shoal.plus = from->shoal.plus;
    request->data = request_payload(request);
    request->data_bytes = from->data_bytes;
    request->cookie = from->cookie;
    request->full = from->full;
    entries_tell(request);
}

int ahead_take(struct fuse_request *request) {
    const struct abi_read_in *in = request_body(request);
    struct front *front = request->front;
    struct ahead *ahead = &front->ahead;
    struct ahead_slot *slot;
    int verdict = VERDICT_SUBMIT;

    if (atomic_load(&ahead->used_count) == 0)
        return verdict;
    pthread_mutex_lock(&ahead->mutex);
    slot = slot_of(ahead, in->handle);
    if (slot && slot->state == AHEAD_FILLING) {
        slot->dropped = !slot_fits(slot, request) || !slot_holds(slot, front);
        if (!slot->dropped) {
            request->next = slot->waiting;
            slot->waiting = request;
            verdict = VERDICT_WAIT;
        }
    } else if (slot) {
        if (slot->state == AHEAD_READY && slot_fits(slot, request) && slot_holds(slot, front)) {
            slot_give(slot, request);
            verdict = VERDICT_REPLY;
            atomic_fetch_add(&ahead->taken_count, 1);
        }
        slot_clear(front, slot);
    }
    pthread_mutex_unlock(&ahead->mutex);
    return verdict;
}

void ahead_want(struct fuse_request *request, uint64_t cookie) {
    const struct abi_read_in *in = request_body(request);
    struct front *front = request->front;
    struct ahead *ahead = &front->ahead;
    struct ahead_slot *slot;
    uint64_t now_ns = env_now_ns(front->env);

    if (MIN(front->entry_timeout_ns, front->attributes_timeout_ns) <= AHEAD_NS ||
        now_ns < atomic_load(&ahead->rest_ns) || fair_wait(&front->fair))
        return;
    pthread_mutex_lock(&ahead->mutex);
    slot = slot_of(ahead, in->handle) ? NULL : slot_get(front, now_ns);
    if (slot) {
        *slot = (struct ahead_slot){.state = AHEAD_WANTED,
                                    .header = *request_header(request),
                                    .in = *in,
                                    .begun_ns = now_ns};
        slot->in.offset = cookie;
        atomic_fetch_add(&ahead->used_count, 1);
    }
    pthread_mutex_unlock(&ahead->mutex);
    if (slot)
        front->channel->ahead(front->channel, request->thread_index);
}

bool ahead_close(struct fuse_request *request, uint64_t handle) {
    struct front *front = request->front;
    struct ahead *ahead = &front->ahead;
    struct ahead_slot *slot;
    bool waits;

    if (atomic_load(&ahead->used_count) == 0)
        return true;
    pthread_mutex_lock(&ahead->mutex);
    slot = slot_of(ahead, handle);
    waits = slot && slot->state == AHEAD_FILLING;
    if (waits) {
        slot->dropped = true;
        request->next = slot->waiting;
        slot->waiting = request;
    } else if (slot) {
        slot_clear(front, slot);
    }
    pthread_mutex_unlock(&ahead->mutex);
    return !waits;
}

void ahead_told(struct front *front) {
    /* Where no slot is used, whatever is begun behind this sees at least as much. */
    if (atomic_load(&front->ahead.used_count) > 0)
        atomic_fetch_add(&front->ahead.changes, 1);
}

static struct ahead_slot *slot_with(struct ahead *ahead, const struct fuse_request *request) {
    for (unsigned i = 0; i < AHEAD_SLOTS; i++)
        if (ahead->slots[i].request == request)
            return &ahead->slots[i];
    return NULL;
}

/* While a server is away, or slow: whoever waits asks by himself then, and can be interrupted. */
static int is_of_use(struct shoal_request *shoal) {
    const struct fuse_request *request = shoal->context;
    struct ahead *ahead = &request->front->ahead;
    const struct ahead_slot *slot;
    bool is_over;

    pthread_mutex_lock(&ahead->mutex);
    slot = slot_with(ahead, request);
    is_over = slot->dropped || slot->waiting || atomic_load(&request->front->is_over);
    pthread_mutex_unlock(&ahead->mutex);
    return is_over ? SHOAL_ABANDONED : 0;
}

/* Locked. What takes as long as it would hold is too old for whoever waits, and is listed twice. */
static void slowness_note(struct front *front, const struct ahead_slot *slot) {
    uint64_t now_ns = env_now_ns(front->env);
    uint64_t taken_ns = now_ns - slot->begun_ns;

    if (taken_ns >= AHEAD_NS)
        atomic_store(&front->ahead.rest_ns, now_ns + AHEAD_SLOW_RESTS * taken_ns);
}

static void filled(struct shoal_request *shoal) {
    struct fuse_request *request = shoal->context;
    struct front *front = request->front;
    struct ahead *ahead = &front->ahead;
    struct fuse_request *waiting;
    struct ahead_slot *slot;

    pthread_mutex_lock(&ahead->mutex);
    slot = slot_with(ahead, request);
    waiting = TAKE_PTR(slot->waiting);
    slot->state = AHEAD_READY;
    slowness_note(front, slot);
    if (shoal->result < 0 || slot->dropped)
        slot_clear(front, slot);
    pthread_mutex_unlock(&ahead->mutex);
    while (waiting) {
        struct fuse_request *next = waiting->next;

        fuse_request_start_again(waiting);
        waiting = next;
    }
    fuse_request_leave(front);
}

/* Locked. A request with the memory that it is listed to; false: none is to be had now. */
static bool slot_begin(struct front *front, struct ahead_slot *slot, unsigned thread_index) {
    struct fuse_request *request = NULL;
    struct handle *handle = handle_find(&front->handles, slot->in.handle);

    if (handle && atomic_load(&front->requests.waiting_count) == 0)
        request = request_pool_take(&front->requests);
    if (!request)
        return false;
    request->thread_index = thread_index;
    request->handle = handle;
    fuse_request_lay(request, &slot->header, &slot->in, sizeof(slot->in));
    request_prepare(request, SHOAL_READDIR)->file = handle->file;
    fuse_op_list_prepare(request, slot->header.opcode);
    request->ahead = true;
    request->shoal.done = filled;
    request->shoal.interrupted = is_of_use;
    slot->request = request;
    slot->state = AHEAD_FILLING;
    atomic_fetch_add(&front->ahead.begun_count, 1);
    slot->changes = atomic_load(&front->ahead.changes);
    slot->begun_ns = env_now_ns(front->env);
    return true;
}

bool ahead_run(struct front *front, unsigned thread_index) {
    struct ahead *ahead = &front->ahead;
    struct fuse_request *request = NULL;

    if (atomic_load(&ahead->used_count) == 0)
        return false;
    pthread_mutex_lock(&ahead->mutex);
    for (unsigned i = 0; !request && i < AHEAD_SLOTS; i++) {
        struct ahead_slot *slot = &ahead->slots[i];

        if (slot->state != AHEAD_WANTED)
            continue;
        if (slot_begin(front, slot, thread_index))
            request = slot->request;
        else
            slot_clear(front, slot);
    }
    if (request)
        fuse_request_detach(front);
    pthread_mutex_unlock(&ahead->mutex);
    if (request)
        shoal_submit(front->client, &request->shoal);
    return request != NULL;
}
