/* mount: a cluster's file system, served by a process of its own, so that the daemon's death leaves
 * the mount: programs see a pause until it is back. */
#include "cmd/own_mount.h"
#include "front/fuse/fuse.h"
#include "host/background.h"
#include "host/machine.h"
#include "host/plain_file.h"
#include "host/plain_text.h"
#include "host/process.h"
#include "node/config.h"
#include "node/key_path.h"
#include "node/local_directory.h"
#include "node/local_limits.h"
#include "node/mount_origin.h"
#include "node/remote_client.h"
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert((int)CONFIG_CHANNEL_DEV == (int)FUSE_CHANNEL_DEV &&
                  (int)CONFIG_CHANNEL_URING == (int)FUSE_CHANNEL_URING,
              "one is the other");

/* Fewer open files are too few: two a thread, and a connection a thread and node. */
enum { FILES_MIN = 4096, LOG_LINE_BYTES = 2048 };
enum { TTL_S = 1, TTL_S_MAX = 3600, PATIENCE_S = 120, PATIENCE_S_MAX = 86400, STOP_S = 10 };
#define LOOK_NS (NS_PER_S / 5)
/* Without end: the daemon that has started it ends it, or its own end does. */
#define BEGIN_NS_OWN (UINT64_MAX / 2)
#define MOUNT_LOG_NAME "mount.log"
#define LOG_FOLDER "/var/log"

/* from: the cluster's directory, or addresses. */
struct mount_words {
    const char *from;
    const char *mount_point;
    char key_path[PATH_MAX];         /* empty: none */
    char log_path[PATH_MAX];         /* empty: the default */
    char listen[ADDRESS_TEXT_BYTES]; /* where the daemon of the directory is; empty: as it says */
    unsigned long long patience_s;
    unsigned long long ttl_s; /* that the kernel may keep names and attributes */
    bool read_only, no_set_id, no_devices, no_programs;
    bool foreground;
    bool own;        /* the node's own mount, which its daemon has started */
    bool is_foreign; /* the directory, or what leads to it, is not the caller's alone */
    enum link_encryption encryption;
    uint32_t channel; /* enum config_channel */
    bool leaves_machine;

    /* What check has found: the directory, resolved, or the addresses; and the mount point. */
    char *source, *place;
    bool by_address;
    struct address addresses[REMOTE_ADDRESSES_MAX];
    uint32_t address_count;
    struct config config; /* of the directory */
    struct key_file key;
};

static void log_line(const char *line) {
    char now[MACHINE_TIME_BYTES];
    char text[LOG_LINE_BYTES];

    machine_time_print(now);
    snprintf(text, sizeof text, "%s", line);
    fprintf(stderr, "%s shoal mount, process %d: %s\n", now, process_own_id(),
            plain_text(text, false));
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

static int patience_take(const struct verb *verb, const char *value, void *context) {
    struct mount_words *words = context;

    return verb_parse_count(value, &words->patience_s) && words->patience_s > 0 &&
                   words->patience_s <= PATIENCE_S_MAX
               ? EXIT_OK
               : verb_usage(verb, "patience takes 1 to %d seconds, not %s", PATIENCE_S_MAX, value);
}

static int ttl_take(const struct verb *verb, const char *value, void *context) {
    struct mount_words *words = context;

    return verb_parse_count(value, &words->ttl_s) && words->ttl_s <= TTL_S_MAX
               ? EXIT_OK
               : verb_usage(verb, "ttl takes 0 to %d seconds, not %s", TTL_S_MAX, value);
}

static int path_take(const struct verb *verb, const char *value, char path[PATH_MAX]) {
    int size = snprintf(path, PATH_MAX, "%s", value);

    return size > 0 && size < PATH_MAX ? EXIT_OK : verb_usage(verb, "\"%.40s\" is no path", value);
}

static int key_take(const struct verb *verb, const char *value, void *context) {
    return path_take(verb, value, ((struct mount_words *)context)->key_path);
}

static int log_take(const struct verb *verb, const char *value, void *context) {
    return path_take(verb, value, ((struct mount_words *)context)->log_path);
}

static int encryption_take(const struct verb *verb, const char *value, void *context) {
    static const char *const names[] = {
        [LINK_ENCRYPTED] = "on", [LINK_PLAIN] = "off", [LINK_ENCRYPTED_ALWAYS] = "always"};
    struct mount_words *words = context;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(value, names[i]) == 0) {
            words->encryption = (enum link_encryption)i;
            return EXIT_OK;
        }
    }
    return verb_usage(verb, "link_encryption takes on, off or always, not %s", value);
}

static int channel_take(const struct verb *verb, const char *value, void *context) {
    struct mount_words *words = context;

    return config_channel(value, &words->channel) == 0
               ? EXIT_OK
               : verb_usage(verb, "channel takes any, dev or uring, not %s", value);
}

static int tune_take(const struct verb *verb, const char *value, void *context) {
    struct mount_words *words = context;

    words->leaves_machine = strcmp(value, "no") == 0;
    return words->leaves_machine || strcmp(value, "yes") == 0
               ? EXIT_OK
               : verb_usage(verb, "tune takes yes or no, not %s", value);
}

static int listen_take(const struct verb *verb, const char *value, void *context) {
    struct mount_words *words = context;
    struct address address;

    if (config_addresses(value, &address, 1) != 1) {
        return verb_usage(verb, "address takes ADDRESS:PORT, as 10.0.0.1:7400, not %s", value);
    }
    address_format(&address, words->listen);
    return EXIT_OK;
}

/* What mount(8) passes and what changes nothing here. */
static bool is_idle_option(const char *option) {
    static const char *const known[] = {"rw",   "defaults", "auto", "noauto",   "_netdev", "nofail",
                                        "suid", "dev",      "exec", "relatime", "noatime"};
    bool is = false;

    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        is = is || strcmp(option, known[i]) == 0;
    }
    return is;
}

/* One word of -o; as mount(8) passes them. Its row is named "-o WORD". */
static int parse_option(const struct verb *verb, const char *option, struct mount_words *words) {
    const char *value = strchr(option, '=');
    const struct verb_option *row = NULL;
    char name[64];
    int size = snprintf(name, sizeof name, "-o %.*s",
                        (int)(value ? value - option : (ptrdiff_t)strlen(option)), option);

    if (size > 0 && size < (int)sizeof name) {
        row = verb_option_find(verb, NULL, name, (size_t)size);
    }
    if (row && (row->value != NULL) == (value != NULL)) {
        return verb_option_take(verb, row, value ? value + 1 : "", words);
    }
    return is_idle_option(option) ? EXIT_OK
                                  : verb_usage(verb, "the option %s is not understood", option);
}

static int options_take(const struct verb *verb, const char *text, void *context) {
    char *options = strdup(text);
    char *rest = options;
    char *option;
    int status = options ? EXIT_OK : verb_fail(verb, "%s", err_text(-ERR_NO_MEMORY));

    while (status == EXIT_OK && (option = strsep(&rest, ","))) {
        status = option[0] ? parse_option(verb, option, context) : EXIT_OK;
    }
    free(options);
    return status;
}

static int noun_take(const struct verb *verb, const char *word, void *context) {
    struct mount_words *words = context;

    if (word[0] == '\0' || words->mount_point) {
        return verb_usage(verb, "\"%s\" is not understood", word);
    }
    *(words->from ? &words->mount_point : &words->from) = word;
    return EXIT_OK;
}

static int parse(const struct verb *verb, char *const *argv, struct mount_words *words) {
    words->patience_s = PATIENCE_S;
    words->ttl_s = TTL_S;
    int status = verb_parse(verb, NULL, argv + 1, noun_take, words);

    if (status == EXIT_OK && !words->mount_point) {
        status =
            verb_usage(verb, "the cluster's directory or address, and a mount point, are needed");
    }
    return status;
}

static void origin_make(const struct mount_words *words, struct mount_origin *ret_origin) {
    char space[64] = "";
    const struct mount_place place = {.space = space, .path = words->place};
    uint64_t drawn[2];
    ssize_t got = readlink("/proc/self/ns/mnt", space, sizeof space - 1);

    space[MAX(got, 0)] = '\0';
    machine_random(drawn, sizeof drawn);
    mount_origin_make(words->by_address ? NULL : &words->config, &place, drawn, ret_origin);
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

static int mount_start(struct remote_client *client, const struct mount_words *words,
                       struct fuse_mount **ret_mount, char problem[512]) {
    const struct fuse_options options = {
        .client = remote_client_client(client),
        .env = remote_client_env(client),
        .mount_point = words->place,
        .source = words->source,
        .requests_max = (uint32_t)words->config.mount_requests_max,
        .handles_max = (uint32_t)words->config.open_files_max,
        .read_only = words->read_only,
        .no_set_id = words->no_set_id,
        .no_devices = words->no_devices,
        .no_programs = words->no_programs,
        .channel = (enum fuse_channel)words->channel,
        .tune = !words->leaves_machine,
        .entry_timeout_ns = words->ttl_s * NS_PER_S,
        .attributes_timeout_ns = words->ttl_s * NS_PER_S,
        .thread_enter = remote_client_thread_enter,
        .thread_leave = remote_client_thread_leave,
        .thread_idle = remote_client_thread_idle,
        .thread_needed = remote_client_thread_needed,
        .context = client,
    };
    struct fuse_problem fuse_problem = {""};
    int r = fuse_mount_start(&options, ret_mount, &fuse_problem);

    if (r < 0) {
        snprintf(problem, 512, "%s", fuse_problem.text[0] ? fuse_problem.text : err_text(r));
    }
    return r;
}

/* In the log, and to the manager, whose node's daemon shows it. */
static void tell_shares(struct fuse_mount *mount, struct remote_client *client) {
    uint32_t files_uid, requests_uid;
    char line[160];

    while (fuse_mount_share_met(mount, line)) {
        log_line(line);
    }
    bool files = fuse_mount_share_last(mount, FUSE_SHARE_FILES, &files_uid);
    bool requests = fuse_mount_share_last(mount, FUSE_SHARE_REQUESTS, &requests_uid);
    client_tell_met(remote_client_client(client), files ? (uint64_t)files_uid + 1 : 0,
                    requests ? (uint64_t)requests_uid + 1 : 0);
}

static void serve(struct fuse_mount *mount, struct remote_client *client,
                  struct own_mount_holder *holder) {
    int signal_number;

    while (fuse_mount_is_there(mount)) {
        tell_shares(mount, client);
        own_mount_tell(holder, mount);
        if (process_signal_wait(LOOK_NS, &signal_number) == 0) {
            log_format("signal %d says stop", signal_number);
            return;
        }
    }
}

static void raise_files(void) {
    uint64_t count = machine_descriptors_raise();

    if (count < FILES_MIN) {
        log_format("this process may have %" PRIu64 " files open, which large clusters exceed: "
                   "raise it to %d (ulimit -Hn, or LimitNOFILE= of its unit)",
                   count, FILES_MIN);
    }
}

static void tell_wait(void *context, int result) {
    own_mount_tell_wait(*(struct own_mount_holder **)context, result);
}

static int run(const struct mount_words *words, struct background *background) {
    struct mount_origin origin;
    char problem[512];
    char line[OWN_MOUNT_WHY_BYTES + 64];
    struct own_mount_holder *holder = NULL;
    struct remote_client_options options = {.directory = words->by_address ? NULL : words->source,
                                            .name = words->source,
                                            .address_count = words->address_count,
                                            .key = &words->key,
                                            .encryption = words->encryption,
                                            .origin = origin.name,
                                            .patience_ns = words->patience_s * NS_PER_S,
                                            .log = log_line,
                                            .waits = tell_wait,
                                            .waits_context = &holder};
    struct remote_client *client;
    struct fuse_mount *mount;
    int r;

    raise_files();
    if (words->own && own_mount_take(words->source, words->place, &holder, problem) < 0) {
        return report(background, EXIT_FAILED, problem);
    }
    if (background && words->own && !config_is_first(&words->config)) {
        options.begin_ns = BEGIN_NS_OWN;
    }
    memcpy(options.addresses, words->addresses, sizeof options.addresses);
    origin_make(words, &origin);
    options.node = origin.node;
    if (remote_client_open(&options, &client, problem) < 0) {
        own_mount_leave(holder);
        return report(background, EXIT_FAILED, problem);
    }
    if (mount_start(client, words, &mount, problem) < 0) {
        (void)!remote_client_stop(client, STOP_S * NS_PER_S);
        remote_client_close(client);
        own_mount_leave(holder);
        return report(background, EXIT_FAILED, problem);
    }
    process_end_with_parent(false);
    snprintf(problem, sizeof problem, "%s: mounted at %s", words->source, words->place);
    log_line(problem);
    if (fuse_mount_tuned(mount)) {
        log_line(MOUNT_TUNED);
    }
    own_mount_channel_print(mount, line);
    if (line[0]) {
        log_line(line);
    }
    own_mount_tell(holder, mount);
    (void)report(background, EXIT_OK, problem);
    serve(mount, client, holder);
    if (fuse_mount_failure(mount) < 0) {
        log_format("the kernel refuses what serves it over io_uring: %s: the mount ends; -o "
                   "channel=dev goes without",
                   strerror(-fuse_mount_failure(mount)));
    }
    fuse_mount_stop(mount);
    r = remote_client_stop(client, STOP_S * NS_PER_S);
    log_format("unmounted from %s%s", words->place,
               r < 0 ? "; the daemon does not answer, so it will end the session itself" : "");
    remote_client_close(client);
    own_mount_leave(holder);
    return EXIT_OK;
}

/* ADDR:PORT[,ADDR:PORT...]; false: it is something else. */
static bool parse_addresses(const char *text, struct mount_words *words) {
    char *copy = text[0] == '/' || text[0] == '.' ? NULL : strdup(text);
    char *rest = copy;
    char *one;
    bool good = copy != NULL;

    words->address_count = 0;
    while (good && (one = strsep(&rest, ","))) {
        good = words->address_count < REMOTE_ADDRESSES_MAX &&
               address_parse(one, &words->addresses[words->address_count]) == 0 &&
               words->addresses[words->address_count].kind != ADDRESS_UNIX;
        words->address_count++;
    }
    free(copy);
    words->address_count = good ? words->address_count : 0;
    return good;
}

static int check_key(const struct verb *verb, struct mount_words *words) {
    char problem[512];

    if (!words->key_path[0]) {
        return verb_fail(verb,
                         "%s is asked with a key: --key FILE, one that `shoal key mount` made",
                         words->from);
    }
    if (key_path_read(words->key_path, &words->key, problem) < 0) {
        return verb_fail(verb, "%s", problem);
    }
    words->read_only = words->read_only || words->key.identity.read_only;
    words->source = strdup(words->from);
    return words->source ? EXIT_OK : verb_fail(verb, "%s", err_text(-ERR_NO_MEMORY));
}

/* A node that others reach may have data elsewhere, which only its network and its key lead to. */
static int check_network(const struct verb *verb, struct mount_words *words) {
    const struct config *config = &words->config;
    char problem[512];

    if (local_directory_config(words->source, &words->config, problem) < 0) {
        return verb_fail(verb, "%s", problem);
    }
    if (!config->listen[0] && !words->listen[0]) {
        return EXIT_OK;
    }
    if (words->is_foreign && !(words->key_path[0] && words->listen[0])) {
        /* Whoever listens where it says could pass on what a key proves that is not his. */
        return verb_fail(verb,
                         "%s is not yours alone, so no key is taken from its shoal.conf: mount it "
                         "by its address, `shoal mount ADDR:PORT MNT --key FILE`",
                         words->source);
    }
    int count = config_addresses(words->listen[0] ? words->listen : config_address(config),
                                 words->addresses, 1);
    if (count == 1 && config->join[0]) {
        int more = config_addresses(config->join, words->addresses + 1, REMOTE_ADDRESSES_MAX - 1);

        count = more < 0 ? more : 1 + more;
    }
    int r = count < 0 ? count
                      : key_path_read(words->key_path[0] ? words->key_path : config->key_path,
                                      &words->key, problem);
    if (r < 0) {
        return verb_fail(verb, "%s", count < 0 ? err_text(count) : problem);
    }
    words->address_count = (uint32_t)count;
    words->encryption = (enum link_encryption)config->link_encryption;
    return EXIT_OK;
}

static int check_directory(const struct verb *verb, struct mount_words *words) {
    char path[PATH_MAX + sizeof CONFIG_NAME + 1];
    int r = plain_file_resolve(words->from, &words->source);

    if (r < 0) {
        return verb_fail(verb, "the directory %s cannot be used: %s", words->from, err_text(r));
    }
    snprintf(path, sizeof path, "%s/" CONFIG_NAME, words->source);
    if (access(path, F_OK) < 0) {
        return verb_fail(verb,
                         "%s is no Shoal directory (it has no " CONFIG_NAME "): name the one "
                         "that `shoal up` was given",
                         words->from);
    }
    if (!plain_file_is_own_for_good(words->source)) {
        /* Its daemon, or that of another directory which has come there by the time that it is
         * asked, may say of any file that it is root's, and set-uid. */
        words->is_foreign = true;
        words->no_set_id = true;
        words->no_devices = true;
        verb_note(verb, "%s is not yours alone: it is mounted with nosuid,nodev", words->source);
    }
    return check_network(verb, words);
}

static int check(const struct verb *verb, struct mount_words *words) {
    struct fuse_problem problem = {""};
    int status;
    int r;

    words->by_address = parse_addresses(words->from, words);
    if (words->by_address && (words->own || words->listen[0])) {
        return verb_usage(verb, "the options own and address are of a mount of a directory, not %s",
                          words->from);
    }
    status = words->by_address ? check_key(verb, words) : check_directory(verb, words);
    if (status != EXIT_OK) {
        return status;
    }
    r = fuse_mount_check(words->mount_point, &words->place, &problem);
    if (r == 0 && words->own && strcmp(words->place, words->mount_point) != 0) {
        /* The daemon has looked at it before. */
        return verb_fail(verb, "%s: a symbolic link has come into the way to the mount point",
                         words->mount_point);
    }
    return r < 0 ? verb_fail(verb, "%s", problem.text) : EXIT_OK;
}

/* Beside the cluster's data, or where machines keep logs, named by the mount point. */
static void log_path_print(const struct mount_words *words, char path[2 * PATH_MAX]) {
    if (words->log_path[0]) {
        snprintf(path, (size_t)2 * PATH_MAX, "%s", words->log_path);
    } else if (!words->by_address) {
        snprintf(path, (size_t)2 * PATH_MAX, "%s/" MOUNT_LOG_NAME, words->source);
    } else {
        size_t at = (size_t)snprintf(path, (size_t)2 * PATH_MAX, LOG_FOLDER "/shoal-mount");

        snprintf(path + at, 2 * PATH_MAX - at, "%s.log", words->place);
        for (; path[at]; at++) {
            path[at] = path[at] == '/' ? '-' : path[at];
        }
    }
}

static int in_background(const struct verb *verb, const struct mount_words *words) {
    char log_path[2 * PATH_MAX];
    struct background background;
    int r;

    log_path_print(words, log_path);
    r = background_enter(&background, log_path);
    if (r < 0) {
        return verb_fail(verb, "the process of the mount cannot be started, with its log at %s: %s",
                         log_path, local_limits_text(r));
    }
    if (!background.is_parent) {
        process_end_with_parent(words->own);
        process_signals_block();
        exit(run(words, &background));
    }
    if (background.status == EXIT_OK) {
        printf("%s\n", plain_text(background.message, false));
        return EXIT_OK;
    }
    return verb_fail(verb, "%s",
                     background.message[0] ? background.message
                                           : "the process of the mount died at its start");
}

static int run_mount(const struct verb *verb, int argc, char **argv) {
    struct mount_words words = {0};
    int status = parse(verb, argv, &words);

    (void)argc;
    if (status == EXIT_OK) {
        status = check(verb, &words);
    }
    process_end_with_parent(words.own && !words.foreground);
    if (status == EXIT_OK && words.foreground) {
        process_signals_block();
        status = run(&words, NULL);
    } else if (status == EXIT_OK) {
        status = in_background(verb, &words);
    }
    key_file_wipe(&words.key);
    free(words.source);
    free(words.place);
    return status;
}

static const struct verb_option mount_options[] = {
    VERB_TAKE("--key", "FILE", key_take, "that `shoal key mount` made; -o key=FILE is the same"),
    VERB_TAKE("-o", "OPTION,...", options_take, "some of the following, with commas between"),
    VERB_TAKE("-o patience", "S", patience_take,
              "seconds that a call waits for a daemon that is away, then it fails (120)"),
    VERB_TAKE("-o ttl", "S", ttl_take,
              "seconds that names and attributes of other mounts may be old (1)"),
    VERB_FLAG("-o ro", struct mount_words, read_only,
              "for reading only, as a mount with such a key is"),
    VERB_FLAG("-o nosuid", struct mount_words, no_set_id, "as mount(8) has it"),
    VERB_FLAG("-o nodev", struct mount_words, no_devices, "as mount(8) has it"),
    VERB_FLAG("-o noexec", struct mount_words, no_programs, "as mount(8) has it"),
    VERB_TAKE("-o log", "FILE", log_take,
              "where its lines go (DIR/mount.log, or /var/log/shoal-mount-MNT.log)"),
    VERB_TAKE("-o channel", "any|dev|uring", channel_take, "as in the node's shoal.conf (any)"),
    VERB_TAKE("-o tune", "yes|no", tune_take, "likewise (yes)"),
    VERB_TAKE("-o link_encryption", "on|off|always", encryption_take,
              "as in the cluster's shoal.conf (on)"),
    VERB_TAKE("-o key", "FILE", key_take, "as --key"),
    VERB_FLAG("-o own", struct mount_words, own,
              "DIR's own mount, as `shoal up` starts it: `shoal down DIR` takes it away"),
    VERB_TAKE("-o address", "ADDR:PORT", listen_take,
              "where DIR's daemon is, if shoal.conf says otherwise"),
    VERB_FLAG("--foreground", struct mount_words, foreground,
              "stay in the terminal; otherwise returns when the mount answers"),
    {.name = NULL},
};

const struct verb verb_mount = {
    .name = "mount",
    .arguments = "DIR|ADDR:PORT[,...] MNT [--key FILE] [-o OPTION,...] [--foreground]",
    .summary = "Mounts a cluster by a process of its own, which outlives the daemon.",
    .options = mount_options,
    .notes = "The cluster is DIR of this machine, or has nodes at the addresses, which takes a "
             "key. Words of mount(8) that change nothing are taken as well: rw, defaults, auto, "
             "noauto, nofail, _netdev, suid, dev, exec, relatime, noatime.",
    .nouns = VERB_FOLDERS,
    .example = "shoal mount /var/lib/shoal /mnt/shoal",
    .run = run_mount};
