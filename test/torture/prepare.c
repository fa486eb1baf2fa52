/* A log that has come far: its records, terms and offsets go on from a position that a test has
 * not the time to reach, or its ring is about to begin a lap. The engine opens and stops; then base
 * and superblocks and, behind one more start, the ring are edited. */
#include "base/crc32c.h"
#include "kv/kv_internal.h"
#include "machine_internal.h"
#include "seed.h"

/* What is a running total of bytes begins a little before a whole lap of that. */
static uint64_t offset_near(uint64_t first, uint64_t unit) {
    return (first - first % unit) - 2 * unit;
}

static void superblocks_edit(struct seed *seed, struct owner *owner, uint64_t first) {
    size_t size;
    const uint8_t *file = machine_file(seed->machine, owner->log_path, &size);

    for (int i = 0; i < 2; i++) {
        struct log_superblock superblock;

        memcpy(&superblock, file + i * BLOCK_BYTES, sizeof superblock);
        superblock.tail_position = first + 1;
        superblock.term = first;
        superblock.tail_offset = offset_near(first, BLOCK_BYTES);
        superblock.counted_from = first;
        /* Earlier versions did not note it. */
        superblock.ring_log2 = first >> 47 > 0 ? 0 : superblock.ring_log2;
        superblock.crc = 0;
        superblock.crc = crc32c(0, &superblock, sizeof superblock);
        machine_edit(seed->machine, file + i * BLOCK_BYTES, &superblock, sizeof superblock);
    }
}

static void applied_edit(struct seed *seed, struct owner *owner, uint64_t first) {
    uint8_t value[24];
    const struct kv_key key = kv_key_make((struct kv_key_fields){
        .space = KV_SPACE_ENGINE, .slot = UINT16_MAX, .type = KV_ROW_APPLIED});

    store_le64(value, 1);
    store_le64(value + 8, first);
    store_le64(value + 16, first);
    machine_base_put(seed->machine, owner->base, &key, (struct bytes){value, sizeof value});
}

static const struct ring_header *ring_header(struct seed *seed, struct owner *owner) {
    size_t size;

    return (const void *)machine_region(seed->machine, owner->ring_name, &size);
}

/* It holds no record, and goes on from there. */
static void ring_edit(struct seed *seed, struct owner *owner, uint64_t offset,
                      uint64_t data_start) {
    const struct ring_header *header = ring_header(seed, owner);
    struct ring_header copy;

    memcpy(&copy, header, sizeof copy);
    for (int i = 0; i < 2; i++) {
        copy.starts[i].offset = offset;
        copy.starts[i].data_start = data_start;
        copy.starts[i].crc = crc32c(0, &copy.starts[i], offsetof(struct ring_start, crc));
        copy.newest[i] = (struct ring_newest){0};
    }
    machine_edit(seed->machine, header->starts, copy.starts,
                 sizeof copy.starts + sizeof copy.newest);
}

static void open_must(struct owner *owner, const char *how) {
    char problem[256] = "";
    int r = owner->ops->open(owner, problem);

    MUST(r == 0, "%s does not open %s: %s: %s", owner->name, how, err_name(r), problem);
}

static void first_life(struct owner *owner) {
    open_must(owner, "first");
    owner_stop(owner);
}

/* Its start is all of it, so that its ring holds no record. */
static void second_life(struct seed *seed, struct owner *owner) {
    open_must(owner, "once more");
    owner->ops->abandon(owner);
    machine_crash(seed->machine, CRASH_KILL);
}

void prepare_far(struct seed *seed, struct owner *owner, uint64_t first) {
    first_life(owner);
    superblocks_edit(seed, owner, first);
    applied_edit(seed, owner, first);
    second_life(seed, owner);
    ring_edit(seed, owner, offset_near(first, LOG_ALIGN), offset_near(first, BLOCK_BYTES));
}

void prepare_late(struct seed *seed, struct owner *owner) {
    struct prng prng;

    first_life(owner);
    second_life(seed, owner);
    const struct ring_header *header = ring_header(seed, owner);
    uint64_t record_bytes = header->record_bytes;
    uint64_t data_bytes = header->data_bytes;
    /* Of its own, so that what else is drawn stays as it is. */
    prng_init(&prng, seed->number);
    ring_edit(seed, owner, record_bytes - LOG_ALIGN * prng_between(&prng, 1, record_bytes / 32),
              data_bytes - BLOCK_BYTES * prng_below(&prng, 8));
}
