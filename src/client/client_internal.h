/* The client as its own files see it. */
#pragma once
#include "client/client.h"
#include "client/router.h"
#include "client/session.h"
#include "client/shard.h"

struct shoal_client {
    struct client_options options;
    char origin[4096];
    struct router router;
    struct session session;
    _Atomic uint64_t close_stamp; /* written files that went */
    _Atomic uint64_t losses_told; /* by syncs of everything */
    struct shard *shards;         /* CLIENT_SHARDS of them */
};

/* The shard of an inode. Multiplication spreads counters that follow one another. */
static inline struct shard *client_shard(struct shoal_client *client, struct ino ino) {
    return &client->shards[(ino.value * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
}
