/* Transactions with another group, which the script below plays. */
#include "unit.h"
#include "base/endian.h"
#include "meta/half_format.h"
#include "meta/look.h"
#include "meta/meta_format.h"
#include "meta_bench.h"
#include <string.h>

enum { SLOTS = 32768, LOOKS_MAX = 8 };

/* It has one file, and promises whatever is asked for. */
struct there {
    struct actor actor; /* first */
    struct meta_bench *bench;
    struct ino ino;
    struct inode_row row;
    uint32_t looks;
    bool any_size[LOOKS_MAX]; /* of these */
};

static void look_answer(struct there *there, struct call *call) {
    const struct cross_look_request *request = &call->request.cross_look;
    const struct look_answer answer = {.format = META_FORMAT, .has_inode = 1, .inode = there->row};

    assert_int_equal(request->what, LOOK_INODE);
    assert_int_equal(request->ino.value, there->ino.value);
    assert_true(there->looks < LOOKS_MAX);
    there->any_size[there->looks++] = request->any_size != 0;
    memcpy(call->bulk_in.data, &answer, sizeof answer);
    call->bulk_in.size = sizeof answer;
}

static int there_answer(struct there *there, struct call *call) {
    switch (call->header.opcode) {
    case OP_CROSS_LOOK:
        look_answer(there, call);
        return 0;
    case OP_CROSS_PREPARE:
    case OP_CROSS_ABORT:
    case OP_CROSS_COMMIT:
        return 0;
    default:
        fail_msg("the other group got %s", wire_name(call->header.opcode));
        return 0;
    }
}

static void there_step(struct actor *actor, struct message *first) {
    struct there *there = CONTAINER_OF(actor, struct there, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        memset(&call->reply, 0, sizeof call->reply);
        call_reply(call, there_answer(there, call));
    }
}

static void there_begin(struct there *there) {
    const struct bench_options options = {.seed = 61, .slot_count = SLOTS};

    *there = (struct there){.bench = bench_new(&options)};
    there->ino = ino_make((struct slot){SLOTS}, 5);
    there->row = (struct inode_row){.format = META_FORMAT, .mode = 0100644, .nlink = 1, .size = 70};
    actor_init(&there->actor, "other group", there_step);
    assert_int_equal(log_table_add(there->bench->logs, BENCH_OTHER_LOG, &there->actor), 0);
}

/* A link tells how long the file is; who takes a name away does not, and so waits for no storage
 * target of the file. */
static void test_only_a_link_asks_for_the_size(void **state) {
    struct there there;
    struct call call;

    (void)state;
    there_begin(&there);
    bench_prepare(there.bench, 0, OP_LINK, &call);
    call.request.link.ino = there.ino;
    call.request.link.parent = INO_ROOT;
    call.request.link.name = (struct bytes){(const uint8_t *)"x", 1};
    assert_int_equal(bench_run(there.bench, &call), 0);
    assert_int_equal(call.reply.link.attributes.size, 70);
    assert_int_equal(there.looks, 1);
    assert_false(there.any_size[0]);
    bench_prepare(there.bench, 0, OP_UNLINK, &call);
    call.request.unlink.parent = INO_ROOT;
    call.request.unlink.name = (struct bytes){(const uint8_t *)"x", 1};
    assert_int_equal(bench_run(there.bench, &call), 0);
    assert_int_equal(there.looks, 2);
    assert_true(there.any_size[1]);
    bench_free(there.bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_a_link_asks_for_the_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
