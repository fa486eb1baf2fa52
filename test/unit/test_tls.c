/* TLS as a machine over memory: two ends that get each other's bytes in any pieces; keys that are
 * none; bytes that were changed, cut or made up. */
#include "base/err.h"
#include "base/prng.h"
#include "keys/tls.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

enum { BIG_BYTES = 1 << 20, WIRE_BYTES = 256 << 10 };

static const struct identity a_mount = {.kind = IDENTITY_MOUNT, .read_only = true, .serial = 42};

struct side {
    struct tls *tls;
    uint8_t wire[WIRE_BYTES]; /* what came for it and was not taken */
    size_t wire_bytes;
    struct buffer got;
    int error;
};

static struct {
    struct key_file members, mount;
    struct key_ring *ring;
    struct tls_context *server, *client;
    struct side sides[2]; /* client, server */
    uint8_t *out, *in;
} it;

static void secret_fill(struct secret *secret, uint8_t with) {
    memset(secret->bytes, with, sizeof secret->bytes);
}

static void contexts_make(const struct key_file *of_client) {
    assert_int_equal(tls_context_serve(it.ring, &it.server), 0);
    assert_int_equal(tls_context_call(of_client, &it.client), 0);
}

static void sides_make(uint32_t attempt) {
    assert_int_equal(tls_new(it.client, attempt, &it.sides[0].tls), 0);
    assert_int_equal(tls_new(it.server, 0, &it.sides[1].tls), 0);
    for (int i = 0; i < 2; i++) {
        it.sides[i].wire_bytes = 0;
        it.sides[i].error = 0;
        it.sides[i].got = (struct buffer){it.in, 0, BIG_BYTES};
    }
}

static void sides_free(void) {
    tls_free(TAKE_PTR(it.sides[0].tls));
    tls_free(TAKE_PTR(it.sides[1].tls));
}

static int set_up(void **state) {
    struct secret key;

    (void)state;
    secret_fill(&key, 7);
    key_file_make(&key, &it.members);
    key_file_derive(&it.members, &a_mount, &it.mount);
    it.out = malloc(BIG_BYTES);
    it.in = malloc(BIG_BYTES);
    for (size_t i = 0; i < BIG_BYTES; i++) {
        it.out[i] = (uint8_t)(i * 13 + i / 251);
    }
    return key_ring_new(&it.members, &it.ring);
}

static int tear_down(void **state) {
    (void)state;
    sides_free();
    tls_context_free(TAKE_PTR(it.server));
    tls_context_free(TAKE_PTR(it.client));
    key_ring_free(TAKE_PTR(it.ring));
    free(it.out);
    free(it.in);
    return 0;
}

/* Of what one side must send, at most so many bytes reach the other. */
static size_t carry(struct side *from, struct side *to, size_t bytes_max) {
    struct bytes pending = tls_pending(from->tls);
    size_t bytes = MIN(MIN(pending.size, bytes_max), WIRE_BYTES - to->wire_bytes);

    memcpy(to->wire + to->wire_bytes, pending.data, bytes);
    to->wire_bytes += bytes;
    tls_sent(from->tls, bytes);
    return bytes;
}

static void take(struct side *side) {
    struct bytes in = {side->wire, side->wire_bytes};
    size_t opened = 1;
    int r = 0;

    while (r == 0 && opened > 0) {
        r = tls_open(side->tls, &in, &side->got, 1, &opened);
    }
    side->error = r < 0 ? r : side->error;
    memmove(side->wire, in.data, in.size);
    side->wire_bytes = in.size;
}

/* Until neither has anything to send. */
static void talk(size_t piece_bytes) {
    take(&it.sides[0]);
    while (carry(&it.sides[0], &it.sides[1], piece_bytes) +
           carry(&it.sides[1], &it.sides[0], piece_bytes)) {
        take(&it.sides[0]);
        take(&it.sides[1]);
    }
}

static void assert_proven(bool yes) {
    assert_int_equal(tls_is_proven(it.sides[0].tls) && tls_is_proven(it.sides[1].tls), yes);
}

static size_t seal_all(struct side *side, const struct bytes *parts, size_t count) {
    size_t sealed;

    assert_int_equal(tls_seal(side->tls, parts, count, &sealed), 0);
    return sealed;
}

static void who_has_the_key_is_let_in(void **state) {
    static const size_t pieces[] = {1, 7, 100, WIRE_BYTES};

    (void)state;
    contexts_make(&it.mount);
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        const char *words;

        sides_make(0);
        talk(pieces[i]);
        assert_proven(true);
        assert_true(identity_is(tls_identity(it.sides[1].tls), &a_mount));
        assert_int_equal(tls_error(it.sides[1].tls, &words), 0);
        sides_free();
    }
}

static void a_member_is_a_member(void **state) {
    (void)state;
    contexts_make(&it.members);
    sides_make(3);
    talk(WIRE_BYTES);
    assert_proven(true);
    assert_true(identity_is(tls_identity(it.sides[1].tls), &IDENTITY_OF_MEMBER));
}

/* Refused at both ends, in words, and nothing is said meanwhile. */
static void assert_refused(const char *at_server) {
    const char *words;
    size_t sealed;

    talk(WIRE_BYTES);
    assert_proven(false);
    assert_int_equal(it.sides[0].error, -ERR_ACCESS);
    assert_int_equal(it.sides[1].error, -ERR_ACCESS);
    assert_int_equal(tls_error(it.sides[1].tls, &words), -ERR_ACCESS);
    assert_string_equal(words, at_server);
    assert_int_equal(tls_error(it.sides[0].tls, &words), -ERR_ACCESS);
    assert_string_equal(words, "the key is not taken there");
    assert_int_equal(
        tls_seal(it.sides[1].tls, &(struct bytes){it.out, 10}, 1, &sealed) == 0 ? sealed : 0, 0);
}

static void another_clusters_key_is_refused(void **state) {
    struct key_file other;
    struct secret key;

    (void)state;
    secret_fill(&key, 8);
    key_file_make(&key, &other);
    contexts_make(&other);
    sides_make(0);
    assert_refused("its key is of another cluster, or was taken out of use");
}

/* Names a key that is there, and has another. */
static void a_key_that_was_made_up_is_refused(void **state) {
    struct key_file made_up = it.mount;

    (void)state;
    made_up.keys[0].secret.bytes[31] ^= 1;
    contexts_make(&made_up);
    sides_make(0);
    assert_refused("it has not the key that it names");
}

/* A mount's key under the name of another. */
static void an_identity_that_was_made_up_is_refused(void **state) {
    struct key_file made_up = it.mount;

    (void)state;
    made_up.identity.read_only = false;
    contexts_make(&made_up);
    sides_make(0);
    assert_refused("it has not the key that it names");
}

/* Two keys in a file, of which the server has the older: the second attempt is let in. */
static void keys_of_a_file_are_tried_in_turns(void **state) {
    struct key_file newer, both = it.members;
    struct secret key;
    char problem[KEY_PROBLEM_BYTES];

    (void)state;
    secret_fill(&key, 9);
    key_file_make(&key, &newer);
    assert_int_equal(key_file_add(&both, &newer, problem), 0);
    contexts_make(&both);
    sides_make(0);
    talk(WIRE_BYTES);
    assert_proven(false);
    sides_free();
    sides_make(1);
    talk(WIRE_BYTES);
    assert_proven(true);
}

static void carry_much(struct side *from, struct side *to, size_t piece_bytes) {
    size_t done = 0;

    to->got = (struct buffer){it.in, 0, BIG_BYTES};
    while (to->got.size < BIG_BYTES) {
        struct bytes parts[3] = {{it.out + done, MIN((size_t)9, BIG_BYTES - done)}, {0}, {0}};

        parts[1] = (struct bytes){parts[0].data + parts[0].size,
                                  MIN((size_t)40000, BIG_BYTES - done - parts[0].size)};
        parts[2] = (struct bytes){parts[1].data + parts[1].size,
                                  BIG_BYTES - done - parts[0].size - parts[1].size};
        done += seal_all(from, parts, 3);
        while (carry(from, to, piece_bytes) > 0) {
            take(to);
        }
    }
    assert_int_equal(done, BIG_BYTES);
    assert_int_equal(to->error, 0);
    assert_memory_equal(it.in, it.out, BIG_BYTES);
}

static void much_goes_both_ways(void **state) {
    (void)state;
    contexts_make(&it.mount);
    sides_make(0);
    talk(WIRE_BYTES);
    carry_much(&it.sides[0], &it.sides[1], WIRE_BYTES);
    carry_much(&it.sides[1], &it.sides[0], WIRE_BYTES);
    carry_much(&it.sides[1], &it.sides[0], 1000);
}

/* Small parts share a record. */
static void small_parts_share_a_record(void **state) {
    struct bytes parts[40];

    (void)state;
    contexts_make(&it.mount);
    sides_make(0);
    talk(WIRE_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        parts[i] = (struct bytes){it.out + 10 * i, 10};
    }
    assert_int_equal(seal_all(&it.sides[0], parts, ARRAY_SIZE(parts)), 400);
    assert_true(tls_pending(it.sides[0].tls).size < 400 + 64);
}

/* What follows the last record is left as it is, in whatever pieces it comes. */
static void they_may_go_on_without(void **state) {
    static const char plain[] = "and the rest is plain, as both have agreed";

    (void)state;
    contexts_make(&it.mount);
    for (size_t cut = 0; cut <= sizeof plain; cut++) {
        struct side *server = &it.sides[1];

        sides_make(0);
        talk(WIRE_BYTES);
        assert_int_equal(seal_all(&it.sides[0], &(struct bytes){it.out, 300}, 1), 300);
        carry(&it.sides[0], server, WIRE_BYTES);
        memcpy(server->wire + server->wire_bytes, plain, cut);
        server->wire_bytes += cut;
        server->got = (struct buffer){it.in, 0, 300};
        take(server);
        assert_int_equal(server->got.size, 300);
        assert_int_equal(server->wire_bytes, cut);
        assert_memory_equal(server->wire, plain, cut);
        sides_free();
    }
}

/* One bit anywhere in what was said ends it, and nothing of a changed record is handed out. */
static void what_was_changed_is_noticed(void **state) {
    (void)state;
    contexts_make(&it.mount);
    for (size_t at = 0; at < 80; at++) {
        struct side *server = &it.sides[1];

        sides_make(0);
        talk(WIRE_BYTES);
        assert_int_equal(seal_all(&it.sides[0], &(struct bytes){it.out, 50}, 1), 50);
        carry(&it.sides[0], server, WIRE_BYTES);
        if (at < server->wire_bytes) {
            server->wire[at] ^= 1;
            take(server);
            /* A length that was raised waits for more. */
            assert_true(server->error < 0 || at == 3 || at == 4);
            assert_int_equal(server->got.size, 0);
        }
        sides_free();
    }
}

/* Bytes of anyone's, and a handshake that is cut at each byte and goes on otherwise. */
static void any_bytes_may_come(void **state) {
    struct prng prng;
    struct bytes first;
    uint8_t hello[2048];

    (void)state;
    prng_init(&prng, 1);
    contexts_make(&it.mount);
    sides_make(0);
    take(&it.sides[0]);
    first = tls_pending(it.sides[0].tls);
    assert_true(first.size > 100 && first.size <= sizeof hello);
    memcpy(hello, first.data, first.size);
    for (size_t i = 0; i < 2 * first.size; i++) {
        struct side *server = &it.sides[1];
        size_t cut = i / 2;

        sides_free();
        sides_make(0);
        memcpy(server->wire, hello, cut);
        for (size_t j = cut; j < cut + 400; j++) {
            server->wire[j] = i % 2 ? (uint8_t)prng_next(&prng) : 0x16;
        }
        server->wire_bytes = cut + 400;
        take(server);
        assert_false(tls_is_proven(server->tls));
        assert_int_equal(server->got.size, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        CASE(who_has_the_key_is_let_in),
        CASE(a_member_is_a_member),
        CASE(another_clusters_key_is_refused),
        CASE(a_key_that_was_made_up_is_refused),
        CASE(an_identity_that_was_made_up_is_refused),
        CASE(keys_of_a_file_are_tried_in_turns),
        CASE(much_goes_both_ways),
        CASE(small_parts_share_a_record),
        CASE(they_may_go_on_without),
        CASE(what_was_changed_is_noticed),
        CASE(any_bytes_may_come),
#undef CASE
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
