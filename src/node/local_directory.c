/* Refusals come before the first change. A new directory is locked, then looked at again, then
 * marked: of two that start at the same time one formats, and what a start that was cut left there
 * (`lock`, a half written marker) makes it no foreign one. */
#include "node/local_directory.h"
#include "host/control_socket.h"
#include "host/folder_owner.h"
#include "host/process.h"
#include "node/local_cluster.h"
#include "node/local_gate.h"
#include "node/local_join.h"
#include "node/local_limits.h"
#include "node/local_rebuild.h"
#include "node/local_twin.h"
#include "node/local_network.h"
#include "node/local_targets.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCK_NAME "lock"

enum { CONFIG_BYTES_MAX = 65536, LOCK_WAIT_S = 5, DATA_BYTES_MIN = 16 * MIB };

struct seen {
    bool anything;
    bool config;
};

/* What may lie in a directory that counts as empty. */
static bool is_nothing(const struct folder_entry *entry) {
    if (strcmp(entry->name, LOCK_NAME) == 0) {
        return entry->kind == FOLDER_KIND_FILE &&
               (entry->size_bytes == 0 || entry->size_bytes == FOLDER_LOCK_BYTES);
    }
    if (strcmp(entry->name, CONFIG_NAME FOLDER_FILE_NEW_SUFFIX) == 0) {
        return entry->kind == FOLDER_KIND_FILE;
    }
    return strcmp(entry->name, "lost+found") == 0 || strcmp(entry->name, LOCAL_LOG_NAME) == 0;
}

static int entry_see(void *context, const struct folder_entry *entry) {
    struct seen *seen = context;

    if (strcmp(entry->name, CONFIG_NAME) == 0) {
        seen->config = true;
    } else if (!is_nothing(entry)) {
        seen->anything = true;
    }
    return 0;
}

/* Before anything in it is opened or asked: what another user may change leads where he wants. */
static int check_owner(struct env *env, const char *directory, char problem[512]) {
    struct folder_stranger stranger;
    int r = folder_owner_check(env, &stranger);

    if (r != -ERR_NOT_PERMITTED) {
        if (r < 0) {
            snprintf(problem, 512, "%s cannot be read: %s", directory, err_text(r));
        }
        return r;
    }
    const char *slash = stranger.path[0] ? "/" : "";
    if (stranger.is_theirs) {
        snprintf(problem, 512,
                 "%.150s%s%.100s belongs to user %" PRIu32
                 ", whom its daemon would have to trust: start it as that user, or name a "
                 "directory of your own",
                 directory, slash, stranger.path, stranger.uid);
    } else {
        snprintf(problem, 512,
                 "others may write to %.150s%s%.100s, which its daemon would have to trust: "
                 "`chmod -R go-w %.150s`, if nobody has changed it",
                 directory, slash, stranger.path, directory);
    }
    return r;
}

static int directory_look(struct env *env, const char *directory, struct seen *ret_seen,
                          char problem[512]) {
    int r = 0;

    /* Twice, when it is not ours: a marker that was made meanwhile may have been passed over, but
     * it was there before what the first listing has found. */
    for (int i = 0; i < 2 && r == 0; i++) {
        *ret_seen = (struct seen){0};
        r = folder_list(env, ".", entry_see, ret_seen);
        if (!ret_seen->anything || ret_seen->config) {
            break;
        }
    }
    if (r < 0) {
        snprintf(problem, 512, "%s cannot be read: %s", directory, err_text(r));
    } else if (ret_seen->anything && !ret_seen->config) {
        snprintf(problem, 512,
                 "%s is not empty and not a Shoal directory (it has no %s): name an empty one",
                 directory, CONFIG_NAME);
        r = -ERR_NOT_OURS;
    }
    return r;
}

/* The space below; a file system on which none can be kept is refused. */
static int get_space(struct env *env, const char *directory, struct folder_space *ret_space,
                     char problem[512]) {
    int r = folder_space_get(env, ret_space);

    if (r < 0) {
        snprintf(problem, 512, "the space of %s cannot be told: %s", directory, err_text(r));
    } else if (ret_space->copies_on_write) {
        snprintf(problem, 512,
                 "%s lies on %s, which copies on write and breaks preallocation: use ext4 or xfs",
                 directory, ret_space->fs_name);
        r = -ERR_NOT_SUPPORTED;
    }
    return r;
}

static uint64_t size_of(struct env *env, const char *target, const char *name) {
    struct env_file *file;
    uint64_t size = 0;
    char path[64];

    snprintf(path, sizeof path, "%s/%s", target, name);
    if (env->ops->file_open(env, path, ENV_FILE_READ_ONLY, &file) == 0) {
        size = env->ops->file_size(file, &size) == 0 ? size : 0;
        env->ops->file_close(file);
    }
    return size;
}

/* What data takes and could take: the same before the first start and after it. */
static uint64_t data_room(struct env *env, const struct config *config,
                          const struct folder_space *space) {
    uint64_t logs = 0;
    uint64_t room = space->free_bytes;

    for (uint32_t i = 0; i < config->mdt_count; i++) {
        char target[16];

        snprintf(target, sizeof target, "mdt%" PRIu32, i);
        logs += size_of(env, target, "log") > 0 ? 0 : config->disk_log_bytes;
    }
    for (uint32_t i = 0; i < config->ost_count; i++) {
        char target[16];

        snprintf(target, sizeof target, "ost%" PRIu32, i);
        logs += size_of(env, target, "log") > 0 ? 0 : config->disk_log_bytes;
        room += size_of(env, target, "data");
    }
    return room > logs ? room - logs : 0;
}

static int parse_config(struct env *env, const char *directory, struct config *ret_config,
                        char problem[512]) {
    char detail[256];
    char *text;
    size_t size;
    int r = folder_file_read(env, CONFIG_NAME, CONFIG_BYTES_MAX, &text, &size);

    if (r == 0) {
        r = config_parse(text, ret_config, detail);
        free(text);
    } else {
        snprintf(detail, sizeof detail, "%s cannot be read: %s", CONFIG_NAME, err_text(r));
    }
    if (r < 0) {
        snprintf(problem, 512, "%s: %s", directory, detail);
    }
    return r;
}

int local_directory_config(const char *directory, struct config *ret_config, char problem[512]) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;
    int r = env_linux_new(&options, &env);

    if (r < 0) {
        snprintf(problem, 512, "%s cannot be used: %s", directory, local_limits_text(r));
        return r;
    }
    r = parse_config(env, directory, ret_config, problem);
    env_linux_free(env);
    return r;
}

static int read_config(struct env *env, const char *directory, struct config *ret_config,
                       char problem[512]) {
    struct folder_space space;
    int r = parse_config(env, directory, ret_config, problem);

    if (r < 0) {
        return r;
    }
    r = get_space(env, directory, &space, problem);
    if (r == 0) {
        config_keep_free(ret_config, space.total_bytes);
        config_data_max(ret_config, data_room(env, ret_config, &space));
        ret_config->data_bytes_max = MAX(ret_config->data_bytes_max, (uint64_t)DATA_BYTES_MIN);
    }
    return r;
}

/* What the targets take at once, so that a full disk is refused before anything is made. */
static uint64_t bytes_at_start(const struct config *config) {
    uint64_t targets = (uint64_t)config->ost_count + config->mdt_count;

    return targets * (config->disk_log_bytes + 2 * MIB) + 8 * MIB +
           config->ost_count * MIN(config->data_bytes_max, (uint64_t)OST_FIRST_BYTES) +
           config->keep_free_bytes;
}

static int refuse_small(const struct folder_space *space, const char *directory,
                        const struct config *config, char problem[512]) {
    snprintf(problem, 512,
             "%s has %" PRIu64 " MiB free, a new cluster of %u storage target%s needs %" PRIu64
             " MiB: free some or use fewer --osts",
             directory, space->free_bytes / MIB, config->ost_count,
             config->ost_count == 1 ? "" : "s", bytes_at_start(config) / MIB);
    return -ERR_NO_SPACE;
}

/* A directory that has a shoal.conf and nothing else yet. */
static int check_room(struct env *env, const char *directory, const struct config *config,
                      char problem[512]) {
    struct folder_space space;
    int r = get_space(env, directory, &space, problem);

    return r == 0 && space.free_bytes < bytes_at_start(config)
               ? refuse_small(&space, directory, config, problem)
               : r;
}

/* Where the manager will tell, it counts as one. */
static int roles_plan(const struct local_cluster_options *options, struct config *config,
                      char problem[512]) {
    uint32_t roles = options->roles;

    config->ost_count = options->ost_count > 0 ? options->ost_count : config->ost_count;
    config->mdt_count = options->mdt_count > 0 ? options->mdt_count : config->mdt_count;
    if (!options->join) {
        if (roles == 0 || roles == (CONFIG_ROLE_MANAGER | CONFIG_ROLE_META | CONFIG_ROLE_STORE)) {
            return 0;
        }
        snprintf(problem, 512,
                 "the first node of a cluster has all roles: leave --roles out, or "
                 "name a cluster with --join");
        return -ERR_INVALID;
    }
    config->node = 0; /* The manager will tell. */
    config->mdts_by_manager = options->mdt_count == 0 && !(roles & CONFIG_ROLE_META);
    if (roles == 0) {
        return 0;
    }
    config->mdts_by_manager = false;
    config->mdt_count = roles & CONFIG_ROLE_META ? config->mdt_count : 0;
    config->ost_count = roles & CONFIG_ROLE_STORE ? config->ost_count : 0;
    if ((roles & CONFIG_ROLE_MANAGER) || (options->mdt_count > 0 && config->mdt_count == 0) ||
        (options->ost_count > 0 && config->ost_count == 0)) {
        snprintf(problem, 512, "%s",
                 roles & CONFIG_ROLE_MANAGER
                     ? "the manager is the first node's: a node that joins has the roles meta and "
                       "store, or one of them"
                     : "--roles leaves out what --mdts or --osts asks for: name both, or neither");
        return -ERR_INVALID;
    }
    return 0;
}

static int config_plan(struct env *env, const struct local_cluster_options *options,
                       struct config *ret_config, char problem[512]) {
    struct folder_space space;
    struct config config;

    config_default(&config);
    int r = roles_plan(options, &config, problem);
    r = r < 0 ? r : get_space(env, options->directory, &space, problem);
    if (r < 0) {
        return r;
    }
    config_keep_free(&config, space.total_bytes);
    config.data_bytes_max = options->data_bytes_max;
    config_data_max(&config, data_room(env, &config, &space));
    if (config.data_bytes_max < DATA_BYTES_MIN || space.free_bytes < bytes_at_start(&config)) {
        config.data_bytes_max = MAX(config.data_bytes_max, 64 * MIB);
        return refuse_small(&space, options->directory, &config, problem);
    }
    *ret_config = config;
    return local_network_apply(options, ret_config, problem);
}

static int directory_format(struct env *env, const struct config *planned, bool prepared,
                            char problem[512]) {
    struct config config = *planned;
    char text[8192];

    if (config_is_first(&config)) {
        env->ops->random(env, config.cluster_id, sizeof config.cluster_id);
        env->ops->random(env, config.name_hash_key, sizeof config.name_hash_key);
    }
    config_print(&config, text, sizeof text);
    int r = prepared ? folder_file_write(env, CONFIG_NAME, text, strlen(text))
                     : folder_file_write_new(env, CONFIG_NAME, text, strlen(text));
    if (r < 0) {
        snprintf(problem, 512, "%s cannot be written: %s", CONFIG_NAME, err_text(r));
    }
    return r;
}

/* One that joins asks for its numbers before anything is written, and that behind whether it can be
 * listened at. prepared: somebody has written a shoal.conf that says how to join. */
static int directory_make(struct env *env, struct config *planned, bool prepared,
                          char problem[512]) {
    struct cluster_map *map = NULL;
    int r = local_gate_probe(env, planned->listen, problem);

    r = r < 0 || config_is_first(planned) ? r : local_join_first(env, planned, &map, problem);
    if (r == 0) {
        r = directory_format(env, planned, prepared, problem);
    }
    if (r == 0 && map) {
        r = local_map_write(env, map);
        if (r < 0) {
            snprintf(problem, 512, "the map cannot be written: %s", err_text(r));
        }
    }
    free(map);
    return r;
}

/* Where its daemon says that it is mounted. */
struct mounted_at {
    char text[256];
    size_t size;
};

static void note_place(void *context, const char *text, size_t size) {
    struct mounted_at *place = context;
    size_t fits = MIN(size, sizeof place->text - 1 - place->size);

    memcpy(place->text + place->size, text, fits);
    place->size += fits;
    place->text[place->size] = '\0';
}

static bool daemon_answers(const char *directory, struct mounted_at *ret_place) {
    const char *const arguments[] = {"mount-point"};
    const struct control_socket_request request = {.directory = directory,
                                                   .name = LOCAL_CONTROL_NAME,
                                                   .argument_count = 1,
                                                   .arguments = arguments,
                                                   .silence_ms_max = 1000,
                                                   .output = note_place,
                                                   .context = ret_place};
    int status;

    *ret_place = (struct mounted_at){.size = 0};
    return control_socket_call(&request, &status) == 0;
}

/* A killed daemon keeps its lock until the kernel has taken it apart, and one that comes up answers
 * soon: whoever does neither is waited for. */
static bool lock_stays(struct env *env, const char *directory, int *ret_holder,
                       struct mounted_at *ret_place) {
    uint64_t end_ns = env_now_ns(env) + LOCK_WAIT_S * NS_PER_S;
    int signal_number;

    while (folder_lock_holder(env, LOCK_NAME, ret_holder) == 0) {
        if (daemon_answers(directory, ret_place) || env_now_ns(env) > end_ns) {
            return true;
        }
        (void)!process_signal_wait(10 * NS_PER_MS, &signal_number);
    }
    return false;
}

static void say_in_use(const char *directory, int holder, const char *place, char problem[512]) {
    snprintf(problem, 512, "%s is in use by process %d%s%s: stop it with `shoal down %s`",
             directory, holder, place[0] ? ", mounted at " : "", place, directory);
}

/* One that nobody holds, but that could not be held either. */
static int check_lock(struct env *env, const char *directory, char problem[512]) {
    int holder;
    int r = folder_lock_holder(env, LOCK_NAME, &holder);

    if (r != -ERR_NOT_FILE && r != -ERR_IS_DIRECTORY && r != -ERR_LOOP) {
        return 0;
    }
    snprintf(problem, 512, "%s/%s cannot be used: %s: remove it, when no daemon runs there",
             directory, LOCK_NAME, err_text(r == -ERR_LOOP ? -ERR_NOT_FILE : r));
    return r;
}

/* What is asked for a new cluster, of one that is there already. */
static int check_asked(const struct local_cluster_options *options, const struct config *config,
                       char problem[512]) {
    if (options->join && config_is_first(config)) {
        snprintf(problem, 512,
                 "%s has made a cluster of its own and cannot join another: name a new directory",
                 options->directory);
        return -ERR_INVALID;
    }
    if (options->roles > 0 && options->roles != config_roles(config)) {
        snprintf(problem, 512, "%s has other roles, and keeps them: leave --roles out",
                 options->directory);
        return -ERR_INVALID;
    }
    if (options->ost_count > 0 && options->ost_count != config->ost_count) {
        snprintf(problem, 512,
                 "%s has %u storage target%s, not %u, and keeps that number: leave --osts out",
                 options->directory, config->ost_count, config->ost_count == 1 ? "" : "s",
                 options->ost_count);
        return -ERR_INVALID;
    }
    if (options->mdt_count > 0 && options->mdt_count != config->mdt_count) {
        snprintf(problem, 512,
                 "%s has %u metadata target%s, not %u, and keeps that number: leave --mdts out",
                 options->directory, config->mdt_count, config->mdt_count == 1 ? "" : "s",
                 options->mdt_count);
        return -ERR_INVALID;
    }
    if (options->data_bytes_max > 0 && options->data_bytes_max != config->data_bytes_max) {
        snprintf(problem, 512,
                 "%s has storage targets of up to %" PRIu64 " bytes, not %" PRIu64
                 ": leave --size out, or set data_bytes_max in %s",
                 options->directory, config->data_bytes_max, options->data_bytes_max, CONFIG_NAME);
        return -ERR_INVALID;
    }
    return 0;
}

static int check_targets(struct env *env, const struct local_cluster_options *options,
                         const struct config *config, bool made, char problem[512]) {
    const char *directory = options->directory;
    char detail[256];
    int r = made ? local_targets_check(env, config, options->rebuild_manager, detail) : 0;

    if (r == 0) {
        r = local_limits_check(config, detail);
    }
    if (r == 0) {
        r = local_targets_check_rings(
            env, config,
            made ? "lower mdt_ring_bytes, ost_ring_bytes or ost_ring_data_bytes in " CONFIG_NAME
                 : "use fewer --osts",
            detail);
    }
    if (r < 0) {
        snprintf(problem, 512, "%s: %s", directory, detail);
    }
    return r;
}

int local_directory_check(const struct local_cluster_options *options, char problem[512]) {
    const struct env_linux_options env_options = {.root = options->directory};
    struct config config;
    struct seen seen;
    struct env *env;
    int r = env_linux_new(&env_options, &env);

    if (r < 0) {
        snprintf(problem, 512, "%s cannot be used: %s", options->directory, local_limits_text(r));
        return r;
    }
    r = check_owner(env, options->directory, problem);
    if (r == 0) {
        r = directory_look(env, options->directory, &seen, problem);
    }
    if (r == 0 && options->rebuild_manager && !seen.config) {
        snprintf(problem, 512,
                 "%s is no DIR of a cluster's first node: the manager is rebuilt there, beside the "
                 "targets, and where these are gone the cluster has lost its root",
                 options->directory);
        r = -ERR_NOT_OURS;
    }
    int holder;
    struct mounted_at place;
    if (r == 0 && lock_stays(env, options->directory, &holder, &place)) {
        say_in_use(options->directory, holder, place.text, problem);
        r = -ERR_IN_USE;
    }
    if (r == 0) {
        r = check_lock(env, options->directory, problem);
    }
    if (r == 0) {
        r = seen.config ? read_config(env, options->directory, &config, problem)
                        : config_plan(env, options, &config, problem);
    }
    if (r == 0 && seen.config) {
        r = local_rebuild_check(env, options, &config, problem);
    }
    if (r == 0 && seen.config) {
        r = check_asked(options, &config, problem);
    }
    if (r == 0) {
        r = local_network_apply(options, &config, problem);
    }
    if (r == 0 && seen.config && options->join && config.node != 0) {
        r = local_join_check(env, &config, problem);
    }
    if (r == 0 && seen.config && !seen.anything) {
        r = check_room(env, options->directory, &config, problem);
    }
    if (r == 0) {
        r = check_targets(env, options, &config, seen.config, problem);
    }
    env_linux_free(env);
    return r;
}

void local_directory_notes(const struct local_cluster_options *options, char *text, size_t size) {
    const struct env_linux_options env_options = {.root = options->directory};
    struct folder_space space;
    struct config config;
    char problem[512];
    struct seen seen;
    size_t used = 0;
    struct env *env;

    text[0] = '\0';
    if (env_linux_new(&env_options, &env) < 0) {
        return;
    }
    if (folder_space_get(env, &space) == 0 && space.in_memory) {
        used = (size_t)snprintf(text, size,
                                "%s lies on %s, in memory: a restart of the machine loses all that "
                                "is in it, synced or not\n",
                                options->directory, space.fs_name);
    }
    if (used < size && options->data_bytes_max == 0 &&
        directory_look(env, options->directory, &seen, problem) == 0 && !seen.config &&
        config_plan(env, options, &config, problem) == 0 &&
        config.data_bytes_max * config.ost_count < GIB) {
        snprintf(text + used, size - used,
                 "the new cluster has room for %" PRIu64
                 " MiB of data: half of what is free on the "
                 "file system of %s beyond logs and keep_free_bytes\n",
                 config.data_bytes_max * config.ost_count / MIB, options->directory);
    }
    env_linux_free(env);
}

/* Who holds it has signed it, or is about to; or lets it go, having been refused. */
static int take_lock(struct env *env, const char *directory, struct folder_lock **ret_lock,
                     char problem[512]) {
    uint64_t end_ns = env_now_ns(env) + LOCK_WAIT_S * NS_PER_S;
    int signal_number;
    int r;

    while ((r = folder_lock_open(env, LOCK_NAME, ret_lock)) == -ERR_IN_USE) {
        int holder = 0;

        if (folder_lock_holder(env, LOCK_NAME, &holder) == 0 || env_now_ns(env) > end_ns) {
            say_in_use(directory, holder, "", problem);
            return r;
        }
        (void)!process_signal_wait(NS_PER_MS, &signal_number);
    }
    if (r < 0) {
        snprintf(problem, 512, "%s/%s cannot be made: %s", directory, LOCK_NAME, err_text(r));
    }
    return r;
}

int local_directory_take(struct env *env, const struct local_cluster_options *options,
                         struct folder_lock **ret_lock, struct config *ret_config,
                         char problem[512]) {
    struct config planned;
    struct seen seen;
    int r = check_owner(env, options->directory, problem);

    if (r == 0) {
        r = directory_look(env, options->directory, &seen, problem);
    }
    if (r == 0) {
        r = take_lock(env, options->directory, ret_lock, problem);
    }
    if (r == 0) {
        r = directory_look(env, options->directory, &seen, problem);
    }
    if (r == 0 && !seen.config) {
        r = config_plan(env, options, &planned, problem);
        if (r == 0) {
            r = directory_make(env, &planned, false, problem);
        }
    }
    if (r == 0) {
        r = read_config(env, options->directory, ret_config, problem);
    }
    if (r == 0 && ret_config->node == 0) {
        r = local_network_apply(options, ret_config, problem);
        if (r == 0) {
            r = directory_make(env, ret_config, true, problem);
        }
    }
    return r < 0 ? r : local_network_apply(options, ret_config, problem);
}
