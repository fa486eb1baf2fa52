/* The daemon's life: open, mount, serve, stop. */
#include "cmd/daemon.h"
#include "cmd/control.h"
#include "cmd/local_cluster.h"
#include "cmd/local_directory.h"
#include "cmd/verb.h"
#include "front/fuse/fuse.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_TIMEOUT_NS = 1000000000 };

static void log_line(const char *line) {
    fprintf(stderr, "shoal: %s\n", line);
    fflush(stderr);
}

/* Where the words of a failed start go: to the parent that waits, or to the terminal. */
static int give_up(const struct daemon_options *options, const char *problem) {
    log_line(problem);
    if (options->background) {
        env_background_report(options->background, EXIT_FAILED, problem);
    }
    return EXIT_FAILED;
}

static struct local_cluster_options cluster_options_of(const struct daemon_options *options) {
    return (struct local_cluster_options){
        .directory = options->directory,
        .ost_count = options->ost_count,
        .data_bytes_max = options->data_bytes_max,
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
    struct fuse_problem fuse_problem = {""};
    int r = local_directory_check(&cluster_options, problem);

    if (r == 0 && options->mount_point) {
        r = fuse_mount_check(options->mount_point, ret_mount_point, &fuse_problem);
        if (r < 0) {
            snprintf(problem, 512, "%s", fuse_problem.text);
        } else {
            r = check_apart(options, *ret_mount_point, problem);
        }
    }
    return r;
}

static int start_mount(const struct daemon_options *options, struct control *control,
                       char problem[512]) {
    const struct fuse_options fuse_options = {
        .client = local_cluster_client(control->cluster),
        .env = local_cluster_env(control->cluster),
        .mount_point = options->mount_point,
        .entry_timeout_ns = ENTRY_TIMEOUT_NS,
        .attributes_timeout_ns = ENTRY_TIMEOUT_NS,
        .thread_enter = local_cluster_thread_enter,
        .thread_leave = local_cluster_thread_leave,
        .thread_idle = local_cluster_thread_idle,
        .context = control->cluster,
    };
    struct fuse_problem fuse_problem = {""};
    int r = fuse_mount_start(&fuse_options, &control->mount, &fuse_problem);

    if (r < 0) {
        snprintf(problem, 512, "%s", fuse_problem.text[0] ? fuse_problem.text : err_text(r));
    }
    return r;
}

static void registry_path(char path[64]) {
    snprintf(path, 64, DAEMON_REGISTRY "/%d", env_process_id());
}

/* Without a registry (not root), verbs need to be told the directory. */
static void registry_enter(const struct daemon_options *options) {
    char path[64];

    registry_path(path);
    if (env_path_make(DAEMON_REGISTRY) == 0) {
        FILE *file = fopen(path, "w");

        if (file) {
            fprintf(file, "%s", options->directory);
            fclose(file);
        }
    }
}

static void registry_leave(void) {
    char path[64];

    registry_path(path);
    (void)remove(path);
}

static void report_ready(const struct daemon_options *options, const struct control *control) {
    char message[ENV_BACKGROUND_MESSAGE_BYTES];
    const struct config *config = local_cluster_config(control->cluster);

    snprintf(message, sizeof message, "%s: 1 manager, 1 metadata target, %u storage targets%s%s",
             options->directory, config->ost_count, options->mount_point ? ", mounted at " : "",
             options->mount_point ? options->mount_point : "");
    log_line(message);
    if (options->background) {
        env_background_report(options->background, EXIT_OK, message);
    }
}

/* Serves until a signal, `shoal down`, or the end of the mount says stop. */
static void serve(struct control *control) {
    int signal_number;

    while (!atomic_load(&control->stop_wanted)) {
        if (env_signal_wait(NS_PER_S / 5, &signal_number) == 0) {
            atomic_store(&control->stop_wanted, true);
        }
    }
}

static int stop(const struct daemon_options *options, struct control *control) {
    fuse_mount_stop(control->mount);
    control->mount = NULL;
    env_control_wait_long(control->server);
    int r = local_cluster_stop(control->cluster);
    if (r < 0) {
        fprintf(stderr, "shoal: %s stopped with an error: %s\n", options->directory, err_text(r));
    }
    control->stop_result = r;
    control_stop(control);
    local_cluster_close(control->cluster);
    return r < 0 ? EXIT_FAILED : EXIT_OK;
}

int daemon_run(const struct daemon_options *options) {
    const struct local_cluster_options cluster_options = cluster_options_of(options);
    struct control control = {.directory = options->directory, .mount_point = options->mount_point};
    char problem[512];
    int r = local_cluster_open(&cluster_options, &control.cluster, problem);

    if (r < 0) {
        return give_up(options, problem);
    }
    if (options->mount_point) {
        r = start_mount(options, &control, problem);
    }
    if (r == 0) {
        r = control_start(&control, problem);
    }
    if (r < 0) {
        fuse_mount_stop(control.mount);
        (void)!local_cluster_stop(control.cluster);
        local_cluster_close(control.cluster);
        return give_up(options, problem);
    }
    registry_enter(options);
    report_ready(options, &control);
    serve(&control);
    registry_leave();
    return stop(options, &control);
}
