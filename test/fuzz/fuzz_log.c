/* What an engine finds when it starts: the disk log and the ring of one that was killed, changed by
 * whatever has come over them. It opens or says why not; if it opens, everything holds that always
 * must, and it takes a record and stops.
 *
 * An input is a byte of enum repair and then edits: u8 area, u16 offset in it, u8 count, bytes. */
#include "fuzz.h"
#include "kv/kv.h"
#include "kv/kv_mem.h"
#include "kv/record.h"
#include "kv/ring.h"
#include "log_edits.h"
#include "memory_env.h"
#include <stdlib.h>

enum {
    RING_BYTES = 65536,
    LOG_BYTES = 8 * RING_BYTES,
    REGION_BYTES = BLOCK_BYTES + RING_BYTES,
    ROUNDS = 4,
    PUMPS_MAX = 4000
};

/* Which checksums are put right once the bytes were changed. */
enum repair {
    REPAIR_SUPERBLOCKS = 1,
    REPAIR_BATCHES = 2,
    REPAIR_RING_HEADER = 4,
    REPAIR_RECORDS = 8,
    WITHOUT_RING = 16,
    ACCEPT_LOSS = 32
};

enum area { SUPERBLOCK_0, SUPERBLOCK_1, BATCHES, RING_HEADER, RING_RECORDS, AREA_COUNT };

/* As the engine left them, and as an input has them; the sizes of what is edited. */
struct image {
    _Alignas(BLOCK_BYTES) uint8_t log[LOG_BYTES];
    _Alignas(BLOCK_BYTES) uint8_t ring[REGION_BYTES];
};
static struct image kept, changed;
static bool is_made;

struct life {
    struct memory_env *world;
    struct kv_mem_store *store;
    struct kv *kv;
    bool woken;
    char problem[256];
};

static void wake(void *context) {
    ((struct life *)context)->woken = true;
}

static void life_begin(struct life *life) {
    const struct kv_mem_options store = {.cold_denominator = 1};
    int r;

    *life = (struct life){0};
    r = memory_env_new(1, &life->world);
    assert(r == 0);
    r = kv_mem_store_new(&store, &life->store);
    assert(r == 0);
}

static int life_open(struct life *life, bool accept_loss) {
    const struct kv_options options = {.env = memory_env_env(life->world),
                                       .directory = "t",
                                       .shared_name = "ring",
                                       .accept_loss = accept_loss,
                                       .base = &kv_mem_ops,
                                       .base_store = life->store,
                                       .owner_id = "0123456789abcde",
                                       .ring_bytes = RING_BYTES,
                                       .disk_log_bytes = LOG_BYTES,
                                       .changes_bytes_max = 512 * KIB,
                                       .sync_interval_ns = NS_PER_S,
                                       .outcomes_max = 64,
                                       .sessions_max = 16,
                                       .hooks = {.wake = wake},
                                       .hook_context = life};

    return kv_open(&options, &life->kv, life->problem);
}

static void life_end(struct life *life) {
    kv_abandon(life->kv);
    kv_mem_store_free(life->store);
    memory_env_free(life->world);
}

/* A row and an outcome, sealed. */
static int life_write(struct life *life, uint64_t id) {
    static const uint8_t content[300] = {1};
    const struct bytes value = {content, 40 + id % 200};
    const struct kv_key key =
        kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT, .type = 'T', .id = id});
    const struct kv_outcome outcome = {
        .session = {1 + id % 3}, .sequence = id, .floor = id, .reply = {content, 9}};
    const struct kv_need need = {.rows = 1,
                                 .value_bytes = (uint32_t)value.size,
                                 .record_bytes = (uint32_t)(KV_ROW_RECORD_BYTES + value.size),
                                 .session = outcome.session,
                                 .floor = id};
    struct kv_grant grant;
    int r = kv_admit(life->kv, KV_CLASS_REQUEST, &need, &grant);

    if (r < 0) {
        return r;
    }
    kv_begin(life->kv, &grant);
    r = kv_put(life->kv, &key, value);
    assert(r == 0);
    r = kv_outcome_put(life->kv, &outcome);
    assert(r == 0);
    (void)kv_commit(life->kv);
    (void)kv_seal(life->kv);
    return 0;
}

static void life_go_on(struct life *life) {
    memory_env_advance(life->world, 2 * NS_PER_S);
    for (int i = 0; i == 0 || ((life->woken || !kv_is_idle(life->kv)) && i < PUMPS_MAX); i++) {
        life->woken = false;
        (void)memory_env_pump(life->world, 8);
        kv_step(life->kv);
    }
}

static void log_transfer(struct memory_env *world, enum env_io_kind kind, uint8_t *bytes) {
    struct env *env = memory_env_env(world);
    struct env_io io = {.kind = kind, .buffer = bytes, .size = LOG_BYTES};
    int r = env->ops->file_open(env, "t/log", ENV_FILE_CREATE, &io.file);

    assert(r == 0);
    r = env->ops->io_run(env, &io);
    assert(r == 0);
    env->ops->file_close(io.file);
}

static uint8_t *ring_region(struct memory_env *world) {
    struct env *env = memory_env_env(world);
    struct env_shared *shared;
    bool created;
    int r = env->ops->shared_open(env, "ring", REGION_BYTES, &shared, &created);

    assert(r == 0);
    return env->ops->shared_data(shared);
}

/* Some of it is in the disk log, some in the ring only. */
static void image_make(void) {
    struct life life;

    life_begin(&life);
    int r = life_open(&life, false);
    assert(r == 0);
    for (uint64_t i = 1; i <= 10 * ROUNDS; i++) {
        r = life_write(&life, i);
        assert(r == 0);
        if (i % 10 == 0 && i < 10 * ROUNDS) {
            life_go_on(&life);
        }
    }
    memory_env_kill(life.world);
    log_transfer(life.world, ENV_IO_READ, kept.log);
    memcpy(kept.ring, ring_region(life.world), REGION_BYTES);
    life_end(&life);
    is_made = true;
}

static struct buffer area_of(enum area area) {
    switch (area) {
    case SUPERBLOCK_0:
    case SUPERBLOCK_1:
        return (struct buffer){changed.log + area * BLOCK_BYTES, 0, sizeof(struct log_superblock)};
    case BATCHES:
        return (struct buffer){changed.log + DISK_LOG_REGION_START, 0, 8 * BLOCK_BYTES};
    case RING_HEADER:
        return (struct buffer){changed.ring, 0, sizeof(struct ring_header)};
    default:
        return (struct buffer){changed.ring + BLOCK_BYTES, 0, RING_BYTES};
    }
}

static void edit(struct wire_cursor *cursor) {
    struct buffer area = area_of((enum area)(wire_take_number(cursor, 1) % AREA_COUNT));
    size_t at = wire_take_number(cursor, 2) % area.capacity;
    size_t count = wire_take_number(cursor, 1);
    const uint8_t *from = wire_take(cursor, count);

    if (from) {
        memcpy(area.data + at, from, MIN(count, area.capacity - at));
    }
}

static void repair(enum repair what) {
    const struct ring_header *header = (const void *)changed.ring;
    uint64_t at = header->starts[header->starts[1].sequence > header->starts[0].sequence].offset;

    if (what & REPAIR_SUPERBLOCKS) {
        log_edits_superblocks(changed.log);
    }
    if (what & REPAIR_BATCHES) {
        (void)log_edits_batches(changed.log, LOG_BYTES, what & REPAIR_RECORDS);
    }
    if (what & REPAIR_RECORDS) {
        at = at % RING_BYTES / LOG_ALIGN * LOG_ALIGN;
        (void)log_edits_records(changed.ring + BLOCK_BYTES + at, RING_BYTES - at,
                                header->starts[0].previous_crc);
    }
    if (what & REPAIR_RING_HEADER) {
        log_edits_ring_header((void *)changed.ring);
    }
}

static void stop_done(void *context, int result) {
    (void)result;
    *(bool *)context = true;
}

/* It is open: all holds, also behind one more record and a stop. */
static void check_open(struct life *life) {
    bool stopped = false;

    assert(kv_check(life->kv, life->problem));
    if (life_write(life, 1000) == 0) {
        assert(kv_check(life->kv, life->problem));
    }
    kv_stop_start(life->kv, stop_done, &stopped);
    life_go_on(life);
    assert(stopped || kv_failure(life->kv) < 0);
}

void fuzz_log_files(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    enum repair what = (enum repair)wire_take_number(&cursor, 1);
    struct life life;

    if (!is_made) {
        image_make();
    }
    memcpy(&changed, &kept, sizeof changed);
    while (cursor.size > 0 && !cursor.bad) {
        edit(&cursor);
    }
    repair(what);
    life_begin(&life);
    log_transfer(life.world, ENV_IO_WRITE, changed.log);
    if (!(what & WITHOUT_RING)) {
        memcpy(ring_region(life.world), changed.ring, REGION_BYTES);
    }
    int r = life_open(&life, what & ACCEPT_LOSS);
    if (r == 0) {
        check_open(&life);
    } else {
        assert(life.problem[0] && memchr(life.problem, '\0', sizeof life.problem));
    }
    life_end(&life);
}

void seed_log_files(const struct fuzz_seeds *seeds) {
    const uint8_t all = REPAIR_SUPERBLOCKS | REPAIR_BATCHES | REPAIR_RING_HEADER | REPAIR_RECORDS;

    fuzz_seed(seeds, (struct bytes){&all, 1});
    for (uint8_t area = 0; area < AREA_COUNT; area++) {
        const uint8_t seed[] = {all, area, 40, 0, 2, 1, 1};

        fuzz_seed(seeds, (struct bytes){seed, sizeof seed});
    }
}

/* Bodies of records alone: what is read is what its writer would write. */
void fuzz_record(struct bytes in) {
    static uint8_t space[FUZZ_INPUT_BYTES_MAX + 8];
    struct bytes body = in;
    int count = record_count(in), taken = 0;
    int r;

    assert(count >= 0 || count == -ERR_MALFORMED);
    for (;; taken++) {
        const uint8_t *from = body.data;
        struct record_operation operation;
        size_t size = 0;

        r = record_next(&body, &operation);
        if (r < 0) {
            break;
        }
        switch (operation.kind) {
        case LOG_PUT:
            size = record_write_put(space, &operation.key, operation.value);
            break;
        case LOG_DELETE:
            size = record_write_delete(space, &operation.key);
            break;
        case LOG_PATCH:
            size = record_write_patch(space, &operation.key, operation.offset, operation.value);
            break;
        case LOG_NOTE:
            size = record_write_note(space, operation.value);
            break;
        case LOG_OUTCOME:
            size = record_write_outcome(space, &operation.outcome);
            break;
        default:
            size = record_write_drop(space, operation.outcome.session);
        }
        assert(size == (size_t)(body.data - from));
        /* Reserved bytes of either header are not looked at. */
        size_t fixed = sizeof(struct log_operation) +
                       (operation.kind == LOG_OUTCOME ? sizeof(struct log_outcome) : 0);
        assert(size == fixed || memcmp(space + fixed, from + fixed, size - fixed) == 0);
    }
    assert(count >= 0 ? r == -ERR_NOT_FOUND && taken == count : r == -ERR_MALFORMED);
}

void seed_record(const struct fuzz_seeds *seeds) {
    static const uint8_t reply[5] = {1};
    const struct kv_key key = kv_key_make((struct kv_key_fields){.space = 1, .type = 'T'});
    const struct kv_outcome outcome = {
        .session = {4}, .sequence = 5, .floor = 2, .reply = {reply, sizeof reply}};
    const struct bytes value = {reply, sizeof reply};
    uint8_t body[512];
    size_t size = record_write_put(body, &key, value);

    size += record_write_patch(body + size, &key, 3, value);
    size += record_write_delete(body + size, &key);
    size += record_write_note(body + size, value);
    size += record_write_outcome(body + size, &outcome);
    size += record_write_drop(body + size, outcome.session);
    fuzz_seed(seeds, (struct bytes){body, size});
}
