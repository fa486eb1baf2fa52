/* Requests as the kernel lays them, to a front whose client is in memory: each but those that
 * expect none gets one reply, and what is opened is released.
 *
 * An input is requests: u8 opcode, u8 inode number, u16 bytes behind the header, bytes. */
#include "fuse_desk.h"
#include "fuzz.h"

enum { BODY_BYTES_MAX = 4096, REQUESTS_MAX = 24 };

static bool is_silent(uint32_t opcode, size_t body_bytes) {
    enum { FORGET = 2, INTERRUPT = 36, NOTIFY_REPLY = 41, BATCH_FORGET = 42 };

    return opcode == FORGET || opcode == NOTIFY_REPLY || opcode == BATCH_FORGET ||
           (opcode == INTERRUPT && body_bytes >= sizeof(struct abi_interrupt_in));
}

void fuzz_fuse_requests(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    struct desk *desk = desk_new();

    for (int i = 0; i < REQUESTS_MAX && cursor.size > 0; i++) {
        uint32_t opcode = (uint32_t)wire_take_number(&cursor, 1);
        uint64_t nodeid = wire_take_number(&cursor, 1);
        size_t size = MIN((size_t)wire_take_number(&cursor, 2) % BODY_BYTES_MAX, cursor.size);
        const uint8_t *body = wire_take(&cursor, size);

        if (cursor.bad) {
            break;
        }
        desk->reply_count = 0;
        (void)desk_run(desk,
                       &(struct desk_request){
                           .opcode = opcode, .nodeid = nodeid, .body = body, .body_bytes = size});
        assert(desk->reply_count == !is_silent(opcode, size));
        assert(desk->reply_count == 0 || desk->reply.error <= 0);
        assert(desk->reply_count == 0 || desk->reply.unique == 4242);
        assert(desk->reply.error == 0 || desk->reply.bytes == 0);
    }
    desk_free(desk);
}

static void give_request(struct buffer *out, uint8_t opcode, const void *body, size_t size,
                         const char *name) {
    size_t name_bytes = name ? strlen(name) + 1 : 0;

    wire_give_number(out, opcode, 1);
    wire_give_number(out, 1, 1);
    wire_give_number(out, size + name_bytes, 2);
    wire_give(out, body, size);
    wire_give(out, name, name_bytes);
}

void seed_fuse_requests(const struct fuzz_seeds *seeds) {
    static const uint8_t zeros[88];
    const struct {
        uint8_t opcode, body_bytes;
        const char *name;
    } rows[] = {{35, 16, "file"}, {1, 0, "file"},  {3, 16, NULL},  {4, 88, NULL},  {52, 24, NULL},
                {6, 0, "link"},   {8, 16, "node"}, {9, 8, "dir"},  {15, 40, NULL}, {16, 40, NULL},
                {25, 24, NULL},   {20, 16, NULL},  {43, 32, NULL}, {27, 8, NULL},  {28, 40, NULL},
                {44, 40, NULL},   {36, 8, NULL},   {29, 24, NULL}, {12, 8, "a"},   {45, 16, "a"},
                {13, 8, "hard"},  {10, 0, "node"}, {11, 0, "dir"}, {17, 0, NULL}};
    uint8_t space[2048];
    struct buffer all = {space, 0, sizeof space};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        give_request(&all, rows[i].opcode, zeros, rows[i].body_bytes, rows[i].name);
    }
    fuzz_seed(seeds, (struct bytes){space, all.size});
}

void fuzz_fuse_init(struct bytes in) {
    const struct negotiate_options options = {.write_bytes_max = MIB, .background_max = 64};
    struct abi_init_in init = {0};
    struct abi_init_out out;
    struct features features = {0};

    memcpy(&init, in.size > 0 ? in.data : (const uint8_t *)"", MIN(in.size, sizeof init));
    int r = negotiate(&options, &init, in.size, &out, &features);
    assert(r == 0 || r == -ERR_MALFORMED || r == -ERR_NOT_SUPPORTED || r == -ERR_CONFLICT);
    if (r == 0) {
        assert(features.write_bytes_max <= MIB && features.minor <= init.minor);
    }
}

void seed_fuse_init(const struct fuzz_seeds *seeds) {
    const struct abi_init_in init = {.major = 7, .minor = ABI_MINOR_MAX, .flags = UINT32_MAX};

    fuzz_seed(seeds, (struct bytes){(const uint8_t *)&init, sizeof init});
}
