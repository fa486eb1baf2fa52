/* A metadata group: its rows as a start finds them, what it is asked, and what others answer.
 *
 * group_rows: edits (row_edits.h) of the rows of a group that had files, sessions and orders, and
 * behind them answers (answers.h) of storage targets and of another group. It does not open, says
 * why and has changed no row; or whatever it is asked is answered, and it stops and starts again,
 * unless it says that it has failed.
 *
 * group_calls: u16 size of requests, these, and answers of the others. A request is u8 opcode, u8
 * of enum asker, u16 size, body, and of a group_tell u16 size, bulk. Bodies are those that decode.
 * Behind all of them each row is one that a start takes, and a start takes them. */
#include "answers.h"
#include "group_stage.h"
#include "kv/ended_list.h"
#include "meta/half_format.h"
#include "meta/look.h"
#include "meta/rows.h"
#include "row_edits.h"
#include <stdlib.h>

enum { CALLS_MAX = 16, TURNS_MAX = 4000, SHORT_TURNS = 40 };

static struct bytes name_of(const char *name) {
    return (struct bytes){(const uint8_t *)name, strlen(name)};
}

static int attach(void) {
    return group_stage_run(
        OP_SESSION_ATTACH,
        &(const union request_body){.session_attach = {.session = 1, .incarnation = 7}}, NULL);
}

static struct ino file_make(const char *name, uint32_t flags) {
    union reply_body reply;
    int r = group_stage_run(OP_CREATE,
                            &(const union request_body){.create = {.parent = INO_ROOT,
                                                                   .name = name_of(name),
                                                                   .mode = 0644,
                                                                   .open_flags = flags}},
                            &reply);

    assert(r == 0);
    return reply.create.attributes.ino;
}

static int name_remove(const char *name) {
    return group_stage_run(
        OP_UNLINK,
        &(const union request_body){.unlink = {.parent = INO_ROOT, .name = name_of(name)}}, NULL);
}

/* A group with a row of most types: files that are open, one of them without a name, a small one, a
 * link, a directory, an order to storage targets. */
static void state_make(void) {
    static const uint8_t text[] = "text";
    const struct bytes data = {text, sizeof text};
    int r = group_stage_start();

    assert(r == 0);
    group_stage_turn(NS_PER_S);
    r = group_stage_run(OP_SESSIONS_ENDED,
                        &(const union request_body){.sessions_ended = {.number = 1}}, NULL);
    assert(r == 0);
    r = attach();
    assert(r == 0);
    struct ino file = file_make("a", OPEN_READ | OPEN_WRITE);
    r = group_stage_run(OP_INLINE_WRITE,
                        &(const union request_body){.inline_write = {.ino = file, .data = data}},
                        NULL);
    assert(r == 0);
    (void)file_make("b", OPEN_READ | OPEN_WRITE);
    r = name_remove("b");
    assert(r == 0);
    r = group_stage_run(
        OP_SYMLINK,
        &(const union request_body){
            .symlink = {.parent = INO_ROOT, .name = name_of("l"), .target = name_of("a")}},
        NULL);
    assert(r == 0);
    r = group_stage_run(OP_MKDIR,
                        &(const union request_body){
                            .mkdir = {.parent = INO_ROOT, .name = name_of("d"), .mode = 0755}},
                        NULL);
    assert(r == 0);
    struct ino large = file_make("c", OPEN_READ | OPEN_WRITE);
    r = group_stage_run(
        OP_INLINE_CONVERT,
        &(const union request_body){.inline_convert = {.ino = large, .size = 1 << 20}}, NULL);
    (void)r;
    group_stage_turn(2 * NS_PER_S);
}

static uint32_t rows_sum(void) {
    struct kv *kv = group_stage_engine();
    uint32_t sum = row_edits_sum(group_stage.world, kv);

    group_stage_engine_die(kv);
    return sum;
}

static bool serves(void) {
    return group_stage_run(OP_STATFS, &(const union request_body){0}, NULL) == 0;
}

static void list_ask(uint32_t what) {
    (void)group_stage_run(
        OP_FSCK_LIST,
        &(const union request_body){.fsck_list = {.what = what, .bytes_max = STAGE_SPACE_BYTES}},
        NULL);
}

static void names_ask(const char *name) {
    const struct bytes text = name_of(name);
    union reply_body reply;
    int r = group_stage_run(OP_LOOKUP, &(const union request_body){.lookup = {INO_ROOT, text, {0}}},
                            &reply);

    if (r == 0) {
        struct ino ino = reply.lookup.attributes.ino;

        (void)group_stage_run(OP_GETATTR, &(const union request_body){.getattr = {.ino = ino}},
                              NULL);
        (void)group_stage_run(OP_INLINE_READ,
                              &(const union request_body){.inline_read = {.ino = ino}}, NULL);
        (void)group_stage_run(OP_READLINK, &(const union request_body){.readlink = {.ino = ino}},
                              NULL);
        (void)group_stage_run(OP_SETATTR,
                              &(const union request_body){
                                  .setattr = {.ino = ino, .valid = SETATTR_SIZE, .size = 100}},
                              NULL);
    }
    (void)group_stage_run(OP_RENAME,
                          &(const union request_body){.rename = {.parent = INO_ROOT,
                                                                 .name = text,
                                                                 .new_parent = INO_ROOT,
                                                                 .new_name = name_of("x")}},
                          NULL);
}

/* One of nearly each that it knows. */
static void all_ask(void) {
    const struct bytes bits = name_of("\xff\xff");

    (void)attach();
    for (uint32_t what = FSCK_INODES; what <= FSCK_SLOTS; what++) {
        list_ask(what);
    }
    names_ask("a");
    names_ask("l");
    names_ask("d");
    names_ask("c");
    (void)group_stage_run(
        OP_READDIR,
        &(const union request_body){
            .readdir = {.ino = INO_ROOT, .bytes_max = STAGE_SPACE_BYTES, .plus = 1}},
        NULL);
    (void)group_stage_run(OP_MKDIR,
                          &(const union request_body){
                              .mkdir = {.parent = INO_ROOT, .name = name_of("e"), .mode = 0755}},
                          NULL);
    (void)name_remove("x");
    (void)group_stage_run(
        OP_RMDIR, &(const union request_body){.rmdir = {.parent = INO_ROOT, .name = name_of("x")}},
        NULL);
    (void)group_stage_run(
        OP_SLOTS_GIVE,
        &(const union request_body){
            .slots_give = {.handover = 3, .to = STAGE_OTHER_LOG.value, .count = 10}},
        NULL);
    (void)group_stage_run(
        OP_SESSIONS_ENDED,
        &(const union request_body){
            .sessions_ended = {.number = 4, .lowest = 3, .first = 1, .names = bits}},
        NULL);
    for (int i = 0; i < SHORT_TURNS; i++) {
        group_stage_turn(NS_PER_S / 4);
    }
}

struct stopped {
    bool done;
    int result;
};

static void stop_done(void *context, int result) {
    *(struct stopped *)context = (struct stopped){true, result};
}

/* What it stops with, it starts with. One that has met a row that cannot be has failed, and says so
 * once more at the stop. */
static void stop_and_start(void) {
    struct stopped stopped = {.done = false};

    group_stop_start(group_stage.group, stop_done, &stopped);
    for (int i = 0; i < TURNS_MAX && !stopped.done; i++) {
        group_stage_turn(10 * NS_PER_MS);
    }
    assert(stopped.done && stopped.result <= 0);
    group_stage_die();
    if (stopped.result == 0) {
        int r = group_stage_start();

        assert(r == 0 && serves());
    }
}

void fuzz_group_rows(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);

    group_stage_begin();
    state_make();
    group_stage_die();
    struct kv *kv = group_stage_engine();
    row_edits_play(group_stage.world, kv, &cursor);
    group_stage_engine_die(kv);
    uint32_t before = rows_sum();
    group_stage.others.left = fuzz_cursor(fuzz_rest(&cursor));
    int r = group_stage_start();
    assert(r == 0 || (group_stage.problem[0] &&
                      memchr(group_stage.problem, '\0', sizeof group_stage.problem)));
    if (r < 0) {
        group_stage_die();
        assert(rows_sum() == before);
    } else if (serves()) {
        all_ask();
        stop_and_start();
    }
    group_stage_end();
}

/* R(type, id, generation, index, row, fields): one row of each type of space 0. */
#define OWN_ROWS(R)                                                                                \
    R(ROW_SLOTS, 40000, 0, 0, slots, .state = SLOTS_GIVEN, .count = 9, .given_to = 2)              \
    R(ROW_SESSION, 2, 0, 0, session, .state = SESSION_EVICTING, .incarnation = 3)                  \
    R(ROW_FENCE, 1, 0, 0, fence, .state = FENCE_SET, .incarnation = 3)                             \
    R(ROW_OVER, 0, 0, 0, over, .everywhere = 1)                                                    \
    R(ROW_ORPHAN, 2, 0, 0, mark, .epoch = 1)                                                       \
    R(ROW_WRITER, 2, 0, 1, mark, .epoch = 1)                                                       \
    R(ROW_MOVE, 2, 1, 1, order, .kind = ORDER_DELETE, .chunk_bytes = CHUNK_BYTES_DEFAULT,          \
      .stripe_count = 1)                                                                           \
    R(ROW_ORDER, 1, 1, 2, order, .kind = ORDER_CUT, .chunk_bytes = CHUNK_BYTES_DEFAULT,            \
      .stripe_count = 1, .truncate_seq = 1)                                                        \
    R(ROW_LOST, 1, 0, 0, lost, .counter_to = 9, .generation_to = 7)                                \
    R(ROW_TRANSACTION, 2, 1, 1, transaction, .state = TRANSACTION_COMMITTED)                       \
    R(ROW_DECISION, 1, 1, 0, decision, .log_count = 1, .logs = {2})                                \
    R(ROW_COUNT, 0, 0, 0, count, .moves = 3)

/* A name that is promised to the other group's transaction. */
static void give_promise(struct buffer *out) {
    const struct half half = {
        .format = META_FORMAT, .kind = HALF_NAME, .name_bytes = 1, .ino = 1, .to = 9, .type = 8};
    const struct transaction_row row = {.format = META_FORMAT,
                                        .state = TRANSACTION_PREPARED,
                                        .log_count = 1,
                                        .halves_bytes = sizeof half + 1};
    const struct kv_key key = key_owner(ROW_TRANSACTION, 2, 1, 2);
    uint8_t value[sizeof row + 8 + sizeof half + 1];

    memcpy(value, &row, sizeof row);
    store_le64(value + sizeof row, 2);
    memcpy(value + sizeof row + 8, &half, sizeof half);
    value[sizeof value - 1] = 'n';
    row_edit_put(out, &key, (struct bytes){value, sizeof value});
}

void seed_group_rows(const struct fuzz_seeds *seeds) {
    static uint8_t space[8192];
    struct buffer out = {space, 0, sizeof space};
    const uint8_t one = 1;

    wire_give_number(&out, 1, 1);
    row_edit_patch(&out, 5, 8, (struct bytes){&one, 1});
    give_error(&out, -ERR_STALE);
    fuzz_seed(seeds, (struct bytes){space, out.size});
    out.size = 0;
#define R(type, id, generation, index, name, ...) +1
    wire_give_number(&out, 1 OWN_ROWS(R), 1);
#undef R
#define R(type, id, generation, index, name, ...)                                                  \
    {                                                                                              \
        const struct kv_key key = key_owner(type, id, generation, index);                          \
        const struct name##_row row = {.format = META_FORMAT, __VA_ARGS__};                        \
                                                                                                   \
        row_edit_put(&out, &key, (struct bytes){(const void *)&row, sizeof row});                  \
    }
    OWN_ROWS(R)
#undef R
    give_promise(&out);
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

/* TIGHT: no room for bulk. SAME_NUMBER: as the mutation before. OF_ANOTHER: session. */
enum asker { TIGHT = 1, SAME_NUMBER = 2, OF_ANOTHER = 4, WAITED_FOR = 8 };

/* Fields of a call that a target of another kind answers are not looked at. */
static uint16_t opcode_take(struct wire_cursor *cursor) {
    return (uint16_t)wire_take_number(cursor, 1);
}

static struct bytes bulk_take(struct wire_cursor *cursor) {
    size_t size = MIN((size_t)wire_take_number(cursor, 2), cursor->size);

    return (struct bytes){wire_take(cursor, size), size};
}

static void header_fill(struct call *call, uint32_t asker) {
    if (asker & TIGHT) {
        call->bulk_in.capacity = 0;
    }
    if (asker & OF_ANOTHER) {
        call->header.session.value++;
    }
    if (asker & SAME_NUMBER && call->header.sequence > 1) {
        call->header.sequence = --group_stage.sequence;
    }
}

/* False: it is none that the inlet would hand over. */
static bool one_ask(struct asked *one, struct wire_cursor *cursor) {
    uint16_t opcode = opcode_take(cursor);
    uint32_t asker = (uint32_t)wire_take_number(cursor, 1);
    size_t size = MIN((size_t)wire_take_number(cursor, 2), cursor->size);
    const uint8_t *body = wire_take(cursor, size);

    if (!body || !wire_name(opcode)) {
        return false;
    }
    asked_begin(one, opcode);
    if (opcode == OP_GROUP_TELL) {
        one->call.bulk_out[0] = bulk_take(cursor);
        one->call.bulk_out_count = one->call.bulk_out[0].size > 0;
    }
    header_fill(&one->call, asker);
    if (wire_decode_request(opcode, (struct bytes){body, size}, one->scratch, &one->call.request) <
        0) {
        free(one->space);
        return false;
    }
    asked_post(one);
    for (int i = 0; asker & WAITED_FOR && !one->answered && i < SHORT_TURNS; i++) {
        group_stage_turn(100 * NS_PER_MS);
    }
    return true;
}

/* Whatever a group has in its log it takes at a start. */
#define R(name)                                                                                    \
    static int check_##name(struct bytes value) {                                                  \
        const struct name##_row *row;                                                              \
                                                                                                   \
        return name##_row_check(value, &row);                                                      \
    }
/* clang-format does not settle on one layout of them. */
/* clang-format off */
#define CHECKED(R)                                                                                 \
    R(partition) R(dentry) R(inode) R(counters) R(group) R(slots) R(session) R(fence) R(over)      \
    R(mark) R(order) R(lost) R(decision) R(count)
/* clang-format on */
CHECKED(R)
#undef R

static int check_inline(struct bytes value) {
    struct bytes data;

    return inline_row_check(value, &data);
}

static int check_transaction(struct bytes value) {
    const struct transaction_row *row;
    struct bytes halves;

    return transaction_row_check(value, &row, &halves);
}

static const struct {
    enum row_type type;
    int (*check)(struct bytes value);
} row_checks[] = {
    {ROW_PARTITION, check_partition}, {ROW_DENTRY, check_dentry},
    {ROW_INODE, check_inode},         {ROW_INLINE, check_inline},
    {ROW_GROUP, check_group},         {ROW_COUNTERS, check_counters},
    {ROW_SLOTS, check_slots},         {ROW_SESSION, check_session},
    {ROW_ORPHAN, check_mark},         {ROW_WRITER, check_mark},
    {ROW_MOVE, check_order},          {ROW_LOST, check_lost},
    {ROW_ORDER, check_order},         {ROW_TRANSACTION, check_transaction},
    {ROW_DECISION, check_decision},   {ROW_COUNT, check_count},
    {ROW_FENCE, check_fence},         {ROW_OVER, check_over},
};

static void check_row(void *context, const struct kv_key *key, struct bytes value) {
    uint8_t type = kv_key_split(key).type;

    (void)context;
    for (size_t i = 0; i < ARRAY_SIZE(row_checks); i++) {
        assert(row_checks[i].type != type || row_checks[i].check(value) == 0);
    }
}

static void check_rows(void) {
    struct kv *kv = group_stage_engine();

    row_edits_walk(group_stage.world, kv, check_row, NULL);
    group_stage_engine_die(kv);
}

void fuzz_group_calls(struct bytes in) {
    static struct asked asked[CALLS_MAX];
    struct wire_cursor cursor = fuzz_cursor(in);
    size_t size = MIN((size_t)wire_take_number(&cursor, 2), cursor.size);
    struct wire_cursor calls = fuzz_cursor((struct bytes){cursor.data, size});
    size_t count = 0;

    group_stage_begin();
    state_make();
    (void)wire_take(&cursor, size);
    group_stage.others.left = fuzz_cursor(fuzz_rest(&cursor));
    while (count < CALLS_MAX && calls.size > 0 && !calls.bad) {
        count += one_ask(&asked[count], &calls);
    }
    for (size_t i = 0; i < count; i++) {
        (void)asked_end(&asked[i]);
    }
    assert(kv_check(group_kv(group_stage.group), group_stage.problem));
    assert(serves());
    group_stage_die();
    check_rows();
    int r = group_stage_start();
    assert(r == 0 && serves());
    group_stage_end();
}

/* Requests and answers, of which the first ones become a seed. */
struct script {
    uint8_t calls[8192], answers[8192];
    struct buffer of_calls, of_answers;
};

static void script_begin(struct script *script) {
    script->of_calls = (struct buffer){script->calls, 0, sizeof script->calls};
    script->of_answers = (struct buffer){script->answers, 0, sizeof script->answers};
}

static void script_end(const struct fuzz_seeds *seeds, const struct script *script) {
    static uint8_t space[16384 + 2];
    struct buffer out = {space, 0, sizeof space};

    wire_give_number(&out, script->of_calls.size, 2);
    wire_give(&out, script->calls, script->of_calls.size);
    wire_give(&out, script->answers, script->of_answers.size);
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

static void give_call(struct script *script, uint16_t opcode, uint8_t asker,
                      const union request_body *body) {
    wire_give_number(&script->of_calls, opcode, 1);
    give_request(&script->of_calls, opcode, asker, body);
}

static void give_look(struct script *script, const struct look_answer *look) {
    give_reply(&script->of_answers, OP_CROSS_LOOK, &(const union reply_body){0},
               (struct bytes){(const uint8_t *)look, sizeof *look});
}

/* A name for a file of the other group, which promises it; and a directory that it makes. */
static void seed_crossing(const struct fuzz_seeds *seeds, struct script *script) {
    const struct ino there = ino_make((struct slot){STAGE_OTHER_SLOTS}, 5);
    const struct look_answer look = {
        .format = META_FORMAT,
        .has_inode = 1,
        .inode = {.format = META_FORMAT, .mode = MODE_REGULAR | 0644, .nlink = 1, .size = 70}};
    const union request_body link = {
        .link = {.ino = there, .parent = INO_ROOT, .name = name_of("k")}};
    const union request_body unlink = {.unlink = {.parent = INO_ROOT, .name = name_of("k")}};

    script_begin(script);
    give_call(script, OP_LINK, WAITED_FOR, &link);
    give_look(script, &look);
    give_reply(&script->of_answers, OP_CROSS_PREPARE, &(const union reply_body){0},
               (struct bytes){NULL, 0});
    wire_give_number(&script->of_answers, SAID_NOTHING, 1);
    give_call(script, OP_UNLINK, WAITED_FOR, &unlink);
    give_look(script, &look);
    script_end(seeds, script);
}

/* The other group's transaction: a name here. */
static void seed_participant(const struct fuzz_seeds *seeds, struct script *script) {
    static const uint8_t logs[16] = {2};
    uint8_t halves[sizeof(struct half) + 1];
    const struct half half = {.format = META_FORMAT,
                              .kind = HALF_NAME,
                              .type = 8,
                              .name_bytes = 1,
                              .mode = MODE_DIRECTORY | 0777,
                              .ino = INO_ROOT.value,
                              .to = ino_make((struct slot){STAGE_OTHER_SLOTS}, 5).value};
    const union request_body prepare = {.cross_prepare = {.coordinator = 2,
                                                          .term = 1,
                                                          .number = 1,
                                                          .participants = {logs, sizeof logs},
                                                          .halves = {halves, sizeof halves}}};
    const union request_body commit = {
        .cross_commit = {.coordinator = 2, .term = 1, .number = 1, .below_term = 1}};
    const union request_body look = {
        .cross_look = {.ino = INO_ROOT, .what = LOOK_NAME, .name = name_of("n")}};
    const union request_body fate = {.cross_fate = {.coordinator = 2, .term = 1, .number = 1}};

    memcpy(halves, &half, sizeof half);
    halves[sizeof half] = 'n';
    script_begin(script);
    give_call(script, OP_CROSS_LOOK, 0, &look);
    give_call(script, OP_CROSS_PREPARE, 0, &prepare);
    give_call(script, OP_CROSS_COMMIT, 0, &commit);
    give_call(script, OP_CROSS_ASK, 0, &(const union request_body){.cross_ask = {1, 1}});
    give_call(script, OP_CROSS_FATE, 0, &fate);
    script_end(seeds, script);
}

/* What a manager asks. */
static void seed_manager(const struct fuzz_seeds *seeds, struct script *script) {
    const struct wire_slots told = {STAGE_OTHER_SLOTS, 100, 4};
    const struct wire_load load = {.log = STAGE_OTHER_LOG.value, .inode_count = 12};
    const uint64_t added = 7; /* to a load, by a version to come */
    const union request_body tell = {.group_tell = {.map_version = 2,
                                                    .slots = 1,
                                                    .loads = 1,
                                                    .slots_row_bytes = sizeof told,
                                                    .loads_row_bytes = sizeof load + sizeof added}};
    const union request_body give = {
        .slots_give = {.handover = 5, .to = STAGE_OTHER_LOG.value, .count = 100}};
    static const uint8_t names[8] = {1};
    const union request_body ended = {
        .sessions_ended = {.from = 1, .number = 2, .names = {names, sizeof names}}};

    script_begin(script);
    give_call(script, OP_GROUP_TELL, 0, &tell);
    wire_give_number(&script->of_calls, sizeof told + sizeof load + sizeof added, 2);
    wire_give(&script->of_calls, &told, sizeof told);
    wire_give(&script->of_calls, &load, sizeof load);
    wire_give(&script->of_calls, &added, sizeof added);
    give_call(script, OP_SLOTS_GIVE, 0, &give);
    give_call(script, OP_SLOTS_GIVE, TIGHT, &give);
    give_call(script, OP_SESSIONS_ENDED, WAITED_FOR, &ended);
    give_call(script, OP_MKDIR, OF_ANOTHER,
              &(const union request_body){.mkdir = {.parent = INO_ROOT, .name = name_of("m")}});
    script_end(seeds, script);
}

/* What storage targets answer to who asks for a size. */
static void seed_lengths(const struct fuzz_seeds *seeds, struct script *script) {
    const union request_body setattr = {
        .setattr = {.ino = {4}, .valid = SETATTR_SIZE, .size = 1000}};

    script_begin(script);
    give_call(script, OP_GETATTR, WAITED_FOR, &(const union request_body){.getattr = {.ino = {4}}});
    give_call(script, OP_SETATTR, WAITED_FOR, &setattr);
    for (int i = 0; i < 2; i++) {
        give_reply(&script->of_answers, OP_CHUNK_LENGTH,
                   &(const union reply_body){.chunk_length = {.length = 70000, .bytes_used = 4096}},
                   (struct bytes){NULL, 0});
    }
    give_reply(&script->of_answers, OP_CHUNK_CUT,
               &(const union reply_body){.chunk_cut = {.end = 1, .position = 5, .term = 1}},
               (struct bytes){NULL, 0});
    script_end(seeds, script);
}

void seed_group_calls(const struct fuzz_seeds *seeds) {
    static struct script script;

    seed_crossing(seeds, &script);
    seed_participant(seeds, &script);
    seed_manager(seeds, &script);
    seed_lengths(seeds, &script);
}
