/* The arena, the trace, and the way back. */
#include "machine_internal.h"
#include "base/crc32c.h"
#include "watch.h"
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const event_names[] = {"store",  "fill", "submit", "end",   "flush", "file",
                                          "region", "told", "land",   "crash", "edit"};
_Static_assert(ARRAY_SIZE(event_names) == EVENT_KIND_COUNT, "one each");

void machine_grow(void **items, size_t *capacity, size_t count, size_t item_bytes) {
    while (count > *capacity) {
        *capacity = *capacity > 0 ? 2 * *capacity : 1024;
        *items = realloc(*items, *capacity * item_bytes);
        if (!*items) {
            abort();
        }
    }
}

static void *map(int file, int protection) {
    void *memory = mmap(NULL, sizeof(struct arena), protection, MAP_SHARED, file, 0);

    if (memory == MAP_FAILED) {
        abort();
    }
    return memory;
}

struct machine *machine_new(void) {
    struct machine *machine = calloc(1, sizeof *machine);
    int file = memfd_create("torture", 0);

    if (!machine || file < 0 || ftruncate(file, sizeof(struct arena)) != 0) {
        abort();
    }
    machine->arena = map(file, PROT_READ | PROT_WRITE);
    machine->readable = map(file, PROT_READ);
    close(file);
    machine->shadow = calloc(1, sizeof machine->arena->regions);
    if (!machine->shadow) {
        abort();
    }
    machine->env.ops = &machine_ops;
    for (uint8_t i = 0; i < MACHINE_FILES_MAX; i++) {
        machine->files[i] = (struct env_file){machine, i};
    }
    for (uint8_t i = 0; i < MACHINE_REGIONS_MAX; i++) {
        machine->regions[i] = (struct env_shared){machine, i};
    }
    watch_begin(machine);
    return machine;
}

void machine_free(struct machine *machine) {
    watch_end();
    bases_reset(machine);
    free(machine->events);
    free(machine->changes);
    free(machine->old_bytes);
    free(machine->flights);
    free(machine->versions);
    free(machine->shadow);
    (void)munmap((void *)(uintptr_t)machine->readable, sizeof(struct arena));
    (void)munmap(machine->arena, sizeof(struct arena));
    free(machine);
}

struct env *machine_env(struct machine *machine) {
    return &machine->env;
}

void machine_reset(struct machine *machine, uint64_t seed) {
    machine_forget(machine);
    machine_back(machine, 0, 0);
    memset(machine->written, 0, sizeof machine->written);
    memset(machine->filled, 0, sizeof machine->filled);
    bases_reset(machine);
    machine->now_ns = NS_PER_S;
    machine->hash = seed;
    machine->capacity = UINT64_MAX;
    machine->faults = (struct machine_faults){0};
    machine->cold_of_16 = 0;
    prng_init(&machine->prng, seed);
}

void machine_trace_to(struct machine *machine, FILE *file) {
    machine->trace = file;
}

void machine_mark_by(struct machine *machine, machine_mark_fn *mark, void *context) {
    machine->mark = mark;
    machine->mark_context = context;
}

void machine_say(struct machine *machine, const char *format, ...) {
    va_list arguments;

    if (machine->trace) {
        va_start(arguments, format);
        vfprintf(machine->trace, format, arguments);
        va_end(arguments);
        fputc('\n', machine->trace);
    }
}

size_t machine_blocks(const struct machine *machine) {
    const void *const arrays[] = {machine->events, machine->changes, machine->old_bytes,
                                  machine->flights, machine->versions};
    size_t blocks = machine->version_count;

    for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
        blocks += arrays[i] != NULL;
    }
    for (size_t i = 0; i < MACHINE_BASES_MAX; i++) {
        blocks += machine->bases[i] != NULL;
    }
    return blocks;
}

size_t machine_event_count(const struct machine *machine) {
    return machine->event_count;
}

const struct event *machine_event(const struct machine *machine, size_t index) {
    assert(index < machine->event_count);
    return &machine->events[index];
}

uint64_t machine_hash(const struct machine *machine) {
    return machine->hash;
}

void machine_hash_add(struct machine *machine, uint64_t value) {
    machine->hash = (machine->hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    machine->hash ^= machine->hash >> 29;
}

static void hash_bytes(struct machine *machine, const void *data, size_t size_bytes) {
    machine_hash_add(machine, crc32c(0, data, size_bytes));
}

size_t machine_keep(struct machine *machine, const void *data, size_t size_bytes) {
    size_t place = machine->old_count;

    machine_grow((void **)&machine->old_bytes, &machine->old_capacity, place + size_bytes, 1);
    memcpy(machine->old_bytes + place, data, size_bytes);
    machine->old_count += size_bytes;
    return place;
}

static void change_add(struct machine *machine, uint64_t at, const void *old, size_t size_bytes) {
    machine_grow((void **)&machine->changes, &machine->change_capacity, machine->change_count + 1,
                 sizeof *machine->changes);
    machine->changes[machine->change_count] = (struct change){
        .at = at, .size = (uint32_t)size_bytes, .old = machine_keep(machine, old, size_bytes)};
    machine->change_count++;
}

/* The same place as the trace knows it; NULL outside of regions. */
static uint8_t *shadow_of(const struct machine *machine, uint64_t at) {
    uint64_t first = offsetof(struct arena, regions);

    return at >= first && at < first + sizeof machine->arena->regions ? machine->shadow + at - first
                                                                      : NULL;
}

static void filled_note(struct machine *machine, uint64_t place, size_t size_bytes) {
    uint64_t at = place - offsetof(struct arena, regions);

    if (size_bytes > 0 && shadow_of(machine, place)) {
        bool *filled = machine->filled[0];

        for (uint64_t block = at / BLOCK_BYTES; block <= (at + size_bytes - 1) / BLOCK_BYTES;
             block++) {
            filled[block] = true;
        }
    }
}

static struct event *event_append(struct machine *machine, enum event_kind kind, uint64_t at,
                                  uint32_t size) {
    machine_grow((void **)&machine->events, &machine->event_capacity, machine->event_count + 1,
                 sizeof *machine->events);
    struct event *event = &machine->events[machine->event_count];
    const void *stored = kind == EVENT_STORE ? (const uint8_t *)machine->readable + at : NULL;

    *event =
        (struct event){.kind = kind,
                       .at = at,
                       .size = size,
                       .first_change = machine->change_count,
                       .now_ns = machine->now_ns,
                       .mark = machine->mark ? machine->mark(machine->mark_context, stored) : 0};
    machine_say(machine, "%6zu %-6s at %llx, %u bytes", machine->event_count, event_names[kind],
                (unsigned long long)at, size);
    machine->event_count++;
    machine_hash_add(machine, at ^ (uint64_t)kind << 56 ^ (uint64_t)size << 32);
    return event;
}

/* Bytes of a region are no longer those that the trace knows: an event of its own. */
static void region_note(struct machine *machine, enum event_kind kind, uint64_t at, size_t size) {
    const uint8_t *now = (const uint8_t *)machine->arena + at;
    uint8_t *known = shadow_of(machine, at);

    event_append(machine, kind, at, (uint32_t)size);
    change_add(machine, at, known, size);
    filled_note(machine, at, size);
    memcpy(known, now, size);
    hash_bytes(machine, known, size);
}

/* What an owner has filled of a data area since the last event. */
static void fills_note(struct machine *machine) {
    const uint8_t *arena = (const uint8_t *)machine->arena;
    size_t count = machine->touched_count;

    machine->touched_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = machine->touched[i];
        uint64_t place = (at - offsetof(struct arena, regions)) % MACHINE_REGION_BYTES_MAX;
        size_t size = MIN((size_t)(MACHINE_REGION_BYTES_MAX - place), watch_touched_bytes);

        for (size_t k = 0; k < size; k += MIN(size - k, (size_t)BLOCK_BYTES)) {
            size_t part = MIN(size - k, (size_t)BLOCK_BYTES);

            if (memcmp(shadow_of(machine, at + k), arena + at + k, part) != 0) {
                region_note(machine, EVENT_FILL, at + k, part);
            }
        }
        watch_untouch(machine, at);
    }
}

struct event *machine_event_add(struct machine *machine, enum event_kind kind, uint64_t at,
                                uint32_t size) {
    fills_note(machine);
    return event_append(machine, kind, at, size);
}

static void written_note(struct machine *machine, uint64_t place, size_t size_bytes) {
    uint64_t first = offsetof(struct arena, files);
    uint64_t at = (place - first) % sizeof(struct file_bytes);

    if (place < first || at >= MACHINE_FILE_BYTES_MAX || size_bytes == 0) {
        return;
    }
    bool *written = machine->written[(place - first) / sizeof(struct file_bytes)];
    uint64_t last = MIN(at + size_bytes, (uint64_t)MACHINE_FILE_BYTES_MAX) - 1;
    for (uint64_t block = at / BLOCK_BYTES; block <= last / BLOCK_BYTES; block++) {
        written[block] = true;
    }
}

void machine_change(struct machine *machine, const void *at, const void *from, size_t size_bytes) {
    uint64_t place = machine_place(machine, at);
    uint8_t *to = (uint8_t *)machine->arena + place;
    uint8_t *known = shadow_of(machine, place);

    assert(place + size_bytes <= sizeof *machine->arena);
    change_add(machine, place, to, size_bytes);
    memcpy(to, from, size_bytes);
    written_note(machine, place, size_bytes);
    filled_note(machine, place, size_bytes);
    if (known) {
        memcpy(known, from, size_bytes);
    }
    hash_bytes(machine, from, size_bytes);
}

void machine_clear(struct machine *machine, const void *at, size_t size_bytes) {
    uint64_t place = machine_place(machine, at);
    uint8_t *to = (uint8_t *)machine->arena + place;

    change_add(machine, place, to, size_bytes);
    memset(to, 0, size_bytes);
    memset(shadow_of(machine, place), 0, size_bytes);
    machine_hash_add(machine, place);
}

size_t machine_told(struct machine *machine, uint32_t kind, uint64_t number) {
    machine_event_add(machine, EVENT_TOLD, number, kind);
    return machine->event_count - 1;
}

/* A change from `skip` on is taken back. */
static void change_undo(struct machine *machine, const struct change *change, size_t skip) {
    uint8_t *known = shadow_of(machine, change->at);
    const uint8_t *old = machine->old_bytes + change->old;

    memcpy((uint8_t *)machine->arena + change->at + skip, old + skip, change->size - skip);
    filled_note(machine, change->at, change->size);
    if (known) {
        memcpy(known + skip, old + skip, change->size - skip);
    }
}

static void event_undo(struct machine *machine) {
    struct event *event = &machine->events[machine->event_count - 1];

    while (machine->change_count > event->first_change) {
        struct change *change = &machine->changes[--machine->change_count];

        change_undo(machine, change, 0);
        machine->old_count = change->old;
    }
    if (event->kind == EVENT_END || event->kind == EVENT_LAND) {
        machine->flights[event->flight].under_way = true;
    } else if (event->kind == EVENT_SUBMIT) {
        assert(event->flight + 1 == machine->flight_count);
        machine->old_count = machine->flights[event->flight].data;
        machine->flight_count--;
    }
    machine->now_ns = event->now_ns;
    machine->event_count--;
}

void machine_back(struct machine *machine, size_t index, size_t cut_bytes) {
    assert(machine->pending_count == 0);
    fills_note(machine);
    while (machine->event_count > index + 1) {
        event_undo(machine);
    }
    if (machine->event_count == index + 1) {
        struct event *event = &machine->events[index];

        if (cut_bytes > 0 && event->kind == EVENT_STORE && cut_bytes < event->size) {
            struct change *change = &machine->changes[event->first_change];

            change_undo(machine, change, cut_bytes);
            change->size = (uint32_t)cut_bytes;
            event->size = (uint32_t)cut_bytes;
        } else {
            event_undo(machine);
        }
    }
}

void machine_draw_from(struct machine *machine, uint64_t seed) {
    prng_init(&machine->prng, seed);
}

struct prng *machine_prng(struct machine *machine) {
    return &machine->prng;
}

void machine_faults_set(struct machine *machine, const struct machine_faults *faults) {
    machine->faults = *faults;
}

void machine_advance(struct machine *machine, uint64_t ns) {
    machine->now_ns += ns;
}

uint64_t machine_open_count(const struct machine *machine) {
    return machine->open_count;
}

uint64_t machine_failure_count(const struct machine *machine) {
    return machine->failure_count;
}

void machine_capacity_set(struct machine *machine, uint64_t bytes) {
    machine->capacity = bytes;
}

void machine_cold_set(struct machine *machine, uint32_t of_16) {
    machine->cold_of_16 = of_16;
}

void machine_touch(struct machine *machine, uint64_t place) {
    for (size_t i = 0; i < machine->touched_count; i++) {
        if (machine->touched[i] == place) {
            return;
        }
    }
    if (machine->touched_count == TOUCHED_MAX) {
        fills_note(machine);
    }
    machine->touched[machine->touched_count++] = place;
}

void machine_store(struct machine *machine, uint64_t place, const void *from, size_t size_bytes) {
    machine_event_add(machine, EVENT_STORE, place, (uint32_t)size_bytes);
    machine_change(machine, (const uint8_t *)machine->arena + place, from, size_bytes);
}

const uint8_t *machine_known(const struct machine *machine, uint64_t place) {
    return shadow_of(machine, place);
}

void machine_stored(struct machine *machine, uint64_t place, size_t size_bytes) {
    fills_note(machine);
    region_note(machine, EVENT_STORE, place, size_bytes);
}

void machine_edit(struct machine *machine, const void *at, const void *from, size_t size_bytes) {
    uint64_t place = machine_place(machine, at);

    machine_event_add(machine, EVENT_EDIT, place, (uint32_t)size_bytes);
    machine_change(machine, at, from, size_bytes);
    for (unsigned i = 0; i < MACHINE_FILES_MAX; i++) {
        struct file_bytes *bytes = &machine->arena->files[i];

        if (place >= machine_place(machine, bytes->content) &&
            place < machine_place(machine, bytes->durable)) {
            machine_change(machine, (const uint8_t *)at + MACHINE_FILE_BYTES_MAX, from, size_bytes);
        }
    }
}

void machine_spoil_begin(struct machine *machine, const void *at) {
    machine_event_add(machine, EVENT_CRASH, machine_place(machine, at), 0);
}

void machine_spoil(struct machine *machine, const void *at, const void *from, size_t size_bytes) {
    machine_change(machine, at, from, size_bytes);
}
