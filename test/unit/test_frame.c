/* Heads of requests and replies: what is encoded comes back; cut or altered bytes are refused or
 * decoded, never read beyond. */
#include "base/endian.h"
#include "base/prng.h"
#include "rpc/frame.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 3, ROUNDS = 20000 };

static uint8_t memory[64 * 1024];
static uint32_t scratch[WIRE_GROUPS_MAX];
static uint32_t checksums[4] = {1, 2, 3, UINT32_MAX};
static uint8_t data[100];

static struct call request_make(void) {
    struct call call = {.header = {.opcode = OP_SYMLINK,
                                   .log = {UINT64_C(0x0102030405060708)},
                                   .origin = {7},
                                   .chain_version = 8,
                                   .epoch = 9,
                                   .slot = {0xfffe},
                                   .session = {1},
                                   .incarnation = 2,
                                   .sequence = 3,
                                   .floor = 4,
                                   .map_version = 5,
                                   .trace_id = 6,
                                   .term = UINT64_MAX},
                        .bulk_out = {{data, 60}, {data + 60, 40}},
                        .bulk_out_count = 2,
                        .bulk_in = {.capacity = 12345},
                        .checksums = checksums,
                        .checksum_count = ARRAY_SIZE(checksums)};

    call.request.symlink.name = (struct bytes){(const uint8_t *)"name", 4};
    call.request.symlink.target = (struct bytes){(const uint8_t *)"target", 6};
    return call;
}

/* The input in memory of exactly its size, so that the sanitizer sees each step beyond it. */
static struct bytes exact_copy(struct bytes bytes) {
    uint8_t *copy = malloc(bytes.size > 0 ? bytes.size : 1);

    assert_non_null(copy);
    if (bytes.size > 0) {
        memcpy(copy, bytes.data, bytes.size);
    }
    return (struct bytes){copy, bytes.size};
}

static struct bytes encode_request(const struct call *call) {
    struct buffer out = {memory, 0, frame_request_size(call)};

    assert_true(out.capacity <= sizeof memory);
    assert_int_equal(frame_encode_request(call, 77, 1234, &out), 0);
    return (struct bytes){memory, out.size};
}

static void request_comes_back(void **state) {
    struct call call = request_make();
    struct call got = {0};
    struct frame_request frame;
    struct bytes head = encode_request(&call);
    struct frame_peek peek;

    (void)state;
    assert_int_equal(frame_peek_request(head, &peek), 0);
    assert_int_equal(peek.id, 77);
    assert_int_equal(peek.opcode, OP_SYMLINK);
    assert_int_equal(peek.log.value, call.header.log.value);
    assert_int_equal(frame_decode_request(head, scratch, &got, &frame), 0);
    call.header.message_class = MESSAGE_REQUEST;
    assert_memory_equal(&got.header, &call.header, sizeof call.header);
    assert_int_equal(got.request.symlink.target.size, 6);
    assert_memory_equal(got.request.symlink.target.data, "target", 6);
    assert_int_equal(frame.id, 77);
    assert_int_equal(frame.time_left_ns, 1234);
    assert_int_equal(frame.bulk_out_bytes, 100);
    assert_int_equal(frame.bulk_in_bytes, 12345);
    assert_int_equal(frame.checksum_count, ARRAY_SIZE(checksums));
    assert_int_equal(frame.checksums.size, sizeof checksums);
    assert_memory_equal(frame.checksums.data, checksums, sizeof checksums);
}

static struct bytes encode_reply(void) {
    struct call call = {.header = {.opcode = OP_CHUNK_READ, .log = {5}},
                        .server_position = 11,
                        .server_term = 12,
                        .server_epoch = 13,
                        .bulk_in = {.size = 50, .capacity = 100},
                        .checksums = checksums,
                        .checksum_count = 2,
                        .result = 0};
    struct buffer out = {memory, 0, frame_reply_size(&call)};

    call.reply.chunk_read.version = 9;
    assert_int_equal(frame_encode_reply(&call, 78, &out), 0);
    return (struct bytes){memory, out.size};
}

static void reply_comes_back(void **state) {
    uint32_t space[3] = {0};
    struct call call = {.header = {.opcode = OP_CHUNK_READ, .log = {5}},
                        .bulk_in = {.capacity = 50},
                        .checksums = space,
                        .checksum_count = 3};
    struct frame_reply frame;

    (void)state;
    assert_int_equal(frame_decode_reply(encode_reply(), &frame), 0);
    assert_int_equal(frame.id, 78);
    assert_int_equal(frame.result, 0);
    assert_int_equal(frame.bulk_bytes, 50);
    assert_int_equal(frame_apply_reply(&frame, &call), 0);
    assert_int_equal(call.reply.chunk_read.version, 9);
    assert_int_equal(call.server_position, 11);
    assert_int_equal(call.server_term, 12);
    assert_int_equal(call.server_epoch, 13);
    assert_int_equal(call.checksum_count, 2);
    assert_int_equal(space[1], 2);

    /* What does not fit the call is refused, and leaves it as it was. */
    call.checksum_count = 1;
    assert_int_equal(frame_apply_reply(&frame, &call), -ERR_MALFORMED);
    call.checksum_count = 3;
    call.bulk_in.capacity = 49;
    assert_int_equal(frame_apply_reply(&frame, &call), -ERR_MALFORMED);
    call.bulk_in.capacity = 50;
    call.header.opcode = OP_CHUNK_WRITE;
    assert_int_equal(frame_apply_reply(&frame, &call), -ERR_MALFORMED);
    assert_int_equal(call.checksum_count, 3);
}

static void refused_requests(void **state) {
    struct call call = request_make();
    struct buffer small = {memory, 0, 100};
    struct buffer out = {memory, 0, sizeof memory};
    struct call got;
    struct frame_request frame;
    struct bytes head;

    (void)state;
    assert_int_equal(frame_encode_request(&call, 1, UINT64_MAX, &small), -ERR_TOO_SMALL);
    assert_int_equal(small.size, 0);
    call.header.opcode = 47;
    assert_int_equal(frame_encode_request(&call, 1, UINT64_MAX, &out), -ERR_INVALID);

    call.header.opcode = OP_SYMLINK;
    call.header.sequence = 0; /* a mutation that could not be told from its copy */
    head = encode_request(&call);
    assert_int_equal(frame_decode_request(head, scratch, &got, &frame), -ERR_MALFORMED);
    memory[2] = 47; /* an opcode of a newer version */
    assert_int_equal(frame_decode_request(head, scratch, &got, &frame), -ERR_NOT_SUPPORTED);
}

/* A peer of another version has fewer fixed fields, or more. */
static void heads_of_other_versions(void **state) {
    enum { FIXED = 136, MORE = 24, FEWER = 12 };
    struct call call = request_make();
    struct call got = {0};
    struct frame_request frame;
    struct bytes head = encode_request(&call);
    static uint8_t other[sizeof memory + MORE];

    (void)state;
    assert_int_equal(load_le16(head.data), FIXED);
    memcpy(other, head.data, FIXED);
    memset(other + FIXED, 0xaa, MORE);
    memcpy(other + FIXED + MORE, head.data + FIXED, head.size - FIXED);
    store_le16(other, FIXED + MORE);
    struct bytes newer = {other, head.size + MORE};
    assert_int_equal(frame_decode_request(newer, scratch, &got, &frame), 0);
    assert_memory_equal(got.request.symlink.target.data, "target", 6);
    assert_int_equal(frame.checksums.size, sizeof checksums);

    /* Without its last fields there is no word of checksums, so none may follow. */
    call.checksum_count = 0;
    call.bulk_out_count = 0;
    head = encode_request(&call);
    memcpy(other, head.data, FIXED - FEWER);
    memcpy(other + FIXED - FEWER, head.data + FIXED, head.size - FIXED);
    store_le16(other, FIXED - FEWER);
    struct bytes older = {other, head.size - FEWER};
    assert_int_equal(frame_decode_request(older, scratch, &got, &frame), 0);
    assert_int_equal(got.header.chain_version, 8);
    assert_int_equal(got.header.epoch, 9);
    assert_memory_equal(got.request.symlink.name.data, "name", 4);
}

/* A server that doesn't know the opcode answers with a head alone. */
static void unknown_opcode_is_answered(void **state) {
    struct call call = {.header.opcode = 47, .result = -ERR_NOT_SUPPORTED};
    struct buffer out = {memory, 0, sizeof memory};
    struct frame_reply frame;

    (void)state;
    assert_int_equal(frame_encode_reply(&call, 5, &out), 0);
    assert_int_equal(frame_decode_reply((struct bytes){memory, out.size}, &frame), 0);
    assert_int_equal(frame_apply_reply(&frame, &call), 0);
    assert_int_equal(frame.result, -ERR_NOT_SUPPORTED);
}

static void decode_both(struct bytes bytes) {
    struct bytes exact = exact_copy(bytes);
    uint32_t space[4];
    struct call call = {.header.opcode = OP_CHUNK_READ,
                        .bulk_in = {.capacity = 100},
                        .checksums = space,
                        .checksum_count = ARRAY_SIZE(space)};
    struct frame_request request;
    struct frame_reply reply;
    struct frame_peek peek;

    if (frame_peek_request(exact, &peek) < 0) {
        assert_true(exact.size < 24 || (exact.data[0] < 24 && exact.data[1] == 0));
    }
    if (frame_decode_reply(exact, &reply) == 0 && frame_apply_reply(&reply, &call) == 0) {
        assert_int_equal(reply.opcode, OP_CHUNK_READ);
        assert_in_range(call.checksum_count, 0, ARRAY_SIZE(space));
    }
    if (frame_decode_request(exact, scratch, &call, &request) == 0) {
        assert_non_null(wire_name(call.header.opcode));
    }
    free((void *)(uintptr_t)exact.data);
}

static void cut_and_altered_bytes(void **state) {
    struct call call = request_make();
    uint8_t original[1024];
    struct prng prng;

    (void)state;
    print_message("seed %d\n", SEED);
    prng_init(&prng, SEED);
    for (int which = 0; which < 2; which++) {
        struct bytes head = which ? encode_reply() : encode_request(&call);

        assert_true(head.size <= sizeof original);
        memcpy(original, head.data, head.size);
        for (size_t size = 0; size < head.size; size++) {
            decode_both((struct bytes){original, size});
        }
        for (uint32_t i = 0; i < ROUNDS; i++) {
            size_t at = prng_below(&prng, head.size);

            memcpy(memory, original, head.size);
            memory[at] = (uint8_t)prng_next(&prng);
            memory[prng_below(&prng, head.size)] ^= (uint8_t)(1U << prng_below(&prng, 8));
            decode_both((struct bytes){memory, head.size});
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_comes_back),      cmocka_unit_test(reply_comes_back),
        cmocka_unit_test(refused_requests),        cmocka_unit_test(unknown_opcode_is_answered),
        cmocka_unit_test(heads_of_other_versions), cmocka_unit_test(cut_and_altered_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
