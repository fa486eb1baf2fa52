/* shoal.conf: what a cluster's directory says of itself. It is the first file of a new directory
 * and marks it as ours. Sizes may be edited while the cluster is down, as far as the comments of
 * the file say. */
#pragma once
#include "base/address.h"
#include "base/err.h"

enum { CONFIG_FORMAT = 3, CONFIG_MDTS_MAX = 8, CONFIG_OSTS_MAX = 64, CONFIG_PATH_BYTES = 1024 };
/* Who made the cluster is its first node, and has the manager and the metadata targets. */
enum {
    CONFIG_FIRST_NODE = 1,
    CONFIG_FIRST_TARGET = 16,
    CONFIG_JOIN_MAX = 6,
    CONFIG_JOIN_BYTES = 1024
};
/* What a node does. The first one has them all; another has metadata targets where the manager says
 * so, and storage targets, unless it is told. */
enum config_role { CONFIG_ROLE_MANAGER = 1, CONFIG_ROLE_META = 2, CONFIG_ROLE_STORE = 4 };
/* As link_encryption of rpc/lane.h. */
enum config_encryption { CONFIG_ENCRYPTED, CONFIG_PLAIN, CONFIG_ENCRYPTED_ALWAYS };
/* Who serves the node's mount: by default a process of its own where there may be other nodes. */
enum config_mount { CONFIG_MOUNT_DEFAULT, CONFIG_MOUNT_INSIDE, CONFIG_MOUNT_APART };
/* What the mount's requests come by; as fuse_channel of front/fuse/fuse.h. */
enum config_channel { CONFIG_CHANNEL_ANY, CONFIG_CHANNEL_DEV, CONFIG_CHANNEL_URING };
#define CONFIG_NAME "shoal.conf"
#define CONFIG_DATA_BYTES_MAX (65536 * GIB)

struct config {
    uint32_t format;
    uint32_t ost_count;
    uint32_t mdt_count;
    bool mdts_by_manager; /* it is to join, and will be told how many it has: none or one */
    uint8_t cluster_id[16];
    uint64_t name_hash_key[2];
    uint64_t node_key[2];  /* the cluster's id, or drawn by who has joined */
    uint32_t node;         /* its number; 0: it is to join, and will be told */
    uint32_t first_target; /* of a first node: number of its first storage target; else of all */
    uint64_t mdt_ring_bytes;
    uint64_t ost_ring_bytes;
    uint64_t ost_ring_data_bytes;
    uint64_t disk_log_bytes;    /* of each target */
    uint64_t mdt_changes_bytes; /* memory for changes that are not in a checkpoint yet */
    uint64_t ost_changes_bytes;
    uint64_t base_memory_bytes; /* metadata is read in place while it is smaller */
    uint64_t base_check_bytes;  /* a start looks through all of it while it is no larger */
    uint64_t cache_bytes;       /* of blocks, of each storage target */
    uint64_t data_bytes_max;    /* of each storage target */
    uint64_t open_files_max;
    uint64_t mount_requests_max; /* 0: the mount's own default */
    uint64_t request_timeout_ms;
    uint64_t session_timeout_ms;
    uint64_t sessions_max;
    uint64_t connections_max;
    uint64_t slow_request_ms;            /* 0: none is */
    char listen[ADDRESS_TEXT_BYTES];     /* canonical; empty: only this machine is served */
    char advertise[ADDRESS_TEXT_BYTES];  /* where others reach that; empty: there */
    char join[CONFIG_JOIN_BYTES];        /* addresses of the cluster, commas between; or empty */
    char key_path[CONFIG_PATH_BYTES];    /* of the members' key, absolute; empty: none */
    uint32_t link_encryption;            /* enum config_encryption */
    uint32_t mount;                      /* enum config_mount */
    uint32_t channel;                    /* enum config_channel */
    bool leaves_machine;                 /* mounting changes none of its settings */
    char mount_point[CONFIG_PATH_BYTES]; /* where it is mounted when not told; absolute, or empty */
    uint64_t keep_free_bytes; /* that data leaves to logs and metadata; 0: config_keep_free's */
};

static inline bool config_is_first(const struct config *config) {
    return config->node == CONFIG_FIRST_NODE;
}
static inline uint32_t config_roles(const struct config *config) {
    return (config_is_first(config) ? CONFIG_ROLE_MANAGER : 0) |
           (config->mdt_count > 0 ? CONFIG_ROLE_META : 0) |
           (config->ost_count > 0 ? CONFIG_ROLE_STORE : 0);
}
/* The word of shoal.conf and of `shoal mount -o channel=`. */
const char *config_channel_word(uint32_t channel);
/* -ERR_INVALID: it is none. */
MUST_CHECK int config_channel(const char *word, uint32_t *ret_channel);
/* Whether a process of its own serves the mount, and not the daemon. */
static inline bool config_mounts_apart(const struct config *config) {
    return config->mount == CONFIG_MOUNT_APART ||
           (config->mount == CONFIG_MOUNT_DEFAULT && config->listen[0]);
}
/* Where others reach this node: empty: nowhere. */
static inline const char *config_address(const struct config *config) {
    return config->advertise[0] ? config->advertise : config->listen;
}
/* Reads a list as `join` has it. The number of addresses; -ERR_INVALID where one is none, or there
 * are more than address_max. */
MUST_CHECK int config_addresses(const char *text, struct address *ret_addresses,
                                uint32_t address_max);
/* Whether others can be told to come there: not 0.0.0.0, not [::]. */
bool config_address_is_one(const struct address *address);

/* Defaults, without ids, data_bytes_max and keep_free_bytes. */
void config_default(struct config *config);
/* One with `join` and without an id is to join. -ERR_NOT_OURS, -ERR_NEWER_FORMAT,
 * -ERR_OLDER_FORMAT, -ERR_INVALID: the line's complaint is in problem, and ret_config is as it was.
 */
MUST_CHECK int config_parse(const char *text, struct config *ret_config, char problem[256]);
/* The default for a file system of this size, where none is set: 1 GiB, at most a twentieth. */
void config_keep_free(struct config *config, uint64_t file_system_bytes);
/* Likewise of data_bytes_max: each target's share of half of what data may take beyond logs and
 * keep_free_bytes; 0 when that is none. */
void config_data_max(struct config *config, uint64_t bytes);
/* The file's text, in a buffer of `size` bytes (8,192 are enough), of a node that has a number. */
void config_print(const struct config *config, char *text, size_t size);
