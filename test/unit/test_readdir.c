/* Listing while names come and go: what stays is seen exactly once, nothing is seen twice, and
 * names of one hash keep their places. */
#include "unit.h"
#include "meta_bench.h"
#include "base/endian.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STAYING = 150, GOING = 60, DELETED = 600, SEEDS = 24 };

struct listing {
    struct meta_bench *bench;
    struct ino directory;
    uint32_t seen[STAYING];
    bool gone[GOING];
    uint32_t made;
    uint32_t seen_count;
    uint64_t last_cookie;
};

static int name_call(struct listing *listing, uint16_t opcode, const char *kind, uint32_t number) {
    char text[32];
    int size = snprintf(text, sizeof text, "%s-%u", kind, number);
    struct bytes name = {(const uint8_t *)text, (size_t)size};
    struct call call;

    bench_prepare(listing->bench, 0, opcode, &call);
    if (opcode == OP_MKNOD) {
        call.request.mknod.parent = listing->directory;
        call.request.mknod.name = name;
        call.request.mknod.mode = 0100644;
    } else {
        call.request.unlink.parent = listing->directory;
        call.request.unlink.name = name;
    }
    return bench_run(listing->bench, &call);
}

static void listing_fill(struct listing *listing) {
    struct call call;

    bench_prepare(listing->bench, 0, OP_MKDIR, &call);
    call.request.mkdir.parent = INO_ROOT;
    call.request.mkdir.name = (struct bytes){(const uint8_t *)"d", 1};
    call.request.mkdir.mode = 0755;
    assert_int_equal(bench_run(listing->bench, &call), 0);
    listing->directory = call.reply.mkdir.attributes.ino;
    for (uint32_t i = 0; i < STAYING; i++) {
        assert_int_equal(name_call(listing, OP_MKNOD, "stay", i), 0);
        if (i < GOING) {
            assert_int_equal(name_call(listing, OP_MKNOD, "go", i), 0);
        }
    }
}

static void listing_change(struct listing *listing) {
    struct prng *prng = &listing->bench->prng;

    for (uint64_t i = prng_below(prng, 6); i > 0; i--) {
        uint32_t victim = (uint32_t)prng_below(prng, GOING);

        if (prng_chance(prng, 1, 2) && !listing->gone[victim]) {
            listing->gone[victim] = true;
            assert_int_equal(name_call(listing, OP_UNLINK, "go", victim), 0);
        } else {
            assert_int_equal(name_call(listing, OP_MKNOD, "new", listing->made++), 0);
        }
    }
}

static void entry_see(struct listing *listing, const struct wire_dirent *dirent,
                      const uint8_t *name) {
    char text[NAME_BYTES_MAX + 1] = {0};

    assert_true(dirent->cookie > listing->last_cookie);
    listing->last_cookie = dirent->cookie;
    listing->seen_count++;
    memcpy(text, name, dirent->name_bytes);
    if (strncmp(text, "stay-", 5) == 0) {
        listing->seen[strtoul(text + 5, NULL, 10)]++;
    }
}

static void page_prepare(struct listing *listing, uint32_t bytes_max, struct call *ret_call) {
    bench_prepare(listing->bench, 0, OP_READDIR, ret_call);
    ret_call->request.readdir.ino = listing->directory;
    ret_call->request.readdir.cookie = listing->last_cookie;
    ret_call->request.readdir.bytes_max = bytes_max;
}

static bool page_see(struct listing *listing, const struct call *call) {
    for (size_t at = 0; at < call->bulk_in.size;) {
        struct wire_dirent dirent;

        memcpy(&dirent, call->bulk_in.data + at, sizeof dirent);
        entry_see(listing, &dirent, call->bulk_in.data + at + sizeof dirent);
        at += dirent.entry_bytes;
    }
    return call->reply.readdir.end;
}

static bool listing_page(struct listing *listing) {
    struct call call;

    page_prepare(listing, 300, &call);
    assert_int_equal(bench_run(listing->bench, &call), 0);
    return page_see(listing, &call);
}

static void test_concurrent_change(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct bench_options options = {.seed = seed,
                                              .cold_per_mille = seed % 2 ? 100 : 0,
                                              .hash_bits = seed % 4 ? 4 : 0,
                                              .listing_step = (uint32_t)seed % 3};
        struct listing listing = {.bench = bench_new(&options)};

        listing_fill(&listing);
        while (!listing_page(&listing)) {
            listing_change(&listing);
        }
        for (uint32_t i = 0; i < STAYING; i++) {
            if (listing.seen[i] != 1) {
                fail_msg("seed %llu: stay-%u is seen %u times", (unsigned long long)seed, i,
                         listing.seen[i]);
            }
        }
        bench_free(listing.bench);
    }
}

/* Others, each asked for in the step that has answered the one before. */
struct others {
    struct listing *listing;
    const struct call *long_one;
    struct call call;
    char text[32];
    uint32_t answered;
};

static struct others others;

static void other_answered(struct call *call);

static void other_post(void) {
    uint32_t number = others.answered;
    bool goes = number % 2 == 0 && number / 2 < GOING;
    int size = snprintf(others.text, sizeof others.text, "%s-%u", goes ? "go" : "new",
                        goes ? number / 2 : number);
    struct bytes name = {(const uint8_t *)others.text, (size_t)size};

    bench_prepare(others.listing->bench, 1, goes ? OP_UNLINK : OP_MKNOD, &others.call);
    if (goes) {
        others.call.request.unlink.parent = others.listing->directory;
        others.call.request.unlink.name = name;
    } else {
        others.call.request.mknod.parent = others.listing->directory;
        others.call.request.mknod.name = name;
        others.call.request.mknod.mode = 0100644;
    }
    bench_post(others.listing->bench, &others.call);
    others.call.reply_to = other_answered;
}

static void other_answered(struct call *call) {
    assert_int_equal(call->result, 0);
    others.answered++;
    if (!bench_is_answered(others.long_one)) {
        other_post();
    }
}

/* Within a step, so that both wait for the next one. */
static void both_post(struct call *call) {
    (void)call;
    bench_post(others.listing->bench, (struct call *)others.long_one);
    other_post();
}

/* A listing that has all it needs in memory lets others run, keeps what it has meanwhile, and tells
 * of each name that stays once, though names go and come behind and before its place. */
static void test_others_have_their_turn(void **state) {
    const struct bench_options options = {.seed = 7, .listing_step = 8};
    struct listing listing = {.bench = bench_new(&options)};
    struct call call;
    struct call first;

    (void)state;
    listing_fill(&listing);
    page_prepare(&listing, BENCH_BULK_BYTES, &call);
    call.request.readdir.plus = 1;
    call.stage = 0;
    others = (struct others){.listing = &listing, .long_one = &call};
    bench_prepare(listing.bench, 0, OP_GETATTR, &first);
    first.request.getattr.ino = INO_ROOT;
    first.message = (struct message){.kind = CALL_MESSAGE_KIND};
    first.reply_to = both_post;
    actor_post(group_actor(listing.bench->group), &first.message);
    assert_int_equal(bench_finish(listing.bench, &call), 0);
    assert_in_range(others.answered, STAYING / 4, STAYING);
    assert_true(page_see(&listing, &call));
    for (uint32_t i = 0; i < STAYING; i++) {
        assert_int_equal(listing.seen[i], 1);
    }
    bench_free(listing.bench);
}

/* Nothing of the base is in memory, and little of it is known to be once it was read: behind more
 * deleted names, and rows of them, than that a listing and fsck arrive nevertheless. */
static void test_deleted_names(void **state) {
    const struct bench_options options = {.seed = 3, .cold_per_mille = 1000, .warm_sets = 8};
    struct listing listing = {.bench = bench_new(&options)};
    struct call call;
    uint32_t rows = 0;

    (void)state;
    listing_fill(&listing);
    for (uint32_t i = 0; i < DELETED; i++) {
        assert_int_equal(name_call(&listing, OP_MKNOD, "del", i), 0);
    }
    bench_stop_and_start(listing.bench);
    bench_attach(listing.bench, 0);
    for (uint32_t i = 0; i < DELETED; i++) {
        assert_int_equal(name_call(&listing, OP_UNLINK, "del", i), 0);
    }
    for (uint32_t i = 0; i < STAYING; i++) {
        assert_int_equal(name_call(&listing, OP_UNLINK, "stay", i), 0);
    }
    for (uint32_t i = 0; i < GOING; i += 2) {
        assert_int_equal(name_call(&listing, OP_UNLINK, "go", i), 0);
    }
    while (!listing_page(&listing)) {
    }
    assert_int_equal(listing.seen_count, GOING / 2 + 2); /* with "." and ".." */
    bench_prepare(listing.bench, 0, OP_FSCK_LIST, &call);
    call.request.fsck_list = (struct fsck_list_request){.what = FSCK_DENTRIES, .bytes_max = 65536};
    do {
        uint8_t last[KV_KEY_BYTES];

        assert_int_equal(bench_run(listing.bench, &call), 0);
        for (size_t at = 0; at < call.bulk_in.size;) {
            memcpy(last, call.bulk_in.data + at + 2, sizeof last);
            call.request.fsck_list.cursor = (struct bytes){last, sizeof last};
            at += 2 + sizeof last + load_le16(call.bulk_in.data + at);
            rows++;
        }
    } while (!call.reply.fsck_list.end);
    assert_in_range(rows, GOING / 2 + 1, GOING + DELETED);
    bench_free(listing.bench);
}

/* What can never be listed is refused, and an entry that has no room does not end the listing. */
static void test_bad_requests(void **state) {
    const struct bench_options options = {.seed = 1};
    struct meta_bench *bench = bench_new(&options);
    struct call call;

    (void)state;
    bench_prepare(bench, 0, OP_READDIR, &call);
    call.request.readdir.ino = INO_ROOT;
    call.request.readdir.bytes_max = 30;
    assert_int_equal(bench_run(bench, &call), -ERR_TOO_SMALL);
    bench_prepare(bench, 0, OP_READDIR, &call);
    call.request.readdir.ino = INO_ROOT;
    call.request.readdir.bytes_max = 4096;
    call.request.readdir.cookie = UINT64_C(1) << 63;
    assert_int_equal(bench_run(bench, &call), -ERR_INVALID);
    bench_prepare(bench, 0, OP_READDIR, &call);
    call.request.readdir.ino = INO_ROOT;
    call.request.readdir.bytes_max = 4096;
    call.request.readdir.cookie = (UINT64_C(1) << 63) - 1;
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.reply.readdir.end, 1);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concurrent_change),
        cmocka_unit_test(test_others_have_their_turn),
        cmocka_unit_test(test_deleted_names),
        cmocka_unit_test(test_bad_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
