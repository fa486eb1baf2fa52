/* Where the logs of a cluster are called: a map that could not be followed is tried again. */
#include "unit.h"
#include "env/env_sim.h"
#include "node/links.h"
#include <stdio.h>
#include <stdlib.h>

struct desk {
    struct sim *sim;
    struct lanes *lanes; /* without a key: an address that is no socket's is refused */
    struct links *links;
    struct cluster_map map; /* of this node and another */
};

static int setup(void **state) {
    const struct target_id ost = {10};
    struct desk *desk = calloc(1, sizeof *desk);

    desk->sim = sim_new(1);
    const struct lanes_options lanes = {.env = sim_process_env(sim_process_new(desk->sim, "node"))};
    assert_int_equal(lanes_new(&lanes, &desk->lanes), 0);
    const struct links_options links = {.lanes = desk->lanes, .self = {1}, .has_key = true};
    assert_int_equal(links_new(&links, &desk->links), 0);
    cluster_map_single(&desk->map, (struct target_id){2}, &ost, 1);
    desk->map.nodes[desk->map.node_count++] =
        (struct map_node){.id = {2}, .key = {2, 1}, .first_target = 20, .target_count = 1};
    *state = desk;
    return 0;
}

static int teardown(void **state) {
    struct desk *desk = *state;

    links_free(desk->links);
    lanes_free(desk->lanes);
    sim_free(desk->sim);
    free(desk);
    return 0;
}

static int follow(struct desk *desk, uint64_t version, const char *address) {
    struct map_node *node = &desk->map.nodes[desk->map.node_count - 1];

    desk->map.version = version;
    snprintf(node->address, sizeof node->address, "%s", address);
    return links_follow(desk->links, &desk->map);
}

/* Who answers an error is asked again with the same map; who has followed one goes by no older. */
static void test_a_map_that_failed_is_tried_again(void **state) {
    static const char refused[] = "192.0.2.1:7000";
    struct desk *desk = *state;

    assert_int_equal(follow(desk, 5, refused), -ERR_ACCESS);
    assert_int_equal(follow(desk, 5, refused), -ERR_ACCESS);
    assert_int_equal(follow(desk, 5, ""), 0);
    assert_int_equal(follow(desk, 5, refused), 0);
    assert_int_equal(follow(desk, 4, refused), 0);
    assert_int_equal(follow(desk, 6, refused), -ERR_ACCESS);
    assert_int_equal(follow(desk, 5, refused), 0);
    assert_int_equal(follow(desk, 7, refused), -ERR_ACCESS);
    assert_int_equal(follow(desk, 6, refused), 0); /* What 7 has changed stays. */
    assert_int_equal(follow(desk, 7, refused), -ERR_ACCESS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_map_that_failed_is_tried_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
