/* The client as its own files see it. */
#pragma once
#include "base/index_pool.h"
#include "client/client.h"
#include "client/directories.h"
#include "client/router.h"
#include "client/session.h"
#include "client/shard.h"
#include "wire/wire_origin.h"

enum { CLIENT_ORIGIN_BYTES = 900 };

struct shoal_client {
    struct client_options options;
    char origin[CLIENT_ORIGIN_BYTES + 1]; /* of a longer one its first bytes, and a hash */
    uint8_t origin_told[CLIENT_ORIGIN_BYTES + WIRE_ORIGIN_PLACE_BYTES]; /* with the place */
    size_t origin_told_bytes;
    struct router router;
    struct session session;
    _Atomic uint64_t close_stamp; /* written files that went */
    _Atomic uint64_t losses_told; /* by syncs of everything */
    _Atomic uint64_t epoch;       /* newest that a shard has told; up to 1 ms behind */
    _Atomic uint64_t files_user;  /* who met his share last; see client_tell_met */
    _Atomic uint64_t requests_user;
    struct shard *shards;       /* CLIENT_SHARDS of them */
    struct shoal_file *handles; /* one an open; of all shards, as one file may have them all */
    struct index_pool handle_pool;
    struct directories directories;
};

/* From any shard's step. -ERR_TOO_MANY_OPEN. */
MUST_CHECK int client_handle_get(struct shoal_client *client, struct shoal_file **ret_handle);
void client_handle_put(struct shoal_client *client, struct shoal_file *handle);

/* The shard of an inode. Multiplication spreads counters that follow one another. */
static inline struct shard *client_shard(struct shoal_client *client, struct ino ino) {
    return &client->shards[(ino.value * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
}
