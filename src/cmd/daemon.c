/* The daemon's life: open, mount, serve, stop. */
#include "cmd/daemon.h"
#include "check/scrub.h"
#include "cmd/beside.h"
#include "cmd/control.h"
#include "cmd/control_nodes.h"
#include "cmd/control_waits.h"
#include "cmd/daemon_mount.h"
#include "cmd/fsck_report.h"
#include "cmd/verb.h"
#include "front/fuse/fuse.h"
#include "host/folder.h"
#include "host/machine.h"
#include "host/plain_file.h"
#include "host/plain_text.h"
#include "host/process.h"
#include "node/local_cluster.h"
#include "node/local_directory.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP_POLL_NS (NS_PER_S / 5)

enum { LOG_LINE_BYTES = 2048 };

static void log_line(const char *line) {
    char now[MACHINE_TIME_BYTES];
    char text[LOG_LINE_BYTES];

    machine_time_print(now);
    snprintf(text, sizeof text, "%s", line);
    fprintf(stderr, "%s shoal: %s\n", now, plain_text(text, false));
    fflush(stderr);
}

void daemon_log(const char *format, ...) {
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    log_line(line);
}

/* Where the words of a failed start go: to the parent that waits, or to the terminal. */
static int give_up(const struct daemon_options *options, const char *problem) {
    log_line(problem);
    if (options->background) {
        background_report(options->background, EXIT_FAILED, problem);
    }
    return EXIT_FAILED;
}

static struct local_cluster_options cluster_options_of(const struct daemon_options *options) {
    return (struct local_cluster_options){
        .directory = options->directory,
        .roles = options->roles,
        .ost_count = options->ost_count,
        .mdt_count = options->mdt_count,
        .data_bytes_max = options->data_bytes_max,
        .listen = options->listen,
        .key_path = options->key_path,
        .advertise = options->advertise,
        .join = options->join,
        .accept_loss = options->accept_loss,
        .rebuild_manager = options->rebuild_manager,
        .without = options->without,
        .origin = options->directory,
        .log = log_line,
    };
}

static bool lies_within(const char *path, const char *folder) {
    size_t size = strlen(folder);

    return strncmp(path, folder, size) == 0 &&
           (path[size] == '/' || path[size] == '\0' || size == 1);
}

/* What is mounted over the data would hide it. */
static int check_apart(const struct daemon_options *options, const char *mount_point,
                       char problem[512]) {
    if (lies_within(mount_point, options->directory) ||
        lies_within(options->directory, mount_point)) {
        snprintf(problem, 512, "--mount %s and the data in %s must not lie within each other",
                 mount_point, options->directory);
        return -ERR_INVALID;
    }
    return 0;
}

/* One of its own process that the daemon before has left: *ret_mount_point, where it is wanted
 * there, else it is refused. */
static int check_own(const struct daemon_options *options, const struct own_mount *own,
                     char **ret_mount_point, char problem[512]) {
    bool is_mount_point = false;
    char *text = NULL;
    bool same = fuse_path_in_mount(options->mount_point, &text, &is_mount_point) &&
                is_mount_point && strcmp(text, own->place) == 0;

    if (!same) {
        free(text);
        snprintf(problem, 512,
                 "%.200s is mounted at %.150s, by process %d: `shoal umount` that first",
                 options->directory, own->place, own->process);
        return -ERR_EXISTS;
    }
    *ret_mount_point = text;
    return 0;
}

int daemon_check(const struct daemon_options *options, char **ret_mount_point, char problem[512]) {
    const struct local_cluster_options cluster_options = cluster_options_of(options);
    struct own_mount own;
    char *mount_point;

    own_mount_look(options->directory, &own);
    if (own.state == OWN_MOUNT_LIVES && options->mount_point) {
        int r = local_directory_check(&cluster_options, problem);

        return r < 0 ? r : check_own(options, &own, ret_mount_point, problem);
    }

    /* Before the rest, as a mount point in a new directory would make that somebody else's. One
     * that is dead, or missing, is told later. */
    if (options->mount_point && plain_file_resolve(options->mount_point, &mount_point) == 0) {
        int r = check_apart(options, mount_point, problem);

        free(mount_point);
        if (r < 0) {
            return r;
        }
    }
    int r = local_directory_check(&cluster_options, problem);
    return r < 0 || !options->mount_point ? r
                                          : daemon_check_mount(options, ret_mount_point, problem);
}

int daemon_check_mount(const struct daemon_options *options, char **ret_mount_point,
                       char problem[512]) {
    struct fuse_problem fuse_problem = {""};
    char *mount_point;
    int r = fuse_mount_check(options->mount_point, &mount_point, &fuse_problem);

    if (r < 0) {
        snprintf(problem, 512, "%s", fuse_problem.text);
        return r;
    }
    r = check_apart(options, mount_point, problem);
    if (r < 0) {
        free(mount_point);
        return r;
    }
    *ret_mount_point = mount_point;
    return 0;
}

static int note_entry(void *context, const struct folder_entry *entry) {
    bool *found = context;

    *found = strcmp(entry->name, "lost+found") != 0;
    return *found;
}

static bool is_empty(const char *directory) {
    const struct env_linux_options options = {.root = directory};
    bool found = false;
    struct env *env;

    if (env_linux_new(&options, &env) == 0) {
        (void)!folder_list(env, ".", note_entry, &found);
        env_linux_free(env);
    }
    return !found;
}

/* What is in it then is no matter of ours, and may wait for the daemon. */
static bool is_mounted(const struct daemon_options *options) {
    struct own_mount own;

    own_mount_look(options->directory, &own);
    return own.state == OWN_MOUNT_LIVES && strcmp(own.place, options->mount_point) == 0;
}

void daemon_notes(const struct daemon_options *options, char *text, size_t size) {
    const struct local_cluster_options cluster_options = cluster_options_of(options);

    local_directory_notes(&cluster_options, text, size);
    if (options->mount_point && !is_mounted(options) && !is_empty(options->mount_point)) {
        size_t used = strlen(text);

        snprintf(text + used, size - used,
                 "%s is not empty: what is in it is hidden while Shoal is mounted there\n",
                 options->mount_point);
    }
}

/* Its env, or NULL: without a registry (not root), verbs need to be told the directory. */
static struct env *registry_open(char ret_name[16]) {
    const struct env_linux_options options = {.root = DAEMON_REGISTRY};
    struct env *env;

    snprintf(ret_name, 16, "%d", process_own_id());
    return plain_file_make_directories(DAEMON_REGISTRY) == 0 && env_linux_new(&options, &env) == 0
               ? env
               : NULL;
}

static void registry_enter(const struct daemon_options *options) {
    char name[16];
    struct env *env = registry_open(name);

    if (env) {
        (void)!folder_file_write(env, name, options->directory, strlen(options->directory));
        env_linux_free(env);
    }
}

static void registry_leave(void) {
    char name[16];
    struct env *env = registry_open(name);

    if (env) {
        (void)!env->ops->file_remove(env, name);
        env_linux_free(env);
    }
}

static void report_ready(const struct daemon_options *options, struct control *control) {
    char message[BACKGROUND_MESSAGE_BYTES];
    char roles[256];
    char text[512] = "";
    struct own_mount mount;
    const struct config *config = local_cluster_config(control->cluster);
    struct local_recovery recovery = local_cluster_recovery(control->cluster);

    if (recovery.died) {
        daemon_log("%s: the daemon before was not stopped but died: %" PRIu64
                   " records are played again, %" PRIu64 " of them from memory",
                   options->directory, recovery.records, recovery.ring_records);
    }
    if (config_is_first(config)) {
        snprintf(roles, sizeof roles, "1 manager");
    } else {
        snprintf(roles, sizeof roles, "node %u of the cluster at %.160s", config->node,
                 config->join);
    }
    daemon_mounted_at(control, &mount);
    bool is_mounted_now = mount.state == OWN_MOUNT_LIVES;
    int size = snprintf(
        message, sizeof message, "%.330s: %s, %u metadata target%s, %u storage target%s%s%.330s",
        options->directory, roles, config->mdt_count, config->mdt_count == 1 ? "" : "s",
        config->ost_count, config->ost_count == 1 ? "" : "s", is_mounted_now ? ", mounted at " : "",
        is_mounted_now ? mount.place : "");
    bool is_given_up = atomic_load(&control->mount_stage) == MOUNT_GIVEN_UP;
    if (control->mount_waits) {
        control_waits_text(control, text);
    } else if (is_given_up) {
        daemon_mount_print_given_up(options->mount_point, text);
    }
    if (text[0]) {
        snprintf(message + size, sizeof message - (size_t)size, "; %s", text);
    }
    daemon_log("%s, process %d", message, process_own_id());
    if (options->background) {
        background_report(options->background, text[0] ? EXIT_PARTLY : EXIT_OK, message);
    }
}

static void tell_shares(struct control *control) {
    struct fuse_mount *mount = control_mount_get(control);
    char line[160];

    if (mount) {
        while (fuse_mount_share_met(mount, line)) {
            daemon_log("%s: %s", control->directory, line);
        }
        control_mount_put(control);
    }
}

/* Whether a signal or `shoal down` has said stop, until the timeout. What has been asked to be
 * mounted meanwhile, is. */
static bool stop_came(struct control *control, uint64_t timeout_ns) {
    int signal_number;

    if (process_signal_wait(timeout_ns, &signal_number) == 0) {
        daemon_log("%s: signal %d says stop", control->directory, signal_number);
        atomic_store(&control->stop_wanted, true);
    }
    if (!atomic_load(&control->stop_wanted)) {
        daemon_mount_wanted(control);
        daemon_mount_go_on(control);
        daemon_mount_watch(control);
    }
    return atomic_load(&control->stop_wanted);
}

/* Likewise; what was begun on this thread goes on before. */
static bool stop_comes(struct control *control, uint64_t timeout_ns) {
    bool more = local_cluster_thread_go_on(control->cluster);

    return stop_came(control, more ? 0 : timeout_ns);
}

static bool scrub_stopped(void *context) {
    return stop_came(context, 0);
}

static void scrub_kept(void *context, uint64_t ino, uint32_t ost) {
    (void)context;
    daemon_log("ost%" PRIu32 " has chunks of inode %" PRIu64
               ", whose row is gone, and not by power loss: they stay; see what `shoal fsck` says",
               ost, ino);
}

/* After an unclean end. False: it has to be done again after the next start. */
static bool scrub(struct control *control, struct cluster_map *map) {
    const struct fsck_cluster cluster = fsck_cluster_of(control->cluster, map);
    struct scrub scrub = {
        .cluster = &cluster, .stopped = scrub_stopped, .context = control, .kept = scrub_kept};
    int r = scrub_run(&scrub);

    atomic_store(&control->scrubbing, false);
    if (scrub.removed > 0) {
        daemon_log("%" PRIu64 " sets of chunks that belonged to no file are removed",
                   scrub.removed);
    }
    if (scrub.kept_count > SCRUB_NAMED_MAX) {
        daemon_log("chunks of lost inodes that stay, in all: %" PRIu64, scrub.kept_count);
    }
    if (r < 0 && r != -ERR_CLOSED) {
        daemon_log("looking for chunks that belong to no file: %s", err_text(r));
    }
    return r == 0;
}

/* One that has joined may have to wait for its manager. */
static bool scrub_begins(struct control *control) {
    while (local_cluster_client_begin(control->cluster, 0) < 0) {
        if (stop_comes(control, STOP_POLL_NS)) {
            return false;
        }
    }
    return true;
}

/* Serves until told to stop. */
static void serve(struct control *control) {
    struct cluster_map *map = malloc(sizeof *map);

    if (map && local_cluster_is_unclean(control->cluster) && scrub_begins(control) &&
        scrub(control, map)) {
        local_cluster_scrubbed(control->cluster);
    }
    free(map);
    while (!stop_comes(control, STOP_POLL_NS)) {
        tell_shares(control);
    }
}

static void verbs_end(void *server) {
    control_socket_wait_long(server);
}

static int stop(const struct daemon_options *options, struct control *control) {
    struct own_mount own;

    atomic_store(&control->stop_wanted, true); /* Also of a start that has failed. */
    daemon_mount_give_up(control);
    daemon_mount_end(control);
    own_mount_look(options->directory, &own);
    if (own.state == OWN_MOUNT_LIVES) {
        daemon_log(
            "the mount at %s, by process %d, stays and waits for the next start: `shoal down "
            "%s` takes it away",
            own.place, own.process, options->directory);
    }
    control_nodes_refuse(control);
    beside_run(control->cluster, verbs_end, control->server);
    int r = local_cluster_stop(control->cluster);
    if (r < 0) {
        daemon_log("%s stopped with an error: %s", options->directory, control_stop_text(r));
    } else {
        daemon_log("%s stopped, all of it is on disk", options->directory);
    }
    control->stop_result = r;
    atomic_store(&control->stopped, true);
    control_stop(control);
    local_cluster_close(control->cluster);
    return r < 0 ? EXIT_FAILED : EXIT_OK;
}

int daemon_run(const struct daemon_options *options) {
    const struct local_cluster_options cluster_options = cluster_options_of(options);
    struct control control = {.directory = options->directory};
    char problem[512];
    int r = local_cluster_open(&cluster_options, &control.cluster, problem);

    if (r < 0) {
        return give_up(options, problem);
    }
    /* Elsewhere the cluster may be away, and what is here is served meanwhile. */
    bool mounts_first = config_is_first(local_cluster_config(control.cluster));
    if (options->mount_point && mounts_first) {
        r = daemon_mount_start(&control, options->mount_point, problem);
    } else if (options->mount_point) {
        atomic_store(&control.mount_stage, MOUNT_BEGUN);
    }
    /* Before anybody can ask for a check. */
    atomic_init(&control.checking, false);
    atomic_init(&control.scrubbing, local_cluster_is_unclean(control.cluster));
    if (r == 0) {
        r = control_start(&control, problem);
    }
    if (r < 0) {
        daemon_mount_end(&control);
        (void)!local_cluster_stop(control.cluster);
        local_cluster_close(control.cluster);
        return give_up(options, problem);
    }
    control_nodes_serve(&control);
    registry_enter(options);
    if (options->mount_point && !mounts_first) {
        r = daemon_mount_start(&control, options->mount_point, problem);
    }
    if (r == 0) {
        report_ready(options, &control);
        serve(&control);
    }
    registry_leave();
    bool was_told = atomic_load(&control.stop_wanted) || control.mount_stopped;
    int status = stop(options, &control);
    if (r < 0) {
        int failed = give_up(options, problem);

        status = was_told ? status : failed;
    }
    return status;
}
