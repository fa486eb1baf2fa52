/* Latency: bytes of packets, physics, sums, and ways that the data don't describe. */

#include "unit.h"
#include "plan_desk.h"
#include "planner/formula.h"
#include "planner/latency.h"

static const char *const rows[][3] = {
    {"latency.rdma", "round_trips", "1"},        {"latency.rdma", "host_low", "3us"},
    {"latency.rdma", "host_high", "8us"},        {"latency.rdma", "server_low", "2us"},
    {"latency.rdma", "server_high", "5us"},      {"latency.rdma", "headers", "44B"},
    {"latency.rdma", "reserved", "96B"},         {"latency.rdma", "packet_most", "4096B"},
    {"latency.rdma", "message", "16B"},          {"latency.rdma", "cpu_io_low", "1us"},
    {"latency.rdma", "cpu_io_high", "4us"},      {"latency.rdma", "cpu_byte_low", "0s/GB"},
    {"latency.rdma", "cpu_byte_high", "0s/GB"},  {"latency.tcp", "round_trips", "1"},
    {"latency.tcp", "host_low", "10us"},         {"latency.tcp", "host_high", "60us"},
    {"latency.tcp", "server_low", "5us"},        {"latency.tcp", "server_high", "40us"},
    {"latency.tcp", "headers", "52B"},           {"latency.tcp", "reserved", "52B"},
    {"latency.tcp", "packet_most", "0B"},        {"latency.tcp", "message", "24B"},
    {"latency.tcp", "cpu_io_low", "0us"},        {"latency.tcp", "cpu_io_high", "0us"},
    {"latency.tcp", "cpu_byte_low", "0.3s/GB"},  {"latency.tcp", "cpu_byte_high", "0.6s/GB"},
    {"latency.local", "round_trips", "0"},       {"latency.local", "host_low", "3us"},
    {"latency.local", "host_high", "10us"},      {"latency.local", "server_low", "0us"},
    {"latency.local", "server_high", "0us"},     {"latency.local", "headers", "0B"},
    {"latency.local", "reserved", "0B"},         {"latency.local", "packet_most", "0B"},
    {"latency.local", "message", "0B"},          {"latency.local", "cpu_io_low", "3us"},
    {"latency.local", "cpu_io_high", "10us"},    {"latency.local", "cpu_byte_low", "0s/GB"},
    {"latency.local", "cpu_byte_high", "0s/GB"}, {"latency.bare", "round_trips", "1"},
    {"latency_switch", "low", "0.1us"},          {"latency_switch", "high", "1us"},
    {"latency_medium.nand", "low", "50us"},      {"latency_medium.nand", "high", "100us"},
    {"latency_medium.memory", "low", "0.1us"},   {"latency_medium.memory", "high", "1us"},
};

enum { RDMA, TCP, LOCAL, BARE };

static void begin(struct desk *desk) {
    desk_init(desk, "latency");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(data_set(&desk->data, rows[i][0], rows[i][1], rows[i][2]), 0);
    }
}

static void compute(struct desk *desk, size_t row, const char *options) {
    desk_set(desk, options);
    assert_true(desk_row(desk, row));
    desk_assert_sound(desk);
}

static struct why why;

/* Linux gives RoCE the largest of 256 to 4,096 that leaves 96 bytes of the MTU. */
static void test_payload(void **state) {
    static const struct {
        double mtu;
        double payload;
    } known[] = {{1500, 1024}, {4095, 2048}, {4191, 2048},
                 {4192, 4096}, {4200, 4096}, {9000, 4096}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        assert_true(packet_payload(&why, 1, known[i].mtu, 96, 4096) == known[i].payload);
    }
    assert_true(packet_payload(&why, 1, 1500, 52, 0) == 1448);
    assert_true(packet_payload(&why, 1, 96, 96, 4096) == 0);
}

/* A TCP packet of 1,500 is 1,448 bytes of data in 1,538 on the wire; RoCE's are 82 bytes longer. */
static void test_goodput(void **state) {
    struct desk desk;

    (void)state;
    begin(&desk);
    compute(&desk, TCP, "--link 100Gb/s --mtu 1500B");
    desk_assert(&desk, "goodput", 12.5e9 * 1448 / 1538, 1e-12);
    desk_assert(&desk, "header_share", 90.0 / 1538, 1e-12);
    desk_assert(&desk, "goodput_9000", 12.5e9 * 8948 / 9038, 1e-12);
    desk_assert(&desk, "cores_low", 12.5 * 1448 / 1538 * 0.3, 1e-12);
    compute(&desk, TCP, "--io-size 1424B");
    desk_assert(&desk, "wire", 1538, 0);
    compute(&desk, TCP, "--io-size 1425B");
    desk_assert(&desk, "wire", 1539 + 90, 0);
    compute(&desk, RDMA, "--mtu 9000B");
    desk_assert(&desk, "goodput", 12.5e9 * 4096 / 4178, 1e-12);
    desk_assert(&desk, "goodput_1500", 12.5e9 * 1024 / 1106, 1e-12);
    assert_true(desk_value(&desk, "goodput") == desk_value(&desk, "goodput_4200"));
    desk_deinit(&desk);
}

static void test_parts(void **state) {
    struct desk desk;

    (void)state;
    begin(&desk);
    compute(&desk, RDMA, "--distance 2km --hops 3 --link 200Gb/s --io-size 4096B --mtu 4200B");
    desk_assert(&desk, "propagation", 20e-6, 1e-12);
    desk_assert(&desk, "switch_low", 0.6e-6, 1e-12);
    desk_assert(&desk, "switch_high", 6e-6, 1e-12);
    desk_assert(&desk, "wire", 4096 + 16 + 82, 0);
    desk_assert(&desk, "serialisation_low", 4194 / 25e9, 1e-12);
    desk_assert(&desk, "serialisation_high", (4 * 4178 + 16) / 25e9, 1e-12);
    desk_assert(&desk, "total_low", 20e-6 + 0.6e-6 + 4194 / 25e9 + 55e-6, 1e-12);
    desk_assert(&desk, "total_high", 20e-6 + 6e-6 + (4 * 4178 + 16) / 25e9 + 113e-6, 1e-12);
    assert_string_equal(desk_words(&desk, "largest"), "medium, medium");
    desk_assert(&desk, "cpu_high", 4e-6 / 4096, 1e-12);
    compute(&desk, RDMA, "--medium memory --distance 0m --io-size 4097B");
    desk_assert(&desk, "wire", 4097 + 16 + 2 * 82, 0);
    assert_string_equal(desk_words(&desk, "largest"), "host, host");
    desk_deinit(&desk);
}

/* More of anything never makes an I/O faster, nor does a slower link or a smaller MTU. */
static void test_monotone(void **state) {
    static const char *const worse[] = {"--distance 3km", "--hops 9", "--io-size 1MiB",
                                        "--link 10Gb/s", "--mtu 1500B"};
    struct desk desk;

    (void)state;
    begin(&desk);
    for (size_t row = RDMA; row <= TCP; row++) {
        compute(&desk, row, "--distance 30m --hops 3 --io-size 64KiB --link 200Gb/s --mtu 9000B");
        double low = desk_value(&desk, "total_low");

        for (size_t i = 0; i < ARRAY_SIZE(worse); i++) {
            compute(&desk, row, worse[i]);
            assert_true(desk_value(&desk, "total_low") > low);
            assert_true(desk_value(&desk, "total_low") <= desk_value(&desk, "total_high"));
            low = desk_value(&desk, "total_low");
        }
    }
    desk_deinit(&desk);
}

static void test_without_network(void **state) {
    struct desk desk;

    (void)state;
    begin(&desk);
    compute(&desk, LOCAL, "--distance 100km --hops 9 --link 0B/s");
    assert_string_equal(desk_words(&desk, "path"), "local");
    desk_assert(&desk, "total_low", 53e-6, 1e-12);
    assert_string_equal(desk_cannot(&desk, "goodput"), "there is no network on this way");
    assert_string_equal(desk_cannot(&desk, "cores_low"), "there is no network on this way");
    compute(&desk, TCP, "");
    assert_string_equal(desk_cannot(&desk, "total_low"), "the network gives nothing");
    desk_deinit(&desk);
}

/* A section of a user that lacks values says so, and does no harm to the others. */
static void test_data_that_lack(void **state) {
    struct desk desk;
    const char *reason = "the data lack a value that is needed here";

    (void)state;
    begin(&desk);
    compute(&desk, BARE, "");
    assert_string_equal(desk_words(&desk, "path"), "bare");
    assert_string_equal(desk_cannot(&desk, "total_low"), reason);
    assert_string_equal(desk_cannot(&desk, "goodput_1500"), reason);
    assert_string_equal(desk_words(&desk, "origin"), "the data don't say");
    assert_int_equal(data_set(&desk.data, "about.latency.bare", "source", "a guess"), 0);
    compute(&desk, BARE, "");
    assert_string_equal(desk_words(&desk, "origin"), "a guess");
    assert_false(desk_row(&desk, BARE + 1));
    compute(&desk, RDMA, "--medium cached-write");
    assert_string_equal(desk_cannot(&desk, "total_high"), reason);
    assert_int_equal(data_set(&desk.data, "latency.rdma", "reserved", "70kB"), 0);
    compute(&desk, RDMA, "--medium nand");
    assert_string_equal(desk_cannot(&desk, "goodput"), "the MTU leaves no room for data");
    assert_int_equal(data_set(&desk.data, "latency.rdma", "round_trips", "-1"), 0);
    compute(&desk, RDMA, "");
    assert_string_equal(desk_cannot(&desk, "propagation"), reason);
    desk_deinit(&desk);

    desk_init(&desk, "latency");
    assert_false(desk_row(&desk, 0));
    desk_deinit(&desk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payload),         cmocka_unit_test(test_goodput),
        cmocka_unit_test(test_parts),           cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_without_network), cmocka_unit_test(test_data_that_lack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
