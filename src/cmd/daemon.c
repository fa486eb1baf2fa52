/* The daemon's life: open, mount, serve, stop. */
#include "cmd/daemon.h"
#include "check/scrub.h"
#include "cmd/control.h"
#include "cmd/control_nodes.h"
#include "cmd/fsck_report.h"
#include "cmd/verb.h"
#include "front/fuse/fuse.h"
#include "host/folder.h"
#include "host/machine.h"
#include "host/plain_file.h"
#include "host/process.h"
#include "node/local_cluster.h"
#include "node/local_directory.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_TIMEOUT_NS = 1000000000 };
#define STOP_POLL_NS (NS_PER_S / 5)

static void log_line(const char *line) {
    char now[MACHINE_TIME_BYTES];

    machine_time_print(now);
    fprintf(stderr, "%s shoal: %s\n", now, line);
    fflush(stderr);
}

PRINTF_LIKE(1, 2) static void log_format(const char *format, ...) {
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

int daemon_check(const struct daemon_options *options, char **ret_mount_point, char problem[512]) {
    const struct local_cluster_options cluster_options = cluster_options_of(options);
    char *mount_point;

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

void daemon_notes(const struct daemon_options *options, char *text, size_t size) {
    const struct local_cluster_options cluster_options = cluster_options_of(options);

    local_directory_notes(&cluster_options, text, size);
    if (options->mount_point && !is_empty(options->mount_point)) {
        size_t used = strlen(text);

        snprintf(text + used, size - used,
                 "%s is not empty: what is in it is hidden while Shoal is mounted there\n",
                 options->mount_point);
    }
}

static int begin_session(struct control *control, char problem[512]) {
    const struct config *config = local_cluster_config(control->cluster);
    uint64_t patience_ns = config->request_timeout_ms * NS_PER_MS;
    int r = local_cluster_client_begin(control->cluster, patience_ns);

    if (r == -ERR_TIMED_OUT) {
        snprintf(
            problem, 512,
            "%s cannot be mounted: the cluster's manager does not answer: is the first node up?",
            control->directory);
    } else if (r < 0) {
        snprintf(problem, 512, "%s cannot be mounted: %s", control->directory, err_text(r));
    }
    return r;
}

static int start_mount(struct control *control, const char *mount_point, char problem[512]) {
    const struct config *config = local_cluster_config(control->cluster);
    int r = begin_session(control, problem);

    if (r < 0) {
        return r;
    }
    const struct fuse_options fuse_options = {
        .client = local_cluster_client(control->cluster),
        .env = local_cluster_env(control->cluster),
        .mount_point = mount_point,
        .requests_max = (uint32_t)config->mount_requests_max,
        .handles_max = (uint32_t)config->open_files_max,
        .entry_timeout_ns = ENTRY_TIMEOUT_NS,
        .attributes_timeout_ns = ENTRY_TIMEOUT_NS,
        .thread_enter = local_cluster_mount_thread_enter,
        .thread_leave = local_cluster_thread_leave,
        .thread_idle = local_cluster_thread_idle,
        .context = control->cluster,
    };
    struct fuse_problem fuse_problem = {""};
    struct fuse_mount *mount;
    r = fuse_mount_start(&fuse_options, &mount, &fuse_problem);

    if (r < 0) {
        snprintf(problem, 512, "%s", fuse_problem.text[0] ? fuse_problem.text : err_text(r));
        return r;
    }
    control->mount_point = mount_point;
    atomic_store(&control->mount, mount);
    return 0;
}

/* In place of the one before, of which nothing is left but its structure. */
static void mount_again(struct control *control) {
    unsigned wanted = MOUNT_WANTED;
    char *mount_point;
    int r = -ERR_NO_MEMORY;

    if (!atomic_compare_exchange_strong(&control->mount_stage, &wanted, MOUNT_BEGUN)) {
        return;
    }
    fuse_mount_stop(control_mount_take(control));
    mount_point = strdup(control->mount_wanted);
    if (mount_point) {
        r = start_mount(control, mount_point, control->mount_problem);
    }
    if (r < 0) {
        free(mount_point);
    }
    if (r == 0) {
        log_format("%s: mounted at %s", control->directory, mount_point);
    }
    atomic_store(&control->mount_stage, r < 0 ? MOUNT_FAILED : MOUNT_MADE);
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

static void report_ready(const struct daemon_options *options, const struct control *control) {
    char message[BACKGROUND_MESSAGE_BYTES];
    char roles[256];
    const struct config *config = local_cluster_config(control->cluster);
    struct local_recovery recovery = local_cluster_recovery(control->cluster);

    if (recovery.died) {
        log_format("%s: the daemon before was not stopped but died: %" PRIu64
                   " records are played again, %" PRIu64 " of them from memory",
                   options->directory, recovery.records, recovery.ring_records);
    }
    if (config_is_first(config)) {
        snprintf(roles, sizeof roles, "1 manager");
    } else {
        snprintf(roles, sizeof roles, "node %u of the cluster at %.160s", config->node,
                 config->join);
    }
    snprintf(message, sizeof message, "%s: %s, %u metadata target%s, %u storage target%s%s%s",
             options->directory, roles, config->mdt_count, config->mdt_count == 1 ? "" : "s",
             config->ost_count, config->ost_count == 1 ? "" : "s",
             options->mount_point ? ", mounted at " : "",
             options->mount_point ? options->mount_point : "");
    log_format("%s, process %d", message, process_own_id());
    if (options->background) {
        background_report(options->background, EXIT_OK, message);
    }
}

/* Whether a signal or `shoal down` has said stop, until the timeout. What has been asked to be
 * mounted meanwhile, is. */
static bool stop_came(struct control *control, uint64_t timeout_ns) {
    int signal_number;

    if (process_signal_wait(timeout_ns, &signal_number) == 0) {
        log_format("%s: signal %d says stop", control->directory, signal_number);
        atomic_store(&control->stop_wanted, true);
    }
    if (!atomic_load(&control->stop_wanted)) {
        mount_again(control);
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
    log_format("ost%" PRIu32 " has chunks of inode %" PRIu64
               ", whose row is gone, and not by power loss: they stay; see what `shoal fsck` says",
               ost, ino);
}

/* After an unclean end. False: it has to be done again after the next start. */
static bool scrub(struct control *control, struct cluster_map *map) {
    const struct fsck_cluster cluster = fsck_cluster_of(control->cluster, map);
    struct scrub scrub = {
        .cluster = &cluster, .stopped = scrub_stopped, .context = control, .kept = scrub_kept};
    int r = scrub_run(&scrub);

    atomic_store(&control->checking, false);
    atomic_store(&control->scrubbing, false);
    if (scrub.removed > 0) {
        log_format("%" PRIu64 " sets of chunks that belonged to no file are removed",
                   scrub.removed);
    }
    if (scrub.kept_count > SCRUB_NAMED_MAX) {
        log_format("chunks of lost inodes that stay, in all: %" PRIu64, scrub.kept_count);
    }
    if (r < 0 && r != -ERR_CLOSED) {
        log_format("looking for chunks that belong to no file: %s", err_text(r));
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
    }
}

static int stop(const struct daemon_options *options, struct control *control) {
    fuse_mount_stop(control_mount_take(control));
    control_nodes_refuse(control);
    control_socket_wait_long(control->server);
    int r = local_cluster_stop(control->cluster);
    if (r < 0) {
        log_format("%s stopped with an error: %s", options->directory, control_stop_text(r));
    } else {
        log_format("%s stopped, all of it is on disk", options->directory);
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
    if (options->mount_point) {
        r = start_mount(&control, options->mount_point, problem);
    }
    /* Before anybody can ask for a check. */
    atomic_init(&control.checking, local_cluster_is_unclean(control.cluster));
    atomic_init(&control.scrubbing, local_cluster_is_unclean(control.cluster));
    if (r == 0) {
        r = control_start(&control, problem);
    }
    if (r < 0) {
        fuse_mount_stop(control_mount_take(&control));
        (void)!local_cluster_stop(control.cluster);
        local_cluster_close(control.cluster);
        return give_up(options, problem);
    }
    control_nodes_serve(&control);
    registry_enter(options);
    report_ready(options, &control);
    serve(&control);
    registry_leave();
    return stop(options, &control);
}
