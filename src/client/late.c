/* Rounds of late closes, and of opens; the picture is in late.h. */
#include "client/late.h"
#include "client/client_internal.h"
#include "client/settle.h"
#include "rpc/transport.h"
#include <assert.h>

/* That many of a round may find that their server is away. */
enum { LATE_AWAY_A_ROUND = 16 };

static void late_send(struct shard *shard, struct late_line *line);

void late_init(struct late_closes *late) {
    for (uint32_t i = 0; i < ARRAY_SIZE(late->lines); i++) {
        list_init(&late->lines[i].handles);
    }
}

static void late_push(struct shard *shard, struct shoal_file *handle) {
    struct late_line *line = &shard->late.lines[handle->number.sequence > 0];

    list_push_back(&line->handles, &handle->node);
    line->waiting++;
}

/* NULL: none waits. */
static struct shoal_file *late_pop(struct late_line *line) {
    struct list_node *node = list_pop_front(&line->handles);

    line->waiting -= node != NULL;
    return node ? CONTAINER_OF(node, struct shoal_file, node) : NULL;
}

bool late_takes(int result) {
    return result == -ERR_NO_SPACE || call_is_unanswered(result);
}

void late_keep(struct shard *shard, struct shoal_file *handle, struct call *call) {
    struct late_closes *late = &shard->late;
    _Atomic uint64_t *ever = call->result == -ERR_NO_SPACE ? &late->ever
                             : call->result == 0           ? &late->ever_opens
                                                           : &late->ever_away;

    handle->late = LATE_CLOSE;
    handle->number = call_number_take(call);
    late_push(shard, handle);
    atomic_fetch_add_explicit(ever, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&late->count, 1, memory_order_relaxed);
}

bool late_takes_open(const struct call *call) {
    return call_is_unanswered(call->result) && call->was_sent && call->header.sequence > 0;
}

void late_keep_open(struct shard *shard, struct shoal_file *handle, struct call *call) {
    struct late_closes *late = &shard->late;

    handle->late = call->header.opcode == OP_CREATE ? LATE_CREATE : LATE_OPEN;
    assert((handle->late == LATE_CREATE) == !handle->file);
    handle->number = call_number_take(call);
    if (handle->file) {
        file_pin(handle->file);
    }
    late_push(shard, handle);
    atomic_fetch_add_explicit(&late->ever_opens, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&late->count, 1, memory_order_relaxed);
}

/* It is known to be open there, and counted in its file. */
static bool late_is_counted(const struct shoal_file *handle) {
    return handle->file && handle->late == LATE_CLOSE && !handle->named;
}

static void late_over(struct shard *shard, struct shoal_file *handle) {
    struct open_file *file = handle->file;

    call_number_drop(&handle->number);
    if (late_is_counted(handle)) {
        file_handle_removed(file, handle);
    }
    client_handle_put(shard->client, handle);
    if (file) {
        file_unpin(file);
    }
    atomic_fetch_sub_explicit(&shard->late.count, 1, memory_order_release);
}

static uint64_t stop_ns(const struct shard *shard) {
    return atomic_load_explicit(&shard->client->session.stop_ns, memory_order_acquire);
}

/* It is tried again, behind the others. */
static void late_put_back(struct shard *shard, struct late_line *line, struct shoal_file *handle,
                          int result) {
    handle->number = call_number_take(&line->errand.call);
    if (handle->late == LATE_AGAIN && handle->number.sequence > 0) {
        handle->late = LATE_OPEN;
    }
    late_push(shard, handle);
    line->round_away -= MIN(line->round_away, 1U);
    if (result == -ERR_NO_SPACE || line->round_away == 0) {
        line->round = 0;
    }
}

static void late_closed(struct shard *shard, struct late_line *line, struct shoal_file *handle) {
    struct call *call = &line->errand.call;

    if (call->result == 0 && line->is_repeated) {
        (void)file_see(handle->file, &call->reply.settle.attributes);
    } else if (call->result == 0) {
        settle_done(handle->file, call, line->write_count);
    }
    call_abandon(call);
    late_over(shard, handle);
}

/* To the shard of what it has made. It is counted in one of them all the time: a stop waits. */
static void late_move(struct shard *shard, struct shoal_file *handle) {
    struct shard *to = client_shard(shard->client, handle->ino);

    atomic_fetch_add_explicit(&to->late.count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&shard->late.count, 1, memory_order_release);
    handle->message.kind = SHARD_LATE_MADE;
    handle->message.message_class = MESSAGE_REQUEST;
    actor_post(&to->actor, &handle->message);
}

/* False: all places for files are taken. */
static bool late_pin(struct shard *shard, struct shoal_file *handle) {
    struct router *router = &shard->client->router;
    struct peer *peer;

    if (shard_pin(shard, handle->ino, &handle->file) < 0) {
        return false;
    }
    uint32_t parity = router_enter(router, &shard->readers);
    if (handle->late == LATE_CLOSE && router_slot(router, ino_slot(handle->ino), &peer) == 0 &&
        handle->term <= atomic_load_explicit(&peer->over_term, memory_order_acquire)) {
        handle->late = LATE_AGAIN;
    }
    router_leave(&shard->readers, parity);
    if (handle->late == LATE_CLOSE) {
        file_handle_added(handle->file, handle);
    }
    return true;
}

void late_made(struct shard *shard, struct shoal_file *handle) {
    (void)late_pin(shard, handle);
    late_push(shard, handle);
}

static void late_created(struct shard *shard, const struct call *call, struct shoal_file *handle,
                         bool is_over) {
    if (call->reply.create.elsewhere) {
        late_over(shard, handle);
        return;
    }
    handle->late = is_over ? LATE_AGAIN : LATE_CLOSE;
    handle->ino = call->reply.create.attributes.ino;
    handle->term = call->header.term;
    late_move(shard, handle);
}

/* It is open, or will never be by that number. */
static void late_opened(struct shard *shard, struct late_line *line, struct shoal_file *handle) {
    struct call *call = &line->errand.call;
    bool is_over = errand_is_over(&line->errand);

    call_abandon(call);
    if (call->result < 0) {
        late_over(shard, handle);
    } else if (handle->late == LATE_CREATE) {
        late_created(shard, call, handle, is_over);
    } else if (is_over && call->reply.open.name != 0) {
        late_over(shard, handle); /* Memory had it, and nobody presented it. */
    } else {
        handle->late = is_over ? LATE_AGAIN : LATE_CLOSE;
        handle->named = call->reply.open.name != 0;
        handle->file->name = MAX(handle->file->name, call->reply.open.name);
        if (late_is_counted(handle)) {
            file_handle_added(handle->file, handle);
        }
        late_push(shard, handle);
    }
}

static void late_answered(struct errand *errand) {
    struct shard *shard = errand->shard;
    struct late_line *line = CONTAINER_OF(errand, struct late_line, errand);
    struct shoal_file *handle = line->sent;
    int r = errand->call.result;

    router_leave(&shard->readers, line->parity);
    if (handle->late == LATE_CLOSE && (r || errand_is_over(errand) || line->is_repeated)) {
        settle_failed(handle->file, &errand->call);
    }
    if (handle->late == LATE_CLOSE && errand_is_over(errand)) {
        late_send(shard, line);
        return;
    }
    line->sent = NULL;
    if (late_takes(r) && stop_ns(shard) == 0) {
        late_put_back(shard, line, handle, r);
    } else if (handle->late == LATE_CLOSE) {
        late_closed(shard, line, handle);
    } else {
        late_opened(shard, line, handle);
    }
    late_send(shard, line);
}

/* As a release does: the last one that is open by name closes all of them. False: there is nothing
 * to be sent of it now. */
static bool late_take_name(struct shard *shard, struct shoal_file *handle) {
    struct open_file *file = handle->file;

    if (file->named_count > 0 || file->name == 0) {
        late_over(shard, handle);
        return false;
    }
    if (file->opening_count > 0) {
        late_push(shard, handle);
        return false;
    }
    handle->name = file->name;
    file->name = 0;
    return true;
}

static bool late_is_ready(struct shard *shard, struct shoal_file *handle) {
    if (client_is_fenced(shard->client) || (handle->file && handle->file->gone)) {
        late_over(shard, handle);
        return false;
    }
    if (!handle->file && handle->late != LATE_CREATE && !late_pin(shard, handle)) {
        late_push(shard, handle);
        return false;
    }
    return handle->late != LATE_CLOSE || !handle->named || handle->name != 0 ||
           late_take_name(shard, handle);
}

/* One that opens nothing: see late.h. A name is looked at behind that. */
static uint16_t late_fill_create(const struct shoal_file *handle, struct call *call) {
    call->request.create =
        (struct create_request){.parent = handle->ino, .name = {(const uint8_t *)"-", 1}};
    return OP_CREATE;
}

static uint16_t late_fill_open(const struct shoal_file *handle, struct call *call) {
    uint32_t flags = handle->flags & OPEN_FLAGS_THAT_STAY;

    call->request.open = (struct open_request){
        .ino = handle->file->ino, .open_flags = handle->late == LATE_AGAIN ? flags : 0};
    return OP_OPEN;
}

static uint16_t late_fill(struct late_line *line, struct call *call) {
    const struct shoal_file *handle = line->sent;

    if (handle->late == LATE_CREATE) {
        return late_fill_create(handle, call);
    }
    if (handle->late != LATE_CLOSE) {
        return late_fill_open(handle, call);
    }
    line->write_count = settle_fill_close(handle->file, call, handle);
    return OP_SETTLE;
}

/* The one that is to be sent again, or the round's next; done when there is none. It is sent again
 * as long as the session lasts, under its number: who let that go could not tell whether it was
 * taken. */
static void late_send(struct shard *shard, struct late_line *line) {
    struct shoal_file *handle;

    while (!line->sent && line->round > 0 && (handle = late_pop(line)) != NULL) {
        line->round--;
        line->sent = late_is_ready(shard, handle) ? handle : NULL;
    }
    handle = line->sent;
    if (!handle) {
        return;
    }
    struct ino ino = handle->file ? handle->file->ino : handle->ino;
    errand_init(&line->errand, shard, late_answered, UINT64_MAX);
    line->errand.call.patience_ns = shard->client->options.request_timeout_ns;
    line->errand.call.keeps_number = true;
    line->is_repeated = handle->number.sequence > 0;
    call_number_give(&line->errand.call, &handle->number);
    uint16_t opcode = late_fill(line, &line->errand.call);
    line->parity = router_enter(&shard->client->router, &shard->readers);
    errand_start_slot(&line->errand, opcode, ino_slot(ino));
}

static void late_give_up(struct shard *shard, struct late_line *line) {
    struct shoal_file *handle;

    line->round = 0;
    if (line->sent) {
        call_cancel(&line->errand.call);
    }
    while ((handle = late_pop(line)) != NULL) {
        late_over(shard, handle);
    }
}

static void line_step(struct shard *shard, struct late_line *line, uint64_t since_ns) {
    uint64_t now_ns = env_now_ns(shard->client->options.env);

    if (client_is_fenced(shard->client) || (since_ns > 0 && now_ns - since_ns >= LATE_STOP_NS)) {
        late_give_up(shard, line);
    } else if (!line->sent) {
        line->round = line->waiting;
        line->round_away = LATE_AWAY_A_ROUND;
        late_send(shard, line);
    } else if (since_ns > 0) {
        line->round = line->waiting;
        line->round_away = LATE_AWAY_A_ROUND;
    }
}

void late_step(struct shard *shard) {
    struct late_closes *late = &shard->late;
    uint64_t since_ns = stop_ns(shard);

    atomic_store_explicit(&late->posted, false, memory_order_release);
    /* Those that have a number first: the others may need what they give back. */
    for (uint32_t i = ARRAY_SIZE(late->lines); i-- > 0;) {
        line_step(shard, &late->lines[i], since_ns);
    }
}

uint32_t late_wake(struct shoal_client *client) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < CLIENT_SHARDS; i++) {
        struct late_closes *late = &client->shards[i].late;
        uint32_t here = atomic_load_explicit(&late->count, memory_order_acquire);

        count += here;
        if (here > 0 && !atomic_exchange_explicit(&late->posted, true, memory_order_acquire)) {
            late->message.kind = SHARD_LATE;
            actor_post(&client->shards[i].actor, &late->message);
        }
    }
    return count;
}
