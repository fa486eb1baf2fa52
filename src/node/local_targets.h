/* Which targets of a cluster were made: the file "targets" names one a line. It is written when all
 * are open for the first time. From then on a target that is missing is a loss, and no new one is
 * made in its place. */
#pragma once
#include "env/env.h"
#include "node/config.h"

enum { LOCAL_MANAGER_ID = 1, LOCAL_MDT_ID = 2 };
enum { LOCAL_TARGETS_MAX = 1 + CONFIG_MDTS_MAX + CONFIG_OSTS_MAX, LOCAL_RING_NAME_BYTES = 64 };
#define LOCAL_MANAGER_LOG_BYTES (8 * MIB)
#define LOCAL_MANAGER_RING_BYTES (256 * KIB)
#define LOCAL_MANAGER_CHANGES_BYTES (16 * MIB)

/* Targets by index, in order: the manager, metadata targets, storage targets. Numbers between those
 * that a node has and the next kind are nobody's. */
enum {
    TARGET_MANAGER,
    TARGET_GROUP_FIRST,
    TARGET_OST_FIRST = TARGET_GROUP_FIRST + CONFIG_MDTS_MAX,
    LOCAL_TARGET_NAME_BYTES = 16
};
/* The first of a node's, the one behind another, and behind the last. */
static inline uint32_t local_target_first(const struct config *config) {
    uint32_t joined = config->mdt_count > 0 ? TARGET_GROUP_FIRST : TARGET_OST_FIRST;

    return config_is_first(config) ? TARGET_MANAGER : joined;
}
/* Likewise, without the manager. */
static inline uint32_t local_target_first_data(const struct config *config) {
    return config->mdt_count > 0 ? TARGET_GROUP_FIRST : TARGET_OST_FIRST;
}
static inline uint32_t local_target_next(const struct config *config, uint32_t index) {
    return index + 1 == TARGET_GROUP_FIRST + config->mdt_count ? TARGET_OST_FIRST : index + 1;
}
static inline uint32_t local_target_end(const struct config *config) {
    return TARGET_OST_FIRST + config->ost_count;
}
/* A first node's metadata targets have numbers of their own; another's lie before its others. */
static inline uint32_t local_target_id(const struct config *config, uint32_t index) {
    bool first = config_is_first(config);

    if (index < TARGET_OST_FIRST) {
        return first ? LOCAL_MANAGER_ID + index : config->first_target + index - TARGET_GROUP_FIRST;
    }
    return config->first_target + (first ? 0 : config->mdt_count) + index - TARGET_OST_FIRST;
}
static inline bool local_target_is_ours(const struct config *config, uint32_t index) {
    return index >= TARGET_OST_FIRST || (index == TARGET_MANAGER && config_is_first(config)) ||
           (index >= TARGET_GROUP_FIRST && index < TARGET_GROUP_FIRST + config->mdt_count);
}
/* "manager", "mdt0", "ost0", ...; also the directory of its files. */
void local_target_name(uint32_t index, char ret_name[LOCAL_TARGET_NAME_BYTES]);
/* What a target's files are marked with. */
void local_target_owner(const struct config *config, uint32_t target, uint8_t ret_owner_id[16]);
/* The name of its ring: "NODE'S KEY-TARGET", the same by whatever path the directory is reached. */
void local_target_ring(const struct config *config, const char *target,
                       char ret_name[LOCAL_RING_NAME_BYTES]);
/* Looks and changes nothing: 0 when no targets were made yet, or all, but for a manager that is
 * about to be rebuilt, are there in a format that this version reads. Else -ERR_INVALID,
 * -ERR_NOT_FOUND, -ERR_NOT_OURS, -ERR_NEWER_FORMAT or -ERR_CORRUPT with a line in problem. */
MUST_CHECK int local_targets_check(struct env *env, const struct config *config, bool lacks_manager,
                                   char problem[256]);
/* Whether there is shared memory for the rings that aren't there already; else -ERR_NO_SPACE with a
 * line in problem, that ends with the remedy. -ERR_NOT_PERMITTED where something lies in a ring's
 * place that is not a file of this user's alone. */
MUST_CHECK int local_targets_check_rings(struct env *env, const struct config *config,
                                         const char *remedy, char problem[256]);
/* A line of what the targets and their rings take at the most, for a start that had no memory. */
void local_targets_memory(const struct config *config, char ret_problem[256]);
/* Notes that all targets are open; does nothing when that is known. */
MUST_CHECK int local_targets_note(struct env *env, const struct config *config);
