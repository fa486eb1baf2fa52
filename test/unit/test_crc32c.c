/* CRC-32C: the published vectors, both implementations against each other, and chaining. */
#include "unit.h"
#include "base/crc32c.h"
#include <string.h>

#define BUFFER_BYTES 20000

static unsigned char buffer[BUFFER_BYTES];

/* Any bytes do that don't repeat within a lane; a fixed seed gives the same ones in every run. */
static void buffer_fill(void) {
    uint32_t state = 2463534242u;

    for (size_t i = 0; i < BUFFER_BYTES; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        buffer[i] = (unsigned char)(state >> 24);
    }
}

static void assert_both(const void *data, size_t size_bytes, uint32_t want) {
    assert_int_equal(crc32c(0, data, size_bytes), want);
    assert_int_equal(crc32c_portable(0, data, size_bytes), want);
}

/* RFC 3720, B.4; it prints the bytes of each checksum in the order they are sent. */
static void test_rfc_3720_vectors(void **state) {
    static const unsigned char read_command[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02,
    };
    unsigned char bytes[32];

    (void)state;
    memset(bytes, 0, sizeof(bytes));
    assert_both(bytes, sizeof(bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_both(bytes, sizeof(bytes), 0x62a8ab43);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_both(bytes, sizeof(bytes), 0x46dd794e);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    assert_both(bytes, sizeof(bytes), 0x113fdb5c);
    assert_both(read_command, sizeof(read_command), 0xd9963a56);
    assert_both("123456789", 9, 0xe3069283);
}

/* Bit by bit, from the polynomial alone: what both implementations must equal. */
static uint32_t crc32c_by_bit(const unsigned char *bytes, size_t size_bytes) {
    uint32_t crc = ~0u;

    for (size_t i = 0; i < size_bytes; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* Lengths around every lane boundary, at each alignment of the first byte. */
static void test_both_equal_the_definition(void **state) {
    static const size_t sizes_bytes[] = {
        0,    1,    7,    8,    9,    15,    63,    503,   504,   505,
        511,  512,  513,  1007, 1008, 1009,  4079,  4080,  4081,  4095,
        4096, 4097, 8159, 8160, 8161, 12240, 12744, 16383, 19990,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(sizes_bytes) / sizeof(sizes_bytes[0]); i++) {
        for (size_t offset = 0; offset < 8; offset++) {
            uint32_t want = crc32c_by_bit(buffer + offset, sizes_bytes[i]);

            assert_both(buffer + offset, sizes_bytes[i], want);
            for (size_t next = 0; next <= 2 * sizes_bytes[i]; next += sizes_bytes[i] + 1) {
                assert_int_equal(crc32c_ahead(buffer + offset, sizes_bytes[i], next), want);
            }
            assert_int_equal(crc32c_ahead(buffer + offset, sizes_bytes[i], sizes_bytes[i]), want);
        }
    }
}

static void test_every_short_length(void **state) {
    (void)state;
    for (size_t size_bytes = 0; size_bytes < 2200; size_bytes++)
        assert_int_equal(crc32c(0, buffer + 1, size_bytes),
                         crc32c_portable(0, buffer + 1, size_bytes));
}

/* However a text is cut, its parts chain to the checksum of the whole. */
static void test_parts_chain(void **state) {
    size_t size_bytes = 9001;
    uint32_t want = crc32c(0, buffer, size_bytes);

    (void)state;
    for (size_t cut = 0; cut <= size_bytes; cut += 13) {
        uint32_t first = crc32c(0, buffer, cut);

        assert_int_equal(crc32c(first, buffer + cut, size_bytes - cut), want);
        assert_int_equal(crc32c_portable(first, buffer + cut, size_bytes - cut), want);
    }
}

/* A checksum that misses a flipped bit guards nothing. */
static void test_each_flipped_bit_shows(void **state) {
    unsigned char block[4096];
    uint32_t before;

    (void)state;
    memcpy(block, buffer, sizeof(block));
    before = crc32c(0, block, sizeof(block));
    for (size_t bit = 0; bit < 8 * sizeof(block); bit += 7) {
        block[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(crc32c(0, block, sizeof(block)), before);
        block[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc_3720_vectors),
        cmocka_unit_test(test_both_equal_the_definition),
        cmocka_unit_test(test_every_short_length),
        cmocka_unit_test(test_parts_chain),
        cmocka_unit_test(test_each_flipped_bit_shows),
    };

    buffer_fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
