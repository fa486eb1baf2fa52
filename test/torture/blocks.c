/* The free blocks of a data file of several regions, and what must be taken of them. */
#include "base/prng.h"
#include "fail.h"
#include "parts.h"
#include "store/blocks.h"
#include <string.h>

enum { REGIONS_MAX = 4, TURNS = 40, HELD_MAX = 64 };
enum { BLOCKS_MAX = REGIONS_MAX * BLOCKS_REGION_BLOCKS + 1 };

struct field {
    struct blocks blocks;
    struct prng prng;
    uint64_t next; /* where the last one that was taken ends */
    uint8_t taken[BLOCKS_MAX];
    struct extent held[HELD_MAX];
    size_t held_count;
};

/* The first run of free blocks from `from` on; of none, at end. */
static struct extent run_at(const struct field *field, uint64_t from, uint64_t end) {
    const uint8_t *first = memchr(field->taken + from, 0, end - from);

    if (!first) {
        return (struct extent){end, 0};
    }
    uint64_t at = (uint64_t)(first - field->taken);
    const uint8_t *behind = memchr(first, 1, end - at);
    uint64_t stop = behind ? (uint64_t)(behind - field->taken) : end;
    return (struct extent){at, (uint32_t)(stop - at)};
}

/* The first run of that many from `from` to the end of its region, or else the longest there. */
static struct extent region_run(const struct field *field, uint64_t from, uint32_t want) {
    uint64_t end = (from / BLOCKS_REGION_BLOCKS + 1) * BLOCKS_REGION_BLOCKS;
    struct extent longest = {0};

    end = MIN(end, field->blocks.block_count);
    while (from < end && longest.count < want) {
        struct extent run = run_at(field, from, end);

        longest = run.count > longest.count ? run : longest;
        from = run.first + run.count;
    }
    return longest;
}

/* Behind the last one in its region, then region by region around. */
static struct extent next_fit(const struct field *field, uint32_t want) {
    uint64_t count = field->blocks.block_count;
    uint64_t regions = (count + BLOCKS_REGION_BLOCKS - 1) / BLOCKS_REGION_BLOCKS;
    uint64_t first = (field->next + BLOCKS_REGION_BLOCKS - 1) / BLOCKS_REGION_BLOCKS;
    struct extent longest = region_run(field, field->next, want);

    if (field->next % BLOCKS_REGION_BLOCKS == 0) {
        longest.count = 0;
    }
    for (uint64_t i = 0; i < regions && longest.count < want; i++) {
        struct extent run = region_run(field, (first + i) % regions * BLOCKS_REGION_BLOCKS, want);

        longest = run.count > longest.count ? run : longest;
    }
    return longest;
}

static void take(struct field *field) {
    bool rest = prng_chance(&field->prng, 1, 4); /* of the region: the next one begins whole */
    uint32_t left = BLOCKS_REGION_BLOCKS - (uint32_t)(field->next % BLOCKS_REGION_BLOCKS);
    uint32_t want = rest ? left : (uint32_t)prng_between(&field->prng, 1, BLOCKS_REGION_BLOCKS / 2);
    struct extent run = next_fit(field, want);
    struct extent got = {0};

    got.count = blocks_take(&field->blocks, BLOCKS_LANE_LARGE, want, &got.first);
    MUST(got.count == MIN(run.count, want), "%u blocks are taken of %u, a run has %u", got.count,
         want, run.count);
    MUST(run.count < want || got.first == run.first,
         "%u blocks are taken at %llu, the next that are free are at %llu", want,
         (unsigned long long)got.first, (unsigned long long)run.first);
    if (got.count > 0) {
        memset(field->taken + got.first, 1, got.count);
        field->next = (got.first + got.count) % field->blocks.block_count;
        field->held[field->held_count++] = got;
    }
}

static void give_back(struct field *field) {
    size_t chosen = prng_below(&field->prng, field->held_count);
    struct extent extent = field->held[chosen];

    field->held[chosen] = field->held[--field->held_count];
    blocks_give_back(&field->blocks, extent);
    memset(field->taken + extent.first, 0, extent.count);
}

void blocks_play(uint64_t seed) {
    static struct field field;

    fail_where("free blocks");
    memset(&field, 0, sizeof field);
    prng_init(&field.prng, seed);
    uint64_t most = prng_between(&field.prng, 1, REGIONS_MAX) * BLOCKS_REGION_BLOCKS +
                    prng_below(&field.prng, 2);
    int r = blocks_init(&field.blocks, most, 1);
    MUST(r == 0, "there are no blocks: %s", err_name(r));
    blocks_grow(&field.blocks, most);
    r = blocks_mark(&field.blocks, most);
    MUST(r == -ERR_CORRUPT, "the block behind the file's last one is marked: %s", err_name(r));
    for (int i = 0; i < TURNS; i++) {
        if (field.held_count == 0 || prng_chance(&field.prng, 3, 5)) {
            take(&field);
        } else {
            give_back(&field);
        }
    }
    blocks_deinit(&field.blocks);
}
