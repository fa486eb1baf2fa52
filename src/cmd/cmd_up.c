/* up, down, umount, version: a cluster's life on this machine. */
#include "base/bug.h"
#include "cmd/daemon.h"
#include "cmd/find.h"
#include "cmd/own_mount.h"
#include "env/env_linux.h"
#include "front/fuse/fuse.h"
#include "host/doctor.h"
#include "host/folder.h"
#include "host/plain_file.h"
#include "host/plain_text.h"
#include "host/process.h"
#include "node/config.h"
#include "node/local_directory.h"
#include "node/local_limits.h"
#include <shoal/shoal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOWN_WAIT_S = 60, NOTES_BYTES = 16384 };

struct up_words {
    const char *directory;
    const char *mount_point;
    unsigned long long ost_count;
    unsigned long long mdt_count;
    uint32_t roles;
    unsigned long long data_bytes;
    const char *listen;
    const char *key_path;
    const char *advertise;
    const char *join;
    bool foreground;
    bool accept_loss;
    bool rebuild_manager;
    const char *without;
};

/* Names with commas between; 0: what is none of them, or twice. */
static uint32_t parse_roles(const char *text) {
    static const struct {
        const char *name;
        uint32_t role;
    } names[] = {
        {"manager", CONFIG_ROLE_MANAGER}, {"meta", CONFIG_ROLE_META}, {"store", CONFIG_ROLE_STORE}};
    uint32_t roles = 0;

    for (;;) {
        size_t size = strcspn(text, ",");
        uint32_t role = 0;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
            if (strlen(names[i].name) == size && memcmp(text, names[i].name, size) == 0) {
                role = names[i].role;
            }
        }
        if (role == 0 || (roles & role)) {
            return 0;
        }
        roles |= role;
        if (text[size] == '\0') {
            return roles;
        }
        text += size + 1;
    }
}

static int roles_take(const struct verb *verb, const char *value, void *context) {
    struct up_words *words = context;

    words->roles = parse_roles(value);
    return words->roles != 0
               ? EXIT_OK
               : verb_usage(verb, "--roles takes manager,meta,store or some of them, not %s",
                            value);
}

static int osts_take(const struct verb *verb, const char *value, void *context) {
    struct up_words *words = context;

    return verb_parse_count(value, &words->ost_count) && words->ost_count > 0 &&
                   words->ost_count <= 64
               ? EXIT_OK
               : verb_usage(verb, "--osts takes 1 to 64, not %s", value);
}

static int mdts_take(const struct verb *verb, const char *value, void *context) {
    struct up_words *words = context;

    return verb_parse_count(value, &words->mdt_count) && words->mdt_count > 0 &&
                   words->mdt_count <= CONFIG_MDTS_MAX
               ? EXIT_OK
               : verb_usage(verb, "--mdts takes 1 to 8, not %s", value);
}

static int size_take(const struct verb *verb, const char *value, void *context) {
    struct up_words *words = context;

    return verb_parse_bytes(value, &words->data_bytes) && words->data_bytes >= 16 * MIB &&
                   words->data_bytes <= CONFIG_DATA_BYTES_MAX
               ? EXIT_OK
               : verb_usage(verb, "--size takes 16M to 64T, not %s", value);
}

/* Numbers with commas between. */
static int without_take(const struct verb *verb, const char *value, void *context) {
    struct up_words *words = context;
    const char *at = value;
    size_t digits;

    do {
        digits = strspn(at, "0123456789");
        at += digits;
    } while (digits > 0 && *at == ',' && at++);
    words->without = value;
    return digits > 0 && *at == '\0'
               ? EXIT_OK
               : verb_usage(verb, "--without takes numbers of nodes, commas between, not %s",
                            value);
}

static int directory_take(const struct verb *verb, const char *word, void *context) {
    struct up_words *words = context;

    if (word[0] == '\0' || words->directory) {
        return verb_usage(verb, "\"%s\" is not understood", word);
    }
    words->directory = word;
    return EXIT_OK;
}

static int parse_up(const struct verb *verb, char *const *argv, struct up_words *words) {
    int status = verb_parse(verb, NULL, argv + 1, directory_take, words);

    if (status == EXIT_OK && !words->directory) {
        status = verb_usage(verb, "a directory for the data is missing");
    }
    if (status == EXIT_OK && words->without && !words->rebuild_manager) {
        status = verb_usage(verb, "--without says which nodes --rebuild-manager goes on without");
    }
    return status;
}

/* It is made where its parent is there. */
static int resolve(const struct verb *verb, const char *path, bool *ret_made, char **ret_path) {
    int r = plain_file_resolve(path, ret_path);

    if (r == -ERR_NOT_FOUND) {
        r = plain_file_mkdir(path);
        *ret_made = r == 0;
        r = r < 0 ? r : plain_file_resolve(path, ret_path);
    }
    if (r == -ERR_NOT_FOUND) {
        return verb_fail(verb, "%s cannot be made, as its parent does not exist: `mkdir -p %s`",
                         path, path);
    }
    return r == 0 ? EXIT_OK
                  : verb_fail(verb, "the directory %s cannot be used: %s", path, err_text(r));
}

static void print_notes(const struct verb *verb, const char *notes) {
    while (*notes) {
        int size = (int)strcspn(notes, "\n");

        verb_note(verb, "%.*s", size, notes);
        notes += size + (notes[size] == '\n');
    }
}

/* Nothing is measured: some settings are known to cost that much. */
static void print_doctor_note(const struct verb *verb) {
    struct doctor_table *table;

    if (doctor_table_new(doctor_root(), &table) < 0) {
        return;
    }
    if (doctor_brings_much(table)) {
        verb_note(verb, "settings of this machine cost more than a fifth of its speed: `shoal "
                        "doctor` tells which, `shoal doctor --fix` changes them");
    }
    doctor_table_free(table);
}

/* Of a cluster that runs without a mount, its daemon is asked for one. */
static int mount_running(const struct verb *verb, const struct daemon_options *options) {
    char notes[NOTES_BYTES];
    char problem[512];
    char *mount_point;
    int r = daemon_check_mount(options, &mount_point, problem);

    if (r < 0) {
        return verb_fail(verb, "%s", problem);
    }
    const char *const arguments[] = {"mount", mount_point};
    daemon_notes(options, notes, sizeof notes);
    int status = call_daemon(verb, options->directory, 2, arguments);
    if (status == EXIT_OK) {
        print_notes(verb, notes);
        print_doctor_note(verb);
    }
    free(mount_point);
    return status;
}

static bool is_asked_to_mount(const struct daemon_options *options) {
    return options->mount_point && options->roles == 0 && options->ost_count == 0 &&
           options->mdt_count == 0 && options->data_bytes_max == 0 &&
           find_is_unmounted(options->directory);
}

static int run_daemon(const struct verb *verb, struct daemon_options *options, bool foreground) {
    struct background background;
    char log_path[FIND_PATH_BYTES + 32];
    char notes[NOTES_BYTES];
    char problem[512];
    char *mount_point = NULL;

    /* What is refused is refused here, before anything is made, a log file included. */
    int r = daemon_check(options, &mount_point, problem);
    if (r == -ERR_IN_USE && !foreground && is_asked_to_mount(options)) {
        return mount_running(verb, options);
    }
    if (r < 0) {
        return verb_fail(verb, "%s", problem);
    }
    options->mount_point = mount_point;
    daemon_notes(options, notes, sizeof notes);
    if (foreground) {
        print_notes(verb, notes);
        print_doctor_note(verb);
        process_signals_block();
        return daemon_run(options);
    }
    snprintf(log_path, sizeof log_path, "%s/" LOCAL_LOG_NAME, options->directory);
    r = background_enter(&background, log_path);
    if (r < 0) {
        return verb_fail(verb, "the daemon cannot be started: %s", local_limits_text(r));
    }
    if (background.is_parent) {
        if (background.status == EXIT_OK || background.status == EXIT_PARTLY) {
            printf("%s\n", plain_text(background.message, false));
            print_notes(verb, notes);
            print_doctor_note(verb);
            return background.status;
        }
        return verb_fail(verb, "%s",
                         background.message[0] ? background.message
                                               : "the daemon died at its start");
    }
    /* Not before: who waits for the daemon to be ready may give up. */
    process_signals_block();
    options->background = &background;
    exit(daemon_run(options));
}

/* Where it is mounted when nobody says: where a mount of it has died, or as its shoal.conf says. Of
 * one that is mounted it stays so: NULL. */
static const char *mount_point_default(const char *directory, struct own_mount *own,
                                       struct config *config) {
    char problem[512];

    own_mount_look(directory, own);
    if (own->state != OWN_MOUNT_NONE) {
        return own->state == OWN_MOUNT_LEFT ? own->place : NULL;
    }
    return local_directory_config(directory, config, problem) == 0 && config->mount_point[0]
               ? config->mount_point
               : NULL;
}

#if defined(SHOAL_BUG_ANY)
/* What ships has no word for a bug: a daemon of a build with all of them takes SHOAL_BUG's. */
static int wake_bug(const struct verb *verb) {
    const char *name = process_variable("SHOAL_BUG");

    return !name || bug_choose(name) ? EXIT_OK : verb_fail(verb, "no bug is named \"%s\"", name);
}
#else
static int wake_bug(const struct verb *verb) {
    (void)verb;
    return EXIT_OK;
}
#endif

static int run_up(const struct verb *verb, int argc, char **argv) {
    struct up_words words = {0};
    struct own_mount own;
    struct config config;
    char *directory = NULL;
    char *key_path = NULL;
    bool made = false;
    int status = parse_up(verb, argv, &words);

    (void)argc;
    if (status == EXIT_OK) {
        status = wake_bug(verb);
    }
    if (status == EXIT_OK) {
        status = resolve(verb, words.directory, &made, &directory);
    }
    if (status == EXIT_OK && words.key_path) {
        int r = plain_file_resolve(words.key_path, &key_path);

        status = r == 0 ? EXIT_OK : verb_fail(verb, "%s: %s", words.key_path, err_text(r));
    }
    if (status == EXIT_OK && !words.mount_point) {
        words.mount_point = mount_point_default(directory, &own, &config);
    }
    if (status == EXIT_OK) {
        struct daemon_options options = {.directory = directory,
                                         .mount_point = words.mount_point,
                                         .roles = words.roles,
                                         .ost_count = (uint32_t)words.ost_count,
                                         .mdt_count = (uint32_t)words.mdt_count,
                                         .data_bytes_max = words.data_bytes,
                                         .listen = words.listen,
                                         .key_path = key_path,
                                         .advertise = words.advertise,
                                         .join = words.join,
                                         .accept_loss = words.accept_loss,
                                         .rebuild_manager = words.rebuild_manager,
                                         .without = words.without};

        status = run_daemon(verb, &options, words.foreground);
    }
    if (status != EXIT_OK && made) {
        (void)!plain_file_rmdir(words.directory); /* Unless it holds what tells why. */
    }
    free(directory);
    free(key_path);
    return status;
}

/* The daemon lets go its lock when its last sync point is taken. */
static int wait_for_end(const struct verb *verb, const char *directory) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;
    int holder = 0;
    int signal_number;
    int r = env_linux_new(&options, &env);

    if (r < 0) {
        return verb_fail(verb, "%s cannot be looked at: %s", directory, err_text(r));
    }
    uint64_t end_ns = env_now_ns(env) + DOWN_WAIT_S * NS_PER_S;
    /* Its id goes a moment before the lock does. */
    while (((r = folder_lock_holder(env, "lock", &holder)) == 0 || r == -ERR_MALFORMED) &&
           env_now_ns(env) < end_ns) {
        (void)!process_signal_wait(10 * NS_PER_MS, &signal_number);
    }
    env_linux_free(env);
    return r == -ERR_NOT_FOUND ? EXIT_OK
                               : verb_fail(verb, "process %d still runs after %d s: see %s/%s",
                                           holder, DOWN_WAIT_S, directory, LOCAL_LOG_NAME);
}

/* What its daemon, which has died, has left; a process that serves it ends its session first. */
static int down_without_daemon(const struct verb *verb, const char *directory) {
    char problem[512];
    int signal_number;

    if (own_mount_detach(directory, problem) < 0) {
        return verb_fail(verb, "%s", problem);
    }
    for (int i = 0; own_mount_runs(directory); i++) {
        if (i >= DOWN_WAIT_S * 100) {
            return verb_fail(verb,
                             "the process of its mount still runs after %d s: see %s/mount.log",
                             DOWN_WAIT_S, directory);
        }
        (void)!process_signal_wait(10 * NS_PER_MS, &signal_number);
    }
    return EXIT_OK;
}

static bool daemon_runs(const char *directory) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;
    int holder;
    bool runs = true;

    if (env_linux_new(&options, &env) == 0) {
        runs = folder_lock_holder(env, "lock", &holder) != -ERR_NOT_FOUND;
        env_linux_free(env);
    }
    return runs;
}

static int run_down(const struct verb *verb, int argc, char **argv) {
    const char *const arguments[] = {"down"};
    char directory[FIND_PATH_BYTES];
    struct find_words words = {.what = NULL};
    int status = verb_parse(verb, NULL, argv + 1, find_noun, &words);

    (void)argc;
    status = status != EXIT_OK ? status : find_cluster(verb, words.what, directory);
    struct own_mount own;

    if (status == EXIT_OK) {
        own_mount_look(directory, &own);
        if (own.state != OWN_MOUNT_NONE && !daemon_runs(directory)) {
            return down_without_daemon(verb, directory);
        }
    }
    status = status != EXIT_OK ? status : call_daemon(verb, directory, 1, arguments);
    return status != EXIT_OK ? status : wait_for_end(verb, directory);
}

/* A mount there is served by a process of its own. */
static bool mount_is_apart(const char *directory, const char *path) {
    bool is_mount_point = false;
    char *text = NULL;
    bool in_mount = fuse_path_in_mount(path, &text, &is_mount_point);

    if (in_mount) {
        free(text);
    }
    return is_mount_point && !find_is_mounted_at(directory, path);
}

/* It is a mount point, and its cluster is known by addresses. */
static bool is_mount_from_afar(const char *path) {
    char *source = fuse_path_source(path);
    bool is_afar = source && find_is_addresses(source);
    bool is_mount_point = false;
    char *text = NULL;

    free(source);
    if (is_afar && fuse_path_in_mount(path, &text, &is_mount_point)) {
        free(text);
    }
    return is_afar && is_mount_point;
}

/* It lies below the mount of a cluster that is known by addresses; its place is for the caller to
 * free. */
static bool is_below_afar(const char *path, char **ret_place) {
    char *source = fuse_path_source(path);
    bool is_afar = source && find_is_addresses(source);
    bool is_mount_point = false;
    char *text = NULL;

    free(source);
    if (!is_afar || !fuse_path_in_mount(path, &text, &is_mount_point)) {
        return false;
    }
    for (char *end = strrchr(text, '/'); !is_mount_point && end && end > text;
         end = strrchr(text, '/')) {
        char *above = NULL;

        *end = '\0';
        if (fuse_path_in_mount(text, &above, &is_mount_point)) {
            free(above);
        }
    }
    *ret_place = text;
    return true;
}

/* Its process ends when the mount is gone. */
static int unmount_apart(const struct verb *verb, const char *path) {
    int r = fuse_path_unmount(path);

    if (r == -ERR_IN_USE || r == -ERR_BUSY) {
        return verb_fail(verb, "%s is in use: end what uses it (fuser -m %s), then try again", path,
                         path);
    }
    return r == 0 ? EXIT_OK : verb_fail(verb, "%s cannot be unmounted: %s", path, err_text(r));
}

/* The path goes along: one within the mount, or the data's directory, is no mount point. Where the
 * mount waits for its cluster nothing is there, or a dead one: its daemon ends that. */
static int run_umount(const struct verb *verb, int argc, char **argv) {
    char directory[FIND_PATH_BYTES];
    struct find_words words = {.what = NULL};
    char *path = NULL;
    int status = verb_parse(verb, NULL, argv + 1, find_noun, &words);

    (void)argc;
    if (status == EXIT_OK && !words.what) {
        status = verb_usage(verb, "a mount point is missing");
    }
    if (status != EXIT_OK) {
        return status;
    }
    if (is_mount_from_afar(words.what)) {
        return unmount_apart(verb, words.what);
    }
    if (is_below_afar(words.what, &path)) {
        status = verb_fail(verb, "%s is not the mount point, %s is", words.what, path);
        free(path);
        return status;
    }
    status = find_cluster(verb, words.what, directory);
    status = status != EXIT_OK ? status : find_path(verb, words.what, &path);
    if (status == EXIT_OK && !find_waits_at(directory, path) && mount_is_apart(directory, path)) {
        status = unmount_apart(verb, path);
        free(path);
        return status;
    }
    const char *const arguments[] = {"umount", path};
    status = status != EXIT_OK ? status : call_daemon(verb, directory, 2, arguments);
    free(path);
    return status;
}

static int run_version(const struct verb *verb, int argc, char **argv) {
    int status = verb_parse(verb, NULL, argv + 1, NULL, NULL);

    (void)argc;
    if (status != EXIT_OK) {
        return status;
    }
    printf("shoal %d.%d (on-disk format %d)\n", SHOAL_VERSION_MAJOR, SHOAL_VERSION_MINOR,
           CONFIG_FORMAT);
    return EXIT_OK;
}

/* Of shoald, which says it alone. */
static int version_take(const struct verb *verb, const char *value, void *words) {
    (void)value;
    (void)words;
    return verb_usage(verb, "--version takes no other words");
}

static const struct verb_option up_options[] = {
    VERB_TEXT("--mount", "MNT", struct up_words, mount_point,
              "mount it at this directory (needs root)"),
    VERB_TAKE("--mdts", "N", mdts_take, "metadata targets of a new node, 1 to 8 (1)"),
    VERB_TAKE("--roles", "LIST", roles_take,
              "of a new node that joins: meta,store or one of them (store, and meta while the "
              "cluster has fewer than 8 metadata targets)"),
    VERB_TAKE("--osts", "N", osts_take, "storage targets of a new cluster, 1 to 64 (4)"),
    VERB_TAKE("--size", "BYTES", size_take,
              "space of each storage target of a new one (half of what is free, shared)"),
    VERB_TEXT("--listen", "ADDR:PORT", struct up_words, listen,
              "serve other machines there; a new directory keeps it in shoal.conf, as it does "
              "--key, --advertise and --join"),
    VERB_TEXT("--key", "FILE", struct up_words, key_path,
              "the members' key, which --listen needs: `shoal key new FILE`"),
    VERB_TEXT("--advertise", "ADDR:PORT", struct up_words, advertise,
              "where others reach it, if that is not where it listens"),
    VERB_TEXT("--join", "ADDR:PORT[,...]", struct up_words, join,
              "join the cluster that has nodes there: DIR is new, or has joined it before"),
    VERB_FLAG("--accept-loss", struct up_words, accept_loss,
              "go on where memory that a killed daemon left is damaged, or a log's end can't be "
              "read: what was acknowledged in it is lost"),
    VERB_FLAG("--rebuild-manager", struct up_words, rebuild_manager,
              "of the first node, whose DIR/manager is lost: makes it anew from what all nodes and "
              "targets know; each of them has to answer"),
    VERB_TAKE("--without", "NODE[,...]", without_take,
              "with --rebuild-manager: goes on without these nodes, which are gone for ever: their "
              "targets are lost then"),
    VERB_FLAG("--foreground", struct up_words, foreground,
              "stay in the terminal; otherwise returns when the mount answers"),
    {.name = NULL},
};
static const struct verb_option shoald_options[] = {
    VERB_TAKE("--version", NULL, version_take, "print the version and the on-disk format"),
    {.name = NULL},
};

#define UP_ARGUMENTS                                                                               \
    "DIR [--mount MNT] [--mdts N] [--osts N] [--roles LIST] [--size BYTES]\n"                      \
    "        [--listen ADDR:PORT --key FILE]\n"                                                    \
    "        [--advertise ADDR:PORT] [--join ADDR:PORT[,...]] [--accept-loss]\n"                   \
    "        [--rebuild-manager [--without NODE[,...]]] [--foreground]"

const struct verb verb_up = {
    .name = "up",
    .arguments = UP_ARGUMENTS,
    .summary =
        "Starts a cluster on this machine with its data in DIR, or joins one, and mounts it.",
    .options = up_options,
    .nouns = VERB_FOLDERS,
    .example = "shoal up /var/lib/shoal --mount /mnt/shoal",
    .run = run_up};
const struct verb verb_shoald = {
    .name = "shoald",
    .arguments = UP_ARGUMENTS,
    .summary =
        "Starts a cluster on this machine with its data in DIR, as `shoal up` does, and stays "
        "until it is told to stop by a signal or by `shoal down`.",
    .options = shoald_options,
    .shared = up_options,
    .nouns = VERB_FOLDERS,
    .example = "shoald /var/lib/shoal --mount /mnt/shoal",
    .run = run_up};
const struct verb verb_down = {
    .name = "down",
    .arguments = "[DIR|PATH]",
    .summary = "Unmounts and stops a cluster; returns when its data is durable.",
    .nouns = VERB_FOLDERS,
    .example = "shoal down /var/lib/shoal",
    .run = run_down};
const struct verb verb_umount = {.name = "umount",
                                 .arguments = "MNT",
                                 .summary = "Unmounts; the cluster goes on running.",
                                 .nouns = VERB_FOLDERS,
                                 .example = "shoal umount /mnt/shoal",
                                 .run = run_umount};
const struct verb verb_version = {.name = "version",
                                  .arguments = "",
                                  .summary = "Prints the version and the on-disk format.",
                                  .nouns = VERB_NO_NOUNS,
                                  .example = "shoal version",
                                  .run = run_version};
