/* The picture is in rotation.h. */
#include "rotation.h"
#include "base/endian.h"
#include "client/client_internal.h"
#include "world.h"
#include "env/sim.h"
#include <stdlib.h>

enum { FILE_OLD, FILE_BOTH, FILE_NEW };

static struct key_file file_of(uint64_t seed, uint8_t number) {
    struct secret secret = {{number}};
    struct key_file file;

    memcpy(secret.bytes + 1, &seed, sizeof seed);
    key_file_make(&secret, &file);
    return file;
}

static struct key_name name_of(const struct world *world, uint8_t number) {
    return file_of(world->options.seed, number).keys[0].name;
}

static struct key_ring *ring_new(const struct node *node) {
    uint64_t seed = node->world->options.seed;
    const struct key_file newer = file_of(seed, 2);
    struct key_file file = node->key_file == FILE_NEW ? newer : file_of(seed, 1);
    char problem[KEY_PROBLEM_BYTES];
    struct key_ring *ring;

    if ((node->key_file == FILE_BOTH && key_file_add(&file, &newer, problem) < 0) ||
        key_ring_new(&file, &ring) < 0) {
        abort();
    }
    return ring;
}

void rotation_begin(struct world *world) {
    prng_init(&world->rotation_prng, world->options.seed ^ UINT64_C(0x726f74617465));
    world->rotates = world->options.keys && world->options.seed % 4 == 3;
    if (world->options.keys && !(world->rotates && prng_chance(&world->rotation_prng, 1, 4))) {
        world->map.signing_key = name_of(world, 1).value;
    }
}

void rotation_ring(struct node *node) {
    node->keys = ring_new(node);
    (void)key_ring_sign_by(node->keys, (struct key_name){node->world->map.signing_key});
}

/* What the one who runs it sees of all nodes before he takes the older key away. */
static bool all_sign_by_newer(const struct world *world) {
    uint64_t newer = name_of(world, 2).value;
    bool all = world->map.signing_key == newer;

    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        all = all && (world->mdts[i].target_id == 0 || world->mdts[i].map->signing_key == newer);
    }
    for (uint32_t i = 0; i < world->node_count; i++) {
        all = all && (!world->nodes[i].keys || world->nodes[i].key_file != FILE_OLD);
    }
    return all;
}

/* A client that the manager has not answered for long has one by the older key. */
static bool all_have_newer_tickets(const struct world *world) {
    uint64_t newer = name_of(world, 2).value;
    bool all = true;

    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct shoal_client *client = node_client(&world->clients[i]);
        struct bytes ticket = client ? session_ticket(&client->session) : (struct bytes){0};

        all = all && (ticket.size == 0 || load_le64(ticket.data) == newer);
    }
    return all;
}

static bool older_is_over(struct world *world) {
    uint64_t now_ns = sim_now_ns(world->sim);

    if (!all_sign_by_newer(world) || !all_have_newer_tickets(world)) {
        return false;
    }
    if (world->rotated_ns == 0) {
        world->rotated_ns = now_ns;
        world->rotations++;
    }
    return now_ns - world->rotated_ns >= world->options.session_timeout_ns;
}

void rotation_start(struct node *node) {
    struct world *world = node->world;
    struct key_ring *before = node->keys;

    if (!before || !world->rotates || node->key_file == FILE_NEW ||
        (node->key_file == FILE_BOTH && !older_is_over(world)) ||
        prng_chance(&world->rotation_prng, 1, 2)) {
        return;
    }
    node->key_file++;
    world->keys_gone += node->key_file == FILE_NEW;
    node->keys = ring_new(node);
    key_ring_number_set(node->keys, key_ring_number(before));
    (void)key_ring_sign_by(
        node->keys, (struct key_name){node->map ? node->map->signing_key : world->map.signing_key});
    key_ring_free(before);
}

void rotation_map(struct node *node) {
    const struct key_name name = {node->map->signing_key};

    if (node->keys) {
        (void)key_ring_sign_by(node->keys, name);
        (void)key_ring_sign_by(node->world->manager->keys, name);
    }
}

void rotation_node_names(const struct node *node, uint64_t ret_names[2]) {
    struct key_name names[KEY_FILE_KEYS_MAX];
    uint32_t count = node->keys ? key_ring_names(node->keys, names) : 0;

    for (uint32_t i = 0; i < 2; i++) {
        ret_names[i] = i < count ? names[i].value : 0;
    }
}

void rotation_names(const struct world *world, uint64_t ret_names[2]) {
    bool newer = true;
    bool older = true;

    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct node *node = &world->nodes[i];

        newer = newer && (!node->keys || node->key_file != FILE_OLD);
        older = older && (!node->keys || node->key_file != FILE_NEW);
    }
    ret_names[0] = world->options.keys && newer ? name_of(world, 2).value : 0;
    ret_names[1] = world->options.keys && older ? name_of(world, 1).value : 0;
}
