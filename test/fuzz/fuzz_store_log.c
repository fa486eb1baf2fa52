/* Notes of small writes, as the start of a storage target finds them: some in its disk log, whose
 * bytes a sync point has written, some in its ring, with their bytes beside them. The target was
 * killed; then both are edited. It does not open and says why; or it answers what it is asked,
 * writes out what the notes name and starts again: nothing has come over its label.
 *
 * An input is a byte, whether checksums stay as they are, and then edits: u8 of enum place, where,
 * u8 count, bytes; where is a note's u8 number and u8 offset in it, or u16 offset. */
#include "fuzz.h"
#include "kv/record.h"
#include "kv/ring.h"
#include "log_edits.h"
#include "ost_world.h"
#include "store/store_format.h"

enum {
    CHUNK = 4 * SEGMENT_BYTES,
    INO = 17,
    FILLED = SEGMENT_BYTES + BLOCK_BYTES,
    LOG_EDITED_BYTES = DISK_LOG_REGION_START + 8 * BLOCK_BYTES,
    GROW_BYTES = 512 * KIB,
    NOTES_MAX = 32,
    CALL_SECONDS = 5
};

enum place { RING_NOTE, LOG_NOTES, RING_BYTES_AT, LOG_BYTES_AT, PLACES };

/* What was left, and the notes in it. */
struct left {
    _Alignas(BLOCK_BYTES) uint8_t log[LOG_EDITED_BYTES];
    uint8_t *ring; /* header, records, data */
    size_t ring_bytes;
    struct buffer ring_notes[NOTES_MAX], log_notes[NOTES_MAX];
    uint32_t ring_count, log_count;
};

static uint8_t data[FILLED];
static char problem[256];

static const struct ost_place small_places[] = {
    {.ino = {INO}, .generation = 1, .chunk_bytes = CHUNK, .size = 900},
    {.ino = {INO}, .generation = 1, .chunk_bytes = CHUNK, .offset = 700, .size = 9000},
    {.ino = {INO}, .generation = 1, .chunk_bytes = CHUNK, .offset = 5 * BLOCK_BYTES, .size = 4096},
};

static void small_write(struct ost_world *world) {
    for (size_t i = 0; i < ARRAY_SIZE(small_places); i++) {
        int r = ost_world_write(world, &small_places[i], data);

        assert(r == 0);
    }
}

/* Killed, with notes in its log and in its ring. */
static struct ost_world *world_begin(void) {
    struct ost_world *world = ost_world_new(1);
    struct ost_options *options = &world->options;

    /* Small, as it is opened three times an input. */
    options->request_bytes_max = SEGMENT_BYTES;
    options->requests_max = MESSAGE_CLASS_COUNT;
    options->step_segments = 4;
    options->data_bytes_max = GROW_BYTES;
    options->grow_bytes = GROW_BYTES;
    options->kv.ring_bytes = 128 * KIB;
    options->kv.ring_data_bytes = 256 * KIB;
    options->kv.disk_log_bytes = MIB;
    options->kv.changes_bytes_max = 256 * KIB;
    options->kv.outcomes_max = 2048;
    int r = ost_world_open(world, problem);

    assert(r == 0);
    ost_world_attach(world);
    small_write(world);
    r = ost_world_sync(world);
    assert(r == 0);
    small_write(world);
    ost_world_crash(world, false);
    return world;
}

static void log_transfer(struct ost_world *world, enum env_io_kind kind, struct left *left) {
    struct env *env = memory_env_env(world->env);
    struct env_io io = {.kind = kind, .buffer = left->log, .size = sizeof left->log};
    int r = env->ops->file_open(env, "t/log", 0, &io.file);

    assert(r == 0);
    r = env->ops->io_run(env, &io);
    assert(r == 0);
    env->ops->file_close(io.file);
}

static struct env_shared *ring_map(struct ost_world *world, struct left *left) {
    const struct kv_options *options = &world->options.kv;
    struct env *env = memory_env_env(world->env);
    struct env_shared *shared;
    bool created;

    left->ring_bytes = ring_region_bytes(options->ring_bytes, options->ring_data_bytes);
    int r = env->ops->shared_open(env, options->shared_name, left->ring_bytes, &shared, &created);
    assert(r == 0 && !created);
    left->ring = env->ops->shared_data(shared);
    return shared;
}

static struct ring_start *newest_start(struct ring_header *header) {
    return &header->starts[header->starts[1].sequence > header->starts[0].sequence];
}

/* Where the ring's records begin, in the region. */
static size_t records_start(const struct left *left) {
    struct ring_header *header = (void *)left->ring;

    return BLOCK_BYTES + newest_start(header)->offset % header->record_bytes;
}

/* Of the records from here on, as they were left. */
static uint32_t notes_find(uint8_t *at, size_t size, struct buffer *notes, uint32_t count) {
    struct record_operation operation;

    while (size >= sizeof(struct log_record)) {
        const struct log_record *record = (const void *)at;
        struct bytes body = {at + sizeof *record, 0};

        if (record->magic != LOG_RECORD_MAGIC) {
            return count;
        }
        assert(record->length <= size);
        body.size = record->length - sizeof *record;
        while (record_next(&body, &operation) == 0) {
            if (operation.kind == LOG_NOTE && count < NOTES_MAX) {
                notes[count++] = (struct buffer){at + (operation.value.data - at),
                                                 operation.value.size, operation.value.size};
            }
        }
        size -= MIN(record_padded(record->length), size);
        at += record_padded(record->length);
    }
    return count;
}

static void left_find(struct left *left) {
    size_t start = records_start(left);

    left->ring_count =
        notes_find(left->ring + start, left->ring_bytes - start, left->ring_notes, 0);
    left->log_count = 0;
    for (size_t at = DISK_LOG_REGION_START; at < sizeof left->log;) {
        struct log_batch *batch = (void *)(left->log + at);
        size_t bytes = sizeof *batch + batch->payload_bytes;

        if (batch->magic != LOG_BATCH_MAGIC) {
            break;
        }
        assert(bytes <= sizeof left->log - at);
        left->log_count = notes_find((uint8_t *)(batch + 1), batch->payload_bytes, left->log_notes,
                                     left->log_count);
        at += (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    }
    assert(left->ring_count > 1 && left->log_count > 1);
}

static struct buffer note_take(struct wire_cursor *cursor, const struct buffer *notes,
                               uint32_t count) {
    struct buffer note = notes[wire_take_number(cursor, 1) % count];
    size_t at = wire_take_number(cursor, 1) % note.capacity;

    return (struct buffer){note.data + at, 0, note.capacity - at};
}

static struct buffer place_take(struct left *left, struct wire_cursor *cursor) {
    size_t start = records_start(left);
    size_t at;

    switch (wire_take_number(cursor, 1) % PLACES) {
    case RING_NOTE:
        return note_take(cursor, left->ring_notes, left->ring_count);
    case LOG_NOTES:
        return note_take(cursor, left->log_notes, left->log_count);
    case RING_BYTES_AT:
        at = start + wire_take_number(cursor, 2) % (left->ring_bytes - start);
        return (struct buffer){left->ring + at, 0, left->ring_bytes - at};
    default:
        at = DISK_LOG_REGION_START +
             wire_take_number(cursor, 2) % (sizeof left->log - DISK_LOG_REGION_START);
        return (struct buffer){left->log + at, 0, sizeof left->log - at};
    }
}

static void left_edit(struct left *left, struct wire_cursor *cursor) {
    struct buffer place = place_take(left, cursor);
    size_t count = wire_take_number(cursor, 1);
    const uint8_t *bytes = wire_take(cursor, count);

    if (bytes) {
        memcpy(place.data, bytes, MIN(count, place.capacity));
    }
}

/* The records of the ring follow those of the log. */
static void left_repair(struct left *left) {
    struct ring_header *header = (void *)left->ring;
    struct ring_start *start = newest_start(header);
    size_t at = records_start(left);

    start->previous_crc = log_edits_batches(left->log, sizeof left->log, true);
    (void)log_edits_records(left->ring + at, BLOCK_BYTES + header->record_bytes - at,
                            start->previous_crc);
    log_edits_ring_header(header);
}

/* As they were left, edited. */
static void left_play(struct ost_world *world, struct wire_cursor *cursor) {
    static struct left left;
    bool is_left = wire_take_number(cursor, 1) & 1;
    struct env_shared *shared = ring_map(world, &left);

    log_transfer(world, ENV_IO_READ, &left);
    left_find(&left);
    while (cursor->size > 0 && !cursor->bad) {
        left_edit(&left, cursor);
    }
    if (!is_left) {
        left_repair(&left);
    }
    log_transfer(world, ENV_IO_WRITE, &left);
    memory_env_env(world->env)->ops->shared_close(shared);
}

static int ask(struct ost_call *call) {
    struct env *env = memory_env_env(call->world->env);

    call->call.deadline_ns = env_now_ns(env) + CALL_SECONDS * NS_PER_S;
    int r = ost_call_run(call);
    assert(r <= 0);
    return r;
}

/* Whatever it answers: bytes that a note names wrongly have other checksums. */
static void data_ask(struct ost_world *world) {
    for (size_t i = 0; i < ARRAY_SIZE(small_places); i++) {
        struct ost_call *call = ost_call_get(world, OP_CHUNK_READ);

        ost_call_read(call, &small_places[i]);
        int r = ask(call);
        assert(r < 0 || call->call.bulk_in.size == small_places[i].size);
        call = ost_call_get(world, OP_CHUNK_WRITE);
        ost_call_write(call, &small_places[i], data);
        (void)ask(call);
    }
}

static bool serves(struct ost_world *world) {
    return ask(ost_call_get(world, OP_STATFS)) == 0;
}

static void opened(struct ost_world *world) {
    struct ost_call *call = ost_call_get(world, OP_SESSION_ATTACH);

    call->call.request.session_attach = (struct session_attach_request){
        .session = OST_SESSION, .incarnation = OST_INCARNATION, .node = 1};
    (void)ask(call);
    data_ask(world);
    int r = ask(ost_call_get(world, OP_SYNC));
    assert(r == 0);
    /* It grows by so much at a time, and nothing was written behind its end. */
    assert(memory_env_size(world->env, world->options.data_path) % GROW_BYTES == 0);
    data_ask(world);
    ost_world_stop(world);
    r = ost_world_open(world, problem);
    assert(r == 0 && serves(world));
}

void fuzz_store_log(struct bytes in) {
    struct ost_world *world = world_begin();
    struct wire_cursor cursor = fuzz_cursor(in);

    left_play(world, &cursor);
    int r = ost_world_open(world, problem);
    assert(r == 0 || (problem[0] && memchr(problem, '\0', sizeof problem)));
    if (r == 0 && serves(world)) {
        opened(world);
    }
    ost_world_free(world);
}

static void give_place(struct buffer *out, enum place place, uint8_t number, size_t field) {
    wire_give_number(out, place, 1);
    wire_give_number(out, number, 1);
    wire_give_number(out, field, 1);
}

static void give_bytes(struct buffer *out, size_t bytes, uint64_t value) {
    wire_give_number(out, bytes, 1);
    wire_give_number(out, value, bytes);
}

void seed_store_log(const struct fuzz_seeds *seeds) {
    static const size_t block = offsetof(struct store_note, block);
    static const size_t ring = offsetof(struct store_note, ring_offset);
    static const size_t count = offsetof(struct store_note, block_count);
    uint8_t space[256];
    struct buffer out = {space, 0, sizeof space};

    wire_give_number(&out, 0, 1);
    fuzz_seed(seeds, (struct bytes){space, out.size});
    give_place(&out, RING_NOTE, 0, block);
    give_bytes(&out, 8, 40);
    give_place(&out, RING_NOTE, 1, ring);
    give_bytes(&out, 8, 8 * BLOCK_BYTES);
    fuzz_seed(seeds, (struct bytes){space, out.size});
    out.size = 1;
    give_place(&out, RING_NOTE, 0, count);
    give_bytes(&out, 4, 2);
    give_place(&out, RING_NOTE, 0, block);
    give_bytes(&out, 8, GROW_BYTES / BLOCK_BYTES - 1);
    fuzz_seed(seeds, (struct bytes){space, out.size});
    out.size = 1;
    give_place(&out, LOG_NOTES, 1, block);
    give_bytes(&out, 8, 0);
    give_place(&out, RING_BYTES_AT, 60, 0);
    give_bytes(&out, 8, 1);
    fuzz_seed(seeds, (struct bytes){space, out.size});
}
