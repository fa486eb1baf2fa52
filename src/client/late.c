/* Rounds of late closes; the picture is in late.h. */
#include "client/late.h"
#include "client/client_internal.h"
#include "client/settle.h"
#include <assert.h>

/* That many closes of a round may find that their server is away. */
enum { LATE_AWAY_A_ROUND = 16 };

static void late_send(struct shard *shard);

void late_init(struct late_closes *late) {
    list_init(&late->handles);
}

bool late_takes(int result) {
    return result == -ERR_NO_SPACE || result == -ERR_AWAY || result == -ERR_TIMED_OUT;
}

void late_keep(struct shard *shard, struct shoal_file *handle, struct call *call) {
    struct late_closes *late = &shard->late;
    bool is_full = call->result == -ERR_NO_SPACE;

    handle->close_number = call_number_take(call);
    list_push_back(&late->handles, &handle->node);
    atomic_fetch_add_explicit(is_full ? &late->ever : &late->ever_away, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&late->count, 1, memory_order_relaxed);
}

static void late_over(struct shard *shard, struct shoal_file *handle) {
    struct open_file *file = handle->file;

    call_number_drop(&handle->close_number);
    if (!handle->named) {
        file_handle_removed(file, handle);
    }
    client_handle_put(shard->client, handle);
    file_unpin(file);
    atomic_fetch_sub_explicit(&shard->late.count, 1, memory_order_release);
}

static uint64_t stop_ns(const struct shard *shard) {
    return atomic_load_explicit(&shard->client->session.stop_ns, memory_order_acquire);
}

/* It is tried again, behind the others. */
static void late_put_back(struct shard *shard, struct shoal_file *handle, int result) {
    struct late_closes *late = &shard->late;

    handle->close_number = call_number_take(&late->errand.call);
    list_push_back(&late->handles, &handle->node);
    late->round_away -= MIN(late->round_away, 1U);
    if (result == -ERR_NO_SPACE || late->round_away == 0) {
        late->round = 0;
    }
}

static void late_answered(struct errand *errand) {
    struct shard *shard = errand->shard;
    struct late_closes *late = &shard->late;
    struct shoal_file *handle = late->sent;
    int r = errand->call.result;

    router_leave(&shard->readers, late->parity);
    if (errand_is_over(errand)) {
        late_send(shard);
        return;
    }
    late->sent = NULL;
    if (late_takes(r) && stop_ns(shard) == 0) {
        late_put_back(shard, handle, r);
        late_send(shard);
        return;
    }
    if (r == 0 && late->is_repeated) {
        (void)file_see(handle->file, &errand->call.reply.settle.attributes);
    } else if (r == 0) {
        settle_done(handle->file, &errand->call, late->write_count);
    }
    call_abandon(&errand->call);
    late_over(shard, handle);
    late_send(shard);
}

/* The one that is to be sent again, or the round's next; done when there is none. It is sent again
 * as long as the session lasts, under its number: who let that go could not tell whether it was
 * taken. */
static void late_send(struct shard *shard) {
    struct late_closes *late = &shard->late;

    while (!late->sent && late->round > 0) {
        struct list_node *node = list_pop_front(&late->handles);
        struct shoal_file *handle = CONTAINER_OF(node, struct shoal_file, node);

        late->round--;
        if (client_is_fenced(shard->client) || handle->file->gone) {
            late_over(shard, handle);
        } else {
            late->sent = handle;
        }
    }
    if (!late->sent) {
        return;
    }
    struct open_file *file = late->sent->file;
    errand_init(&late->errand, shard, late_answered, UINT64_MAX);
    late->errand.call.patience_ns = shard->client->options.request_timeout_ns;
    late->errand.call.keeps_number = true;
    late->is_repeated = late->sent->close_number.sequence > 0;
    call_number_give(&late->errand.call, &late->sent->close_number);
    late->write_count = settle_fill_close(file, &late->errand.call, late->sent);
    late->parity = router_enter(&shard->client->router, &shard->readers);
    errand_start_slot(&late->errand, OP_SETTLE, ino_slot(file->ino));
}

static void late_give_up(struct shard *shard) {
    struct late_closes *late = &shard->late;
    struct list_node *node;

    late->round = 0;
    if (late->sent) {
        call_cancel(&late->errand.call);
    }
    while ((node = list_pop_front(&late->handles)) != NULL) {
        late_over(shard, CONTAINER_OF(node, struct shoal_file, node));
    }
}

void late_step(struct shard *shard) {
    struct late_closes *late = &shard->late;
    uint64_t since_ns = stop_ns(shard);
    uint64_t now_ns = env_now_ns(shard->client->options.env);

    atomic_store_explicit(&late->posted, false, memory_order_release);
    if (client_is_fenced(shard->client) || (since_ns > 0 && now_ns - since_ns >= LATE_STOP_NS)) {
        late_give_up(shard);
    } else if (!late->sent) {
        late->round = atomic_load_explicit(&late->count, memory_order_relaxed);
        late->round_away = LATE_AWAY_A_ROUND;
        late_send(shard);
    } else if (since_ns > 0) {
        late->round = atomic_load_explicit(&late->count, memory_order_relaxed) - 1;
        late->round_away = LATE_AWAY_A_ROUND;
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
