/* One machine whose every change can be taken back: files, shared regions, bases, clock.
 *
 *     arena (a memory file, mapped twice): state | regions | files: content, durable, marks
 *     trace: event, event, ..      each with the bytes that it replaced
 *
 * A schedule runs once, forward. machine_back then undoes the trace down to any of its events, and
 * a process that opens there finds what one would have found that had died before that event;
 * what it does is traced behind, and taken back in turn. Regions are given out through the mapping
 * that cannot be written to; watch.h says how the trace learns of a store all the same.
 *
 * Thread: one.  Memory: the arena, and the heap for the trace. */
#pragma once
#include "base/prng.h"
#include "env/env.h"
#include <stdio.h>

enum {
    MACHINE_FILES_MAX = 8,
    MACHINE_FILE_BYTES_MAX = 8 << 20,
    MACHINE_REGIONS_MAX = 4,
    MACHINE_REGION_BYTES_MAX = 4 << 20,
    MACHINE_BASES_MAX = 4,
    MACHINE_NAME_BYTES = 48,
    MACHINE_SECTOR_BYTES = 512,
};

enum event_kind {
    EVENT_STORE,  /* into a region, by the engine */
    EVENT_FILL,   /* of a ring's data area, by its owner */
    EVENT_SUBMIT, /* a write or a commit is under way */
    EVENT_END,    /* and has ended, well or not */
    EVENT_FLUSH,
    EVENT_FILE,   /* made, grown, removed, renamed */
    EVENT_REGION, /* made, removed */
    EVENT_TOLD,   /* somebody was told something: told_kind in size, a number in at */
    EVENT_LAND,   /* what a crash leaves of a write or commit that was under way */
    EVENT_CRASH,
    EVENT_EDIT, /* by a test, between lives */
    EVENT_KIND_COUNT
};

struct event {
    enum event_kind kind;
    uint32_t size;
    uint64_t at; /* of the arena, or what the kind says */
    size_t first_change;
    uint32_t flight; /* of SUBMIT, END and LAND */
    uint64_t now_ns;
    uint32_t mark; /* what machine_mark_by's function said */
};

/* How probable it is that an operation fails, of a thousand. */
struct machine_faults {
    uint32_t read_fails, write_fails, flush_fails, commit_fails;
    bool no_space; /* they fail for want of space */
};

struct machine;

/* False: none can be made on this kind of processor. */
bool machine_is_possible(void);
/* Each store of the trace is one instruction's (watch.h). */
bool machine_is_stepped(void);
struct machine *machine_new(void);
void machine_free(struct machine *machine);
struct env *machine_env(struct machine *machine);
/* Everything as it was when the machine was made; a seed begins. */
void machine_reset(struct machine *machine, uint64_t seed);
/* Asked at each event: its answer is kept with the event. stored: of a store, where the engine
 * stores to; else NULL. */
typedef uint32_t machine_mark_fn(void *context, const uint8_t *stored);
void machine_mark_by(struct machine *machine, machine_mark_fn *mark, void *context);
/* Each event becomes a line; NULL: none. */
void machine_trace_to(struct machine *machine, FILE *file);
void machine_say(struct machine *machine, const char *format, ...) PRINTF_LIKE(2, 3);

/* Of memory, that it has taken. */
size_t machine_blocks(const struct machine *machine);
size_t machine_event_count(const struct machine *machine);
const struct event *machine_event(const struct machine *machine, size_t index);
/* Of all that has happened since the seed began, also of what was taken back. */
uint64_t machine_hash(const struct machine *machine);
void machine_hash_add(struct machine *machine, uint64_t value);
/* Something was told to somebody: its place in the order of all things. Answers its index. */
size_t machine_told(struct machine *machine, uint32_t kind, uint64_t number);
/* Takes back all events from `index` on. Of a store at `index` its first cut_bytes stay. */
void machine_back(struct machine *machine, size_t index, size_t cut_bytes);
/* What is drawn from now on. */
void machine_draw_from(struct machine *machine, uint64_t seed);
struct prng *machine_prng(struct machine *machine);
void machine_faults_set(struct machine *machine, const struct machine_faults *faults);

/* Time and completions. Answers how many ended; which, is drawn. */
size_t machine_pump(struct machine *machine, size_t count);
size_t machine_pending(const struct machine *machine);
void machine_advance(struct machine *machine, uint64_t ns);
/* All files and bases taken together may not become larger. */
void machine_capacity_set(struct machine *machine, uint64_t bytes);
/* Of files that were opened, and of writes and flushes that failed, since the machine was made. */
uint64_t machine_open_count(const struct machine *machine);
uint64_t machine_failure_count(const struct machine *machine);
uint64_t machine_used_bytes(const struct machine *machine);
uint64_t machine_free_bytes(const struct machine *machine); /* UINT64_MAX: without a limit */

/* The process is gone: nothing will be called back. What was under way is landed by the crash. */
void machine_forget(struct machine *machine);

enum crash_kind {
    CRASH_KILL, /* what was under way has come, in part; all else stays */
    /* What was not flushed is: */
    CRASH_POWER_LOST,
    CRASH_POWER_KEPT,
    CRASH_POWER_ONE_LOST, /* all others kept */
    CRASH_POWER_ONE_KEPT, /* all others lost */
    CRASH_POWER_ONE_TORN, /* all others as drawn, together */
    CRASH_POWER_MIXED,    /* each as drawn, torn ones too */
    CRASH_KIND_COUNT
};
extern const char *const crash_names[CRASH_KIND_COUNT];
void machine_crash(struct machine *machine, enum crash_kind kind);
/* Between lives: the disk forgets blocks of the file that were not flushed, as after a flush that
 * has failed; which, is drawn. Regions stay. */
void machine_file_forget(struct machine *machine, const char *path);

/* The bytes of a region or of a file, for tests, which change them by machine_edit only. NULL. */
const uint8_t *machine_region(const struct machine *machine, const char *name, size_t *ret_size);
const uint8_t *machine_file(const struct machine *machine, const char *path, size_t *ret_size);
/* Whether the seed has written to that block; all others are zeros, whatever bytes lie there. */
bool machine_file_is_written(const struct machine *machine, const char *path, uint64_t offset);
/* Between lives; a file's bytes are durable as well. */
void machine_edit(struct machine *machine, const void *at, const void *from, size_t size_bytes);
/* For the data area of a ring, which no order binds: a crash changes bytes of a region. */
void machine_spoil_begin(struct machine *machine, const void *at);
void machine_spoil(struct machine *machine, const void *at, const void *from, size_t size_bytes);

/* Bases: a sorted store with versions. kv_base_ops of them, and the store of options. */
struct machine_base;
extern const struct kv_base_ops machine_base_ops;
/* The store `index`, made when it is first asked for. Reads are cold with that chance of 16. */
struct machine_base *machine_base(struct machine *machine, unsigned index);
/* Between lives. */
struct kv_key;
void machine_base_put(struct machine *machine, unsigned index, const struct kv_key *key,
                      struct bytes value);
void machine_cold_set(struct machine *machine, uint32_t of_16);
struct kv_base;
/* Walks over this owner's answer -ERR_CORRUPT, and no row; others go on meanwhile. */
void machine_base_unreadable_set(struct kv_base *base, bool unreadable);
/* Whether a read of it has begun that nobody has ended. */
bool machine_base_is_read(const struct kv_base *base);
