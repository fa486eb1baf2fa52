/* mount: a cluster's file system, served by a process of its own, so that the daemon's death leaves
 * the mount: programs see a pause until it is back. */
#include "cmd/verb.h"
#include "front/fuse/fuse.h"
#include "host/background.h"
#include "host/machine.h"
#include "host/plain_file.h"
#include "host/process.h"
#include "node/config.h"
#include "node/remote_client.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRY_TIMEOUT_NS = 1000000000, PATIENCE_S = 120, PATIENCE_S_MAX = 86400, STOP_S = 10 };
#define LOOK_NS (NS_PER_S / 5)
#define MOUNT_LOG_NAME "mount.log"

struct mount_words {
    const char *directory;
    const char *mount_point;
    unsigned long long patience_s;
    bool foreground;
};

static void log_line(const char *line) {
    char now[MACHINE_TIME_BYTES];

    machine_time_print(now);
    fprintf(stderr, "%s shoal mount, process %d: %s\n", now, process_own_id(), line);
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

/* One word of -o; as mount(8) passes them. */
static int parse_option(const struct verb *verb, const char *option, struct mount_words *words) {
    static const char *const known[] = {"rw", "defaults", "auto", "noauto", "_netdev", "nofail"};
    static const char patience[] = "patience=";

    if (strncmp(option, patience, sizeof patience - 1) == 0) {
        const char *value = option + sizeof patience - 1;

        return verb_parse_count(value, &words->patience_s) && words->patience_s > 0 &&
                       words->patience_s <= PATIENCE_S_MAX
                   ? EXIT_OK
                   : verb_usage(verb, "patience takes 1 to %d seconds, not %s", PATIENCE_S_MAX,
                                value);
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(option, known[i]) == 0) {
            return EXIT_OK;
        }
    }
    return verb_usage(verb, "the option %s is not understood", option);
}

static int parse_options(const struct verb *verb, const char *text, struct mount_words *words) {
    char *options = strdup(text);
    char *rest = options;
    char *option;
    int status = options ? EXIT_OK : verb_fail(verb, "%s", err_text(-ERR_NO_MEMORY));

    while (status == EXIT_OK && (option = strsep(&rest, ","))) {
        status = option[0] ? parse_option(verb, option, words) : EXIT_OK;
    }
    free(options);
    return status;
}

static int parse(const struct verb *verb, int argc, char **argv, struct mount_words *words) {
    int status = EXIT_OK;

    words->patience_s = PATIENCE_S;
    for (int i = 1; i < argc && status == EXIT_OK; i++) {
        if (strcmp(argv[i], "--foreground") == 0) {
            words->foreground = true;
        } else if (strcmp(argv[i], "-o") == 0) {
            status = i + 1 < argc ? parse_options(verb, argv[++i], words)
                                  : verb_usage(verb, "the value of -o is missing");
        } else if (argv[i][0] == '-' || argv[i][0] == '\0' || words->mount_point) {
            status = verb_usage(verb, "\"%s\" is not understood", argv[i]);
        } else if (words->directory) {
            words->mount_point = argv[i];
        } else {
            words->directory = argv[i];
        }
    }
    if (status == EXIT_OK && !words->mount_point) {
        status = verb_usage(verb, "the cluster's directory and a mount point are needed");
    }
    return status;
}

/* Two machines, or two containers, may mount one cluster at one path: each its own. */
static void origin_print(const char *mount_point, char *origin, size_t size) {
    char space[64] = "";
    ssize_t got = readlink("/proc/self/ns/mnt", space, sizeof space - 1);

    snprintf(origin, size, "mount %.*s %s", got > 0 ? (int)got : 0, space, mount_point);
}

static int report(struct background *background, int status, const char *message) {
    if (status != EXIT_OK) {
        log_line(message);
    }
    if (background) {
        background_report(background, status, message);
    }
    return status;
}

static int mount_start(struct remote_client *client, const char *directory, const char *mount_point,
                       struct fuse_mount **ret_mount, char problem[512]) {
    const struct fuse_options options = {
        .client = remote_client_client(client),
        .env = remote_client_env(client),
        .mount_point = mount_point,
        .source = directory,
        .entry_timeout_ns = ENTRY_TIMEOUT_NS,
        .attributes_timeout_ns = ENTRY_TIMEOUT_NS,
        .thread_enter = remote_client_thread_enter,
        .thread_leave = remote_client_thread_leave,
        .thread_idle = remote_client_thread_idle,
        .context = client,
    };
    struct fuse_problem fuse_problem = {""};
    int r = fuse_mount_start(&options, ret_mount, &fuse_problem);

    if (r < 0) {
        snprintf(problem, 512, "%s", fuse_problem.text[0] ? fuse_problem.text : err_text(r));
    }
    return r;
}

static void serve(struct fuse_mount *mount) {
    int signal_number;

    while (fuse_mount_is_there(mount)) {
        if (process_signal_wait(LOOK_NS, &signal_number) == 0) {
            log_format("signal %d says stop", signal_number);
            return;
        }
    }
}

static int run(const struct mount_words *words, const char *directory, const char *mount_point,
               struct background *background) {
    char origin[PATH_MAX + 128];
    char problem[512];
    const struct remote_client_options options = {.directory = directory,
                                                  .origin = origin,
                                                  .patience_ns = words->patience_s * NS_PER_S,
                                                  .log = log_line};
    struct remote_client *client;
    struct fuse_mount *mount;
    int r;

    origin_print(mount_point, origin, sizeof origin);
    if (remote_client_open(&options, &client, problem) < 0) {
        return report(background, EXIT_FAILED, problem);
    }
    if (mount_start(client, directory, mount_point, &mount, problem) < 0) {
        (void)!remote_client_stop(client, STOP_S * NS_PER_S);
        remote_client_close(client);
        return report(background, EXIT_FAILED, problem);
    }
    snprintf(problem, sizeof problem, "%s: mounted at %s", directory, mount_point);
    log_line(problem);
    (void)report(background, EXIT_OK, problem);
    serve(mount);
    fuse_mount_stop(mount);
    r = remote_client_stop(client, STOP_S * NS_PER_S);
    log_format("unmounted from %s%s", mount_point,
               r < 0 ? "; the daemon does not answer, so it will end the session itself" : "");
    remote_client_close(client);
    return EXIT_OK;
}

static int check(const struct verb *verb, const struct mount_words *words, char **ret_directory,
                 char **ret_mount_point) {
    struct fuse_problem problem = {""};
    char path[PATH_MAX + sizeof CONFIG_NAME + 1];
    int r = plain_file_resolve(words->directory, ret_directory);

    if (r < 0) {
        return verb_fail(verb, "the directory %s cannot be used: %s", words->directory,
                         err_text(r));
    }
    snprintf(path, sizeof path, "%s/" CONFIG_NAME, *ret_directory);
    if (access(path, F_OK) < 0) {
        return verb_fail(verb,
                         "%s is no Shoal directory (it has no " CONFIG_NAME "): name the one "
                         "that `shoal up` was given",
                         words->directory);
    }
    r = fuse_mount_check(words->mount_point, ret_mount_point, &problem);
    return r < 0 ? verb_fail(verb, "%s", problem.text) : EXIT_OK;
}

static int in_background(const struct verb *verb, const struct mount_words *words,
                         const char *directory, const char *mount_point) {
    char log_path[PATH_MAX + sizeof MOUNT_LOG_NAME + 1];
    struct background background;
    int r;

    snprintf(log_path, sizeof log_path, "%s/" MOUNT_LOG_NAME, directory);
    r = background_enter(&background, log_path);
    if (r < 0) {
        return verb_fail(verb, "the process of the mount cannot be started: %s", err_text(r));
    }
    if (!background.is_parent) {
        process_signals_block();
        exit(run(words, directory, mount_point, &background));
    }
    if (background.status == EXIT_OK) {
        printf("%s\n", background.message);
        return EXIT_OK;
    }
    return verb_fail(verb, "%s",
                     background.message[0] ? background.message
                                           : "the process of the mount died at its start");
}

static int run_mount(const struct verb *verb, int argc, char **argv) {
    struct mount_words words = {0};
    char *directory = NULL;
    char *mount_point = NULL;
    int status = parse(verb, argc, argv, &words);

    if (status == EXIT_OK) {
        status = check(verb, &words, &directory, &mount_point);
    }
    if (status == EXIT_OK && words.foreground) {
        process_signals_block();
        status = run(&words, directory, mount_point, NULL);
    } else if (status == EXIT_OK) {
        status = in_background(verb, &words, directory, mount_point);
    }
    free(directory);
    free(mount_point);
    return status;
}

const struct verb verb_mount = {
    "mount",
    "DIR MNT [-o patience=S] [--foreground]",
    "Mounts a cluster of this machine by a process of its own, which outlives the daemon.",
    "  -o patience=S  seconds that a call waits for a daemon that is away, then it fails (120)\n"
    "  --foreground   stay in the terminal; otherwise returns when the mount answers\n",
    "shoal mount /var/lib/shoal /mnt/shoal",
    run_mount,
    NULL};
