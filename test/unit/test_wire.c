/* Messages survive the way over the wire, and no bytes whatever harm a decoder. */
#include "unit.h"
#include "base/prng.h"
#include "wire/wire.h"
#include <stdlib.h>
#include <string.h>

enum { SPACE_BYTES = 16384, ROUNDS = 20000, SEED = 20261 };

static uint8_t space[SPACE_BYTES];
static uint32_t scratch[WIRE_GROUPS_MAX];

static void test_request_round_trip(void **state) {
    (void)state;
    const uint32_t groups[] = {7, 8, 9};
    union request_body sent = {
        .rename = {.parent = {11},
                   .name = {(const uint8_t *)"from", 4},
                   .new_parent = {12},
                   .new_name = {(const uint8_t *)"to\xff", 3},
                   .who = {.uid = 1000, .gid = 100, .group_count = 3, .groups = groups},
                   .flags = RENAME_FLAG_EXCHANGE}};
    struct buffer out = {space, 0, sizeof space};
    union request_body got;

    assert_int_equal(wire_encode_request(OP_RENAME, &sent, &out), 0);
    assert_int_equal(wire_decode_request(OP_RENAME, (struct bytes){space, out.size}, scratch, &got),
                     0);
    assert_int_equal(got.rename.parent.value, 11);
    assert_int_equal(got.rename.new_parent.value, 12);
    assert_int_equal(got.rename.name.size, 4);
    assert_memory_equal(got.rename.new_name.data, "to\xff", 3);
    assert_int_equal(got.rename.who.group_count, 3);
    assert_memory_equal(got.rename.who.groups, groups, sizeof groups);
    assert_int_equal(got.rename.flags, RENAME_FLAG_EXCHANGE);
}

static void test_attributes_have_their_stated_size(void **state) {
    (void)state;
    struct attributes sent = {.ino = {5}, .mode = 0100644, .size = 1 << 20, .mtime_ns = -7};
    struct attributes got;
    struct buffer out = {space, 0, sizeof space};

    wire_encode_attributes(&sent, &out);
    assert_int_equal(out.size, WIRE_ATTRIBUTES_BYTES);
    assert_int_equal(wire_decode_attributes((struct bytes){space, out.size}, &got), 0);
    assert_int_equal(got.mtime_ns, -7);
    assert_int_equal(got.size, 1 << 20);
    /* A peer that knows one field less, and one that knows another. */
    assert_int_equal(wire_decode_attributes((struct bytes){space, out.size - 1}, &got), 0);
    assert_int_equal(got.size, 1 << 20);
    assert_int_equal(got.data_state, 0);
    assert_int_equal(wire_decode_attributes((struct bytes){space, out.size + 5}, &got), 0);
    assert_int_equal(got.mtime_ns, -7);
    assert_int_equal(wire_decode_attributes((struct bytes){space, 0}, &got), -ERR_MALFORMED);
}

/* The place of the length of a struct that is the first field of a body. */
enum { FIRST_STRUCT_AT = 4, STRUCT_AT = FIRST_STRUCT_AT + 2 };

/* Makes the first struct of the body in `space` longer by `more` bytes (shorter, if negative). */
static size_t resize_struct(size_t size, int more) {
    size_t length = (size_t)space[FIRST_STRUCT_AT] | (size_t)space[FIRST_STRUCT_AT + 1] << 8;
    size_t behind = STRUCT_AT + length;
    size_t now = length + (size_t)more;
    uint32_t body = (uint32_t)(size - 4 + (size_t)more);

    memmove(space + STRUCT_AT + now, space + behind, size - behind);
    if (more > 0) {
        memset(space + behind, 0xaa, (size_t)more);
    }
    space[FIRST_STRUCT_AT] = (uint8_t)now;
    space[FIRST_STRUCT_AT + 1] = (uint8_t)(now >> 8);
    memcpy(space, &body, sizeof body);
    return size + (size_t)more;
}

/* What is behind a struct is found, however many fields of it the sender knew. */
static void test_structs_of_other_versions(void **state) {
    (void)state;
    static const int more[] = {9, 1, -1, -8, -30};
    union reply_body sent = {
        .open = {.attributes = {.ino = {77}, .size = 5, .data_state = DATA_CHUNKED},
                 .capability = {.ino = {77}, .rights = RIGHT_READ, .signature = {1, 2}}}};

    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        struct buffer out = {space, 0, sizeof space};
        union reply_body got;

        assert_int_equal(wire_encode_reply(OP_OPEN, &sent, &out), 0);
        size_t size = resize_struct(out.size, more[i]);
        assert_int_equal(wire_decode_reply(OP_OPEN, (struct bytes){space, size}, &got), 0);
        assert_int_equal(got.open.attributes.ino.value, 77);
        assert_int_equal(got.open.attributes.data_state, more[i] < 0 ? 0 : DATA_CHUNKED);
        assert_int_equal(got.open.capability.rights, RIGHT_READ);
        assert_int_equal(got.open.capability.signature[1], 2);
    }
    /* A length beyond the body is no older version. */
    struct buffer out = {space, 0, sizeof space};
    union reply_body got;
    assert_int_equal(wire_encode_reply(OP_OPEN, &sent, &out), 0);
    space[FIRST_STRUCT_AT + 1] = 0xff;
    assert_int_equal(wire_decode_reply(OP_OPEN, (struct bytes){space, out.size}, &got),
                     -ERR_MALFORMED);
}

/* Attributes of no inode take no room, and leave what is behind them where it is. */
static void test_attributes_that_are_not_told(void **state) {
    (void)state;
    union reply_body sent = {.rename = {.ino = {5}, .new_parent = {.ino = {9}, .nlink = 3}}};
    struct buffer out = {space, 0, sizeof space};
    union reply_body got;

    assert_int_equal(wire_encode_reply(OP_RENAME, &sent, &out), 0);
    size_t size = out.size;
    assert_int_equal(wire_decode_reply(OP_RENAME, (struct bytes){space, size}, &got), 0);
    assert_int_equal(got.rename.parent.ino.value, 0);
    assert_int_equal(got.rename.new_parent.ino.value, 9);
    assert_int_equal(got.rename.new_parent.nlink, 3);
    sent.rename.parent.ino.value = 7;
    out.size = 0;
    assert_int_equal(wire_encode_reply(OP_RENAME, &sent, &out), 0);
    assert_int_equal(out.size, size + WIRE_ATTRIBUTES_BYTES);
}

/* Groups that go beyond their struct are no groups. */
static void test_credentials_keep_to_their_struct(void **state) {
    (void)state;
    const uint32_t groups[] = {7, 8, 9};
    union request_body sent = {
        .readdir = {.ino = {3}, .who = {.uid = 5, .group_count = 3, .groups = groups}}};
    struct buffer out = {space, 0, sizeof space};
    union request_body got;

    assert_int_equal(wire_encode_request(OP_READDIR, &sent, &out), 0);
    size_t count_at = out.size - sizeof groups - 4;
    assert_int_equal(space[count_at], 3);
    space[count_at] = 4;
    assert_int_equal(
        wire_decode_request(OP_READDIR, (struct bytes){space, out.size}, scratch, &got),
        -ERR_MALFORMED);
    space[count_at] = 2;
    assert_int_equal(
        wire_decode_request(OP_READDIR, (struct bytes){space, out.size}, scratch, &got), 0);
    assert_int_equal(got.readdir.who.group_count, 2);
}

/* A newer peer sends more fields, an older one fewer: both are understood. */
static void test_versions_mix(void **state) {
    (void)state;
    union reply_body sent = {.session_begin = {.session = 42, .map_version = 9}};
    union reply_body got;
    struct buffer out = {space, 0, sizeof space};

    assert_int_equal(wire_encode_reply(OP_SESSION_BEGIN, &sent, &out), 0);
    memset(space + out.size, 0xaa, 24);
    space[0] = (uint8_t)(out.size - 4 + 24);
    assert_int_equal(
        wire_decode_reply(OP_SESSION_BEGIN, (struct bytes){space, out.size + 24}, &got), 0);
    assert_int_equal(got.session_begin.map_version, 9);

    space[0] = 8;
    assert_int_equal(wire_decode_reply(OP_SESSION_BEGIN, (struct bytes){space, 12}, &got), 0);
    assert_int_equal(got.session_begin.session, 42);
    assert_int_equal(got.session_begin.map_version, 0);
}

static void test_limits(void **state) {
    (void)state;
    uint8_t long_name[256] = {0};
    union request_body body = {.lookup = {.name = {long_name, sizeof long_name}}};
    struct buffer out = {space, 0, sizeof space};

    assert_int_equal(wire_encode_request(OP_LOOKUP, &body, &out), -ERR_INVALID);
    assert_int_equal(out.size, 0);
    body.lookup.name.size = 255;
    out.capacity = 100;
    assert_int_equal(wire_encode_request(OP_LOOKUP, &body, &out), -ERR_TOO_SMALL);
    assert_int_equal(out.size, 0);
    assert_int_equal(wire_encode_request(0, &body, &out), -ERR_INVALID);
    assert_int_equal(wire_encode_request(OPCODE_COUNT, &body, &out), -ERR_INVALID);
    assert_null(wire_name(OPCODE_COUNT));
    assert_true(wire_is_mutation(OP_RENAME));
    assert_false(wire_is_mutation(OP_LOOKUP));
}

/* The input is a heap block of exactly its size, so that a sanitizer sees a read beyond it. What is
 * accepted must come out the same when it is encoded and decoded again. */
static void test_any_bytes(void **state) {
    (void)state;
    struct prng prng;

    prng_init(&prng, SEED);
    print_message("seed %d\n", SEED);
    for (int round = 0; round < ROUNDS; round++) {
        uint16_t opcode = (uint16_t)prng_below(&prng, OPCODE_COUNT + 2);
        size_t size = prng_below(&prng, 300);
        uint8_t *input = malloc(size + 1);
        union request_body body;
        union reply_body reply;
        char text[512];

        assert_non_null(input);
        for (size_t i = 0; i < size; i++) {
            input[i] = prng_chance(&prng, 1, 2) ? 0 : (uint8_t)prng_next(&prng);
        }
        if (size >= 4 && prng_chance(&prng, 3, 4)) {
            uint32_t length = (uint32_t)(size - 4);

            memcpy(input, &length, 4);
        }
        if (wire_decode_request(opcode, (struct bytes){input, size}, scratch, &body) == 0) {
            struct buffer out = {space, 0, sizeof space};
            union request_body again;

            wire_print_request(opcode, &body, text, sizeof text);
            assert_true(strlen(text) < sizeof text);
            assert_int_equal(wire_encode_request(opcode, &body, &out), 0);
            assert_int_equal(
                wire_decode_request(opcode, (struct bytes){space, out.size}, scratch, &again), 0);
        }
        (void)!wire_decode_reply(opcode, (struct bytes){input, size}, &reply);
        free(input);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_round_trip),
        cmocka_unit_test(test_attributes_have_their_stated_size),
        cmocka_unit_test(test_versions_mix),
        cmocka_unit_test(test_structs_of_other_versions),
        cmocka_unit_test(test_attributes_that_are_not_told),
        cmocka_unit_test(test_credentials_keep_to_their_struct),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
