/* What every owner's engine goes through. */
#include "owner.h"
#include "base/crc32c.h"
#include "fail.h"
#include "kv/kv_internal.h"

/* A disk that is well and clocks that run true: this is simulated time. */
enum { WAIT_S = 30, TURN_MS = 10 };

struct log_superblock owner_superblock(const struct owner *owner) {
    size_t size = 0;
    const uint8_t *file = machine_file(owner->machine, owner->log_path, &size);
    struct log_superblock newest = {0};

    for (size_t i = 0; file && i < 2 && (i + 1) * BLOCK_BYTES <= size; i++) {
        struct log_superblock superblock;

        memcpy(&superblock, file + i * BLOCK_BYTES, sizeof superblock);
        uint32_t crc = superblock.crc;
        superblock.crc = 0;
        if (crc == crc32c(0, &superblock, sizeof superblock) &&
            superblock.sequence > newest.sequence) {
            newest = superblock;
        }
    }
    return newest;
}

/* Of the ring that is there; 0 of what is none. */
struct ring_sizes {
    size_t records, data;
};

static struct ring_sizes ring_sizes(const struct owner *owner) {
    size_t size = 0;
    const struct ring_header *header =
        (const void *)machine_region(owner->machine, owner->ring_name, &size);
    bool is_ring = header && header->magic == LOG_RING_MAGIC;

    return is_ring ? (struct ring_sizes){(size_t)header->record_bytes, (size_t)header->data_bytes}
                   : (struct ring_sizes){0};
}

/* It holds something that was acknowledged, or sealed: with its own sizes that is replayed. */
static void open_refused(struct owner *owner, const struct ring_sizes *sizes, const char *refusal) {
    struct kv_counters counters;
    char problem[256] = "";

    MUST(owner->ops->ring_be(owner, sizes->records, sizes->data),
         "%s does not open, though its ring has the sizes that are set: %s", owner->name, refusal);
    int r = owner->ops->open(owner, problem);
    MUST(r == 0, "%s does not open with the ring's sizes: %s: %s", owner->name, err_name(r),
         problem);
    kv_counters_get(owner->kv, &counters);
    MUST(counters.replayed_ring_records > 0, "%s is refused for a ring that holds nothing new: %s",
         owner->name, refusal);
}

bool owner_ring_differs(struct owner *owner) {
    struct ring_sizes sizes = ring_sizes(owner);

    return sizes.records > 0 && owner->ops->ring_be(owner, sizes.records, sizes.data);
}

enum total owner_open(struct owner *owner) {
    struct ring_sizes old = ring_sizes(owner);
    char problem[256] = "";

    owner->losses = owner_superblock(owner).losses;
    int r = owner->ops->open(owner, problem);
    if (r == -ERR_IN_USE) {
        open_refused(owner, &old, problem);
        return TOTAL_RINGS_KEPT;
    }
    MUST(r == 0, "%s does not open: %s: %s", owner->name, err_name(r), problem);
    const struct ring *ring = &owner->kv->ring;
    bool same = ring->record_bytes == old.records;
    size_t before = same ? old.data : old.records;
    size_t now = same ? ring->data_bytes : ring->record_bytes;
    return old.records == 0 || before == now ? TOTAL_COUNT
           : now < before                    ? TOTAL_RINGS_SMALLER
                                             : TOTAL_RINGS_LARGER;
}

void owner_wait(struct owner *owner, bool (*done)(struct owner *owner), const char *what) {
    for (int i = 0; i < WAIT_S * 1000 / TURN_MS; i++) {
        for (int k = 0; k < 64 && machine_pump(owner->machine, 4) > 0 && !done(owner); k++) {
            owner->ops->turn(owner);
        }
        owner->ops->turn(owner);
        MUST(kv_failure(owner->kv) == 0, "%s: %s: the log fails: %s", owner->name, what,
             err_name(kv_failure(owner->kv)));
        if (done(owner)) {
            return;
        }
        machine_advance(owner->machine, TURN_MS * NS_PER_MS);
    }
    fail_say("%s: %s has not ended within %d s (sync stage %d, checkpoint stage %d)%s", owner->name,
             what, WAIT_S, (int)owner->kv->sync.stage, (int)owner->kv->checkpoint.stage,
             owner->waits);
}

static int answer;

static bool answered(struct owner *owner) {
    (void)owner;
    return answer <= 0;
}

static void sync_done(struct kv_waiter *waiter, int result) {
    (void)waiter;
    answer = result;
}

void owner_sync(struct owner *owner) {
    struct kv_waiter waiter = {.done = sync_done};

    answer = 1;
    (void)kv_seal(owner->kv);
    kv_sync(owner->kv, &waiter, kv_position(owner->kv));
    owner_wait(owner, answered, "a sync point");
    MUST(answer == 0, "%s: a sync point answers %s", owner->name, err_name(answer));
}

static uint64_t checkpoints_before;

static bool has_checkpoint(struct owner *owner) {
    struct kv_counters counters;

    kv_counters_get(owner->kv, &counters);
    return (counters.checkpoints > checkpoints_before || !owner->kv->checkpoint.wanted) &&
           owner->kv->checkpoint.stage == CHECKPOINT_IDLE;
}

void owner_checkpoint(struct owner *owner) {
    struct kv_counters counters;

    kv_counters_get(owner->kv, &counters);
    checkpoints_before = counters.checkpoints;
    kv_checkpoint_want(owner->kv);
    owner_wait(owner, has_checkpoint, "a checkpoint");
}

static void stopped(void *context, int result) {
    (void)context;
    answer = result;
}

int owner_end(struct owner *owner) {
    answer = 1;
    owner->ops->stop(owner, stopped, NULL);
    for (int i = 0; answer == 1; i++) {
        MUST(i < WAIT_S * 1000 / TURN_MS, "%s: a stop has not ended within %d s", owner->name,
             WAIT_S);
        owner->ops->turn(owner);
        if (answer == 1) {
            (void)machine_pump(owner->machine, 1 + prng_below(machine_prng(owner->machine), 3));
            machine_advance(owner->machine, TURN_MS * NS_PER_MS);
        }
    }
    MUST(kv_is_idle(owner->kv), "%s: a stop has ended while an I/O is in flight", owner->name);
    int result = answer;
    owner->ops->close(owner);
    return result;
}

void owner_stop(struct owner *owner) {
    answer = 1;
    owner->ops->stop(owner, stopped, NULL);
    owner_wait(owner, answered, "a stop");
    MUST(answer == 0, "%s: a stop answers %s", owner->name, err_name(answer));
    MUST(kv_is_idle(owner->kv), "%s: a stop has ended while an I/O is in flight", owner->name);
    owner->ops->close(owner);
}

static bool is_content(struct owner *owner) {
    return owner->ops->content(owner);
}

/* Below the marks at which work begins. */
static bool is_low(struct owner *owner) {
    const struct kv *kv = owner->kv;
    struct kv_counters counters;

    kv_counters_get(kv, &counters);
    return counters.ring_used_bytes <= kv->ring.record_bytes / 2 &&
           counters.disk_log_used_bytes <= kv->log.region_bytes / 8 * 3 &&
           counters.changes_bytes <= kv->options.changes_bytes_max / 2 + 64 * KIB;
}

void owner_lively(struct owner *owner) {
    owner_wait(owner, is_content, "what clients want of a mended machine");
    owner_sync(owner);
    owner_checkpoint(owner);
    owner_wait(owner, is_low, "the way back below the marks");
    owner->ops->left(owner);
}

void owner_kv_check(struct owner *owner) {
    char problem[256];

    MUST(kv_check(owner->kv, problem), "%s: %s", owner->name, problem);
    MUST(owner->kv->base_read || !machine_base_is_read(owner->kv->base),
         "%s: a read of its base has begun that no step ends", owner->name);
}
