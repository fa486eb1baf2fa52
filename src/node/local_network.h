/* What a node needs to serve others than its own machine: an address to listen at, and keys.
 *
 * Thread: that of the opener. Memory: the heap; key material is wiped by the close. */
#pragma once
#include "keys/tls.h"
#include "node/config.h"

struct local_cluster_options;

struct local_network {
    struct key_ring *ring; /* NULL: no keys, only this machine is served */
    struct tls_context *serving, *calling;
};

/* Puts what is asked for on the command line over what the configuration says. One line in problem
 * where that can't be: no address, an address without a key, a key file that can't be used. */
MUST_CHECK int local_network_apply(const struct local_cluster_options *options,
                                   struct config *config, char problem[512]);
/* Reads the key of the configuration, if it names one. */
MUST_CHECK int local_network_open(const struct config *config, struct local_network *ret_network,
                                  char problem[512]);
void local_network_close(struct local_network *network);
