/* Free space: taking blocks for writes, waiting for them, growing the data file. */
#include "store/operations.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* A file system that was full may have room again. */
#define SPACE_RETRY_NS (10 * NS_PER_S)
#define SPACE_NOTE_NS NS_PER_S
#define GROW_BYTES_MIN (16 * MIB)

/* Blocks that writes hold are neither free nor in quarantine, and none lies beyond the limit. */
static bool is_balanced(const struct ost *ost) {
    const struct blocks *blocks = &ost->blocks;

    return ost->held_blocks + blocks->free_count + blocks->quarantine_blocks <=
               blocks->block_count &&
           blocks->block_count <= ost->block_size_max;
}

/* What may still become free or be added, were every sync point taken and the file at its full
 * size, and is not promised. */
uint64_t space_free_blocks(const struct ost *ost) {
    uint64_t unused = ost->blocks.free_count + ost->blocks.quarantine_blocks +
                      (ost->block_size_max - ost->blocks.block_count);

    assert(is_balanced(ost));
    return unused - MIN(unused, ost->blocks.promised_count);
}

/* By how much the file grows when little is left below. */
static uint64_t step_blocks(const struct ost *ost) {
    return MIN(ost->options.grow_bytes, GROW_BYTES_MIN) / BLOCK_BYTES;
}

/* This target's share of what is free below beyond what stays free, in whole steps. */
static uint64_t room_blocks(const struct ost *ost) {
    const struct ost_options *options = &ost->options;
    uint64_t free_bytes;

    if (ost->env->ops->file_space(ost->file, &free_bytes) < 0) {
        free_bytes = UINT64_MAX;
    }
    uint64_t room = free_bytes - MIN(free_bytes, options->keep_free_bytes);
    uint64_t share = room / options->file_system_shares / BLOCK_BYTES;
    return share / step_blocks(ost) * step_blocks(ost);
}

uint64_t space_lacking_blocks(const struct ost *ost) {
    uint64_t wanted = ost->block_size_max - ost->blocks.block_count;
    uint64_t room = ost->grow_failed ? 0 : room_blocks(ost);

    return wanted - MIN(wanted, room);
}

void space_say_full(const struct ost *ost, char *text, size_t size) {
    const struct ost_options *options = &ost->options;
    const char *folder = options->kv.root;
    uint64_t free_bytes = 0;

    (void)!ost->env->ops->file_space(ost->file, &free_bytes);
    snprintf(text, size,
             "the file system of %s%s%s has %" PRIu64 " MiB free, of which keep_free_bytes keeps "
             "%" PRIu64 " MiB: make room there, or lower keep_free_bytes",
             folder ? folder : "", folder ? "/" : "", options->data_path, free_bytes / MIB,
             options->keep_free_bytes / MIB);
}

static void space_wake(struct ost *ost) {
    struct list_node *node;

    while ((node = list_pop_front(&ost->space_waiting))) {
        request_ready(ost, CONTAINER_OF(node, struct request, node));
    }
}

void space_release(struct ost *ost) {
    struct list_node *node = list_first(&ost->pins);
    uint64_t oldest_read =
        node ? CONTAINER_OF(node, struct request, pin)->pin_number : ost->read_number;

    assert(oldest_read <= ost->read_number);
    if (blocks_release(&ost->blocks, kv_synced_position(ost->kv), oldest_read) > 0) {
        space_wake(ost);
    }
}

static void grow_finished(struct ost *ost, struct ost_io *io) {
    uint64_t block_count = (io->io.offset + io->io.size) / BLOCK_BYTES;

    assert(ost->growing && io->io.offset == ost->blocks.block_count * BLOCK_BYTES);
    ost->growing = false;
    if (io->result == 0) {
        blocks_grow(&ost->blocks, block_count);
        assert(is_balanced(ost));
    } else {
        ost->grow_failed = true;
        ost->grow_failed_ns = env_now_ns(ost->env);
        char reason[256];

        if (io->result == -ERR_NO_SPACE) {
            space_say_full(ost, reason, sizeof reason);
        } else {
            snprintf(reason, sizeof reason, "%s", err_text(io->result));
        }
        ost_log(ost, "target %" PRIu32 ": %s cannot grow beyond %" PRIu64 " MiB: %s",
                ost->options.target.value, ost->options.data_path,
                ost->blocks.block_count * BLOCK_BYTES / MIB, reason);
    }
    space_wake(ost);
}

static bool grow_start(struct ost *ost) {
    uint64_t from = ost->blocks.block_count;
    uint64_t count = MIN(ost->block_size_max - from, ost->options.grow_bytes / BLOCK_BYTES);

    if (ost->growing || ost->grow_failed || count == 0) {
        return ost->growing;
    }
    count = MIN(count, MAX(room_blocks(ost), step_blocks(ost)));
    ost->growing = true;
    ost->grow_io.finished = grow_finished;
    ost->grow_io.io = (struct env_io){.kind = ENV_IO_ALLOCATE,
                                      .offset = from * BLOCK_BYTES,
                                      .size = count * BLOCK_BYTES,
                                      .keep_free_bytes = ost->options.keep_free_bytes};
    ost_io_start(ost, &ost->grow_io);
    return true;
}

void space_tick(struct ost *ost) {
    if (ost->grow_failed && env_now_ns(ost->env) - ost->grow_failed_ns >= SPACE_RETRY_NS) {
        ost->grow_failed = false;
    }
}

void space_grow_ahead(struct ost *ost) {
    uint64_t ahead = ost->options.grow_bytes / BLOCK_BYTES / 2;

    if (ost->blocks.free_count < ost->blocks.promised_count + ahead) {
        (void)grow_start(ost);
    }
}

/* Its own pin may be what holds the blocks back. */
static int space_wait(struct ost *ost, struct request *request) {
    edges_forget(request);
    request_wait(request, &ost->space_waiting);
    request_unpin(ost, request);
    return REQUEST_WAITS;
}

static bool is_quarantine_on_disk(const struct ost *ost) {
    const struct blocks *blocks = &ost->blocks;
    uint32_t newest = (blocks->freed_first + blocks->freed_count - 1) % blocks->freed_max;

    assert(blocks->freed_count > 0 && blocks->quarantine_blocks > 0);
    return blocks->freed[newest].position <= kv_synced_position(ost->kv);
}

/* What a wish leaves for others. */
static uint64_t space_kept(const struct ost *ost, const struct space_wish *wish) {
    uint64_t promised = ost->blocks.promised_count;

    return wish->count_new > 0
               ? ost->reserve_blocks + promised - MIN(promised, (uint64_t)wish->count_spent)
               : 0;
}

/* Waits for whatever can still bring blocks; says no when all of it together would not do. Blocks
 * that others hold without a record count, as an overwrite frees as many as it takes; but who holds
 * some does not wait for who may wait for them. */
static int space_short(struct ost *ost, struct request *request, const struct space_wish *wish) {
    uint64_t held = request->has_blocks ? 0 : ost->held_blocks;
    uint64_t most = ost->blocks.free_count + ost->blocks.quarantine_blocks + held;
    uint64_t need = wish->count + space_kept(ost, wish);

    assert(wish->count_new + wish->count_spent <= wish->count);
    if (grow_start(ost)) {
        return space_wait(ost, request);
    }
    if (most < need) {
        return -ERR_NO_SPACE;
    }
    if (ost->blocks.quarantine_blocks == 0 || is_quarantine_on_disk(ost)) {
        /* Other writes end, or reads that hold freed blocks back. */
        return space_wait(ost, request);
    }
    edges_forget(request);
    request_unpin(ost, request);
    request_sync(ost, request, kv_seal(ost->kv));
    return REQUEST_WAITS;
}

/* What is promised is there already: growth may fail. */
static bool space_fits(const struct ost *ost, const struct space_wish *wish) {
    uint64_t free_after = ost->blocks.free_count - wish->count;
    bool may_grow = !ost->grow_failed && ost->blocks.promised_count == 0;
    uint64_t growth = may_grow ? ost->block_size_max - ost->blocks.block_count : 0;

    return ost->blocks.free_count >= wish->count &&
           (wish->count_new == 0 || free_after + growth >= space_kept(ost, wish));
}

/* As if they were taken, and given back at once. */
int space_promise(struct ost *ost, struct request *request, uint32_t count) {
    const struct space_wish wish = {.count = count, .count_new = count};

    if (ost->blocks.free_count < count + space_kept(ost, &wish)) {
        return space_short(ost, request, &wish);
    }
    space_grow_ahead(ost);
    return 0;
}

int space_take(struct ost *ost, struct request *request, const struct space_wish *wish,
               struct block_entry *entries) {
    uint32_t taken = 0;

    if (!space_fits(ost, wish)) {
        return space_short(ost, request, wish);
    }
    while (taken < wish->count) {
        uint64_t first = 0;
        uint32_t count = blocks_take(&ost->blocks, wish->lane, wish->count - taken, &first);

        assert(count > 0); /* free_count says that they are there. */
        for (uint32_t i = 0; i < count; i++) {
            entries[taken + i].block = first + i;
        }
        block_cache_drop(&ost->cache, first, count);
        taken += count;
    }
    ost->held_blocks += taken;
    assert(is_balanced(ost));
    space_grow_ahead(ost);
    return 0;
}

void space_recorded(struct ost *ost, uint32_t count) {
    assert(count <= ost->held_blocks);
    ost->held_blocks -= count;
    space_wake(ost);
}

void space_give_back(struct ost *ost, const struct block_entry *entries, uint32_t count) {
    for (uint32_t i = 0; i < count;) {
        struct extent extent = {entries[i].block, 1};

        while (i + extent.count < count &&
               entries[i + extent.count].block == extent.first + extent.count) {
            extent.count++;
        }
        blocks_give_back(&ost->blocks, extent);
        i += extent.count;
    }
    assert(count <= ost->held_blocks);
    ost->held_blocks -= count;
    assert(is_balanced(ost));
    space_wake(ost);
}

int space_quarantine(struct ost *ost, struct request *request) {
    if (blocks_can_free(&ost->blocks, ost->change.extents_max)) {
        return 0;
    }
    assert(ost->blocks.freed_count > 0 && ost->change.extents_max <= ost->blocks.freed_max);
    uint64_t oldest = ost->blocks.freed[ost->blocks.freed_first].position;

    if (oldest <= kv_synced_position(ost->kv)) {
        return space_wait(ost, request);
    }
    edges_forget(request);
    request_unpin(ost, request);
    request_sync(ost, request, kv_seal(ost->kv));
    return REQUEST_WAITS;
}

static struct statfs_reply space_now(const struct ost *ost) {
    uint64_t held = ost->reserve_blocks + space_lacking_blocks(ost);
    uint64_t free_blocks = space_free_blocks(ost);

    return (struct statfs_reply){.bytes_total = ost->block_size_max * BLOCK_BYTES,
                                 .bytes_free = free_blocks * BLOCK_BYTES,
                                 .bytes_available =
                                     free_blocks > held ? (free_blocks - held) * BLOCK_BYTES : 0};
}

void statfs_run(struct ost *ost, struct request *request) {
    request->call->reply.statfs = space_now(ost);
    request_finish(ost, request, 0);
}

void space_note(struct ost *ost) {
    uint64_t now_ns = env_now_ns(ost->env);
    uint64_t noted_ns = atomic_load(&ost->noted_ns);

    if (ost->is_loading || (noted_ns != 0 && now_ns - noted_ns < SPACE_NOTE_NS)) {
        return;
    }
    struct statfs_reply space = space_now(ost);
    atomic_store(&ost->noted_used_bytes, space.bytes_total - space.bytes_free);
    atomic_store(&ost->noted_available_bytes, space.bytes_available);
    atomic_store(&ost->noted_ns, now_ns);
}

bool ost_space_get(const struct ost *ost, struct ost_space *ret_space) {
    ret_space->used_bytes = atomic_load(&ost->noted_used_bytes);
    ret_space->available_bytes = atomic_load(&ost->noted_available_bytes);
    return atomic_load(&ost->noted_ns) != 0;
}
