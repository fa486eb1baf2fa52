/* Bodies of messages: what decodes encodes, and that decodes and encodes to the same bytes. An
 * older peer's body is shorter than ours and a newer one's longer, so the first encoding may differ
 * from what came. */
#include "client/listed.h"
#include "fuzz.h"
#include "wire/wire.h"
#include "wire/wire_rows.h"

enum { BODY_BYTES_MAX = 32768, OPCODE_BYTES = 2, UNTOUCHED = 0xa5, ROWS_MAX = 64 };

static uint32_t scratch[WIRE_GROUPS_MAX];
static uint8_t once[BODY_BYTES_MAX], twice[BODY_BYTES_MAX];

static void check_untouched(const void *body, size_t size) {
    for (size_t i = 0; i < size; i++) {
        assert(((const uint8_t *)body)[i] == UNTOUCHED);
    }
}

static void check_request(uint16_t opcode, const union request_body *body) {
    struct buffer first = {once, 0, sizeof once}, second = {twice, 0, sizeof twice};
    union request_body again;
    uint32_t scratch_again[WIRE_GROUPS_MAX];
    char text[300];

    int r = wire_encode_request(opcode, body, &first);
    assert(r == 0);
    r = wire_decode_request(opcode, (struct bytes){once, first.size}, scratch_again, &again);
    assert(r == 0);
    r = wire_encode_request(opcode, &again, &second);
    assert(r == 0 && first.size == second.size && memcmp(once, twice, first.size) == 0);
    assert(wire_request_ino(opcode, body) == wire_request_ino(opcode, &again));
    for (size_t size = 1; size <= sizeof text; size += 23) {
        wire_print_request(opcode, body, text, size);
        assert(memchr(text, '\0', size));
    }
}

void fuzz_wire_request(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    uint16_t opcode = (uint16_t)wire_take_number(&cursor, OPCODE_BYTES);
    union request_body body;

    memset(&body, UNTOUCHED, sizeof body);
    int r = wire_decode_request(opcode, fuzz_rest(&cursor), scratch, &body);
    if (r < 0) {
        assert(r == -ERR_MALFORMED);
        check_untouched(&body, sizeof body);
        return;
    }
    struct credentials *who = wire_request_credentials(opcode, &body);
    assert(!who || (who->group_count <= WIRE_GROUPS_MAX &&
                    (who->group_count == 0 || who->groups == scratch)));
    check_request(opcode, &body);
}

void fuzz_wire_reply(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    uint16_t opcode = (uint16_t)wire_take_number(&cursor, OPCODE_BYTES);
    struct buffer first = {once, 0, sizeof once}, second = {twice, 0, sizeof twice};
    union reply_body body, again;

    memset(&body, UNTOUCHED, sizeof body);
    int r = wire_decode_reply(opcode, fuzz_rest(&cursor), &body);
    if (r < 0) {
        assert(r == -ERR_MALFORMED);
        check_untouched(&body, sizeof body);
        return;
    }
    r = wire_encode_reply(opcode, &body, &first);
    assert(r == 0);
    r = wire_decode_reply(opcode, (struct bytes){once, first.size}, &again);
    assert(r == 0);
    r = wire_encode_reply(opcode, &again, &second);
    assert(r == 0 && first.size == second.size && memcmp(once, twice, first.size) == 0);
}

/* A name that is one byte longer than may be: encoders make none. */
static void seed_long_name(const struct fuzz_seeds *seeds) {
    static const uint8_t name[NAME_BYTES_MAX + 1] = {'n'};
    struct buffer out = {once, 0, sizeof once};

    wire_give_number(&out, OP_LOOKUP, OPCODE_BYTES);
    wire_give_number(&out, 8 + 4 + sizeof name, 4);
    wire_give_number(&out, 1, 8);
    wire_give_number(&out, sizeof name, 4);
    wire_give(&out, name, sizeof name);
    fuzz_seed(seeds, (struct bytes){once, out.size});
}

/* Of each message one whose fields are zero, which has every length in its place. */
void seed_wire_request(const struct fuzz_seeds *seeds) {
    static const uint32_t groups[] = {4, 24, 1000};
    const union request_body full = {.rename = {.parent = {1},
                                                .name = {(const uint8_t *)"from", 4},
                                                .new_parent = {2},
                                                .new_name = {(const uint8_t *)"to", 2},
                                                .who = {1000, 100, 3, groups},
                                                .flags = RENAME_FLAG_EXCHANGE}};
    const union request_body empty = {0};

    seed_long_name(seeds);
    for (uint16_t opcode = 0; opcode < OPCODE_COUNT; opcode++) {
        struct buffer out = {once, 0, sizeof once};

        wire_give_number(&out, opcode, OPCODE_BYTES);
        if (wire_encode_request(opcode, opcode == OP_RENAME ? &full : &empty, &out) == 0) {
            fuzz_seed(seeds, (struct bytes){once, out.size});
        }
    }
}

void seed_wire_reply(const struct fuzz_seeds *seeds) {
    const union reply_body empty = {0};

    for (uint16_t opcode = 0; opcode < OPCODE_COUNT; opcode++) {
        struct buffer out = {twice, 0, sizeof twice};

        wire_give_number(&out, opcode, OPCODE_BYTES);
        if (wire_encode_reply(opcode, &empty, &out) == 0) {
            fuzz_seed(seeds, (struct bytes){twice, out.size});
        }
    }
}

/* Each begins as it came, and is zero from there on. */
void fuzz_wire_rows(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    struct wire_rows rows = {.row_bytes_min = WIRE_START_BYTES_MIN, .count_max = ROWS_MAX};
    uint8_t row[2 * WIRE_START_BYTES_MIN];

    rows.row_bytes = (uint16_t)wire_take_number(&cursor, 2);
    rows.bytes = fuzz_rest(&cursor);
    int r = wire_rows_check(&rows);
    if (r < 0) {
        assert(r == -ERR_MALFORMED);
        return;
    }
    size_t each = wire_rows_each(&rows);
    assert(each >= WIRE_START_BYTES_MIN && wire_rows_count(&rows) <= ROWS_MAX);
    assert(wire_rows_count(&rows) * each == rows.bytes.size);
    for (uint32_t i = 0; i < wire_rows_count(&rows); i++) {
        memset(row, UNTOUCHED, sizeof row);
        wire_rows_get(&rows, i, row, sizeof row);
        assert(memcmp(row, rows.bytes.data + i * each, MIN(each, sizeof row)) == 0);
        for (size_t k = each; k < sizeof row; k++) {
            assert(row[k] == 0);
        }
    }
}

void seed_wire_rows(const struct fuzz_seeds *seeds) {
    static const uint16_t lengths[] = {0, WIRE_START_BYTES_MIN, 2 * WIRE_START_BYTES_MIN, 40, 15};

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        size_t row_bytes = MAX(lengths[i], (uint16_t)WIRE_START_BYTES_MIN);
        struct buffer out = {once, 0, sizeof once};

        wire_give_number(&out, lengths[i], 2);
        for (size_t k = 0; k < 3 * row_bytes; k++) {
            wire_give_number(&out, k + 1, 1);
        }
        fuzz_seed(seeds, (struct bytes){once, out.size});
    }
}

/* They have one length; a shorter one is the beginning, behind which all is zero. */
void fuzz_wire_attributes(struct bytes in) {
    struct attributes attributes;
    uint8_t bytes[WIRE_ATTRIBUTES_BYTES];
    struct buffer out = {bytes, 0, sizeof bytes};

    memset(&attributes, UNTOUCHED, sizeof attributes);
    int r = wire_decode_attributes(in, &attributes);
    if (r < 0) {
        assert(r == -ERR_MALFORMED && in.size == 0);
        check_untouched(&attributes, sizeof attributes);
        return;
    }
    wire_encode_attributes(&attributes, &out);
    assert(out.size == sizeof bytes);
    assert(memcmp(bytes, in.data, MIN(in.size, sizeof bytes)) == 0);
    for (size_t i = in.size; i < sizeof bytes; i++) {
        assert(bytes[i] == 0);
    }
}

void seed_wire_attributes(const struct fuzz_seeds *seeds) {
    const struct attributes attributes = {
        .ino = {7}, .mode = 0100644, .nlink = 1, .size = 12345, .mtime_ns = -1, .data_state = 2};
    struct buffer out = {once, 0, sizeof once};

    wire_encode_attributes(&attributes, &out);
    fuzz_seed(seeds, (struct bytes){once, out.size});
}

/* One entry behind the other, as a client walks over an answer: each lies in it, and attributes are
 * those that wire_attributes reads. */
void fuzz_listing(struct bytes in) {
    struct listed_entry entry;

    for (struct bytes left = in; left.size > 0;) {
        memset(&entry, UNTOUCHED, sizeof entry);
        int r = listed_entry_parse(left, &entry);

        if (r < 0) {
            assert(r == -ERR_MALFORMED);
            check_untouched(&entry, sizeof entry);
            return;
        }
        const struct bytes name = {(const uint8_t *)entry.name, entry.head.name_bytes};
        assert(name.size > 0 && fuzz_is_within(name, left));
        assert(entry.head.entry_bytes >= sizeof entry.head + name.size &&
               entry.head.entry_bytes <= left.size);
        assert(entry.has_attributes == (entry.head.attribute_bytes > 0));
        if (entry.has_attributes) {
            struct attributes same;

            r = wire_decode_attributes(
                (struct bytes){name.data + name.size, entry.head.attribute_bytes}, &same);
            assert(r == 0);
            struct buffer first = {once, 0, sizeof once}, second = {twice, 0, sizeof twice};
            wire_encode_attributes(&same, &first);
            wire_encode_attributes(&entry.attributes, &second);
            assert(first.size == second.size && memcmp(once, twice, first.size) == 0);
        }
        left =
            (struct bytes){left.data + entry.head.entry_bytes, left.size - entry.head.entry_bytes};
    }
}

/* Three entries, the second with attributes, each of a multiple of 8 bytes. */
void seed_listing(const struct fuzz_seeds *seeds) {
    const struct attributes attributes = {.ino = {9}, .mode = 0100644, .nlink = 1, .size = 77};
    struct buffer out = {once, 0, sizeof once};

    for (uint16_t i = 0; i < 3; i++) {
        const uint16_t attribute_bytes = i == 1 ? WIRE_ATTRIBUTES_BYTES : 0;
        const size_t used = sizeof(struct wire_dirent) + i + 1U + attribute_bytes;
        const struct wire_dirent head = {.cookie = 3 + i,
                                         .ino = 7 + i,
                                         .entry_bytes = (uint16_t)((used + 7) / 8 * 8),
                                         .attribute_bytes = attribute_bytes,
                                         .type = 8,
                                         .name_bytes = (uint8_t)(i + 1)};

        wire_give(&out, &head, sizeof head);
        wire_give(&out, "name", i + 1U);
        if (attribute_bytes > 0) {
            wire_encode_attributes(&attributes, &out);
        }
        wire_give(&out, "\0\0\0\0\0\0\0", head.entry_bytes - used);
    }
    fuzz_seed(seeds, (struct bytes){once, out.size});
}
