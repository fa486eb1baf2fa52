/* Answers of targets to a check: lists of rows, framed in two ways. Each row that is given lies
 * within the answer, and a list ends or fails; what its rows say is looked at by the checks that
 * fuzz_row knows. */
#include "check/fsck_internal.h"
#include "fuzz.h"
#include "store/fsck_format.h"

enum { ROWS_MAX = 32768, ANSWERS_MAX = 8 };

static struct wire_cursor left; /* of the input: what the next answers are */
static uint32_t answer_count;
static struct bytes answered;

static uint64_t now_ns(struct env *env) {
    (void)env;
    return NS_PER_S;
}

/* u16 bytes of the answer, u8 whether it is the last, the answer. */
static void ask(void *context, struct call *call, uint32_t count) {
    size_t said = wire_take_number(&left, 2);
    bool end = wire_take_number(&left, 1) & 1;
    size_t size = MIN(said, MIN(left.size, call->bulk_in.capacity));
    const uint8_t *from = wire_take(&left, size);

    (void)context;
    assert(count == 1);
    size = from ? size : 0;
    if (size > 0) {
        memcpy(call->bulk_in.data, from, size);
    }
    call->bulk_in.size = size;
    answered = (struct bytes){call->bulk_in.data, size};
    call->reply.fsck_list.end = end || ++answer_count == ANSWERS_MAX;
    call->result = 0;
}

static bool never(void *context) {
    (void)context;
    return false;
}

static void say_nothing(void *context, const char *line) {
    (void)context;
    (void)line;
}

/* The first byte is the kind of the rows. */
void fuzz_fsck_rows(struct bytes in) {
    static const struct env_ops ops = {.now_ns = now_ns};
    static struct cluster_map map;
    struct env env = {.ops = &ops};
    const struct fsck_cluster cluster = {.env = &env, .map = &map, .ask = ask};
    const struct fsck_report report = {.progress = say_nothing, .stopped = never};
    static struct fsck *fsck;
    struct fsck_list list;
    struct fsck_row row;
    uint32_t row_count = 0;
    int r;

    left = fuzz_cursor(in);
    answer_count = 0;
    if (!fsck) {
        const struct target_id ost = {2};

        cluster_map_single(&map, (struct target_id){1}, &ost, 1);
        fsck = fsck_new(&cluster, &report);
        assert(fsck);
    }
    fsck->cluster = &cluster;
    fsck->report = &report;
    uint32_t what = 1 + (uint32_t)wire_take_number(&left, 1) % FSCK_MOVES;
    fsck_list_begin(&list, fsck, (struct target_id){what == FSCK_CHUNKS ? 2 : 1}, what);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        struct store_segment segment = fsck_segment(row.value);

        assert(fuzz_is_within(row.value, answered) && ++row_count < ROWS_MAX);
        assert(row.value.size == 0 || segment.format == row.value.data[0]);
    }
    assert(r == -ERR_NOT_FOUND || r == -ERR_MALFORMED);
}

/* Two answers of two rows each, as a group and as a storage target frame them. */
static void seed_kind(const struct fuzz_seeds *seeds, uint32_t what) {
    static const uint8_t value[24] = {1, 1};
    const struct store_fsck_row head = {sizeof head + sizeof value, sizeof value, {1}};
    bool is_store = what == FSCK_CHUNKS || what == FSCK_BLOCKS;
    size_t row_bytes = sizeof value + (is_store ? sizeof head : sizeof(uint16_t) + KV_KEY_BYTES);
    uint8_t space[512];
    struct buffer out = {space, 0, sizeof space};

    wire_give_number(&out, what - 1, 1);
    for (int answer = 0; answer < 2; answer++) {
        wire_give_number(&out, 2 * row_bytes, 2);
        wire_give_number(&out, answer, 1);
        for (int row = 0; row < 2; row++) {
            if (is_store) {
                wire_give(&out, &head, sizeof head);
            } else {
                wire_give_number(&out, sizeof value, 2);
                wire_give(&out, head.key, KV_KEY_BYTES);
            }
            wire_give(&out, value, sizeof value);
        }
    }
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

void seed_fsck_rows(const struct fuzz_seeds *seeds) {
    seed_kind(seeds, FSCK_INODES);
    seed_kind(seeds, FSCK_CHUNKS);
}
