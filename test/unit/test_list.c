/* Lists (base/list.h), as compilers make them: also where both ends of a move are in one function
 * and one list is on its stack. */
#include "base/list.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { NODES = 5, TURNS_MAX = 100 };

struct item {
    int number;
    struct list_node node;
};

static struct item items[NODES];

static void fill(struct list *list) {
    list_init(list);
    for (int i = 0; i < NODES; i++) {
        items[i] = (struct item){.number = i};
        list_push_back(list, &items[i].node);
    }
}

/* Not inlined, so that the compiler knows nothing of the list that is given. */
static __attribute__((noinline)) int move_out_and_back(struct list *list) {
    struct list todo;
    int turns = 0;

    list_init(&todo);
    while (!list_is_empty(list) && turns++ < TURNS_MAX) {
        struct list_node *last = list->head.previous;

        list_remove(last);
        list_push_front(&todo, last);
    }
    while (!list_is_empty(&todo) && turns++ < TURNS_MAX) {
        list_push_back(list, list_pop_front(&todo));
    }
    return turns;
}

/* gcc 12 took the last node to be the same each time, once strict aliasing was allowed. */
static void what_is_moved_out_comes_back_in_order(void **state) {
    struct list list;
    int number = 0;

    (void)state;
    fill(&list);
    assert_int_equal(move_out_and_back(&list), 2 * NODES);
    for (struct list_node *node = list_first(&list); node; node = list_next(&list, node)) {
        assert_int_equal(CONTAINER_OF(node, struct item, node)->number, number);
        number++;
    }
    assert_int_equal(number, NODES);
}

static void a_node_removed_twice_leaves_the_others(void **state) {
    struct list list;

    (void)state;
    fill(&list);
    list_remove(&items[2].node);
    list_remove(&items[2].node);
    assert_false(list_contains(&items[2].node));
    assert_int_equal(list_count(&list), NODES - 1);
    assert_ptr_equal(list_first(&list), &items[0].node);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_moved_out_comes_back_in_order),
        cmocka_unit_test(a_node_removed_twice_leaves_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
