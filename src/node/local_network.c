/* Addresses and keys of a node; the contract is in local_network.h. */
#include "node/local_network.h"
#include "node/key_path.h"
#include "node/local_cluster.h"
#include "rpc/lane.h"
#include <stdio.h>
#include <string.h>

_Static_assert((int)CONFIG_ENCRYPTED == (int)LINK_ENCRYPTED &&
                   (int)CONFIG_PLAIN == (int)LINK_PLAIN &&
                   (int)CONFIG_ENCRYPTED_ALWAYS == (int)LINK_ENCRYPTED_ALWAYS,
               "the configuration's numbers are those of links");

static int apply_address(const char *word, const char *text, char ret_text[ADDRESS_TEXT_BYTES],
                         char problem[512]) {
    struct address address;

    if (config_addresses(text, &address, 1) != 1) {
        snprintf(problem, 512, "%s takes ADDRESS:PORT, as 10.0.0.1:7400, not %.300s", word, text);
        return -ERR_INVALID;
    }
    address_format(&address, ret_text);
    return 0;
}

static int apply_join(const char *text, struct config *config, char problem[512]) {
    struct address addresses[CONFIG_JOIN_MAX];

    if (strlen(text) >= sizeof config->join ||
        config_addresses(text, addresses, CONFIG_JOIN_MAX) < 0) {
        snprintf(problem, 512,
                 "--join takes ADDRESS:PORT, up to %d with commas between, not %.300s",
                 CONFIG_JOIN_MAX, text);
        return -ERR_INVALID;
    }
    snprintf(config->join, sizeof config->join, "%s", text);
    return 0;
}

/* What others are told must be an address that leads here. */
static int check_address(const struct config *config, char problem[512]) {
    struct address address;

    if (!config->listen[0] || config_addresses(config_address(config), &address, 1) != 1 ||
        config_address_is_one(&address)) {
        return 0;
    }
    snprintf(problem, 512,
             "%s is no address that others can come to: say which is, by --advertise ADDRESS:PORT",
             config_address(config));
    return -ERR_INVALID;
}

/* Nobody would be asked but the node itself. One list for all nodes may have each one's own. */
static bool joins_itself(const struct config *config) {
    struct address others[CONFIG_JOIN_MAX];
    struct address own[2];
    bool itself = true;
    int count = config_addresses(config->join, others, CONFIG_JOIN_MAX);

    if (config_addresses(config->listen, &own[0], 1) != 1) {
        return false;
    }
    own[1] = own[0];
    if (config->advertise[0] && config_addresses(config->advertise, &own[1], 1) != 1) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        itself = itself && (address_is(&others[i], &own[0]) || address_is(&others[i], &own[1]));
    }
    return itself && count > 0;
}

static int check_join(const struct config *config, bool asked, char problem[512]) {
    if (config->join[0] && !config->listen[0]) {
        snprintf(problem, 512,
                 "--join needs --listen ADDRESS:PORT, where the others reach this node");
        return -ERR_INVALID;
    }
    if (asked && config->join[0] && joins_itself(config)) {
        snprintf(problem, 512,
                 "--join %.300s is this node's own address: name one of a node that is in the "
                 "cluster",
                 config->join);
        return -ERR_INVALID;
    }
    return 0;
}

/* asked: where to join is asked for now. */
static int check_network(const struct config *config, bool asked, char problem[512]) {
    int r = check_join(config, asked, problem);

    if (r < 0) {
        return r;
    }
    if (config->advertise[0] && !config->listen[0]) {
        snprintf(problem, 512, "--advertise needs --listen ADDRESS:PORT");
        return -ERR_INVALID;
    }
    if (config->listen[0] && !config->key_path[0]) {
        snprintf(problem, 512,
                 "--listen needs --key FILE, so that nobody else comes in: make one with "
                 "`shoal key new FILE`");
        return -ERR_INVALID;
    }
    return check_address(config, problem);
}

static int key_check(const struct config *config, char problem[512]) {
    struct key_file file;
    int r = key_path_read_members(config->key_path, &file, problem);

    if (r == 0) {
        key_file_wipe(&file);
    }
    return r;
}

int local_network_apply(const struct local_cluster_options *options, struct config *config,
                        char problem[512]) {
    int r =
        options->listen ? apply_address("--listen", options->listen, config->listen, problem) : 0;

    if (r == 0 && options->advertise) {
        r = apply_address("--advertise", options->advertise, config->advertise, problem);
    }
    if (r == 0 && options->join) {
        r = apply_join(options->join, config, problem);
    }

    if (r == 0 && options->key_path) {
        if (strlen(options->key_path) >= sizeof config->key_path) {
            snprintf(problem, 512, "the path of the key file is too long");
            return -ERR_NAME_TOO_LONG;
        }
        snprintf(config->key_path, sizeof config->key_path, "%s", options->key_path);
    }
    if (r == 0) {
        /* Who has joined goes by its map, whatever its shoal.conf names. */
        r = check_network(config, options->join || config->node == 0, problem);
    }
    return r == 0 && config->key_path[0] ? key_check(config, problem) : r;
}

int local_network_open(const struct config *config, struct local_network *ret_network,
                       char problem[512]) {
    struct local_network network = {0};
    struct key_file file;
    int r;

    *ret_network = network;
    if (!config->key_path[0]) {
        return 0;
    }
    r = key_path_read_members(config->key_path, &file, problem);
    if (r < 0) {
        return r;
    }
    r = key_ring_new(&file, &network.ring);
    if (r == 0) {
        r = tls_context_serve(network.ring, &network.serving);
    }
    if (r == 0) {
        r = tls_context_call(&file, &network.calling);
    }
    key_file_wipe(&file);
    if (r < 0) {
        local_network_close(&network);
    }
    *ret_network = network;
    return r;
}

void local_network_close(struct local_network *network) {
    tls_context_free(TAKE_PTR(network->serving));
    tls_context_free(TAKE_PTR(network->calling));
    key_ring_free(TAKE_PTR(network->ring));
}
