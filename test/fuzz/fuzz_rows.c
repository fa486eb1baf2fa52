/* Values of rows, as a base gives them after their checksum was found right: what is accepted keeps
 * what its readers go by, and lies within the value. */
#include "fuzz.h"
#include "kv/kv_base_row.h"
#include "meta/half.h"
#include "meta/rows.h"
#include "store/chunk.h"
#include "wire/wire.h"

enum { UNTOUCHED = 0xa5 };

/* One row of each kind that is as it is stored; `check` is one of the functions of meta/rows.h. */
#define ROWS(R)                                                                                    \
    R(partition, .format = 1, .state = 1, .mode = MODE_DIRECTORY)                                  \
    R(inode, .format = 1, .data_state = 2, .nlink = 1, .mode = MODE_REGULAR | 0644,                \
      .chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 1)                                       \
    R(group, .format = 1, .hash_bits = 51, .group = 1)                                             \
    R(counters, .format = 1, .inode_count = 2, .directory_count = 1)                               \
    R(slots, .format = 1, .state = SLOTS_MINE, .count = 1)                                         \
    R(lost, .format = 1, .counter_to = 9, .generation_to = 7)                                      \
    R(session, .format = 1, .state = SESSION_LIVE)                                                 \
    R(mark, .format = 1)                                                                           \
    R(order, .format = 1, .kind = ORDER_CUT, .chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 1)

/* Likewise; behind the others, by whose numbers inputs are kept. */
#define LATER_ROWS(R)                                                                              \
    R(decision, .format = 1, .log_count = 2, .logs = {17, 33})                                     \
    R(fence, .format = 1, .state = FENCE_SET)                                                      \
    R(over, .format = 1)                                                                           \
    R(count, .format = 1)

enum row_kind {
#define R(name, ...) KIND_##name,
    ROWS(R)
#undef R
        KIND_dentry,
    KIND_inline,
    KIND_outcome,
    KIND_head,
#define R(name, ...) KIND_##name,
    LATER_ROWS(R)
#undef R
        KIND_transaction,
    KIND_COUNT
};

static void check_result(int r) {
    assert(r == 0 || r == -ERR_CORRUPT || r == -ERR_NEWER_FORMAT);
}

/* A whole row lies where its value does; a refused one leaves the pointer alone. */
static void check_fixed(enum row_kind kind, struct bytes value) {
    switch (kind) {
#define R(name, ...)                                                                               \
    case KIND_##name: {                                                                            \
        const struct name##_row *row = NULL;                                                       \
        int r = name##_row_check(value, &row);                                                     \
                                                                                                   \
        check_result(r);                                                                           \
        assert(r == 0 ? (const void *)row == (const void *)value.data : !row);                     \
        assert(r < 0 || value.size == sizeof *row);                                                \
        break;                                                                                     \
    }
        ROWS(R)
        LATER_ROWS(R)
#undef R
    default:
        break;
    }
}

static void check_dentry(struct bytes value) {
    const struct dentry_row *row = NULL;
    int r = dentry_row_check(value, &row);

    check_result(r);
    if (r == 0) {
        bool hole = row->flags & DENTRY_HOLE;

        assert(fuzz_is_within((struct bytes){row->name, row->name_bytes}, value));
        assert(hole || (row->name_bytes > 0 && row->ino != 0));
    }
}

static void check_inline(struct bytes value) {
    struct bytes data = {NULL, 0};
    int r = inline_row_check(value, &data);

    check_result(r);
    assert(fuzz_is_within(data, value) && data.size <= INLINE_PIECE_BYTES);
}

static void check_outcome(struct bytes value) {
    const struct outcome_head *head = NULL;
    struct bytes reply = {NULL, 0};
    union reply_body body;
    int r = outcome_check(value, &head, &reply);

    check_result(r);
    assert(fuzz_is_within(reply, value));
    if (r == 0) {
        r = wire_decode_reply(head->opcode, reply, &body);
        assert(r == 0 || r == -ERR_MALFORMED);
    }
}

static void check_head(struct bytes value) {
    struct store_head head;

    memset(&head, UNTOUCHED, sizeof head);
    int r = chunk_head_check(value, &head);
    check_result(r);
    if (r == 0) {
        assert(head.length <= head.chunk_bytes &&
               fuzz_is_same((struct bytes){(void *)&head, value.size}, value));
    } else {
        assert(head.format == UNTOUCHED && head.promised == 0xa5a5a5a5);
    }
}

/* What it promises follows its head and its logs, one half behind the other. */
static void check_transaction(struct bytes value) {
    const struct transaction_row *row = NULL;
    const struct half *half = NULL;
    struct bytes halves = {NULL, 0};
    int r = transaction_row_check(value, &row, &halves);

    check_result(r);
    assert(r == 0 ? (const void *)row == (const void *)value.data : !row && !halves.data);
    assert(fuzz_is_within(halves, value));
    while (halves.size > 0 && r == 0) {
        struct bytes rest = halves;

        r = half_next(&halves, &half);
        assert(r == 0 || r == -ERR_MALFORMED);
        assert(r == 0 ? halves.size < rest.size : halves.size == rest.size);
        if (r == 0) {
            assert((const void *)half == (const void *)rest.data);
            assert(fuzz_is_within(half_name(half), rest));
        }
    }
}

/* The laws of layouts that any inode may have. */
static void check_layout(struct bytes value) {
    static const uint32_t chains[] = {11, 12, 13, 14, 15};
    const struct pool_version pool = {1, ARRAY_SIZE(chains), chains};
    const struct inode_row *row;

    if (inode_row_check(value, &row) == 0 && row->data_state == DATA_CHUNKED) {
        struct layout layout = inode_layout(row);
        uint32_t width = layout_width(&layout, &pool);

        assert(layout_is_valid(&layout) && width > 0 && width <= pool.chain_count);
        for (uint64_t chunk = 0; chunk < 2 * (uint64_t)width; chunk++) {
            uint32_t chain = layout_chain(&layout, &pool, chunk);

            assert(chain >= 11 && chain <= 15);
            assert(chain == layout_chain(&layout, &pool, chunk + width));
        }
    }
}

/* The first byte is the kind. */
void fuzz_row(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    enum row_kind kind = (enum row_kind)(wire_take_number(&cursor, 1) % KIND_COUNT);
    struct bytes value = fuzz_rest(&cursor);

    check_fixed(kind, value);
    if (kind == KIND_inode) {
        check_layout(value);
    } else if (kind == KIND_dentry) {
        check_dentry(value);
    } else if (kind == KIND_inline) {
        check_inline(value);
    } else if (kind == KIND_outcome) {
        check_outcome(value);
    } else if (kind == KIND_head) {
        check_head(value);
    } else if (kind == KIND_transaction) {
        check_transaction(value);
    }
}

static void seed_kind(const struct fuzz_seeds *seeds, enum row_kind kind, const void *row,
                      size_t size) {
    uint8_t seed[512] = {(uint8_t)kind};

    memcpy(seed + 1, row, size);
    fuzz_seed(seeds, (struct bytes){seed, size + 1});
}

/* One that promises a name and a count to two logs, and one that is committed. */
static void seed_transactions(const struct fuzz_seeds *seeds) {
    const struct half name = {
        .format = META_FORMAT, .kind = HALF_NAME, .name_bytes = 4, .ino = 2, .to = 9, .type = 8};
    const struct half count = {.format = META_FORMAT, .kind = HALF_COUNT};
    const uint64_t logs[2] = {17, 33};
    struct transaction_row row = {.format = 1, .state = TRANSACTION_COMMITTED, .log_count = 2};
    uint8_t value[256];
    size_t at = sizeof row;

    memcpy(value + at, logs, sizeof logs);
    at += sizeof logs;
    memcpy(value, &row, sizeof row);
    seed_kind(seeds, KIND_transaction, value, at);
    memcpy(value + at, &name, sizeof name);
    memcpy(value + at + sizeof name, "name", 4);
    memcpy(value + at + sizeof name + 4, &count, sizeof count);
    row.state = TRANSACTION_PREPARED;
    row.halves_bytes = sizeof name + 4 + sizeof count;
    memcpy(value, &row, sizeof row);
    seed_kind(seeds, KIND_transaction, value, at + row.halves_bytes);
}

void seed_row(const struct fuzz_seeds *seeds) {
    const struct dentry_row dentry = {.format = 1, .type = 8, .name_bytes = 4, .ino = 2};
    uint8_t entry[sizeof dentry + 4] = {0};
    const struct outcome_head outcome = {.format = 1, .opcode = OP_UNLINK, .term = 1, .ino = 5};
    const struct inline_row data = {.format = 1, .epoch = 3};
    const struct store_head head = {.format = 1, .chunk_bytes = 1 << 20, .length = 5};
    const struct store_head promising = {.format = STORE_FORMAT_PROMISING,
                                         .promise = STORE_PROMISE_ALL,
                                         .chunk_bytes = 1 << 20,
                                         .promised = 9,
                                         .promise_call = 3};

#define R(name, ...)                                                                               \
    seed_kind(seeds, KIND_##name, &(const struct name##_row){__VA_ARGS__},                         \
              sizeof(struct name##_row));
    ROWS(R)
    LATER_ROWS(R)
#undef R
    seed_transactions(seeds);
    memcpy(entry, &dentry, sizeof dentry);
    memcpy(entry + sizeof dentry, "name", 4);
    seed_kind(seeds, KIND_dentry, entry, sizeof entry);
    seed_kind(seeds, KIND_outcome, &outcome, sizeof outcome);
    seed_kind(seeds, KIND_inline, &data, sizeof data);
    seed_kind(seeds, KIND_head, &head, STORE_HEAD_BYTES);
    seed_kind(seeds, KIND_head, &promising, sizeof promising);
}

/* A key and what a base has under it. The first byte says whether the checksum is put right. */
void fuzz_base_row(struct bytes in) {
    static uint8_t space[FUZZ_INPUT_BYTES_MAX], again[FUZZ_INPUT_BYTES_MAX];
    struct wire_cursor cursor = fuzz_cursor(in);
    bool repairs = wire_take_number(&cursor, 1) & 1;
    const uint8_t *key_bytes = wire_take(&cursor, KV_KEY_BYTES);
    struct bytes stored = fuzz_rest(&cursor), value = {NULL, 0};
    struct kv_key key;

    if (!key_bytes) {
        return;
    }
    memcpy(key.bytes, key_bytes, KV_KEY_BYTES);
    if (repairs && stored.size >= BASE_ROW_CRC_BYTES) {
        base_row_write(space, &key, (struct bytes){stored.data, stored.size - BASE_ROW_CRC_BYTES});
        stored.data = space;
    }
    int r = base_row_check(&key, stored, &value);
    assert(r == 0 || r == -ERR_CORRUPT);
    assert(r == 0 || (!value.data && (!repairs || stored.size < BASE_ROW_CRC_BYTES)));
    if (r == 0) {
        assert(value.data == stored.data && value.size + BASE_ROW_CRC_BYTES == stored.size);
        base_row_write(again, &key, value);
        assert(memcmp(again, stored.data, stored.size) == 0);
        key.bytes[value.size % KV_KEY_BYTES] ^= 1;
        r = base_row_check(&key, stored, &value);
        assert(r == -ERR_CORRUPT);
    }
}

void seed_base_row(const struct fuzz_seeds *seeds) {
    const struct kv_key key =
        kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT, .type = 'T', .id = 5});
    static const uint8_t value[40] = {1, 2, 3};
    uint8_t seed[1 + KV_KEY_BYTES + sizeof value + BASE_ROW_CRC_BYTES] = {0};

    memcpy(seed + 1, key.bytes, KV_KEY_BYTES);
    base_row_write(seed + 1 + KV_KEY_BYTES, &key, (struct bytes){value, sizeof value});
    for (uint8_t repairs = 0; repairs < 2; repairs++) {
        seed[0] = repairs;
        fuzz_seed(seeds, (struct bytes){seed, sizeof seed});
    }
}
