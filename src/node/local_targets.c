/* Looking for what was made, without opening it. */
#include "node/local_targets.h"
#include "env/env_linux.h"
#include "host/folder.h"
#include "kv/disk_log.h"
#include "kv/kv_lmdb.h"
#include "kv/ring.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_NAME "targets"

enum { TARGETS_BYTES_MAX = 1024 };

void local_target_name(uint32_t index, char ret_name[LOCAL_TARGET_NAME_BYTES]) {
    if (index == TARGET_MANAGER) {
        snprintf(ret_name, LOCAL_TARGET_NAME_BYTES, "manager");
    } else if (index < TARGET_OST_FIRST) {
        snprintf(ret_name, LOCAL_TARGET_NAME_BYTES, "mdt%u", index - TARGET_GROUP_FIRST);
    } else {
        snprintf(ret_name, LOCAL_TARGET_NAME_BYTES, "ost%u", index - TARGET_OST_FIRST);
    }
}

void local_target_owner(const struct config *config, uint32_t target, uint8_t ret_owner_id[16]) {
    memcpy(ret_owner_id, config->cluster_id, 16);
    for (size_t i = 0; i < sizeof target; i++) {
        ret_owner_id[i] ^= (uint8_t)(target >> (8 * i));
    }
}

void local_target_ring(const struct config *config, const char *target,
                       char ret_name[LOCAL_RING_NAME_BYTES]) {
    size_t at = 0;

    for (size_t i = 0; i < sizeof config->node_key; i++) {
        at += (size_t)snprintf(ret_name + at, LOCAL_RING_NAME_BYTES - at, "%02x",
                               ((const uint8_t *)config->node_key)[i]);
    }
    snprintf(ret_name + at, LOCAL_RING_NAME_BYTES - at, "-%s", target);
}

static size_t targets_list(const struct config *config, char text[TARGETS_BYTES_MAX]) {
    char name[LOCAL_TARGET_NAME_BYTES];
    size_t size = 0;

    for (uint32_t i = local_target_first(config); i < local_target_end(config);
         i = local_target_next(config, i)) {
        local_target_name(i, name);
        size += (size_t)snprintf(text + size, TARGETS_BYTES_MAX - size, "%s\n", name);
    }
    return size;
}

static int refuse_missing(const char *path, int r, char problem[256]) {
    if (r == -ERR_NOT_FOUND && strncmp(path, "manager/", strlen("manager/")) == 0) {
        snprintf(problem, 256,
                 "%s is missing: put it back, or, where it is gone, start with --rebuild-manager",
                 path);
    } else if (r == -ERR_NOT_FOUND) {
        snprintf(problem, 256, "%s is missing: put it back, nothing is made in its place", path);
    } else {
        snprintf(problem, 256, "%s cannot be opened: %s", path, err_text(r));
    }
    return r;
}

static int check_file(struct env *env, const char *target, const char *name, char problem[256]) {
    struct env_file *file;
    char path[64];

    snprintf(path, sizeof path, "%s/%s", target, name);
    int r = env->ops->file_open(env, path, ENV_FILE_READ_ONLY, &file);
    if (r < 0) {
        return refuse_missing(path, r, problem);
    }
    env->ops->file_close(file);
    return 0;
}

static int check_target(struct env *env, const struct config *config, uint32_t index,
                        char problem[256]) {
    uint32_t id = local_target_id(config, index);
    char target[LOCAL_TARGET_NAME_BYTES];
    char path[64];
    struct disk_log_options options = {
        .env = env,
        .path = path,
        .file_bytes = id == LOCAL_MANAGER_ID ? LOCAL_MANAGER_LOG_BYTES : config->disk_log_bytes};

    local_target_name(index, target);
    local_target_owner(config, id, options.owner_id);
    snprintf(path, sizeof path, "%s/log", target);
    int r = disk_log_check(&options, problem);
    if (r == -ERR_NOT_FOUND) {
        return refuse_missing(path, r, problem);
    }
    if (r == 0) {
        r = check_file(env, target, KV_LMDB_NAME, problem);
    }
    if (r == 0 && index >= TARGET_OST_FIRST) {
        r = check_file(env, target, "data", problem);
    }
    return r;
}

int local_targets_check(struct env *env, const struct config *config, bool lacks_manager,
                        char problem[256]) {
    char wanted[TARGETS_BYTES_MAX];
    char *text;
    size_t size;
    int r = folder_file_read(env, TARGETS_NAME, TARGETS_BYTES_MAX, &text, &size);

    if (r < 0) {
        return r == -ERR_NOT_FOUND ? 0 : refuse_missing(TARGETS_NAME, r, problem);
    }
    bool same = size == targets_list(config, wanted) && memcmp(text, wanted, size) == 0;
    free(text);
    if (!same) {
        snprintf(
            problem, 256,
            "%s: osts = %u, mdts = %u, but \"%s\" lists others: a cluster keeps the numbers it "
            "was made with",
            CONFIG_NAME, config->ost_count, config->mdt_count, TARGETS_NAME);
        return -ERR_INVALID;
    }
    r = 0;
    for (uint32_t i = lacks_manager ? local_target_first_data(config) : local_target_first(config);
         r == 0 && i < local_target_end(config); i = local_target_next(config, i)) {
        r = check_target(env, config, i, problem);
    }
    return r;
}

/* What a ring takes beyond what is there of it: one of another size is made anew. */
static uint64_t ring_needs(struct env *env, const struct config *config, uint32_t index) {
    static const uint64_t manager_bytes = LOCAL_MANAGER_RING_BYTES;
    char target[LOCAL_TARGET_NAME_BYTES];
    char name[LOCAL_RING_NAME_BYTES];
    uint64_t there_bytes = 0;
    uint64_t size_bytes =
        index >= TARGET_OST_FIRST
            ? ring_region_bytes(config->ost_ring_bytes, config->ost_ring_data_bytes)
            : ring_region_bytes(index == TARGET_MANAGER ? manager_bytes : config->mdt_ring_bytes,
                                0);

    local_target_name(index, target);
    local_target_ring(config, target, name);
    if (env->ops->shared_size(env, name, &there_bytes) < 0) {
        there_bytes = 0;
    }
    return size_bytes - MIN(there_bytes, size_bytes);
}

/* In /dev/shm or /run/shoal; in the directory itself nobody else makes files. */
enum { RING_PATH_BYTES = 64 };

/* Anybody may make files where rings lie, and their names are known once a cluster has run. */
static int check_ring_owner(struct env *env, const struct config *config, uint32_t index,
                            char problem[256]) {
    char target[LOCAL_TARGET_NAME_BYTES];
    char name[LOCAL_RING_NAME_BYTES];
    struct env_shared_owner owner;
    char path[RING_PATH_BYTES];

    local_target_name(index, target);
    local_target_ring(config, target, name);
    if (env_shared_owner(env, name, &owner) < 0 ||
        (!owner.is_theirs && owner.is_file && !owner.is_open_to_others)) {
        return 0;
    }
    env->ops->shared_path(env, name, sizeof path, path);
    if (strlen(path) == sizeof path - 1) {
        return 0; /* A name that is cut is none to remove; whoever opens it tells. */
    }
    if (owner.is_theirs) {
        snprintf(problem, 256,
                 "the ring %s is taken by user %" PRIu32
                 ": `rm -r %s` loses nothing of yours; if that user's daemon served it last, start "
                 "it as that user",
                 path, owner.uid, path);
    } else if (!owner.is_file) {
        snprintf(problem, 256, "the ring %s is no file: `rm -r %s`", path, path);
    } else {
        snprintf(problem, 256,
                 "others may write to the ring %s: `chmod 600 %s`, if nobody has changed it", path,
                 path);
    }
    return -ERR_NOT_PERMITTED;
}

/* A new one's will be drawn. */
static bool has_id(const struct config *config) {
    static const uint8_t none[sizeof config->cluster_id];

    return memcmp(config->cluster_id, none, sizeof none) != 0;
}

static int check_ring_owners(struct env *env, const struct config *config, char problem[256]) {
    int r = 0;

    for (uint32_t i = local_target_first(config);
         r == 0 && has_id(config) && i < local_target_end(config);
         i = local_target_next(config, i)) {
        r = check_ring_owner(env, config, i, problem);
    }
    return r;
}

int local_targets_check_rings(struct env *env, const struct config *config, const char *remedy,
                              char problem[256]) {
    uint64_t needed = 0;
    uint64_t free_bytes;
    char place[96];
    int r = check_ring_owners(env, config, problem);

    if (r < 0) {
        return r;
    }
    for (uint32_t i = local_target_first(config); i < local_target_end(config);
         i = local_target_next(config, i)) {
        needed += ring_needs(env, config, i);
    }
    if (env_shared_space(env, &free_bytes, sizeof place, place) < 0 || needed <= free_bytes) {
        return 0;
    }
    snprintf(problem, 256,
             "the rings need %" PRIu64 " MiB of shared memory, %s has %" PRIu64
             " MiB free: make room there, or %s",
             (needed + MIB - 1) / MIB, place, free_bytes / MIB, remedy);
    return -ERR_NO_SPACE;
}

void local_targets_memory(const struct config *config, char ret_problem[256]) {
    uint64_t groups = config->mdt_count * (config->mdt_ring_bytes + config->mdt_changes_bytes);
    uint64_t osts = config->ost_count * (config->ost_ring_bytes + config->ost_ring_data_bytes +
                                         config->ost_changes_bytes + config->cache_bytes);
    uint64_t maps = (uint64_t)config->mdt_count + config->ost_count;
    uint64_t manager = 0;

    if (config_is_first(config)) {
        manager = LOCAL_MANAGER_RING_BYTES + LOCAL_MANAGER_CHANGES_BYTES;
        maps++;
    }
    snprintf(ret_problem, 256,
             "memory could not be had: its targets take up to %" PRIu64
             " MiB of memory, and %" PRIu64
             " GiB of address space at the least: raise the limit (ulimit -v, ulimit -d), or lower "
             "mdt_changes_bytes, ost_changes_bytes, cache_bytes",
             (groups + osts + manager) / MIB, maps * KV_LMDB_MAP_BYTES_MIN / GIB);
}

int local_targets_note(struct env *env, const struct config *config) {
    char text[TARGETS_BYTES_MAX];
    char *known;
    size_t size;
    int r = folder_file_read(env, TARGETS_NAME, TARGETS_BYTES_MAX, &known, &size);

    if (r == 0) {
        free(known);
    }
    return r == -ERR_NOT_FOUND
               ? folder_file_write(env, TARGETS_NAME, text, targets_list(config, text))
               : r;
}
