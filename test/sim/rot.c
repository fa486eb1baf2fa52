/* Reading a log, flipping a bit of it, reading it again. */
#include "rot.h"
#include "kv/disk_log.h"
#include "life.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char path[] = "kv/log";

/* What there is to find in a log. */
struct log_view {
    int result;
    uint64_t tail;
    uint64_t head;
    uint64_t region_bytes;
    uint64_t last_position;
    uint64_t durable_upto; /* the most that a batch of it knew of */
    char problem[256];
};

static int pass(void *context, const struct log_record *record) {
    (void)context;
    (void)record;
    return 0;
}

/* Batches begin at blocks; the payload of one never looks like the header of another at its own
 * place, as that bears the log's running total. */
static void durable_find(struct disk_log *log, struct log_view *view) {
    for (uint64_t at = view->tail; at < view->head; at += BLOCK_BYTES) {
        const struct log_batch *batch = (const void *)log->stage;

        log->io = (struct env_io){.kind = ENV_IO_READ,
                                  .file = log->file,
                                  .offset = DISK_LOG_REGION_START + at % log->region_bytes,
                                  .buffer = log->stage,
                                  .size = BLOCK_BYTES};
        if (log->env->ops->io_run(log->env, &log->io) == 0 && batch->magic == LOG_BATCH_MAGIC &&
            batch->owner == log->owner && batch->offset == at) {
            view->durable_upto = MAX(view->durable_upto, batch->durable_upto);
        }
    }
}

static void log_look(struct node *node, struct log_view *ret_view) {
    struct kv_options kv = node_kv_options(node);
    struct disk_log_options options = {
        .env = sim_restart(node->process), .path = path, .file_bytes = kv.disk_log_bytes};
    struct log_view view = {.problem = ""};
    struct disk_log log;

    memcpy(options.owner_id, kv.owner_id, sizeof options.owner_id);
    view.result = disk_log_check(&options, view.problem);
    if (view.result == 0) {
        view.result = disk_log_open(&log, &options, view.problem);
    }
    if (view.result == 0) {
        view.tail = log.superblock.tail_offset;
        view.region_bytes = log.region_bytes;
        view.result = disk_log_replay(&log, pass, NULL, view.problem);
        view.head = log.head;
        view.last_position = log.last_position;
        durable_find(&log, &view);
        disk_log_close(&log);
    }
    sim_kill(node->process);
    node->world->own_kills++;
    *ret_view = view;
}

/* Mostly where there is something that is needed. */
static uint64_t bit_draw(struct prng *prng, const struct log_view *view) {
    uint64_t used = view->head - view->tail;
    uint64_t byte = prng_below(prng, view->region_bytes + DISK_LOG_REGION_START);

    if (used > 0 && prng_chance(prng, 7, 8)) {
        uint64_t offset = view->tail + prng_below(prng, used);

        byte = DISK_LOG_REGION_START + offset % view->region_bytes;
    }
    return byte * 8 + prng_below(prng, 8);
}

static bool is_needed(const struct log_view *view, uint64_t bit) {
    uint64_t byte = bit / 8;

    if (byte < DISK_LOG_REGION_START) {
        return true; /* One of two superblocks: an older one may name what is overwritten. */
    }
    uint64_t place = byte - DISK_LOG_REGION_START;
    uint64_t tail_place = view->tail % view->region_bytes;
    uint64_t behind = (place + view->region_bytes - tail_place) % view->region_bytes;
    return behind < view->head - view->tail;
}

static const char *judge(const struct log_view *before, const struct log_view *after, bool needed,
                         int start) {
    bool lost = after->result == 0 && after->last_position < before->durable_upto;

    if (after->result != 0 && after->result != -ERR_CORRUPT) {
        return "another error than damage was found";
    }
    if (start != 0 && start != -ERR_CORRUPT) {
        return "the start was refused with another error than damage";
    }
    if (after->result == -ERR_CORRUPT && start == 0) {
        return "the log is damaged, and the start was not refused";
    }
    if (lost && start == 0) {
        return "records that were known to be durable are missing, and the start was not refused";
    }
    if (start != 0 && !needed) {
        return "the start was refused for a bit that nothing rests on";
    }
    if (start != 0 && after->result == 0 && after->last_position == before->last_position) {
        return "the log is whole, and the start was refused";
    }
    return NULL;
}

bool rot_play(struct node *node, struct prng *prng, struct rot_counters *counters,
              char problem[ROT_PROBLEM_BYTES]) {
    struct log_view before, after;
    char line[256];

    log_look(node, &before);
    if (before.result != 0) {
        return true; /* Its first start was cut off. */
    }
    uint64_t bit = bit_draw(prng, &before);
    if (!sim_disk_flip_bit(node->process, path, bit)) {
        return true; /* Not on disk yet. */
    }
    log_look(node, &after);
    int start = node_try(node, line);
    (void)sim_disk_flip_bit(node->process, path, bit);
    const char *wrong = judge(&before, &after, is_needed(&before, bit), start);
    counters->flipped++;
    counters->refused += start != 0;
    counters->torn += start == 0 && after.last_position < before.last_position;
    if (wrong) {
        snprintf(problem, ROT_PROBLEM_BYTES,
                 "%s, bit %" PRIu64 " of its log (%" PRIu64 " to %" PRIu64 ", up to record %" PRIu64
                 ", now %" PRIu64 ", durable %" PRIu64 "): %s (%s: %.60s, %.60s)",
                 sim_process_name(node->process), bit, before.tail, before.head,
                 before.last_position, after.last_position, before.durable_upto, wrong,
                 err_name(start), line, after.problem);
    }
    return !wrong;
}
