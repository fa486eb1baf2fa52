/* What an opening of a group's engine has done, and said, by what it found; and what a fresh engine
 * takes at the most. */
#include "group_internal.h"
#include "kv/kv_internal.h"

enum { LOG_OPENS_MAX = 2 }; /* to look at all of it before something is written, and to replay it */

struct group_findings group_find(struct group *group) {
    struct log_superblock superblock = owner_superblock(&group->owner);
    size_t size = 0;
    const struct ring_header *header =
        (const void *)machine_region(group->owner.machine, group->ring_name, &size);

    return (struct group_findings){.opens = machine_open_count(group->owner.machine),
                                   .ring = header && header->magic == LOG_RING_MAGIC,
                                   .superblock = superblock,
                                   .log = superblock.magic == LOG_SUPERBLOCK_MAGIC};
}

static size_t whole_blocks(size_t bytes) {
    return bytes / BLOCK_BYTES * BLOCK_BYTES;
}

/* Whole blocks of what is set, and nothing lies behind them. */
static void check_sizes(const struct group *group) {
    struct kv *kv = group->owner.kv;
    size_t data_bytes = kv->ring.data_bytes;
    uint64_t last = data_bytes > 0 ? data_bytes - BLOCK_BYTES : 0;

    MUST(kv->ring.record_bytes == whole_blocks(group->options.ring_bytes) &&
             data_bytes == whole_blocks(group->options.ring_data_bytes),
         "the ring has %zu and %zu bytes, set are %zu and %zu", kv->ring.record_bytes, data_bytes,
         group->options.ring_bytes, group->options.ring_data_bytes);
    MUST((kv_data_at(kv, last, BLOCK_BYTES) != NULL) == (data_bytes > 0) &&
             !kv_data_at(kv, last, BLOCK_BYTES + 1),
         "the data area ends elsewhere than at %zu bytes", data_bytes);
}

/* The longest record is not too long, one that is a byte longer is. */
static void check_longest(const struct group *group) {
    struct kv *kv = group->owner.kv;
    size_t longest = kv->ring.record_bytes_max - sizeof(struct log_record);
    struct kv_need need = {.rows = 1, .value_bytes = 8, .record_bytes = (uint32_t)longest};
    struct kv_grant grant;
    int taken = kv_admit(kv, KV_CLASS_CONTROL, &need, &grant);

    need.record_bytes++;
    int refused = kv_admit(kv, KV_CLASS_CONTROL, &need, &grant);
    MUST(taken != -ERR_INVALID && refused == -ERR_INVALID,
         "a record of %zu bytes answers %s, one of a byte more %s", longest, err_name(taken),
         err_name(refused));
}

/* 0, -ERR_NOT_FOUND, or what a disk that fails answers. */
static int batch_read(const struct kv *kv, uint64_t offset, struct log_batch *ret_batch) {
    static _Alignas(BLOCK_BYTES) uint8_t block[BLOCK_BYTES];
    struct env_io io = {.kind = ENV_IO_READ,
                        .file = kv->log.file,
                        .offset = DISK_LOG_REGION_START + offset % kv->log.region_bytes,
                        .buffer = block,
                        .size = sizeof block};

    int r = kv->env->ops->io_run(kv->env, &io);

    memcpy(ret_batch, block, sizeof *ret_batch);
    bool found = ret_batch->magic == LOG_BATCH_MAGIC && ret_batch->offset == offset;
    return r < 0 ? r : found ? 0 : -ERR_NOT_FOUND;
}

/* What the base has is no part of the log any more. */
static void check_tail(const struct group *group) {
    const struct kv *kv = group->owner.kv;
    uint64_t region = kv->log.region_bytes;
    uint64_t lap = (kv->log.tail + region - 1) / region * region;
    struct log_batch batch;

    if (kv->log.tail == kv->log.head || kv->counters.checkpoint_rows > 0) {
        return;
    }
    int r = batch_read(kv, kv->log.tail, &batch);
    r = r == -ERR_NOT_FOUND ? batch_read(kv, lap, &batch) : r;
    MUST(r != -ERR_NOT_FOUND, "the disk log has no batch at its tail");
    MUST(r < 0 || batch.last_position > kv->applied,
         "the disk log begins with the records up to %llu, the base has those up to %llu",
         (unsigned long long)batch.last_position, (unsigned long long)kv->applied);
}

/* The superblock knows how long the longest ring of its log was: of one that an earlier version
 * made it is the longest that the log would take. */
static void check_ring_noted(const struct group *group, const struct log_superblock *before) {
    uint8_t noted = group->owner.kv->log.superblock.ring_log2;
    uint64_t longest = whole_blocks(group->options.ring_bytes);
    uint8_t must = 1;

    if (before->ring_log2 > 0) {
        longest = MAX(longest, UINT64_C(1) << before->ring_log2);
    } else if (before->term > 0) {
        longest = MAX(longest, (before->region_bytes + DISK_LOG_REGION_START) / 8);
    }
    while (longest > UINT64_C(1) << must) {
        must++;
    }
    MUST(noted == must || group->owner.kv->log.superblock_is_damaged,
         "the log had rings of 2^%u bytes, noted is 2^%u", must, noted);
}

void group_check_opened(struct group *group, const struct group_findings *found) {
    uint64_t opens = machine_open_count(group->owner.machine) - found->opens;
    bool gone = found->log && !found->superblock.stopped && !found->ring;

    /* Who can't read the newest superblock goes by the one before, which may not know of a stop. */
    bool known = !group->owner.kv->log.superblock_is_damaged;

    MUST(known ? group->lines_gone == gone : group->lines_gone <= 1,
         "%u lines say that the ring is gone, it is %s", group->lines_gone,
         gone ? "gone" : "there, or not missed");
    MUST(opens <= LOG_OPENS_MAX, "an opening opens its log %llu times", (unsigned long long)opens);
    check_sizes(group);
    check_ring_noted(group, &found->superblock);
    check_tail(group);
    check_longest(group);
}
