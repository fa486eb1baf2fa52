/* Free space against a plain array: what is taken was free, what is freed comes back when its
 * record is on disk and no read of it is left, and not before; runs are found as long as there are
 * any, however the space is cut up. */
#include "unit.h"
#include "base/prng.h"
#include "store/blocks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 5 * BLOCKS_REGION_BLOCKS / 2, FREED_MAX = 64, HELD_MAX = 256, SEEDS = 15 };

enum state { FREE, TAKEN, QUARANTINE };

struct freed {
    struct extent extent;
    uint64_t position;
    uint64_t read_number;
};

struct model {
    struct prng prng;
    struct blocks blocks;
    uint8_t state[BLOCKS];
    struct extent held[HELD_MAX];
    uint32_t held_count;
    struct freed freed[FREED_MAX];
    uint32_t freed_count;
    uint64_t position;
    uint64_t read_number;
};

static void set_state(struct model *model, struct extent extent, enum state from, enum state to) {
    for (uint32_t i = 0; i < extent.count; i++) {
        assert_int_equal(model->state[extent.first + i], from);
        model->state[extent.first + i] = (uint8_t)to;
    }
}

static uint64_t count_free(const struct model *model) {
    uint64_t count = 0;

    for (uint64_t i = 0; i < model->blocks.block_count; i++) {
        count += model->state[i] == FREE;
    }
    return count;
}

/* Of the free blocks; those lent to the small lane may cut a run in two. */
static uint32_t longest_run(const struct model *model) {
    uint32_t longest = 0;
    uint32_t run = 0;

    for (uint64_t i = 0; i < model->blocks.block_count; i++) {
        if (i % BLOCKS_REGION_BLOCKS == 0) {
            run = 0;
        }
        run = blocks_is_free(&model->blocks, i) ? run + 1 : 0;
        longest = MAX(longest, run);
    }
    return longest;
}

static void take(struct model *model) {
    enum blocks_lane lane = prng_chance(&model->prng, 1, 2) ? BLOCKS_LANE_SMALL : BLOCKS_LANE_LARGE;
    uint32_t limit = lane == BLOCKS_LANE_SMALL ? 18 : 1025;
    uint32_t want = 1 + (uint32_t)prng_below(&model->prng, limit);
    uint32_t longest = longest_run(model);
    struct extent got = {0};

    if (model->held_count == HELD_MAX) {
        return;
    }
    got.count = blocks_take(&model->blocks, lane, want, &got.first);
    assert_true(got.count <= want);
    if (lane == BLOCKS_LANE_LARGE && longest > 0) {
        assert_int_equal(got.count, MIN(want, longest));
    }
    if (got.count == 0) {
        assert_int_equal(count_free(model), 0);
        return;
    }
    set_state(model, got, FREE, TAKEN);
    model->held[model->held_count++] = got;
}

static void give(struct model *model) {
    uint32_t index = (uint32_t)prng_below(&model->prng, model->held_count + 1);

    if (index == model->held_count) {
        return;
    }
    struct extent extent = model->held[index];
    if (prng_chance(&model->prng, 1, 3)) {
        blocks_give_back(&model->blocks, extent);
        set_state(model, extent, TAKEN, FREE);
    } else {
        if (!blocks_can_free(&model->blocks, 1)) {
            assert_int_equal(model->freed_count, FREED_MAX);
            return;
        }
        /* Sometimes only a part of it. */
        struct extent part = extent;
        part.count = 1 + (uint32_t)prng_below(&model->prng, extent.count);
        blocks_free(&model->blocks, part, ++model->position, model->read_number);
        set_state(model, part, TAKEN, QUARANTINE);
        model->freed[model->freed_count++] =
            (struct freed){part, model->position, model->read_number};
        if (part.count < extent.count) {
            model->held[index].first += part.count;
            model->held[index].count -= part.count;
            return;
        }
    }
    model->held[index] = model->held[--model->held_count];
}

static void release(struct model *model) {
    uint64_t synced = prng_below(&model->prng, model->position + 1);
    uint64_t oldest = prng_below(&model->prng, model->read_number + 1);
    uint64_t expected = 0;
    uint32_t done = 0;

    while (done < model->freed_count && model->freed[done].position <= synced &&
           model->freed[done].read_number <= oldest) {
        expected += model->freed[done].extent.count;
        set_state(model, model->freed[done].extent, QUARANTINE, FREE);
        done++;
    }
    assert_int_equal(blocks_release(&model->blocks, synced, oldest), expected);
    model->freed_count -= done;
    memmove(model->freed, model->freed + done, model->freed_count * sizeof *model->freed);
    model->read_number += prng_below(&model->prng, 3);
}

static void check(const struct model *model) {
    uint64_t quarantine = 0;

    for (uint64_t i = 0; i < BLOCKS; i++) {
        /* A free block may be in the piece of the small lane, so its bit says nothing. */
        if (i >= model->blocks.block_count || model->state[i] != FREE) {
            assert_false(blocks_is_free(&model->blocks, i));
        }
        quarantine += model->state[i] == QUARANTINE;
    }
    assert_int_equal(model->blocks.free_count, count_free(model));
    assert_int_equal(model->blocks.quarantine_blocks, quarantine);
}

static void run_seed(uint64_t seed) {
    static struct model model;

    memset(&model, 0, sizeof model);
    prng_init(&model.prng, seed);
    assert_int_equal(blocks_init(&model.blocks, BLOCKS, FREED_MAX), 0);
    blocks_grow(&model.blocks, 1000 + prng_below(&model.prng, BLOCKS - 1000));
    assert_int_equal(blocks_mark(&model.blocks, 0), 0);
    assert_int_equal(blocks_mark(&model.blocks, 0), -ERR_CORRUPT);
    assert_int_equal(blocks_mark(&model.blocks, BLOCKS), -ERR_CORRUPT);
    model.state[0] = TAKEN;
    for (int i = 0; i < 600; i++) {
        uint64_t draw = prng_below(&model.prng, 100);

        if (draw < 45) {
            take(&model);
        } else if (draw < 85) {
            give(&model);
        } else if (draw < 97) {
            release(&model);
        } else {
            uint64_t more = prng_below(&model.prng, BLOCKS - model.blocks.block_count + 1);

            blocks_grow(&model.blocks, model.blocks.block_count + more);
        }
        if (i % 50 == 0) {
            check(&model);
        }
    }
    check(&model);
    blocks_deinit(&model.blocks);
}

static void test_random(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        printf("seed %llu\r", (unsigned long long)seed);
        run_seed(seed);
    }
}

/* Every second block in use: single blocks are all there is, and all of them are found. */
static void test_fragments(void **state) {
    struct blocks blocks;
    uint64_t first;

    (void)state;
    assert_int_equal(blocks_init(&blocks, BLOCKS, FREED_MAX), 0);
    blocks_grow(&blocks, BLOCKS);
    for (uint64_t i = 0; i < BLOCKS; i += 2) {
        assert_int_equal(blocks_mark(&blocks, i), 0);
    }
    for (uint64_t i = 0; i < BLOCKS / 2; i++) {
        assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 1024, &first), 1);
        assert_int_equal(first % 2, 1);
    }
    assert_int_equal(blocks.free_count, 0);
    assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 1, &first), 0);
    assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_SMALL, 1, &first), 0);
    /* One long run between them is found at once. */
    blocks_give_back(&blocks, (struct extent){9001, 1});
    blocks_give_back(&blocks, (struct extent){9000, 1});
    blocks_give_back(&blocks, (struct extent){9002, 1});
    assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 3, &first), 3);
    assert_int_equal(first, 9000);
    blocks_deinit(&blocks);
}

/* Small writes get adjoining blocks, whatever large ones take meanwhile. */
static void test_small_lane_adjoins(void **state) {
    struct blocks blocks;
    uint64_t last = 0;
    uint64_t first = 0;
    uint64_t other;
    int breaks = 0;

    (void)state;
    assert_int_equal(blocks_init(&blocks, BLOCKS, FREED_MAX), 0);
    blocks_grow(&blocks, BLOCKS);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_SMALL, 3, &first), 3);
        breaks += first != last + 3;
        last = first;
        assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 16, &other), 16);
    }
    assert_true(breaks <= 1 + 1500 / (BLOCKS_PIECE_BLOCKS / 2));
    blocks_deinit(&blocks);
}

/* The rule that everything rests on, by its three cases. */
static void test_quarantine(void **state) {
    struct blocks blocks;
    struct extent extent = {.count = 10};

    (void)state;
    assert_int_equal(blocks_init(&blocks, BLOCKS, FREED_MAX), 0);
    blocks_grow(&blocks, 100);
    assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 10, &extent.first), 10);
    blocks_free(&blocks, extent, 7, 3);
    assert_int_equal(blocks_release(&blocks, 6, 100), 0); /* not on disk */
    assert_int_equal(blocks_release(&blocks, 100, 2), 0); /* still read */
    assert_false(blocks_is_free(&blocks, extent.first));
    assert_int_equal(blocks.free_count, 90);
    assert_int_equal(blocks_release(&blocks, 7, 3), 10);
    assert_true(blocks_is_free(&blocks, extent.first));
    assert_int_equal(blocks.free_count, 100);
    blocks_deinit(&blocks);
}

/* A file of one block more than a region has its own region for it; and none beyond. */
static void test_region_edges(void **state) {
    struct blocks blocks;
    uint64_t first;

    (void)state;
    assert_int_equal(blocks_init(&blocks, BLOCKS_REGION_BLOCKS + 1, FREED_MAX), 0);
    assert_int_equal(blocks.region_count, 2);
    blocks_grow(&blocks, BLOCKS_REGION_BLOCKS + 1);
    for (uint32_t count = 0; count < BLOCKS_REGION_BLOCKS + 1; count++) {
        assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 1, &first), 1);
        assert_int_equal(first, count);
    }
    assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 1, &first), 0);
    blocks_deinit(&blocks);
    assert_int_equal(blocks_init(&blocks, BLOCKS_REGION_BLOCKS, FREED_MAX), 0);
    assert_int_equal(blocks.region_count, 1);
    blocks_grow(&blocks, BLOCKS_REGION_BLOCKS);
    assert_int_equal(blocks_mark(&blocks, BLOCKS_REGION_BLOCKS - 1), 0);
    assert_int_equal(blocks_mark(&blocks, BLOCKS_REGION_BLOCKS - 1), -ERR_CORRUPT);
    assert_int_equal(blocks_mark(&blocks, BLOCKS_REGION_BLOCKS), -ERR_CORRUPT);
    assert_int_equal(blocks.free_count, BLOCKS_REGION_BLOCKS - 1);
    blocks_deinit(&blocks);
}

/* What is taken goes on where it was, also where a region begins. */
static void test_next_fit(void **state) {
    struct blocks blocks;
    uint64_t first;

    (void)state;
    assert_int_equal(blocks_init(&blocks, BLOCKS, FREED_MAX), 0);
    blocks_grow(&blocks, BLOCKS);
    assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, BLOCKS_REGION_BLOCKS, &first),
                     BLOCKS_REGION_BLOCKS);
    assert_int_equal(first, 0);
    blocks_give_back(&blocks, (struct extent){0, 100});
    assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 10, &first), 10);
    assert_int_equal(first, BLOCKS_REGION_BLOCKS);
    assert_int_equal(blocks_take(&blocks, BLOCKS_LANE_LARGE, 10, &first), 10);
    assert_int_equal(first, BLOCKS_REGION_BLOCKS + 10);
    blocks_deinit(&blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_small_lane_adjoins),
        cmocka_unit_test(test_quarantine),
        cmocka_unit_test(test_region_edges),
        cmocka_unit_test(test_next_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
