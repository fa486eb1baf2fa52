/* Inside of the machine, shared by machine*.c, watch_*.c and base.c only. */
#pragma once
#include "machine.h"

enum {
    BLOCKS_PER_FILE = MACHINE_FILE_BYTES_MAX / BLOCK_BYTES,
    PENDING_MAX = 128,
    TOUCHED_MAX = 64
};

/* All of this lies in the arena: each change is traced. */
struct file_state {
    char path[MACHINE_NAME_BYTES];
    uint64_t size;
};
struct region_state {
    char name[MACHINE_NAME_BYTES];
    uint64_t size;
};
struct machine_state {
    struct file_state files[MACHINE_FILES_MAX];
    struct region_state regions[MACHINE_REGIONS_MAX];
    uint32_t base_versions[MACHINE_BASES_MAX]; /* index into machine->versions */
    uint64_t boot;
};

struct file_bytes {
    uint8_t content[MACHINE_FILE_BYTES_MAX];
    uint8_t durable[MACHINE_FILE_BYTES_MAX];
    uint64_t dirty[BLOCKS_PER_FILE]; /* 1 + the event that made it differ from durable, or 0 */
};
struct arena {
    struct machine_state state;
    _Alignas(BLOCK_BYTES) uint8_t regions[MACHINE_REGIONS_MAX][MACHINE_REGION_BYTES_MAX];
    _Alignas(BLOCK_BYTES) struct file_bytes files[MACHINE_FILES_MAX];
};

struct change {
    uint64_t at;
    uint32_t size;
    size_t old; /* index into old_bytes */
};

/* A write or a commit between its submission and its end. */
struct flight {
    bool under_way;
    bool is_commit;
    uint8_t file; /* or base */
    uint64_t offset;
    uint32_t size;
    size_t data;      /* index into old_bytes: what is written */
    uint32_t version; /* of a commit: what it makes */
};

struct pending {
    struct env_io *io;   /* or */
    struct env_job *job; /* the other is NULL */
    uint32_t flight;     /* of a write */
    size_t submitted;    /* event */
};

struct env_file {
    struct machine *machine;
    uint8_t index;
};
struct env_shared {
    struct machine *machine;
    uint8_t index;
};

struct base_version;

struct machine {
    struct env env;
    struct arena *arena;          /* to be written to by machine_change only */
    const struct arena *readable; /* the same, for engines */
    uint8_t *shadow;              /* regions as the trace knows them */
    struct prng prng;
    uint64_t now_ns;
    uint64_t hash;
    uint64_t capacity;
    struct machine_faults faults;
    uint64_t open_count;    /* of files */
    uint64_t failure_count; /* of writes and flushes that failed */
    uint32_t cold_of_16;
    FILE *trace;
    machine_mark_fn *mark;
    void *mark_context;
    struct event *events;
    size_t event_count, event_capacity;
    struct change *changes;
    size_t change_count, change_capacity;
    uint8_t *old_bytes;
    size_t old_count, old_capacity;
    struct flight *flights;
    size_t flight_count, flight_capacity;
    bool written[MACHINE_FILES_MAX][BLOCKS_PER_FILE]; /* since the seed began; others are zeros */
    bool filled[MACHINE_REGIONS_MAX][MACHINE_REGION_BYTES_MAX / BLOCK_BYTES]; /* may be no zeros */
    struct pending pending[PENDING_MAX];
    size_t pending_count;
    uint64_t touched[TOUCHED_MAX]; /* places of data areas that somebody may write to */
    size_t touched_count;
    struct env_file files[MACHINE_FILES_MAX];
    struct env_shared regions[MACHINE_REGIONS_MAX];
    struct base_version **versions;
    size_t version_count, version_capacity;
    struct machine_base *bases[MACHINE_BASES_MAX];
};

#define STATE(machine) (&(machine)->arena->state)

/* machine.c */
void machine_grow(void **items, size_t *capacity, size_t count, size_t item_bytes);
/* Begins an event; the changes that follow belong to it. */
struct event *machine_event_add(struct machine *machine, enum event_kind kind, uint64_t at,
                                uint32_t size);
void machine_change(struct machine *machine, const void *at, const void *from, size_t size_bytes);
/* Bytes of a region become zeros. */
void machine_clear(struct machine *machine, const void *at, size_t size_bytes);
static inline uint64_t machine_place(const struct machine *machine, const void *at) {
    return (uint64_t)((const uint8_t *)at - (const uint8_t *)machine->arena);
}
/* For watch.h. An owner may write to a data area there until the next event. */
void machine_touch(struct machine *machine, uint64_t place);
/* The engine stores into a region; */
void machine_store(struct machine *machine, uint64_t place, const void *from, size_t size_bytes);
/* or has stored already, over what machine_known has still. */
void machine_stored(struct machine *machine, uint64_t place, size_t size_bytes);
/* A region's bytes there as the trace knows them; NULL outside of regions. */
const uint8_t *machine_known(const struct machine *machine, uint64_t place);
/* Keeps bytes beside the trace; answers where. */
size_t machine_keep(struct machine *machine, const void *data, size_t size_bytes);

/* machine_flight.c: writes and commits under way. */
uint32_t flight_add(struct machine *machine, const struct flight *flight);
void flight_end(struct machine *machine, uint32_t index, bool well);
/* Some of it has come, as drawn by block. */
void flight_land(struct machine *machine, uint32_t index, enum crash_kind kind);
void file_write(struct machine *machine, unsigned file, uint64_t offset, struct bytes data);
void file_flush(struct machine *machine, unsigned file, size_t submitted);
bool file_fits(const struct machine *machine, unsigned file, uint64_t size);

/* machine_env.c */
extern const struct env_ops machine_ops;

/* base.c */
uint64_t base_bytes(const struct machine *machine, unsigned index);
void bases_reset(struct machine *machine);
void bases_forget(void); /* the process that had given commits is gone */
