/* What must not open. Of what a crash has left something is damaged or forged, a fresh engine must
 * refuse it, and all that is taken back: then the same is opened as it was. */
#include "base/crc32c.h"
#include "group_internal.h"
#include "kv/kv_internal.h"
#include "seed.h"

enum { BATCHES_MAX = 512 };

struct batch_seen {
    uint64_t offset, first, durable;
    size_t bytes;
};

/* What a start finds in the disk log. */
struct log_seen {
    const uint8_t *region;
    uint64_t region_bytes, tail, head, last;
    uint32_t crc;
    struct batch_seen batches[BATCHES_MAX];
    size_t count;
};

static const uint8_t *log_at(const struct log_seen *log, uint64_t offset) {
    return log->region + offset % log->region_bytes;
}

/* The batch there, if it is the one behind the last. */
static bool batch_take(const struct owner *owner, struct log_seen *log, uint64_t offset) {
    uint64_t left = log->region_bytes - offset % log->region_bytes;
    struct log_batch batch;

    if (!machine_file_is_written(owner->machine, owner->log_path,
                                 DISK_LOG_REGION_START + offset % log->region_bytes)) {
        return false;
    }
    memcpy(&batch, log_at(log, offset), sizeof batch);
    if (batch.magic != LOG_BATCH_MAGIC || batch.offset != offset ||
        batch.first_position != log->last + 1 || batch.previous_crc != log->crc ||
        batch.payload_bytes > left - sizeof batch) {
        return false;
    }
    size_t bytes = sizeof batch + batch.payload_bytes;
    uint32_t crc = batch.crc;
    batch.crc = 0;
    if (crc != crc32c(crc32c(0, &batch, sizeof batch), log_at(log, offset) + sizeof batch,
                      batch.payload_bytes)) {
        return false;
    }
    for (size_t at = sizeof batch; at < bytes;) {
        const struct log_record *record = (const void *)(log_at(log, offset) + at);

        log->crc = record->crc;
        at += record_padded(record->length);
    }
    log->batches[log->count++] =
        (struct batch_seen){offset, batch.first_position, batch.durable_upto, bytes};
    log->last = batch.last_position;
    log->head = offset + (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    return true;
}

static bool log_look(const struct owner *owner, struct log_seen *log) {
    struct log_superblock superblock = owner_superblock(owner);
    size_t size;
    const uint8_t *file = machine_file(owner->machine, owner->log_path, &size);

    if (superblock.magic != LOG_SUPERBLOCK_MAGIC) {
        return false;
    }
    *log = (struct log_seen){.region = file + DISK_LOG_REGION_START,
                             .region_bytes = superblock.region_bytes,
                             .tail = superblock.tail_offset,
                             .head = superblock.tail_offset,
                             .last = superblock.tail_position - 1,
                             .crc = superblock.tail_previous_crc};
    while (log->count < BATCHES_MAX && log->head < log->tail + log->region_bytes) {
        uint64_t lap = (log->head + log->region_bytes - 1) / log->region_bytes * log->region_bytes;

        if (!batch_take(owner, log, log->head) &&
            (lap >= log->tail + log->region_bytes || !batch_take(owner, log, lap))) {
            break;
        }
    }
    return true;
}

/* A byte of a batch is another; a later one says that it was durable. */
static bool batch_rot(struct owner *owner, const struct log_seen *log) {
    struct prng *prng = machine_prng(owner->machine);
    size_t chosen = log->count > 0 ? prng_below(prng, log->count) : 0;
    bool known = false;

    for (size_t i = chosen + 1; i < log->count; i++) {
        known = known || log->batches[i].durable >= log->batches[chosen].first;
    }
    if (known) {
        const struct batch_seen *batch = &log->batches[chosen];
        const uint8_t *at = log_at(log, batch->offset) + prng_below(prng, batch->bytes);
        uint8_t other = (uint8_t)(*at ^ 1U << prng_below(prng, 8));

        machine_edit(owner->machine, at, &other, 1);
    }
    return known;
}

/* The ring that the group left, if a start of it takes that one. */
static const struct ring_header *ring_taken(const struct owner *owner) {
    const struct group *group = CONTAINER_OF(owner, const struct group, owner);
    const struct ring_header *header = owner_ring(owner);

    return header &&
                   header->record_bytes == group->options.ring_bytes / BLOCK_BYTES * BLOCK_BYTES &&
                   header->data_bytes == group->options.ring_data_bytes / BLOCK_BYTES * BLOCK_BYTES
               ? header
               : NULL;
}

/* A record that is whole by its new CRC. */
static uint32_t record_forge(struct owner *owner, const struct log_record *record,
                             uint32_t previous_crc, uint32_t more_operations) {
    struct log_record header = *record;

    header.operation_count += more_operations;
    header.crc = record_crc(&header, record + 1, previous_crc);
    machine_edit(owner->machine, record, &header, sizeof header);
    return header.crc;
}

/* The newest record says that it has an operation more than it has. */
static bool count_forge(struct owner *owner, const struct log_seen *log) {
    const struct ring_header *header = ring_taken(owner);
    struct ring_walk walk = {0};
    const struct log_record *record, *newest = NULL;
    uint32_t crc = 0;

    if (!header || !ring_walk_begin(header, &walk)) {
        return false;
    }
    uint32_t previous = walk.crc;
    while ((record = ring_walk_next(&walk))) {
        newest = record;
        crc = previous;
        previous = record->crc;
    }
    if (!newest || newest->position <= log->last || walk.first > log->last + 1) {
        return false;
    }
    (void)record_forge(owner, newest, crc, 1);
    return true;
}

/* The ring of another life, which begins right where the disk log ends: all its records are whole,
 * and behind another one than the disk log's last. */
static bool life_forge(struct owner *owner, const struct log_seen *log) {
    const struct ring_header *header = ring_taken(owner);
    struct ring_walk walk = {0};
    const struct log_record *record;
    size_t records = 0;

    if (!header || !ring_walk_begin(header, &walk) || walk.first != log->last + 1) {
        return false;
    }
    struct ring_start start = *walk.start;
    start.previous_crc ^= 1;
    start.crc = crc32c(0, &start, offsetof(struct ring_start, crc));
    uint32_t crc = start.previous_crc;
    machine_edit(owner->machine, walk.start, &start, sizeof start);
    while ((record = ring_walk_next(&walk))) {
        crc = record_forge(owner, record, crc, 0);
        records++;
    }
    return records > 0;
}

void damage_play(struct seed *seed, size_t point, bool killed) {
    static struct log_seen log;
    struct owner *owner = seed->owners[0];
    size_t mark = machine_event_count(seed->machine);
    uint64_t kind =
        killed && seed->kinds[0] == OWNER_GROUP ? prng_below(machine_prng(seed->machine), 3) : 0;
    char problem[256] = "";

    seed->active = 0;
    owner->ops->settings_of(owner, point);
    if (log_look(owner, &log) && (kind == 0   ? batch_rot(owner, &log)
                                  : kind == 1 ? count_forge(owner, &log)
                                              : life_forge(owner, &log))) {
        size_t edited = machine_event_count(seed->machine);
        int must = kind == 1 ? -ERR_MALFORMED : -ERR_CORRUPT;
        int r = owner->ops->open(owner, problem);

        MUST(r == must, "%s: damage of kind %u answers %s: %s", owner->name, (unsigned)kind,
             err_name(r), problem);
        MUST(kind > 0 || machine_event_count(seed->machine) == edited,
             "%s: a start that is refused for damage has changed something", owner->name);
        MUST(problem[0], "%s: a start is refused without a word", owner->name);
    }
    machine_back(seed->machine, mark, 0);
}

/* As with an earlier version, which had no place for it: a walk goes as far as they are whole. */
void newest_forget(struct owner *owner) {
    static const struct ring_newest none[2];
    const struct ring_header *header = owner_ring(owner);

    if (header) {
        machine_edit(owner->machine, header->newest, none, sizeof none);
    }
}

/* Reads and writes of a start fail, here and there: what it leaves is what one leaves that is
 * killed. Where it was refused the disk may forget what it has not flushed. One whose ring has
 * other sizes may be refused for what that holds, as on a whole disk. */
void opening_fail(struct seed *seed, size_t point) {
    const struct machine_faults faults = {
        .read_fails = 100, .write_fails = 200, .flush_fails = 200, .commit_fails = 200};
    struct owner *owner = seed->owners[0];
    char problem[256] = "";

    seed->active = 0;
    owner->ops->settings_of(owner, point);
    uint16_t losses = owner_superblock(owner).losses;
    machine_faults_set(seed->machine, &faults);
    int r = owner->ops->open(owner, problem);
    machine_faults_set(seed->machine, &(struct machine_faults){0});
    MUST(r == 0 || r == -ERR_IO || (r == -ERR_IN_USE && owner_ring_differs(owner)),
         "%s: a start on a disk that fails answers %s: %s", owner->name, err_name(r), problem);
    if (r == 0) {
        owner->ops->abandon(owner);
    }
    machine_forget(seed->machine);
    owner->may_lose = owner_superblock(owner).losses != losses;
    if (r == -ERR_IO && prng_chance(machine_prng(seed->machine), 1, 2)) {
        machine_file_forget(seed->machine, owner->log_path);
    }
}
