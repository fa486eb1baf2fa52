/* Writes and commits under way, what a flush keeps, and what a crash leaves of it all. */
#include "machine_internal.h"
#include <assert.h>
#include <string.h>

const char *const crash_names[CRASH_KIND_COUNT] = {"kill",
                                                   "power, lost",
                                                   "power, kept",
                                                   "power, one lost",
                                                   "power, one kept",
                                                   "power, one torn",
                                                   "power, mixed"};

uint32_t flight_add(struct machine *machine, const struct flight *flight) {
    uint32_t index = (uint32_t)machine->flight_count;
    struct event *event = machine_event_add(
        machine, EVENT_SUBMIT, flight->offset + ((uint64_t)flight->file << 48), flight->size);

    event->flight = index;
    machine_grow((void **)&machine->flights, &machine->flight_capacity, machine->flight_count + 1,
                 sizeof *machine->flights);
    machine->flights[index] = *flight;
    machine->flights[index].under_way = true;
    machine->flight_count++;
    return index;
}

static struct file_bytes *bytes_of(const struct machine *machine, unsigned file) {
    return &machine->arena->files[file];
}

static void mark_dirty(struct machine *machine, unsigned file, uint64_t first, uint64_t count) {
    struct file_bytes *bytes = bytes_of(machine, file);
    uint64_t stamp = machine->event_count;

    for (uint64_t block = first; block < first + count; block++) {
        if (bytes->dirty[block] == 0) {
            machine_change(machine, &bytes->dirty[block], &stamp, sizeof stamp);
        }
    }
}

/* A whole block, and what is there and durable already: no crash can tell that it was written. */
static bool is_written(const struct machine *machine, unsigned file, uint64_t offset,
                       struct bytes data) {
    const struct file_bytes *bytes = bytes_of(machine, file);

    return offset % BLOCK_BYTES == 0 && data.size == BLOCK_BYTES &&
           bytes->dirty[offset / BLOCK_BYTES] == 0 &&
           memcmp(bytes->content + offset, data.data, data.size) == 0;
}

void file_write(struct machine *machine, unsigned file, uint64_t offset, struct bytes data) {
    struct file_state *state = &STATE(machine)->files[file];
    uint64_t end = offset + data.size;
    uint64_t first = offset / BLOCK_BYTES;

    assert(end <= MACHINE_FILE_BYTES_MAX);
    if (data.size == 0) {
        return;
    }
    if (!is_written(machine, file, offset, data)) {
        machine_change(machine, bytes_of(machine, file)->content + offset, data.data, data.size);
        mark_dirty(machine, file, first, (end - 1) / BLOCK_BYTES - first + 1);
    }
    if (end > state->size) {
        machine_change(machine, &state->size, &end, sizeof end);
    }
}

static void block_keep(struct machine *machine, unsigned file, uint64_t block) {
    struct file_bytes *bytes = bytes_of(machine, file);
    uint64_t at = block * BLOCK_BYTES;
    uint64_t clean = 0;

    machine_change(machine, bytes->durable + at, bytes->content + at, BLOCK_BYTES);
    machine_change(machine, &bytes->dirty[block], &clean, sizeof clean);
}

/* What was written before the flush was asked for is durable now; what came meanwhile may be. */
void file_flush(struct machine *machine, unsigned file, size_t submitted) {
    struct file_bytes *bytes = bytes_of(machine, file);
    uint64_t blocks = (STATE(machine)->files[file].size + BLOCK_BYTES - 1) / BLOCK_BYTES;

    machine_event_add(machine, EVENT_FLUSH, file, 0);
    for (uint64_t block = 0; block < blocks; block++) {
        if (bytes->dirty[block] > 0 &&
            (bytes->dirty[block] <= submitted + 1 || prng_chance(&machine->prng, 1, 2))) {
            block_keep(machine, file, block);
        }
    }
}

static void commit_take(struct machine *machine, const struct flight *flight) {
    machine_change(machine, &STATE(machine)->base_versions[flight->file], &flight->version,
                   sizeof flight->version);
}

static struct bytes flight_data(const struct machine *machine, const struct flight *flight) {
    return (struct bytes){machine->old_bytes + flight->data, flight->size};
}

/* The data is moved by what a change keeps, so it is looked at anew for each block. */
static void write_part(struct machine *machine, uint32_t index, size_t from, size_t size) {
    struct flight flight = machine->flights[index];
    uint8_t part[BLOCK_BYTES];

    for (size_t at = from; at < from + size; at += BLOCK_BYTES) {
        size_t here = MIN(from + size - at, (size_t)BLOCK_BYTES);

        memcpy(part, flight_data(machine, &flight).data + at, here);
        file_write(machine, flight.file, flight.offset + at, (struct bytes){part, here});
    }
}

/* A write that fails may have come in part; a commit never. */
void flight_end(struct machine *machine, uint32_t index, bool well) {
    struct flight flight = machine->flights[index];
    struct event *event = machine_event_add(machine, EVENT_END, index, flight.size);

    event->flight = index;
    machine->flights[index].under_way = false;
    if (flight.is_commit) {
        if (well) {
            commit_take(machine, &flight);
        }
        return;
    }
    if (well) {
        write_part(machine, index, 0, flight.size);
        return;
    }
    for (size_t at = 0; at < flight.size; at += BLOCK_BYTES) {
        if (prng_chance(&machine->prng, 1, 2)) {
            write_part(machine, index, at, MIN(flight.size - at, (size_t)BLOCK_BYTES));
        }
    }
}

void flight_land(struct machine *machine, uint32_t index, enum crash_kind kind) {
    struct flight flight = machine->flights[index];
    struct event *event = machine_event_add(machine, EVENT_LAND, index, flight.size);
    bool all = kind == CRASH_POWER_KEPT || kind == CRASH_POWER_ONE_LOST;
    bool none = kind == CRASH_POWER_LOST || kind == CRASH_POWER_ONE_KEPT;
    uint64_t of_4 = prng_below(&machine->prng, 4);

    event->flight = index;
    machine->flights[index].under_way = false;
    all = all || (!none && of_4 == 0);
    none = none || (!all && of_4 == 1);
    if (flight.is_commit) {
        if (all || (!none && of_4 == 2)) {
            commit_take(machine, &flight);
        }
        return;
    }
    for (size_t at = 0; at < flight.size; at += BLOCK_BYTES) {
        if (all || (!none && prng_chance(&machine->prng, 1, 2))) {
            write_part(machine, index, at, MIN(flight.size - at, (size_t)BLOCK_BYTES));
        }
    }
}

enum fate { FATE_LOST, FATE_KEPT, FATE_TORN };

static void block_fate(struct machine *machine, unsigned file, uint64_t block, enum fate fate) {
    struct file_bytes *bytes = bytes_of(machine, file);
    uint8_t *content = bytes->content + block * BLOCK_BYTES;
    uint8_t *durable = bytes->durable + block * BLOCK_BYTES;
    uint64_t clean = 0;

    for (size_t at = 0; at < BLOCK_BYTES; at += MACHINE_SECTOR_BYTES) {
        bool kept = fate == FATE_KEPT || (fate == FATE_TORN && prng_chance(&machine->prng, 1, 2));

        if (kept) {
            machine_change(machine, durable + at, content + at, MACHINE_SECTOR_BYTES);
        } else {
            machine_change(machine, content + at, durable + at, MACHINE_SECTOR_BYTES);
        }
    }
    machine_change(machine, &bytes->dirty[block], &clean, sizeof clean);
}

static uint64_t dirty_count(const struct machine *machine) {
    uint64_t count = 0;

    for (unsigned file = 0; file < MACHINE_FILES_MAX; file++) {
        uint64_t blocks = STATE(machine)->files[file].size / BLOCK_BYTES;

        for (uint64_t block = 0; block < blocks; block++) {
            count += bytes_of(machine, file)->dirty[block] > 0;
        }
    }
    return count;
}

static enum fate fate_of(struct machine *machine, enum crash_kind kind, bool chosen,
                         enum fate others) {
    switch (kind) {
    case CRASH_POWER_LOST:
        return FATE_LOST;
    case CRASH_POWER_KEPT:
        return FATE_KEPT;
    case CRASH_POWER_ONE_LOST:
        return chosen ? FATE_LOST : FATE_KEPT;
    case CRASH_POWER_ONE_KEPT:
        return chosen ? FATE_KEPT : FATE_LOST;
    case CRASH_POWER_ONE_TORN:
        return chosen ? FATE_TORN : others;
    default:
        return (enum fate)prng_below(&machine->prng, FATE_TORN + 1);
    }
}

static void blocks_crash(struct machine *machine, enum crash_kind kind) {
    uint64_t count = dirty_count(machine);
    uint64_t chosen = count > 0 ? prng_below(&machine->prng, count) : 0;
    enum fate others = prng_chance(&machine->prng, 1, 2) ? FATE_KEPT : FATE_LOST;
    uint64_t number = 0;

    for (unsigned file = 0; file < MACHINE_FILES_MAX; file++) {
        uint64_t blocks = STATE(machine)->files[file].size / BLOCK_BYTES;

        for (uint64_t block = 0; block < blocks; block++) {
            if (bytes_of(machine, file)->dirty[block] > 0) {
                block_fate(machine, file, block, fate_of(machine, kind, number == chosen, others));
                number++;
            }
        }
    }
}

void machine_file_forget(struct machine *machine, const char *path) {
    bool all = prng_chance(&machine->prng, 1, 2);

    for (unsigned file = 0; file < MACHINE_FILES_MAX; file++) {
        const struct file_state *state = &STATE(machine)->files[file];

        if (strcmp(state->path, path) != 0) {
            continue;
        }
        machine_event_add(machine, EVENT_EDIT, file, 0);
        for (uint64_t block = 0; block < state->size / BLOCK_BYTES; block++) {
            if (bytes_of(machine, file)->dirty[block] > 0 &&
                (all || prng_chance(&machine->prng, 1, 2))) {
                block_fate(machine, file, block, FATE_LOST);
            }
        }
    }
}

void machine_crash(struct machine *machine, enum crash_kind kind) {
    struct machine_state *state = STATE(machine);
    uint64_t boot = state->boot + 1;

    machine_forget(machine);
    for (size_t i = machine->flight_count; i > 0; i--) {
        if (machine->flights[i - 1].under_way) {
            flight_land(machine, (uint32_t)(i - 1), kind);
        }
    }
    machine_event_add(machine, EVENT_CRASH, kind, 0);
    if (kind == CRASH_KILL) {
        return;
    }
    blocks_crash(machine, kind);
    for (unsigned i = 0; i < MACHINE_REGIONS_MAX; i++) {
        char none[MACHINE_NAME_BYTES] = "";

        if (state->regions[i].name[0]) {
            machine_change(machine, state->regions[i].name, none, sizeof none);
        }
    }
    machine_change(machine, &state->boot, &boot, sizeof boot);
}
