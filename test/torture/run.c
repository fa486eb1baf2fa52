/* A seed from beginning to end. */
#include "group.h"
#include "heap.h"
#include "kv/kv_internal.h"
#include "parts.h"
#include "seed.h"
#include "store.h"

enum { FAR_COUNT = 4 };

struct mark mark_split(uint32_t packed) {
    return (struct mark){.owner = packed & 3,
                         .sync = packed >> 2 & 7,
                         .checkpoint = packed >> 5 & 7,
                         .opening = packed >> 8 & 1,
                         .is_open = packed >> 9 & 1,
                         .filler = packed >> 10 & 1,
                         .record = packed >> 11 & 1,
                         .part = packed >> 12 & 3};
}

uint32_t mark_pack(const struct mark *mark) {
    return mark->owner | mark->sync << 2 | mark->checkpoint << 5 | (uint32_t)mark->opening << 8 |
           (uint32_t)mark->is_open << 9 | (uint32_t)mark->filler << 10 |
           (uint32_t)mark->record << 11 | (uint32_t)mark->part << 12;
}

static bool is_within(const uint8_t *at, const void *first, size_t size) {
    const uint8_t *from = first;

    return at >= from && at < from + size;
}

/* By the place: how many bytes are stored at once is for the compiler to say. */
static enum mark_part part_of(const struct ring *ring, const uint8_t *at) {
    const uint8_t *filler = ring->records + ring->head % ring->record_bytes;
    const uint8_t *record = ring->records + ring->open_at % ring->record_bytes;
    bool open = ring->open_bytes > 0;

    return is_within(at, ring->header->starts, sizeof ring->header->starts)      ? MARK_RELEASE
           : is_within(at, ring->header->newest, sizeof ring->header->newest)    ? MARK_SEAL
           : open && is_within(at, record, sizeof(struct log_record))            ? MARK_SEAL
           : open && filler != record && is_within(at, filler, sizeof(uint32_t)) ? MARK_FILLER
                                                                                 : MARK_OTHER;
}

static uint32_t mark_now(void *context, const uint8_t *stored) {
    struct seed *seed = context;
    size_t active = seed->active;
    const struct owner *owner = seed->owners[active];
    struct mark mark = {.owner = (unsigned)active};

    if (!owner) {
        return 0;
    }
    mark.opening = owner->opening;
    mark.is_open = owner->kv != NULL;
    if (owner->kv) {
        const struct kv *kv = owner->kv;

        mark.sync = kv->sync.stage;
        mark.checkpoint = kv->checkpoint.stage;
        mark.filler =
            seed->filler_known[active] && kv->ring.start.offset <= seed->filler_at[active];
        mark.record = mark.filler && kv->ring.head > seed->filler_at[active];
        mark.part = stored ? part_of(&kv->ring, stored) : MARK_OTHER;
        owner->counts[TOTAL_STORES] += stored != NULL;
        if (mark.part == MARK_FILLER) {
            owner->counts[TOTAL_WRAPS]++;
            seed->filler_known[active] = true;
            seed->filler_at[active] = kv->ring.head;
        }
    } else {
        seed->filler_known[active] = false;
    }
    return mark_pack(&mark);
}

static void owner_add(struct seed *seed, enum owner_kind kind, uint64_t first) {
    unsigned index = (unsigned)seed->owner_count;
    bool smallest = prng_chance(&seed->prng, 1, 2);
    const struct group_plan group = {
        .index = index, .first = first, .smallest = smallest, .fills = seed->fills};
    const struct store_plan store = {.index = index, .smallest = smallest, .fills = seed->fills};
    struct owner *owner = kind == OWNER_GROUP ? group_new(seed->machine, &seed->prng, &group)
                                              : store_new(seed->machine, &seed->prng, &store);

    seed->owners[index] = owner;
    seed->kinds[index] = kind;
    seed->owner_count++;
    owner->counts = seed->counts[kind].of;
    seed->active = index;
    if (first > 0) {
        prepare_far(seed, owner, first);
    }
}

/* A storage target's records are few and short: its ring would hardly come round. None of the seeds
 * that are kept. */
static bool begins_late(uint64_t number) {
    return number % 8 == 1 || number % 4 == 3;
}

/* Mostly one group; a store each fourth time; two on one machine each eighth. */
static void owners_make(struct seed *seed) {
    static const uint64_t far[FAR_COUNT] = {0, (UINT64_C(1) << 32) - 40, UINT64_C(1) << 47,
                                            UINT64_C(1) << 63};
    struct prng *prng = &seed->prng;

    seed->fills = !seed->every_point && prng_chance(prng, 1, 6);
    uint64_t first = prng_chance(prng, 1, 2) ? 0 : far[prng_below(prng, FAR_COUNT)];
    enum owner_kind kind = prng_chance(prng, 1, 4) ? OWNER_STORE : OWNER_GROUP;

    owner_add(seed, kind, kind == OWNER_GROUP ? first : 0);
    if (kind == OWNER_STORE && begins_late(seed->number)) {
        prepare_late(seed, seed->owners[0]);
    }
    if (prng_chance(prng, 1, 8)) {
        owner_add(seed, OWNER_GROUP, 0);
    }
    bool is_prepared = kind == OWNER_GROUP ? first > 0 : begins_late(seed->number);
    seed->first_point = is_prepared ? machine_event_count(seed->machine) : 0;
}

void seed_mark(struct seed *seed) {
    machine_mark_by(seed->machine, mark_now, seed);
}

void seed_end(struct seed *seed) {
    machine_mark_by(seed->machine, NULL, NULL);
    machine_forget(seed->machine);
    for (size_t i = 0; i < seed->owner_count; i++) {
        if (seed->owners[i]) {
            seed->owners[i]->ops->free(seed->owners[i]);
        }
    }
}

static void play(struct seed *seed) {
    struct machine *machine = seed->machine;

    fail_where("preparation");
    owners_make(seed);
    schedule_play(seed);
    size_t events = machine_event_count(machine);
    for (size_t i = 0; i < seed->owner_count; i++) {
        seed->owners[i]->ops->abandon(seed->owners[i]);
        seed->counts[seed->kinds[i]].of[TOTAL_SEEDS]++;
        seed->counts[seed->kinds[i]].of[TOTAL_EVENTS] += events;
    }
    machine_forget(machine);
    recover_all(seed);
}

void seed_run(struct machine *machine, uint64_t number, FILE *trace,
              struct seed_report *ret_report) {
    static struct seed seed;

    seed = (struct seed){.number = number, .machine = machine, .every_point = number % 10 == 0};
    prng_init(&seed.prng, number);
    machine_reset(machine, number);
    size_t blocks = heap_blocks() - machine_blocks(machine);
    machine_trace_to(machine, trace);
    seed_mark(&seed);
    ret_report->seed = number;
    ret_report->clean = true;
    fail_report_to(ret_report);
    tree_play(number);
    blocks_play(number);
    play(&seed);
    seed_end(&seed);
    size_t left = heap_blocks() - machine_blocks(machine) - blocks;
    MUST(left == 0, "%zu blocks of memory are not given back", left);
    ret_report->hash = machine_hash(machine);
    memcpy(ret_report->counts, seed.counts, sizeof ret_report->counts);
}
