/* Dispatch of control requests. */
#include "cmd/control.h"
#include "cmd/control_waits.h"
#include "cmd/daemon.h"
#include "cmd/daemon_mount.h"
#include "cmd/verb.h"
#include "node/local_directory.h"
#include "node/session_text.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void control_print(struct control_socket_connection *connection, const char *format, ...) {
    char text[4096];
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size > 0) {
        control_socket_write(connection, text, MIN((size_t)size, sizeof text - 1));
    }
}

void control_print_json(struct control_socket_connection *connection, json_t *json) {
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));

    if (text) {
        control_socket_write(connection, text, strlen(text));
        control_socket_write(connection, "\n", 1);
    }
    free(text);
    json_decref(json);
}

bool control_has_word(size_t argument_count, char **arguments, const char *word) {
    for (size_t i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/* Counted before it is looked for: so take, which looks in the other order, sees the user, or the
 * user finds nothing. */
struct fuse_mount *control_mount_get(struct control *control) {
    atomic_fetch_add(&control->mount_users, 1);
    struct fuse_mount *mount = atomic_load(&control->mount);
    if (!mount) {
        control_mount_put(control);
    }
    return mount;
}

/* The first thread outlives all others, so its loop is there. */
void control_mount_put(struct control *control) {
    bool is_last = atomic_fetch_sub(&control->mount_users, 1) == 1;
    struct env_loop *taker = atomic_load(&control->mount_taker);

    if (is_last && taker) {
        env_loop_wake(taker);
    }
}

struct fuse_mount *control_mount_take(struct control *control) {
    struct fuse_mount *mount = atomic_exchange(&control->mount, NULL);

    atomic_store(&control->mount_taker, env_thread_loop(local_cluster_env(control->cluster)));
    while (atomic_load(&control->mount_users) > 0) {
        local_cluster_rest(control->cluster);
    }
    return mount;
}

/* Whether the mount of this process is there, dead, at the first word behind the verb. */
static bool died_at(struct control *control, size_t argument_count, char **arguments) {
    return atomic_load(&control->mount_end) != MOUNT_END_NONE && argument_count == 2 &&
           strcmp(arguments[1], atomic_load(&control->mount_point)) == 0;
}

/* umount PATH; of one that waits, also by its directory. */
static int control_umount(struct control *control, struct control_socket_connection *connection,
                          size_t argument_count, char **arguments) {
    const char *waits = control_waits_place(control);
    struct own_mount mount;

    if (waits && argument_count == 2 &&
        (strcmp(arguments[1], waits) == 0 || strcmp(arguments[1], control->directory) == 0)) {
        return daemon_unmount(control, connection, UNWANTED_BY_UMOUNT);
    }
    daemon_mounted_at(control, &mount);
    if (mount.state == OWN_MOUNT_NONE && waits) {
        control_print(connection, "%s is not where the mount waits, %s is\n",
                      argument_count < 2 ? "that" : arguments[1], waits);
        return EXIT_FAILED;
    }
    if (mount.state == OWN_MOUNT_NONE && died_at(control, argument_count, arguments)) {
        return daemon_unmount(control, connection, UNWANTED_BY_UMOUNT);
    }
    if (mount.state == OWN_MOUNT_NONE) {
        control_print(connection, "%s is not mounted\n", control->directory);
        return EXIT_FAILED;
    }
    if (argument_count < 2 || strcmp(arguments[1], mount.place) != 0) {
        control_print(connection, "%s is not the mount point, %s is\n",
                      argument_count < 2 ? "that" : arguments[1], mount.place);
        return EXIT_FAILED;
    }
    return daemon_unmount(control, connection, UNWANTED_BY_UMOUNT);
}

/* mount PATH: where a cluster that runs is mounted from now on. Whoever asks first is served. */
static int control_mount(struct control *control, struct control_socket_connection *connection,
                         size_t argument_count, char **arguments) {
    unsigned wanted = MOUNT_WANTED;
    unsigned stage = atomic_load(&control->mount_stage);
    struct own_mount mount;

    if (argument_count != 2) {
        control_print(connection, "a mount point is missing\n");
        return EXIT_USAGE;
    }
    daemon_mounted_at(control, &mount);
    if (mount.state == OWN_MOUNT_LIVES) {
        control_print(connection, "%s is mounted at %s\n", control->directory, mount.place);
        return EXIT_FAILED;
    }
    if (stage >= MOUNT_ASKED ||
        !atomic_compare_exchange_strong(&control->mount_stage, &stage, MOUNT_ASKED)) {
        control_print(connection, "a mount of %s waits for its cluster already\n",
                      control->directory);
        return EXIT_FAILED;
    }
    control->mount_wanted = arguments[1];
    atomic_store(&control->mount_stage, MOUNT_WANTED);
    while ((stage = atomic_load(&control->mount_stage)) == MOUNT_WANTED || stage == MOUNT_BEGUN) {
        if (atomic_load(&control->stop_wanted) &&
            atomic_compare_exchange_strong(&control->mount_stage, &wanted, MOUNT_FAILED)) {
            snprintf(control->mount_problem, sizeof control->mount_problem, "%s is stopping",
                     control->directory);
        }
        wanted = MOUNT_WANTED;
        local_cluster_rest(control->cluster);
    }
    if (stage == MOUNT_FAILED || stage == MOUNT_GIVEN_UP) {
        control_print(connection, "%s\n", control->mount_problem);
        return EXIT_FAILED;
    }
    if (stage == MOUNT_WAITS) {
        char text[512];

        control_waits_text(control, text);
        control_print(connection, "%s: %s\n", control->directory, text);
        return EXIT_PARTLY;
    }
    control_print(connection, "%s: mounted at %s\n", control->directory, arguments[1]);
    return EXIT_OK;
}

const char *control_stop_text(int error) {
    return error == -ERR_NO_SPACE ? "its file system is full: make room there" : err_text(error);
}

static int control_down(struct control *control, struct control_socket_connection *connection,
                        size_t argument_count, char **arguments) {
    (void)argument_count;
    (void)arguments;
    if (daemon_unmount(control, connection, UNWANTED_BY_DOWN) != EXIT_OK) {
        return EXIT_FAILED;
    }
    atomic_store(&control->stop_wanted, true);
    while (!atomic_load(&control->stopped)) {
        local_cluster_rest(control->cluster);
    }
    if (control->stop_result < 0) {
        control_print(connection,
                      "%s stopped with an error: %s; what was acknowledged is kept for the next "
                      "start, %s/%s tells more\n",
                      control->directory, control_stop_text(control->stop_result),
                      control->directory, LOCAL_LOG_NAME);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

/* A sign of life, for other nodes. */
int control_here(struct control *control, struct control_socket_connection *connection,
                 size_t argument_count, char **arguments) {
    (void)control;
    (void)connection;
    (void)argument_count;
    (void)arguments;
    return EXIT_OK;
}

/* mount-point: where it is; mount-point --waits: where one waits, or is dead. Empty: nowhere. */
static int control_mount_point(struct control *control,
                               struct control_socket_connection *connection, size_t argument_count,
                               char **arguments) {
    const char *waits = control_waits_place(control);
    struct own_mount mount;

    if (control_has_word(argument_count, arguments, "--waits")) {
        bool is_dead = atomic_load(&control->mount_end) != MOUNT_END_NONE;

        control_print(connection, "%s",
                      waits     ? waits
                      : is_dead ? atomic_load(&control->mount_point)
                                : "");
        return EXIT_OK;
    }
    daemon_mounted_at(control, &mount);
    control_print(connection, "%s", mount.state == OWN_MOUNT_LIVES ? mount.place : "");
    return EXIT_OK;
}

static const struct {
    const char *name;
    control_fn *run;
    bool by_session; /* which one that has joined may have to begin */
} handlers[] = {
    {"down", control_down, false},     {"umount", control_umount, false},
    {"status", control_status, false}, {"mount-point", control_mount_point, false},
    {"stats", control_stats, false},   {"mount", control_mount, false},
    {"df", control_df, true},          {"sync", control_sync, true},
    {"stat", control_stat, true},      {"stripe", control_stripe, true},
    {"bench", control_bench, true},    {"fsck", control_fsck, false},
    {"here", control_here, false},     {"revoke", control_revoke, false},
    {"renew", control_renew, false},   {"target", control_target, false},
};
#define SESSION_PATIENCE_NS (10 * NS_PER_S)

static bool session_begin(struct control *control, struct control_socket_connection *connection) {
    int r = local_cluster_client_begin(control->cluster, SESSION_PATIENCE_NS);

    if (r == -ERR_TIMED_OUT) {
        control_print(connection, "%s\n", session_silence_text(control->cluster));
    } else if (r < 0) {
        control_print(connection, "no session with the cluster: %s\n", session_text(r));
    }
    return r == 0;
}

static int handle(void *context, struct control_socket_connection *connection,
                  size_t argument_count, char **arguments) {
    for (size_t i = 0; argument_count > 0 && i < ARRAY_SIZE(handlers); i++) {
        if (strcmp(handlers[i].name, arguments[0]) == 0) {
            return handlers[i].by_session && !session_begin(context, connection)
                       ? EXIT_FAILED
                       : handlers[i].run(context, connection, argument_count, arguments);
        }
    }
    control_print(connection, "the daemon does not know this request\n");
    return EXIT_USAGE;
}

/* What waits for other nodes, and so may not hold up what they ask of this one. */
static bool is_long(size_t argument_count, char **arguments) {
    static const char *const words[] = {"fsck",  "bench",  "df",    "sync",   "status",
                                        "stats", "revoke", "renew", "target", "mount"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcmp(arguments[0], words[i]) == 0) {
            return !control_has_word(argument_count, arguments, "--own");
        }
    }
    return false;
}

static int thread_enter(void *context) {
    struct control *control = context;
    int r = env_thread_enter(local_cluster_env(control->cluster));

    if (r == 0) {
        local_cluster_thread_enter(control->cluster);
    }
    return r;
}

static bool go_on(void *context) {
    struct control *control = context;

    return local_cluster_thread_go_on(control->cluster);
}

static void thread_leave(void *context) {
    struct control *control = context;

    local_cluster_thread_leave(control->cluster);
    env_thread_leave(local_cluster_env(control->cluster));
}

int control_start(struct control *control, char problem[512]) {
    const struct control_socket_options options = {
        .directory = control->directory,
        .name = LOCAL_CONTROL_NAME,
        .handle = handle,
        .is_long = is_long,
        .thread_enter = thread_enter,
        .thread_leave = thread_leave,
        .go_on = go_on,
        .context = control,
    };
    int r = control_socket_start(&options, &control->server);

    if (r < 0) {
        snprintf(problem, 512, "%s/%s cannot be made: %s", control->directory, LOCAL_CONTROL_NAME,
                 err_text(r));
    }
    return r;
}

void control_stop(struct control *control) {
    control_socket_stop(control->server);
    control->server = NULL;
}
