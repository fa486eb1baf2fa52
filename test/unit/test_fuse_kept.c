/* Which files are read past the kernel's pages and which by them, beside a kernel that keeps as
 * many pages as there is memory and drops those that were used longest ago. */
#include "base/prng.h"
#include "front/fuse/kept.h"
#include "unit.h"
#include <string.h>

enum {
    FILES = 4000,
    FILE_BYTES = 50 << 10,
    FILE_PAGES = FILE_BYTES / 4096 + 1,
    PAGE_BYTES = 4096,
    THREAD = 7,
    WARM_UPS = 2, /* files after which a thread is known to read them whole */
    SHARING = 4,  /* files that share a slot with another, at most */
    SEED = 20,
};

struct kernel {
    struct kept_table table;
    unsigned room;        /* files whose pages it keeps */
    unsigned used[FILES]; /* when, 0: it has no pages of it */
    unsigned versions[FILES];
    unsigned pages_of[FILES]; /* version that it has */
    unsigned clock, resident;
    unsigned reads, past, stale; /* of the pass that is under way */
    struct prng prng;
};

static struct shoal_attributes attributes_of(const struct kernel *kernel, unsigned file) {
    return (struct shoal_attributes){
        .ino = 100 + file, .version = 1 + kernel->versions[file], .size = FILE_BYTES};
}

static void drop_oldest(struct kernel *kernel) {
    unsigned oldest = 0;

    for (unsigned i = 0; i < FILES; i++)
        if (kernel->used[i] != 0 &&
            (kernel->used[oldest] == 0 || kernel->used[i] < kernel->used[oldest]))
            oldest = i;
    kernel->used[oldest] = 0;
    kernel->resident--;
}

static void fill(struct kernel *kernel, unsigned file) {
    if (kernel->used[file] == 0) {
        if (kernel->resident == kernel->room)
            drop_oldest(kernel);
        kernel->resident++;
    }
    kernel->pages_of[file] = kernel->versions[file];
}

/* A program opens it, reads it by pieces of so many bytes, and closes it. */
static enum kept_way read_file(struct kernel *kernel, unsigned file, uint32_t piece_bytes) {
    const struct shoal_attributes attributes = attributes_of(kernel, file);
    struct kept_use use;
    enum kept_way way = kept_use_begin(&kernel->table, &use, &attributes, THREAD, true);

    if (way == KEPT_DROPPED && kernel->used[file] != 0) {
        kernel->used[file] = 0;
        kernel->resident--;
    }
    if (way == KEPT_PAST || kernel->used[file] == 0) {
        for (uint32_t at = 0; at < FILE_BYTES; at += piece_bytes)
            kept_use_read(&kernel->table, &use, attributes.ino, at, piece_bytes);
        kernel->reads++;
        kernel->past += way == KEPT_PAST;
        if (way != KEPT_PAST)
            fill(kernel, file);
    }
    if (way != KEPT_PAST) {
        kernel->stale += kernel->pages_of[file] != kernel->versions[file];
        kernel->used[file] = ++kernel->clock;
    }
    kept_use_end(&kernel->table, &use);
    return way;
}

/* Each of the first so many files once, in an order of its own. */
static void pass(struct kernel *kernel, unsigned files) {
    unsigned order[FILES];

    for (unsigned i = 0; i < files; i++)
        order[i] = i;
    kernel->reads = kernel->past = kernel->stale = 0;
    for (unsigned i = files; i > 0; i--) {
        unsigned drawn = (unsigned)prng_below(&kernel->prng, i);

        (void)read_file(kernel, order[drawn], FILE_BYTES);
        order[drawn] = order[i - 1];
    }
    assert_int_equal(kernel->stale, 0);
}

static int set_up(void **state) {
    static struct kernel kernel;

    memset(&kernel, 0, sizeof(kernel));
    prng_init(&kernel.prng, SEED);
    kernel.room = FILES;
    *state = &kernel;
    return kept_table_init(&kernel.table, UINT64_C(2) * FILES * FILE_PAGES * PAGE_BYTES);
}

static int tear_down(void **state) {
    struct kernel *kernel = *state;

    kept_table_deinit(&kernel->table);
    return 0;
}

/* Once past the pages, once by them, and then from there. */
static void test_what_fits_is_read_twice(void **state) {
    struct kernel *kernel = *state;

    pass(kernel, FILES);
    assert_int_equal(kernel->reads, FILES);
    assert_int_equal(kernel->past, FILES - WARM_UPS);
    pass(kernel, FILES);
    assert_true(kernel->reads >= FILES - WARM_UPS - SHARING);
    assert_true(kernel->past <= SHARING);
    for (unsigned i = 0; i < 3; i++) {
        pass(kernel, FILES);
        assert_true(kernel->reads <= SHARING);
    }

    /* What was changed since is new. */
    for (unsigned i = 0; i < FILES; i += 2)
        kernel->versions[i]++;
    pass(kernel, FILES);
    assert_true(kernel->reads >= FILES / 2 && kernel->reads <= FILES / 2 + SHARING);
    assert_true(kernel->past >= FILES / 2);
}

/* Of more than there is memory for a part stays, and the rest goes past it, also where others have
 * taken most of the memory. */
static void test_a_part_of_what_does_not_fit_stays(void **state) {
    struct kernel *kernel = *state;
    static const unsigned parts[] = {2, 4, 16};

    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
        unsigned hits = 0;
        enum { PASSES = 30, COUNTED = 10 };

        kernel->room = FILES / parts[i];
        while (kernel->resident > kernel->room)
            drop_oldest(kernel);
        for (unsigned number = 0; number < PASSES; number++) {
            pass(kernel, FILES);
            hits += number >= PASSES - COUNTED ? FILES - kernel->reads : 0;
        }
        assert_true(hits >= COUNTED * kernel->room * 7 / 10);
    }
    /* And all when it is there again. */
    kernel->room = FILES;
    for (unsigned number = 0; kernel->reads > SHARING; number++) {
        assert_true(number < 60);
        pass(kernel, FILES);
    }
}

/* The pages serve who takes a file piece by piece: one request brings several pieces. */
static void test_pieces_are_read_by_pages(void **state) {
    struct kernel *kernel = *state;

    for (unsigned file = 0; file < WARM_UPS; file++)
        assert_int_equal(read_file(kernel, file, FILE_BYTES), KEPT_DROPPED);
    assert_int_equal(read_file(kernel, WARM_UPS, FILE_BYTES), KEPT_PAST);
    assert_int_equal(read_file(kernel, WARM_UPS + 1, 8192), KEPT_PAST);
    for (unsigned file = 0; file < 10; file++)
        assert_int_equal(read_file(kernel, 10 + file, 8192), KEPT_DROPPED);
    for (unsigned file = 0; file < WARM_UPS; file++)
        assert_int_equal(read_file(kernel, 20 + file, FILE_BYTES), KEPT_DROPPED);
    assert_int_equal(read_file(kernel, 30, FILE_BYTES), KEPT_PAST);
}

/* An inode that the kernel forgets takes its pages along, and none of the room. */
static void test_what_is_forgotten_is_not_kept(void **state) {
    struct kernel *kernel = *state;

    for (unsigned i = 0; i < 3; i++)
        pass(kernel, 100);
    assert_int_equal(kernel->reads, 0);
    assert_int_equal(atomic_load(&kernel->table.pages), 100 * FILE_PAGES);
    for (unsigned file = 0; file < 100; file++) {
        kernel->used[file] = 0;
        kept_forget(&kernel->table, 100 + file);
        kept_forget(&kernel->table, 100 + file);
    }
    kernel->resident = 0;
    assert_int_equal(atomic_load(&kernel->table.pages), 0);
    assert_int_equal(read_file(kernel, 0, FILE_BYTES), KEPT_DROPPED);
    assert_int_equal(read_file(kernel, 0, FILE_BYTES), KEPT_THERE);
    assert_int_equal(atomic_load(&kernel->table.room), kernel->table.room_max);
}

/* Who has read the beginning of a file leaves the rest to be read by others: none of it was there.
 * Small files need no room. */
static void test_what_was_never_there_is_not_missed(void **state) {
    struct kernel *kernel = *state;
    struct shoal_attributes attributes = attributes_of(kernel, 0);
    struct kept_use use;

    assert_int_equal(read_file(kernel, 0, FILE_BYTES), KEPT_DROPPED);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(kept_use_begin(&kernel->table, &use, &attributes, THREAD, true),
                         KEPT_THERE);
        kept_use_read(&kernel->table, &use, attributes.ino, 32768, 16384);
        kept_use_end(&kernel->table, &use);
        assert_int_equal(atomic_load(&kernel->table.room), kernel->table.room_max);
    }
    assert_int_equal(kept_use_begin(&kernel->table, &use, &attributes, THREAD, true), KEPT_THERE);
    kept_use_read(&kernel->table, &use, attributes.ino, 0, 32768);
    assert_true(atomic_load(&kernel->table.room) < kernel->table.room_max);

    assert_int_equal(atomic_load(&kernel->table.pages), FILE_PAGES);
    attributes = (struct shoal_attributes){.ino = 90, .version = 1, .size = 16384};
    assert_int_equal(kept_use_begin(&kernel->table, &use, &attributes, THREAD, true), KEPT_DROPPED);
    kept_use_read(&kernel->table, &use, attributes.ino, 0, 16384);
    assert_int_equal(kept_use_begin(&kernel->table, &use, &attributes, THREAD, true), KEPT_THERE);
    assert_int_equal(atomic_load(&kernel->table.pages), FILE_PAGES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_fits_is_read_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_part_of_what_does_not_fit_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pieces_are_read_by_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_forgotten_is_not_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_never_there_is_not_missed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
