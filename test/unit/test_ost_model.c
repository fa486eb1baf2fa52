/* The OST against arrays of bytes: random writes, reads, truncations, deletions and copies of
 * requests, many at a time, with sync points, kills, power cuts and crashes in the middle of any
 * disk operation. After a kill everything answered is there. After a power cut the chunks are as
 * they were after some answer that is no older than the last sync: old or new content, never
 * anything else. At the end no block is lost. Arguments: a seed to run alone, or
 * the first one and how many. */
#include "unit.h"
#include "ost_world.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 60,
    STEPS = 250,
    FILES = 3,
    CHUNKS = 3,
    HISTORY_MAX = 4096,
    CANDIDATES_MAX = 24,
    CHUNK_BYTES_LARGEST = 192 * 1024,
};

enum kind { KIND_WRITE, KIND_TRUNCATE, KIND_DELETE };

/* What was answered, in order. */
struct event {
    enum kind kind;
    uint32_t file;
    uint32_t chunk;
    uint32_t offset;
    uint32_t size;
    uint32_t stamp;
    uint64_t keep; /* of a truncation: bytes of the file */
};

struct file {
    uint32_t chunk_bytes;
    uint32_t generation;
    uint32_t truncate_seq;
    uint64_t truncate_size;
    uint32_t in_flight;
    bool cut_owed; /* the order to cut is not on disk yet */
};

/* A read in flight: every content that its range has had since it began. */
struct reading {
    uint32_t file, chunk, offset, size;
    uint32_t count;
    uint8_t *contents[CANDIDATES_MAX];
};

typedef uint8_t contents[FILES][CHUNKS][CHUNK_BYTES_LARGEST];

struct model {
    uint64_t seed;
    struct prng prng;
    struct ost_world *world;
    struct file files[FILES];
    contents *now;
    contents *base; /* at the last sync */
    contents *found;
    struct event history[HISTORY_MAX];
    size_t history_count;
    uint32_t next_stamp;
    bool may_fill;          /* the target may be full */
    uint64_t kept_sequence; /* of a write that is answered and may be sent again */
    struct ost_place kept_place;
    uint32_t kept_stamp;
    uint64_t kept_version;
};

/* Over all seeds: what the test is worth. */
static struct {
    uint64_t crashes, powers, lost_events, copies, no_space, truncations, deletions, reads;
    struct ost_counters ost;
} totals;

static uint64_t first_seed = 1;
static uint64_t seed_count = SEEDS;
static uint8_t scratch[CHUNK_BYTES_LARGEST];

static void stamp_fill(uint32_t stamp, uint8_t *data, size_t size) {
    uint64_t word = (stamp + 1) * UINT64_C(0x9e3779b97f4a7c15);

    for (size_t i = 0; i < size; i += sizeof word) {
        word = word * UINT64_C(0xbf58476d1ce4e5b9) + stamp + 1;
        memcpy(data + i, &word, MIN(size - i, sizeof word));
    }
}

static uint32_t bytes_before(const struct file *file, uint32_t chunk, uint64_t size) {
    uint64_t start = (uint64_t)chunk * file->chunk_bytes;

    return size <= start ? 0 : (uint32_t)MIN(size - start, (uint64_t)file->chunk_bytes);
}

static void event_apply(const struct model *model, contents *to, const struct event *event) {
    const struct file *file = &model->files[event->file];

    if (event->kind == KIND_WRITE) {
        stamp_fill(event->stamp, (*to)[event->file][event->chunk] + event->offset, event->size);
        return;
    }
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        uint32_t keep = event->kind == KIND_DELETE ? 0 : bytes_before(file, chunk, event->keep);

        memset((*to)[event->file][chunk] + keep, 0, CHUNK_BYTES_LARGEST - keep);
    }
}

static void candidate_add(struct model *model, struct reading *reading) {
    assert_true(reading->count < CANDIDATES_MAX);
    uint8_t *copy = malloc(reading->size);

    memcpy(copy, (*model->now)[reading->file][reading->chunk] + reading->offset, reading->size);
    reading->contents[reading->count++] = copy;
}

static void reading_free(struct reading *reading) {
    for (uint32_t i = 0; reading && i < reading->count; i++) {
        free(reading->contents[i]);
    }
    free(reading);
}

static void happened(struct model *model, const struct event *event) {
    assert_true(model->history_count < HISTORY_MAX);
    model->history[model->history_count++] = *event;
    event_apply(model, model->now, event);
    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        struct ost_call *call = &model->world->calls[i];
        struct reading *reading = call->note;

        if (call->busy && !call->answered && reading && reading->file == event->file &&
            reading->chunk == event->chunk) {
            candidate_add(model, reading);
        }
    }
}

/* All events before count are on disk. */
static void synced(struct model *model, size_t count) {
    for (size_t i = 0; i < count; i++) {
        event_apply(model, model->base, &model->history[i]);
    }
    memmove(model->history, model->history + count,
            (model->history_count - count) * sizeof *model->history);
    model->history_count -= count;
    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        struct ost_call *call = &model->world->calls[i];

        if (call->busy && call->call.header.opcode == OP_SYNC) {
            call->user[0] -= MIN(call->user[0], (uint32_t)count);
        }
    }
}

static struct ost_place place_of(const struct model *model, uint32_t file, uint32_t chunk) {
    const struct file *of = &model->files[file];

    return (struct ost_place){.ino = {1000 + file},
                              .generation = of->generation,
                              .chunk = chunk,
                              .chunk_bytes = of->chunk_bytes,
                              .truncate_seq = of->truncate_seq,
                              .truncate_size = of->truncate_size};
}

static bool is_crashed(const struct model *model) {
    return memory_env_is_crashed(model->world->env);
}

static void write_answered(struct model *model, struct ost_call *call) {
    const struct chunk_write_request *body = &call->call.request.chunk_write;
    struct event event = {.kind = KIND_WRITE,
                          .file = call->user[0],
                          .chunk = (uint32_t)body->chunk,
                          .offset = body->offset,
                          .size = body->size,
                          .stamp = call->user[1]};
    uint64_t version = call->call.reply.chunk_write.version;

    model->files[event.file].in_flight--;
    if (call->call.result == -ERR_NO_SPACE && model->may_fill) {
        totals.no_space++;
        return;
    }
    if (call->call.result < 0) {
        assert_true(is_crashed(model));
        return;
    }
    if (call->user[2]) {
        /* A copy: the same answer, and no effect. */
        assert_int_equal(version, (uint64_t)call->user[4] << 32 | call->user[3]);
        totals.copies++;
        return;
    }
    happened(model, &event);
    model->kept_sequence = call->call.header.sequence;
    model->kept_place = place_of(model, event.file, event.chunk);
    model->kept_place.offset = event.offset;
    model->kept_place.size = event.size;
    model->kept_stamp = event.stamp;
    model->kept_version = version;
}

static void read_answered(struct model *model, struct ost_call *call) {
    struct reading *reading = call->note;
    bool found = call->call.result < 0;

    model->files[reading->file].in_flight--;
    assert_true(call->call.result == 0 || is_crashed(model));
    if (call->call.result == 0) {
        const uint8_t *bytes = ost_call_data(call);

        for (uint32_t i = 0; !found && i < reading->count; i++) {
            found = memcmp(bytes, reading->contents[i], reading->size) == 0;
        }
        totals.reads++;
    }
    assert_true(found);
    call->note = NULL;
    reading_free(reading);
}

static void cut_answered(struct model *model, struct ost_call *call) {
    assert_true(call->call.result == 0 || is_crashed(model) ||
                (call->call.result == -ERR_NO_SPACE && model->may_fill));
    model->files[call->user[0]].in_flight--;
    call->user[1] = call->call.result == 0 && call->call.reply.chunk_cut.end;
}

static void answered(struct ost_world *world, struct ost_call *call) {
    struct model *model = world->model;

    switch (call->call.header.opcode) {
    case OP_CHUNK_WRITE:
        write_answered(model, call);
        call->busy = false;
        break;
    case OP_CHUNK_READ:
        read_answered(model, call);
        call->busy = false;
        break;
    case OP_CHUNK_CUT:
        cut_answered(model, call);
        call->busy = false;
        break;
    case OP_SYNC:
        assert_true(call->call.result == 0 || is_crashed(model));
        if (call->call.result == 0) {
            synced(model, call->user[0]);
        }
        if (call->user[1]) {
            break; /* ost_call_run ends it */
        }
        call->busy = false;
        break;
    default:
        break;
    }
}

/* Sizes and offsets around every border, big and small. */
static void draw_range(struct model *model, struct ost_place *place) {
    struct prng *prng = &model->prng;
    uint32_t limit = place->chunk_bytes;
    uint32_t size;

    switch (prng_below(prng, 5)) {
    case 0:
        size = 1 + (uint32_t)prng_below(prng, 6000);
        break;
    case 1:
        size = BLOCK_BYTES * (1 + (uint32_t)prng_below(prng, 8));
        break;
    case 2:
        size = 64 * KIB + BLOCK_BYTES * (uint32_t)prng_below(prng, 8);
        break;
    case 3:
        size = 1 + (uint32_t)prng_below(prng, limit);
        break;
    default:
        size = limit;
        break;
    }
    size = MIN(size, limit);
    place->size = size;
    place->offset = (uint32_t)prng_below(prng, limit - size + 1);
    if (prng_chance(prng, 1, 2)) {
        place->offset &= ~(uint32_t)(BLOCK_BYTES - 1);
    }
}

static uint32_t draw_shift(struct model *model) {
    return prng_chance(&model->prng, 1, 2) ? 0 : (uint32_t)prng_below(&model->prng, BLOCK_BYTES);
}

static uint64_t lowest_sequence(const struct model *model) {
    uint64_t lowest = model->kept_sequence ? model->kept_sequence : model->world->next_sequence;

    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        const struct ost_call *call = &model->world->calls[i];

        if (call->busy && call->call.header.opcode == OP_CHUNK_WRITE) {
            uint64_t sequence = call->call.header.sequence;

            lowest = sequence ? MIN(lowest, sequence) : lowest;
        }
    }
    return lowest;
}

/* The data in one to four parts. */
static void split_parts(struct model *model, struct ost_call *call) {
    struct bytes whole = call->call.bulk_out[0];
    uint32_t count = 1 + (uint32_t)prng_below(&model->prng, CALL_BULK_PARTS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        size_t part = i + 1 == count ? whole.size : prng_below(&model->prng, whole.size + 1);

        call->call.bulk_out[i] = (struct bytes){whole.data, part};
        whole.data += part;
        whole.size -= part;
    }
    call->call.bulk_out_count = count;
}

static void write_start(struct model *model) {
    uint32_t file = (uint32_t)prng_below(&model->prng, FILES);
    struct ost_place place = place_of(model, file, (uint32_t)prng_below(&model->prng, CHUNKS));
    struct ost_call *call = ost_call_get(model->world, OP_CHUNK_WRITE);

    if (!call) {
        return;
    }
    draw_range(model, &place);
    call->user[0] = file;
    call->user[1] = ++model->next_stamp;
    call->shift = draw_shift(model);
    stamp_fill(call->user[1], scratch, place.size);
    ost_call_write(call, &place, scratch);
    if (prng_chance(&model->prng, 1, 3)) {
        split_parts(model, call);
    }
    call->call.header.floor = lowest_sequence(model);
    model->files[file].in_flight++;
    ost_call_start(call);
}

/* Sends the last answered write once more. */
static void copy_start(struct model *model) {
    struct ost_call *call =
        model->kept_sequence ? ost_call_get(model->world, OP_CHUNK_WRITE) : NULL;
    uint32_t file = (uint32_t)(model->kept_place.ino.value - 1000);

    if (!call) {
        return;
    }
    call->user[0] = file;
    call->user[1] = model->kept_stamp;
    call->user[2] = 1;
    call->shift = 0;
    stamp_fill(model->kept_stamp, scratch, model->kept_place.size);
    ost_call_write(call, &model->kept_place, scratch);
    call->call.header.sequence = model->kept_sequence;
    call->call.header.floor = lowest_sequence(model);
    model->files[file].in_flight++;
    call->user[3] = (uint32_t)model->kept_version;
    call->user[4] = (uint32_t)(model->kept_version >> 32);
    ost_call_start(call);
}

static void read_start(struct model *model) {
    uint32_t file = (uint32_t)prng_below(&model->prng, FILES);
    struct ost_place place = place_of(model, file, (uint32_t)prng_below(&model->prng, CHUNKS));
    struct ost_call *call = ost_call_get(model->world, OP_CHUNK_READ);
    struct reading *reading;

    if (!call) {
        return;
    }
    draw_range(model, &place);
    reading = calloc(1, sizeof *reading);
    *reading = (struct reading){
        .file = file, .chunk = (uint32_t)place.chunk, .offset = place.offset, .size = place.size};
    candidate_add(model, reading);
    call->note = reading;
    call->shift = draw_shift(model);
    ost_call_read(call, &place);
    model->files[file].in_flight++;
    ost_call_start(call);
}

/* As the metadata target does it: the truncation is on its disk first, then the order goes out; a
 * second one waits for the first. */
static void cut_start(struct model *model, uint32_t index) {
    struct file *file = &model->files[index];
    struct ost_call *call = ost_call_get(model->world, OP_CHUNK_CUT);

    if (!call) {
        return;
    }
    call->user[0] = index;
    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = {1000 + index},
                                                              .generation = file->generation,
                                                              .chunk_bytes = file->chunk_bytes,
                                                              .truncate_seq = file->truncate_seq,
                                                              .truncate_size = file->truncate_size};
    file->in_flight++;
    ost_call_start(call);
}

static void truncate_start(struct model *model) {
    uint32_t index = (uint32_t)prng_below(&model->prng, FILES);
    struct file *file = &model->files[index];
    struct event event = {.kind = KIND_TRUNCATE, .file = index, .chunk = UINT32_MAX};

    if (file->in_flight > 0 || file->cut_owed) {
        return;
    }
    event.keep = prng_below(&model->prng, (uint64_t)file->chunk_bytes * CHUNKS);
    if (prng_chance(&model->prng, 1, 4)) {
        event.keep &= ~(uint64_t)(BLOCK_BYTES - 1);
    }
    file->truncate_seq++;
    file->truncate_size = event.keep;
    file->cut_owed = true;
    happened(model, &event);
    totals.truncations++;
}

/* Orders that are owed go out, and are done when they are on disk. */
static void settle_cuts(struct model *model) {
    for (uint32_t i = 0; i < FILES; i++) {
        struct file *file = &model->files[i];

        while (file->cut_owed && !is_crashed(model)) {
            struct ost_call *call = ost_call_get(model->world, OP_CHUNK_CUT);

            if (!call) {
                return;
            }
            call->busy = false;
            cut_start(model, i);
            for (int turn = 0; turn < 100000 && call->busy; turn++) {
                ost_world_turn(model->world);
            }
            assert_false(call->busy);
            if (call->user[1] || call->call.result < 0) {
                break;
            }
            assert_true(call->call.reply.chunk_cut.resume_chunk > 0);
        }
    }
}

static bool sync_all(struct model *model) {
    struct ost_call *call = ost_call_get(model->world, OP_SYNC);

    if (!call) {
        return false;
    }
    call->user[0] = (uint32_t)model->history_count;
    call->user[1] = 1;
    return ost_call_run(call) == 0;
}

static void cuts_done(struct model *model) {
    bool owed = false;

    for (uint32_t i = 0; i < FILES; i++) {
        owed = owed || model->files[i].cut_owed;
    }
    if (!owed) {
        return;
    }
    settle_cuts(model);
    if (!model->may_fill && !is_crashed(model) && sync_all(model)) {
        for (uint32_t i = 0; i < FILES; i++) {
            model->files[i].cut_owed = false;
        }
    }
}

static void delete_file(struct model *model, uint32_t index) {
    struct file *file = &model->files[index];
    struct event event = {.kind = KIND_DELETE, .file = index, .chunk = UINT32_MAX};
    uint64_t resume = 0;
    bool end = false;

    if (file->in_flight > 0 || file->cut_owed) {
        return;
    }
    uint32_t generation = file->generation++;
    happened(model, &event);
    totals.deletions++;
    if (model->kept_place.ino.value == 1000 + index) {
        model->kept_sequence = 0;
    }
    while (!end) {
        struct ost_call *call = ost_call_get(model->world, OP_CHUNK_DELETE);

        if (!call) {
            return; /* it stays an orphan until the end */
        }
        call->call.request.chunk_delete =
            (struct chunk_delete_request){{1000 + index}, generation, resume};
        int r = ost_call_run(call);
        if (r < 0) {
            assert_true(is_crashed(model));
            return;
        }
        resume = call->call.reply.chunk_delete.resume_chunk;
        end = call->call.reply.chunk_delete.end;
    }
}

static void read_everything(struct model *model) {
    for (uint32_t file = 0; file < FILES; file++) {
        for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
            struct ost_place place = place_of(model, file, chunk);
            struct ost_call *call = ost_call_get(model->world, OP_CHUNK_READ);
            struct reading *none = calloc(1, sizeof *none);

            place.size = place.chunk_bytes;
            ost_call_read(call, &place);
            none->file = file;
            none->chunk = UINT32_MAX;
            call->note = none;
            model->world->answered = NULL;
            assert_int_equal(ost_call_run(call), 0);
            model->world->answered = answered;
            memcpy((*model->found)[file][chunk], ost_call_data(call), place.size);
            free(none);
            call->note = NULL;
        }
    }
}

/* The bytes of a file that no truncation or deletion from event `from` on has cut off. */
static uint64_t limit_from(const struct model *model, uint32_t file, size_t from) {
    uint64_t limit = UINT64_MAX;

    for (size_t i = from; i < model->history_count; i++) {
        const struct event *event = &model->history[i];

        if (event->file == file && event->kind != KIND_WRITE) {
            limit = MIN(limit, event->kind == KIND_DELETE ? 0 : event->keep);
        }
    }
    return limit;
}

static bool chunk_matches(const struct model *model, contents *state, uint32_t index, size_t from) {
    uint32_t file = index / CHUNKS;
    uint32_t chunk = index % CHUNKS;
    const struct file *of = &model->files[file];
    uint32_t keep = bytes_before(of, chunk, limit_from(model, file, from));
    const uint8_t *found = (*model->found)[file][chunk];

    if (memcmp((*state)[file][chunk], found, keep) != 0) {
        return false;
    }
    for (uint32_t i = keep; i < of->chunk_bytes; i++) {
        if (found[i]) {
            return false;
        }
    }
    return true;
}

/* Finds the event after which the chunks looked as they do now, and makes that the present. */
static void find_prefix(struct model *model) {
    bool matches[FILES * CHUNKS];
    uint32_t count = 0;
    size_t at = 0;

    for (uint32_t i = 0; i < FILES * CHUNKS; i++) {
        matches[i] = chunk_matches(model, model->base, i, 0);
        count += matches[i];
    }
    while (count < FILES * CHUNKS && at < model->history_count) {
        const struct event *event = &model->history[at++];

        event_apply(model, model->base, event);
        for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
            uint32_t i = event->file * CHUNKS + chunk;

            if (event->kind != KIND_WRITE || chunk == event->chunk) {
                count -= matches[i];
                matches[i] = chunk_matches(model, model->base, i, at);
                count += matches[i];
            }
        }
    }
    if (count < FILES * CHUNKS) {
        for (uint32_t i = 0; i < FILES * CHUNKS; i++) {
            printf("%s", matches[i] ? "=" : "!");
        }
        printf(" seed %llu: no state before the power cut is what is there\n",
               (unsigned long long)model->seed);
    }
    assert_int_equal(count, FILES * CHUNKS);
    totals.lost_events += model->history_count - at;
    memcpy(model->base, model->found, sizeof *model->base);
    memcpy(model->now, model->found, sizeof *model->now);
    model->history_count = 0;
}

static void drop_calls(struct model *model) {
    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        struct ost_call *call = &model->world->calls[i];

        if (call->busy && call->call.header.opcode == OP_CHUNK_READ) {
            reading_free(call->note);
            call->note = NULL;
        }
    }
    for (uint32_t i = 0; i < FILES; i++) {
        model->files[i].in_flight = 0;
    }
}

static void add_counters(struct model *model) {
    struct ost_counters counters;
    uint64_t *sums = (uint64_t *)&totals.ost;
    const uint64_t *add = (const uint64_t *)&counters;

    ost_counters_get(model->world->ost, &counters);
    for (size_t i = 0; i < sizeof counters / sizeof *add; i++) {
        sums[i] += add[i];
    }
}

static void reopen(struct model *model) {
    char problem[256];

    /* It may crash while it opens, too. */
    for (int attempt = 0; attempt < 4 && prng_chance(&model->prng, 1, 3); attempt++) {
        memory_env_crash_after(model->world->env, prng_below(&model->prng, 12));
        if (ost_world_open(model->world, problem) == 0) {
            break;
        }
        assert_true(is_crashed(model));
        ost_world_crash(model->world, prng_chance(&model->prng, 1, 4) && false);
    }
    memory_env_crash_after(model->world->env, UINT64_MAX);
    if (!model->world->ost) {
        int r = ost_world_open(model->world, problem);

        if (r < 0) {
            printf("seed %llu: %s\n", (unsigned long long)model->seed, problem);
        }
        assert_int_equal(r, 0);
    } else if (is_crashed(model)) {
        ost_world_crash(model->world, false);
        assert_int_equal(ost_world_open(model->world, problem), 0);
    }
    ost_world_attach(model->world);
}

static void crash(struct model *model, bool power) {
    add_counters(model);
    drop_calls(model);
    ost_world_crash(model->world, power);
    reopen(model);
    totals.crashes++;
    totals.powers += power;
    read_everything(model);
    if (power) {
        model->kept_sequence = 0;
        find_prefix(model);
    } else {
        for (uint32_t i = 0; i < FILES * CHUNKS; i++) {
            assert_true(chunk_matches(model, model->now, i, model->history_count));
        }
        if (prng_chance(&model->prng, 1, 2)) {
            copy_start(model);
        }
    }
}

static void step(struct model *model) {
    uint64_t draw = prng_below(&model->prng, 100);

    if (draw < 35) {
        write_start(model);
    } else if (draw < 60) {
        read_start(model);
    } else if (draw < 63) {
        truncate_start(model);
    } else if (draw < 66) {
        cuts_done(model);
    } else if (draw < 67) {
        delete_file(model, (uint32_t)prng_below(&model->prng, FILES));
    } else if (draw < 69) {
        copy_start(model);
    } else if (draw < 71) {
        (void)sync_all(model);
    } else if (draw < 72 && prng_chance(&model->prng, 1, 2)) {
        crash(model, prng_chance(&model->prng, 1, 2));
    } else if (draw < 73) {
        memory_env_crash_after(model->world->env, prng_below(&model->prng, 60));
    } else {
        ost_world_turn(model->world);
    }
    if (is_crashed(model)) {
        crash(model, prng_chance(&model->prng, 1, 2));
    }
}

static bool is_idle(const struct model *model) {
    for (size_t i = 0; i < OST_CALLS_MAX; i++) {
        if (model->world->calls[i].busy) {
            return false;
        }
    }
    return true;
}

static void finish(struct model *model) {
    struct ost_counters counters;

    memory_env_crash_after(model->world->env, UINT64_MAX);
    for (int i = 0; i < 100000 && !is_idle(model); i++) {
        ost_world_turn(model->world);
    }
    assert_true(is_idle(model));
    (void)ost_world_fsck(model->world);
    read_everything(model);
    for (uint32_t i = 0; i < FILES * CHUNKS; i++) {
        assert_true(chunk_matches(model, model->now, i, model->history_count));
    }
    add_counters(model);
    /* Generations that were deleted when power failed are deleted again, as their orders stay. */
    model->world->answered = NULL;
    for (uint32_t file = 0; file < FILES; file++) {
        for (uint32_t generation = 0; generation <= model->files[file].generation; generation++) {
            ost_world_delete(model->world, (struct ino){1000 + file}, generation);
        }
    }
    assert_int_equal(ost_world_sync(model->world), 0);
    assert_int_equal(ost_world_fsck(model->world), 0);
    ost_counters_get(model->world->ost, &counters);
    assert_int_equal(counters.free_blocks + counters.quarantine_blocks, counters.block_count - 1);
    assert_int_equal(totals.ost.corrupt_blocks, 0);
    if (prng_chance(&model->prng, 1, 4)) {
        ost_world_stop(model->world);
    }
}

static void draw_options(struct model *model) {
    struct ost_options *options = &model->world->options;
    struct prng *prng = &model->prng;

    options->cache_bytes = (size_t)BLOCK_BYTES * (size_t)prng_below(prng, 3) * 20;
    options->io_max = 33 + (uint32_t)prng_below(prng, 8);
    options->bounce_max = 1 + (uint32_t)prng_below(prng, 3);
    options->requests_max = 4 + (uint32_t)prng_below(prng, 20);
    options->verify_on_arrival = prng_chance(prng, 1, 2);
    options->grow_bytes = 256 * KIB << prng_below(prng, 4);
    model->may_fill = prng_chance(prng, 1, 4);
    options->data_bytes_max = model->may_fill ? MIB + prng_below(prng, 2 * MIB) : 12 * MIB;
    options->reserve_bytes = model->may_fill ? 128 * KIB : 256 * KIB;
}

static void run_seed(uint64_t seed) {
    static struct model model;
    char problem[256];

    memset(&model, 0, sizeof model);
    model.seed = seed;
    prng_init(&model.prng, seed);
    model.world = ost_world_new(seed);
    model.world->model = &model;
    model.world->answered = answered;
    model.now = calloc(1, sizeof *model.now);
    model.base = calloc(1, sizeof *model.base);
    model.found = calloc(1, sizeof *model.found);
    for (uint32_t i = 0; i < FILES; i++) {
        model.files[i].chunk_bytes = (i + 1) * 64 * 1024;
    }
    draw_options(&model);
    assert_int_equal(ost_world_open(model.world, problem), 0);
    ost_world_attach(model.world);
    for (int i = 0; i < STEPS; i++) {
        step(&model);
    }
    finish(&model);
    ost_world_free(model.world);
    free(model.now);
    free(model.base);
    free(model.found);
}

static void test_random(void **state) {
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        printf("seed %llu\r", (unsigned long long)seed);
        fflush(stdout);
        run_seed(seed);
    }
    printf("%llu crashes, %llu of power, %llu answers lost; %llu reads, %llu writes, %llu small, "
           "%llu cuts, %llu merges, %llu waits, %llu copies, %llu full\n",
           (unsigned long long)totals.crashes, (unsigned long long)totals.powers,
           (unsigned long long)totals.lost_events, (unsigned long long)totals.reads,
           (unsigned long long)totals.ost.writes, (unsigned long long)totals.ost.small_writes,
           (unsigned long long)totals.ost.cuts, (unsigned long long)totals.ost.merge_reads,
           (unsigned long long)totals.ost.waits, (unsigned long long)totals.copies,
           (unsigned long long)totals.no_space);
    if (seed_count < SEEDS) {
        return;
    }
    assert_true(totals.powers > 0 && totals.crashes > totals.powers && totals.lost_events > 0);
    assert_true(totals.copies > 0 && totals.no_space > 0 && totals.truncations > 0);
    assert_true(totals.deletions > 0 && totals.ost.merge_reads > 0 && totals.ost.waits > 0);
    assert_true(totals.ost.cuts > 0 && totals.ost.sync_writes > 0 && totals.ost.bounces > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };

    /* Large memory that is zero comes from the kernel, which zeroes only what is touched. */
    (void)mallopt(M_MMAP_THRESHOLD, 64 * 1024);
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
