/* Opening and closing an OST: options, memory, kv. */
#include "store/operations.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    REQUEST_BYTES_MAX = 16 * 1024 * 1024,
    RING_DATA_BYTES_MIN = 256 * 1024,
    STEP_SEGMENTS_MAX = CHANGE_ROWS_MAX - 32,
};

/* One more than whole blocks, as it may begin and end within one. */
uint32_t request_blocks(const struct ost_options *options) {
    return (options->request_bytes_max + BLOCK_BYTES - 1) / BLOCK_BYTES + 1;
}

/* Extents that one transaction takes and frees at most. */
static uint32_t change_extents(const struct ost_options *options) {
    uint32_t of_write = 2 * request_blocks(options);
    uint32_t of_cut = options->step_segments * BLOCKS_PER_SEGMENT;

    return MAX(of_write, of_cut) + BLOCKS_PER_SEGMENT;
}

/* What the record of a transaction takes at most: entries, and a patch of a bitmap for each
 * extent. */
static uint64_t change_record_bytes(const struct ost_options *options) {
    return 4096 + (uint64_t)request_blocks(options) * 16 + (uint64_t)change_extents(options) * 48;
}

static void default_32(uint32_t *option, uint32_t value) {
    *option = *option ? *option : value;
}

static void default_64(uint64_t *option, uint64_t value) {
    *option = *option ? *option : value;
}

static int options_complete(struct ost_options *options, char problem[256]) {
    default_64(&options->grow_bytes, 256 * MIB);
    default_64(&options->sync_bytes, 256 * MIB);
    default_32(&options->file_system_shares, 1);
    default_32(&options->requests_max, 256);
    default_32(&options->io_max, 256);
    default_32(&options->bounce_max, 64);
    default_32(&options->request_bytes_max, 4 * MIB);
    default_32(&options->sessions_max, OST_SESSIONS_DEFAULT);
    default_32(&options->freed_max, 65536);
    default_32(&options->step_segments, 64);
    options->grow_bytes = MAX(options->grow_bytes / BLOCK_BYTES, UINT64_C(64)) * BLOCK_BYTES;
    if (!options->env || !options->data_path || options->target.value == 0) {
        snprintf(problem, 256, "no environment, data path or target id is given");
    } else if (options->request_bytes_max < SEGMENT_BYTES ||
               options->request_bytes_max > REQUEST_BYTES_MAX) {
        snprintf(problem, 256, "request_bytes_max must lie between 64 KiB and 16 MiB");
    } else if (options->step_segments > STEP_SEGMENTS_MAX) {
        snprintf(problem, 256, "step_segments must be at most %d", STEP_SEGMENTS_MAX);
    } else if (options->requests_max < MESSAGE_CLASS_COUNT || options->io_max <= OST_SYNC_IO_MAX) {
        snprintf(problem, 256, "requests_max must be at least %d, io_max above %d",
                 MESSAGE_CLASS_COUNT, OST_SYNC_IO_MAX);
    } else if (options->kv.ring_data_bytes < RING_DATA_BYTES_MIN) {
        snprintf(problem, 256, "the ring needs at least 256 KiB for the bytes of small writes");
    } else if (options->kv.ring_bytes / 8 < change_record_bytes(options)) {
        snprintf(problem, 256, "the ring needs at least %" PRIu64 " KiB for records",
                 change_record_bytes(options) * 8 / KIB + 1);
    } else {
        return 0;
    }
    return -ERR_INVALID;
}

static void lists_init(struct ost *ost) {
    list_init(&ost->free_requests);
    list_init(&ost->free_ios);
    for (size_t class = 0; class < MESSAGE_CLASS_COUNT; class ++) {
        list_init(&ost->calls[class]);
        list_init(&ost->ready[class]);
    }
    list_init(&ost->kv_waiting);
    list_init(&ost->io_waiting);
    list_init(&ost->space_waiting);
    list_init(&ost->yielded);
    list_init(&ost->finished);
    list_init(&ost->pins);
    for (size_t i = 0; i < OST_ACTIVE_BUCKETS; i++) {
        list_init(&ost->active[i]);
    }
}

/* Touched now, so that no page fault comes in a step. */
static uint8_t *buffers_new(size_t count, size_t size) {
    uint8_t *memory = aligned_alloc(BLOCK_BYTES, count * size);

    if (memory) {
        memset(memory, 0, count * size);
    }
    return memory;
}

static int take_buffers(struct ost *ost) {
    const struct ost_options *options = &ost->options;

    ost->requests = calloc(options->requests_max, sizeof *ost->requests);
    ost->entries =
        calloc((size_t)options->requests_max * request_blocks(options), sizeof *ost->entries);
    ost->edges = buffers_new((size_t)options->requests_max * REQUEST_EDGES, BLOCK_BYTES);
    ost->ios = calloc(options->io_max, sizeof *ost->ios);
    ost->bounces = buffers_new(options->bounce_max, OST_BOUNCE_BYTES);
    ost->free_bounces = calloc(options->bounce_max, sizeof *ost->free_bounces);
    if (!ost->requests || !ost->entries || !ost->edges || !ost->ios || !ost->bounces ||
        !ost->free_bounces) {
        return -ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < options->requests_max; i++) {
        struct request *request = &ost->requests[i];

        request->entries = ost->entries + (size_t)i * request_blocks(options);
        for (uint32_t k = 0; k < REQUEST_EDGES; k++) {
            request->edges[k].data = ost->edges + ((size_t)i * REQUEST_EDGES + k) * BLOCK_BYTES;
        }
        list_push_back(&ost->free_requests, &request->node);
    }
    for (uint32_t i = 0; i < options->io_max; i++) {
        list_push_back(&ost->free_ios, &ost->ios[i].node);
    }
    for (uint32_t i = 0; i < options->bounce_max; i++) {
        ost->free_bounces[i] = ost->bounces + (size_t)i * OST_BOUNCE_BYTES;
    }
    ost->free_request_count = options->requests_max;
    ost->free_io_count = options->io_max;
    ost->free_bounce_count = options->bounce_max;
    return 0;
}

/* Where the data file is in memory a read of it is a copy, as one of the cache is: that would hold
 * the same once more. */
static uint64_t cache_bytes_of(const struct ost *ost) {
    struct env_file_ways ways = {.reads = ENV_WAY_NONE};

    if (ost->env->ops->file_ways) {
        ost->env->ops->file_ways(ost->file, &ways);
    }
    return ways.reads == ENV_WAY_COPY ? 0 : ost->options.cache_bytes;
}

static int take_memory(struct ost *ost) {
    const struct ost_options *options = &ost->options;
    uint32_t extents = change_extents(options);
    int r = take_buffers(ost);

    if (r == 0) {
        r = blocks_init(&ost->blocks, ost->block_size_max, MAX(4 * extents, options->freed_max));
    }
    if (r == 0) {
        r = block_cache_init(&ost->cache, cache_bytes_of(ost));
    }
    if (r == 0) {
        r = small_init(&ost->small, options->kv.ring_data_bytes);
    }
    if (r == 0) {
        r = ost_sessions_init(&ost->sessions, options->sessions_max);
    }
    return r < 0 ? r : change_init(&ost->change, &ost->blocks, extents);
}

static void hook_wake(void *context) {
    ost_wake(context);
}

static void hook_data_sync(void *context, uint64_t cut) {
    data_sync_start(context, cut);
}

static void hook_synced(void *context, uint64_t synced) {
    struct ost *ost = context;

    (void)synced;
    space_release(ost);
    load_label(ost);
}

/* Of what the ring holds: blocks of the data file behind its label, and bytes of the data area. */
static bool note_is_sound(const struct ost *ost, const struct store_note *note) {
    uint64_t area_blocks = ost->options.kv.ring_data_bytes / BLOCK_BYTES;
    uint64_t place = note->ring_offset / BLOCK_BYTES % area_blocks;

    return note->block > 0 && note->block < ost->file_blocks &&
           note->block_count <= ost->file_blocks - note->block &&
           note->ring_offset % BLOCK_BYTES == 0 && note->block_count <= area_blocks - place;
}

/* Bytes of small writes that no sync point has written yet are in the ring still. */
static int hook_replay_note(void *context, struct bytes data, uint64_t position, bool in_ring) {
    struct ost *ost = context;
    struct store_note note;
    int r = 0;

    if (data.size != sizeof note) {
        return -ERR_CORRUPT;
    }
    memcpy(&note, data.data, sizeof note);
    if (note.format != STORE_FORMAT) {
        return note.format > STORE_FORMAT ? -ERR_NEWER_FORMAT : -ERR_CORRUPT;
    }
    if (in_ring && !note_is_sound(ost, &note)) {
        return -ERR_CORRUPT;
    }
    for (uint32_t i = 0; r == 0 && in_ring && i < note.block_count; i++) {
        r = small_add(&ost->small, &(struct small_entry){
                                       .block = note.block + i,
                                       .ring_offset = note.ring_offset + (uint64_t)i * BLOCK_BYTES,
                                       .position = position,
                                   });
    }
    return r;
}

static int open_kv(struct ost *ost, char problem[256]) {
    struct kv_options options = ost->options.kv;

    options.sessions_max = options.sessions_max ? options.sessions_max : ost->options.sessions_max;

    options.env = ost->env;
    options.hooks = (struct kv_hooks){.wake = hook_wake,
                                      .data_sync = hook_data_sync,
                                      .synced = hook_synced,
                                      .replay_note = hook_replay_note};
    options.hook_context = ost;
    int r = kv_open(&options, &ost->kv, problem);

    if (r == 0) {
        windows_init(&ost->sessions.windows, kv_outcomes_max(ost->kv), ost->options.sessions_max);
        ost->small.kv = ost->kv;
        assert(kv_synced_position(ost->kv) <= kv_position(ost->kv));
        if (kv_position(ost->kv) > kv_synced_position(ost->kv)) {
            ost->recovered = kv_position(ost->kv);
        }
    }
    return r;
}

static int open_all(struct ost *ost, char problem[256]) {
    ost->label_block = buffers_new(1, BLOCK_BYTES);
    int r = ost->label_block ? load_file(ost, problem) : -ERR_NO_MEMORY;

    if (r == 0) {
        r = take_memory(ost);
    }
    if (r < 0) {
        return r;
    }
    blocks_grow(&ost->blocks, ost->file_blocks);
    ost->reserve_blocks = ost->options.reserve_bytes / BLOCK_BYTES;
    if (ost->options.reserve_bytes == 0) {
        ost->reserve_blocks = MAX(ost->block_size_max / 100, 4 * MIB / BLOCK_BYTES);
        ost->reserve_blocks = MIN(ost->reserve_blocks, ost->block_size_max / 8);
    }
    r = open_kv(ost, problem);
    if (r == 0) {
        r = ost_load_step(ost);
        ost->is_loading = r != 0 || ost->recovered > 0;
        r = r == -ERR_PENDING ? 0 : r;
        if (r < 0) {
            snprintf(problem, 256, "%s", ost->problem[0] ? ost->problem : err_text(r));
        }
    }
    return r;
}

int ost_open(const struct ost_options *options, struct ost **ret_ost, char ret_problem[256]) {
    struct ost *ost = calloc(1, sizeof *ost);

    ret_problem[0] = '\0';
    if (!ost) {
        return -ERR_NO_MEMORY;
    }
    ost->options = *options;
    ost->env = options->env;
    lists_init(ost);
    ticket_signer_init(&ost->ticket_signer, options->keys);
    capability_check_init(&ost->capability_check, options->keys, options->unsigned_allowed);
    ost->slow = (struct slow_log){.limit_ns = options->slow_request_ns,
                                  .target = options->target,
                                  .log = options->log,
                                  .log_context = options->log_context};
    actor_init(&ost->actor, "ost", ost_step);
    ost->wake_message =
        (struct message){.kind = OST_MESSAGE_WAKE, .message_class = MESSAGE_CONTROL};
    int r = options_complete(&ost->options, ret_problem);
    if (r == 0) {
        r = open_all(ost, ret_problem);
    }
    if (r < 0) {
        if (!ret_problem[0]) {
            snprintf(ret_problem, 256, "target %" PRIu32 " cannot be opened: %s",
                     options->target.value, err_text(r));
        }
        ost_abandon(ost);
        return r;
    }
    ost->is_open = true;
    *ret_ost = ost;
    return 0;
}

void ost_close(struct ost *ost) {
    assert(!ost || !ost->kv || (kv_is_idle(ost->kv) && ost_io_is_idle(ost)));
    ost_abandon(ost);
}

void ost_abandon(struct ost *ost) {
    if (!ost) {
        return;
    }
    kv_abandon(ost->kv);
    if (ost->file) {
        ost->env->ops->file_close(ost->file);
    }
    change_deinit(&ost->change);
    signer_deinit(&ost->ticket_signer);
    capability_check_deinit(&ost->capability_check);
    ost_sessions_deinit(&ost->sessions);
    small_deinit(&ost->small);
    block_cache_deinit(&ost->cache);
    blocks_deinit(&ost->blocks);
    free(ost->requests);
    free(ost->entries);
    free(ost->edges);
    free(ost->ios);
    free(ost->bounces);
    free(ost->free_bounces);
    free(ost->label_block);
    free(ost);
}
