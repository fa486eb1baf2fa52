/* The manager's table of sessions against plain arrays: found by id and origin, also when the
 * mount's key changes; rising ids in `living`; as many as there is room for. */
#include "unit.h"
#include "base/prng.h"
#include "manager/session_table.h"
#include <string.h>

enum { MAX = 40, NODES = 3, NAMES = 4, SERIALS = 3, STEPS = 20000, SEEDS = 5 };

static const char *const names[NAMES] = {"", "/mnt", "/mnt/a", "/srv"};

struct known {
    struct manager_session *session;
    uint32_t node, name;
    uint64_t serial;
};

struct model {
    struct prng prng;
    struct session_table table;
    struct known known[MAX];
    uint32_t count;
    uint64_t next_id;
};

static struct session_origin origin_of(uint32_t node, uint64_t serial, uint32_t name) {
    return (struct session_origin){
        node, serial, {(const uint8_t *)names[name], strlen(names[name])}, 0};
}

static void add(struct model *model) {
    struct known one = {.node = (uint32_t)prng_below(&model->prng, NODES),
                        .name = (uint32_t)prng_below(&model->prng, NAMES),
                        .serial = prng_below(&model->prng, SERIALS)};
    const struct session_origin origin = origin_of(one.node, one.serial, one.name);

    assert_int_equal(session_table_is_full(&model->table), model->count == MAX);
    if (model->count == MAX) {
        return;
    }
    model->next_id += prng_between(&model->prng, 1, 100);
    one.session = session_table_add(&model->table, (struct session_id){model->next_id}, &origin);
    session_move(one.session, &model->table.heard);
    model->known[model->count++] = one;
}

static void drop(struct model *model) {
    uint32_t at = (uint32_t)prng_below(&model->prng, MAX);

    if (at < model->count) {
        uint64_t id = model->known[at].session->id.value;

        session_table_drop(&model->table, model->known[at].session);
        assert_null(session_table_find(&model->table, id));
        memmove(&model->known[at], &model->known[at + 1],
                (--model->count - at) * sizeof model->known[0]);
    }
}

static void serial_change(struct model *model) {
    uint32_t at = (uint32_t)prng_below(&model->prng, MAX);

    if (at < model->count) {
        struct known *one = &model->known[at];

        one->serial = prng_below(&model->prng, SERIALS);
        session_table_serial(&model->table, one->session, one->serial);
    }
}

static uint32_t count_of(const struct model *model, const struct session_origin *origin) {
    struct manager_session *session = NULL;
    uint32_t count = 0;

    while ((session = session_table_of(&model->table, origin, session))) {
        count++;
    }
    return count;
}

static void look(const struct model *model) {
    struct list_node *node = list_first(&model->table.living);

    for (uint32_t i = 0; i < model->count; i++) {
        const struct known *one = &model->known[i];
        const struct session_origin origin = origin_of(one->node, one->serial, one->name);
        uint32_t same = 0;

        for (uint32_t j = 0; j < model->count; j++) {
            const struct known *other = &model->known[j];

            same += other->node == one->node && other->name == one->name &&
                    other->serial == one->serial;
        }
        assert_int_equal(count_of(model, &origin), same);
        assert_ptr_equal(session_table_find(&model->table, one->session->id.value), one->session);
        assert_ptr_equal(node, &one->session->living);
        node = list_next(&model->table.living, node);
    }
    assert_null(node);
    assert_int_equal(list_count(&model->table.heard), model->count);
}

static void test_like_a_plain_array(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct siphash_key key = {{seed, ~seed}};
        struct model model = {.count = 0};

        prng_init(&model.prng, seed);
        assert_int_equal(session_table_init(&model.table, MAX, MAX, key), 0);
        for (uint32_t i = 0; i < STEPS; i++) {
            uint64_t lot = prng_below(&model.prng, 10);

            if (lot < 5) {
                add(&model);
            } else if (lot < 8) {
                drop(&model);
            } else {
                serial_change(&model);
            }
            if (i % 64 == 0) {
                look(&model);
            }
        }
        session_table_deinit(&model.table);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_a_plain_array)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
