/* A shard's step, its tables and pools, and what it knows of files that were closed. */
#include "client/shard.h"
#include "client/client_internal.h"
#include <assert.h>
#include <stdlib.h>

/* Inodes spread unevenly over the shards, so each has room for more than its share. */
static uint32_t shard_share(uint32_t total) {
    uint32_t share = (total + CLIENT_SHARDS - 1) / CLIENT_SHARDS;

    return share < 8 ? share : share + share / 4;
}

static void shard_handle(struct shard *shard, struct message *message) {
    struct operation *operation;
    struct errand *errand;

    switch (message->kind) {
    case CALL_DONE_KIND:
        call_done_message(message);
        break;
    case SHARD_OPERATION:
        operation = CONTAINER_OF(message, struct operation, message);
        operation->step(operation);
        break;
    case SHARD_ERRAND:
        errand = CONTAINER_OF(message, struct errand, message);
        errand_return(errand);
        break;
    case SHARD_REOPEN:
        shard_reopen(CONTAINER_OF(message, struct reopening, message));
        break;
    case SHARD_LATE:
        late_step(shard);
        break;
    case SHARD_LATE_MADE:
        late_made(shard, CONTAINER_OF(message, struct shoal_file, message));
        break;
    case SHARD_LET_GO:
        shard_let_go(shard);
        break;
    default:
        assert(false);
    }
}

static void shard_step(struct actor *actor, struct message *first) {
    struct shard *shard = CONTAINER_OF(actor, struct shard, actor);

    while (first) {
        struct message *message = first;

        first = message->next;
        shard_handle(shard, message);
    }
    piece_wake(&shard->pieces);
}

static int shard_files_init(struct shard *shard, uint32_t count) {
    uint32_t bucket_count = 16;

    while (bucket_count < count) {
        bucket_count *= 2;
    }
    shard->bucket_mask = bucket_count - 1;
    shard->file_count_max = count;
    shard->buckets = calloc(bucket_count, sizeof(struct open_file *));
    shard->files = calloc(count, sizeof *shard->files);
    return shard->buckets && shard->files ? 0 : -ERR_NO_MEMORY;
}

static int shard_readdir_init(struct shard *shard, uint32_t count) {
    shard->readdir_memory = malloc((size_t)count * READDIR_BYTES);
    if (!shard->readdir_memory) {
        return -ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        shard_readdir_put(shard, shard->readdir_memory + (size_t)i * READDIR_BYTES);
    }
    return 0;
}

int shard_init(struct shard *shard, struct shoal_client *client,
               const struct client_options *options) {
    int r;

    actor_init(&shard->actor, "client shard", shard_step);
    shard->client = client;
    list_init(&shard->readdir_waiting);
    late_init(&shard->late);
    r = shard_files_init(shard, shard_share(options->open_files_max));
    r = r ? r : piece_pool_init(&shard->pieces, shard_share(options->chunk_calls_max));
    return r ? r : shard_readdir_init(shard, shard_share(options->readdir_buffers_max));
}

void shard_deinit(struct shard *shard) {
    piece_pool_deinit(&shard->pieces);
    free(shard->readdir_memory);
    free(shard->files);
    free(shard->buckets);
}

static struct open_file **shard_bucket(struct shard *shard, struct ino ino) {
    uint64_t hash = ino.value * UINT64_C(0x9e3779b97f4a7c15);

    return &shard->buckets[(hash >> 26) & shard->bucket_mask];
}

struct open_file *shard_find(struct shard *shard, struct ino ino) {
    struct open_file *file = *shard_bucket(shard, ino);

    while (file && file->ino.value != ino.value) {
        file = file->next;
    }
    return file;
}

int shard_pin(struct shard *shard, struct ino ino, struct open_file **ret_file) {
    struct open_file **bucket = shard_bucket(shard, ino);
    struct open_file *file = shard_find(shard, ino);

    if (!file) {
        file = shard->files_free;
        if (file) {
            shard->files_free = file->next;
        } else if (shard->file_count < shard->file_count_max) {
            file = &shard->files[shard->file_count++];
        } else {
            return -ERR_TOO_MANY_OPEN;
        }
        *file = (struct open_file){.next = *bucket, .shard = shard, .ino = ino};
        list_init(&file->waiting);
        list_init(&file->stale);
        list_init(&file->closing);
        *bucket = file;
    }
    file->pin_count++;
    *ret_file = file;
    return 0;
}

void shard_forget(struct shard *shard, struct open_file *file) {
    struct open_file **link = shard_bucket(shard, file->ino);

    assert(list_is_empty(&file->waiting) && list_is_empty(&file->stale));
    while (!file->evicted && *link != file) {
        link = &(*link)->next;
    }
    if (!file->evicted) {
        *link = file->next;
    }
    file->next = shard->files_free;
    shard->files_free = file;
}

uint8_t *shard_readdir_get(struct shard *shard, struct operation *operation) {
    struct readdir_buffer *buffer = shard->readdir_free;

    if (!buffer) {
        list_push_back(&shard->readdir_waiting, &operation->node);
        return NULL;
    }
    shard->readdir_free = buffer->next;
    return (uint8_t *)buffer;
}

/* Posted, not stepped: the one that gives it back is not done with its own step. */
void shard_readdir_put(struct shard *shard, uint8_t *buffer) {
    struct readdir_buffer *free_buffer = (struct readdir_buffer *)(void *)buffer;
    struct list_node *node = list_pop_front(&shard->readdir_waiting);

    free_buffer->next = shard->readdir_free;
    shard->readdir_free = free_buffer;
    if (node) {
        operation_post(CONTAINER_OF(node, struct operation, node), shard);
    }
}

/* The count first: a file that goes stamps the shard before it leaves the count. */
bool shard_is_plain(const struct shard *shard, uint64_t stamp) {
    return atomic_load_explicit(&shard->overlay_count, memory_order_acquire) == 0 &&
           atomic_load_explicit(&shard->closed_stamp, memory_order_relaxed) <= stamp;
}

bool shard_refresh(struct shard *shard, uint64_t stamp, struct attributes *attributes) {
    struct open_file *file = shard_find(shard, attributes->ino);

    if (file && file->seen) {
        if (!file_see(file, attributes)) {
            *attributes = file->attributes;
        }
        file_overlay(file, attributes);
        return true;
    }
    for (uint32_t i = 0; i < SHARD_CLOSED_MAX; i++) {
        const struct closed_file *closed = &shard->closed[i];

        if (closed->attributes.ino.value == attributes->ino.value && closed->stamp > stamp) {
            if (closed->attributes.epoch > attributes->epoch) {
                *attributes = closed->attributes;
            }
            return true;
        }
    }
    return shard->forgotten_stamp <= stamp;
}

void shard_overlay_begin(struct shard *shard) {
    atomic_fetch_add_explicit(&shard->overlay_count, 1, memory_order_release);
}

void shard_overlay_end(struct shard *shard, const struct attributes *attributes) {
    struct closed_file *closed = &shard->closed[shard->closed_next];
    uint64_t stamp = atomic_fetch_add(&shard->client->close_stamp, 1) + 1;

    shard->closed_next = (shard->closed_next + 1) % SHARD_CLOSED_MAX;
    shard->forgotten_stamp = closed->stamp;
    *closed = (struct closed_file){.attributes = *attributes, .stamp = stamp};
    atomic_store_explicit(&shard->closed_stamp, stamp, memory_order_relaxed);
    atomic_fetch_sub_explicit(&shard->overlay_count, 1, memory_order_release);
}
