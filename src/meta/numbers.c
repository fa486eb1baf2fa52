/* Reserving ahead: a new block is asked for when half of the last one is used. */
#include "meta/numbers.h"
#include "meta/rows.h"
#include <assert.h>
#include <string.h>

#define INO_COUNTER_END ((UINT64_C(1) << INO_COUNTER_BITS) - 1)

void numbers_load(struct numbers *numbers, const struct counters_row *row) {
    *numbers = (struct numbers){
        .inos = {row->ino_reserved, row->ino_reserved, row->ino_reserved},
        .generations = {row->generation_reserved, row->generation_reserved,
                        row->generation_reserved},
        .epoch = row->epoch,
        .inode_count = row->inode_count,
        .directory_count = row->directory_count,
        .changed = true,
        .stage_reserve = true,
    };
}

int numbers_ino(const struct numbers *numbers, uint32_t index, uint64_t *ret_counter) {
    uint64_t counter = numbers->inos.next + index;

    if (counter >= INO_COUNTER_END) {
        return -ERR_NO_SPACE;
    }
    if (counter >= numbers->inos.usable) {
        return -ERR_PENDING;
    }
    *ret_counter = counter;
    return 0;
}

int numbers_generation(const struct numbers *numbers, uint32_t index, uint32_t *ret_generation) {
    uint64_t counter = numbers->generations.next + index;

    if (counter >= numbers->generations.usable) {
        return -ERR_PENDING;
    }
    *ret_generation = numbers_generation_of(counter);
    return 0;
}

static bool is_low(const struct number_range *range) {
    return range->next + NUMBERS_BLOCK / 2 >= range->reserved;
}

void numbers_used(struct numbers *numbers, uint32_t ino_count, uint32_t generation_count) {
    numbers->inos.next += ino_count;
    numbers->generations.next += generation_count;
    assert(ino_count == 0 || numbers->inos.next <= numbers->inos.usable);
    assert(generation_count == 0 || numbers->generations.next <= numbers->generations.usable);
    if (is_low(&numbers->inos) || is_low(&numbers->generations)) {
        numbers->stage_reserve = numbers->stage_reserve || numbers->reserve_position == 0;
    }
}

bool numbers_epoch_seen(struct numbers *numbers, uint64_t epoch, uint64_t wall_ns) {
    if (epoch > numbers->epoch && epoch > wall_ns + NUMBERS_EPOCH_AHEAD_NS) {
        return false;
    }
    numbers->epoch = MAX(numbers->epoch, epoch);
    return true;
}

uint64_t numbers_epoch(struct numbers *numbers, uint64_t wall_ns) {
    numbers->epoch = MAX(numbers->epoch + 1, wall_ns);
    return numbers->epoch;
}

static uint64_t count_after(uint64_t count, int64_t change) {
    return change < 0 && count < (uint64_t)-change ? 0 : count + (uint64_t)change;
}

void numbers_count(struct numbers *numbers, int64_t inodes, int64_t directories) {
    uint64_t directory_count = count_after(numbers->directory_count, directories);

    numbers->inode_count = count_after(numbers->inode_count, inodes);
    numbers->directory_count = MIN(directory_count, numbers->inode_count);
}

void numbers_stage(struct numbers *numbers, struct kv *kv) {
    static const struct kv_need need = {.rows = NUMBERS_ROWS,
                                        .value_bytes = NUMBERS_RECORD_BYTES,
                                        .record_bytes = NUMBERS_RECORD_BYTES};
    struct kv_grant grant;

    assert(!numbers->stage_reserve || numbers->reserve_position == 0);
    if ((!numbers->changed && !numbers->stage_reserve) ||
        kv_admit(kv, KV_CLASS_CONTROL, &need, &grant) < 0) {
        return;
    }
    uint64_t ahead = numbers->stage_reserve ? NUMBERS_BLOCK : 0;
    struct counters_row row = {
        .format = META_FORMAT,
        .ino_reserved =
            ahead ? MIN(numbers->inos.next + ahead, INO_COUNTER_END) : numbers->inos.reserved,
        .generation_reserved =
            ahead ? numbers->generations.next + ahead : numbers->generations.reserved,
        .epoch = numbers->epoch,
        .inode_count = numbers->inode_count,
        .directory_count = numbers->directory_count,
        .generation_next = numbers->generations.next,
    };
    memcpy(row.ino_next, &numbers->inos.next, sizeof row.ino_next);
    struct kv_key key = key_owner(ROW_COUNTERS, 0, 0, 0);
    kv_begin(kv, &grant);
    if (kv_put(kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row}) < 0) {
        kv_abort(kv);
        return;
    }
    uint64_t position = kv_commit(kv);
    assert(row.ino_reserved >= numbers->inos.reserved);
    if (numbers->stage_reserve) {
        numbers->inos.reserved = row.ino_reserved;
        numbers->generations.reserved = row.generation_reserved;
        numbers->reserve_position = position;
    }
    numbers->stage_reserve = false;
    numbers->changed = false;
}

bool numbers_synced(struct numbers *numbers, uint64_t synced) {
    if (numbers->reserve_position == 0 || synced < numbers->reserve_position) {
        return false;
    }
    numbers->reserve_position = 0;
    numbers->inos.usable = numbers->inos.reserved;
    numbers->generations.usable = numbers->generations.reserved;
    return true;
}

bool numbers_are_short(const struct numbers *numbers) {
    return numbers->reserve_position != 0 &&
           (numbers->inos.next >= numbers->inos.usable ||
            numbers->generations.next >= numbers->generations.usable);
}
