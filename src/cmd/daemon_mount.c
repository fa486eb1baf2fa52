/* The contract is in daemon_mount.h. */
#include "cmd/daemon_mount.h"
#include "cmd/beside.h"
#include "cmd/control_waits.h"
#include "cmd/daemon.h"
#include "cmd/find.h"
#include "cmd/verb.h"
#include "host/process.h"
#include "host/program.h"
#include "node/local_limits.h"
#include "node/session_text.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_TIMEOUT_NS = 1000000000, OPTIONS_BYTES = 512 };
/* Beside 0 and errors. LATER: the cluster has not answered yet, and the same call goes on. */
enum { LATER = 1, GIVEN_UP = 2 };
/* How long its process may take to end its session. */
#define LEAVE_NS (30 * NS_PER_S)
/* How often it is said of one that waits; of one that could not be made it is tried as often. */
#define SAY_NS (60 * NS_PER_S)
/* So long at a time a session is waited for that another node has to begin. */
#define SESSION_NS (NS_PER_S / 5)

static uint64_t patience_of(const struct config *config) {
    return config->request_timeout_ms * NS_PER_MS;
}

/* In this process. */

static int begin_session(struct control *control, char problem[512]) {
    const struct config *config = local_cluster_config(control->cluster);
    bool is_first = config_is_first(config);
    int r =
        local_cluster_client_begin(control->cluster, is_first ? patience_of(config) : SESSION_NS);

    if (!is_first && (r == -ERR_TIMED_OUT || r == -ERR_TOO_MANY_SESSIONS)) {
        atomic_store(&control->mount_result, r);
        return LATER;
    }
    if (r == -ERR_TIMED_OUT) {
        snprintf(problem, 512, "%s cannot be mounted: %s", control->directory,
                 session_silence_text(control->cluster));
    } else if (r < 0) {
        snprintf(problem, 512, "%s cannot be mounted: %s", control->directory, session_text(r));
    }
    return r;
}

static int start_inside(struct control *control, const char *mount_point, char problem[512]) {
    const struct config *config = local_cluster_config(control->cluster);
    char source[FIND_PATH_BYTES + sizeof FIND_SERVED_INSIDE];
    int r = begin_session(control, problem);

    if (r != 0) {
        return r;
    }
    snprintf(source, sizeof source, FIND_SERVED_INSIDE "%s", control->directory);
    const struct fuse_options fuse_options = {
        .client = local_cluster_client(control->cluster),
        .env = local_cluster_env(control->cluster),
        .mount_point = mount_point,
        .source = source,
        .requests_max = (uint32_t)config->mount_requests_max,
        .handles_max = (uint32_t)config->open_files_max,
        .channel = (enum fuse_channel)config->channel,
        .tune = !config->leaves_machine,
        .entry_timeout_ns = ENTRY_TIMEOUT_NS,
        .attributes_timeout_ns = ENTRY_TIMEOUT_NS,
        .thread_enter = local_cluster_mount_thread_enter,
        .thread_leave = local_cluster_thread_leave,
        .thread_idle = local_cluster_thread_idle,
        .thread_needed = local_cluster_thread_needed,
        .context = control->cluster,
    };
    struct fuse_problem fuse_problem = {""};
    struct fuse_mount *mount;
    r = fuse_mount_start(&fuse_options, &mount, &fuse_problem);

    if (r < 0) {
        snprintf(problem, 512, "%s", fuse_problem.text[0] ? fuse_problem.text : err_text(r));
        return r;
    }
    if (fuse_mount_tuned(mount)) {
        daemon_log("%s", MOUNT_TUNED);
    }
    if (fuse_mount_channel_why(mount)[0]) {
        char line[OWN_MOUNT_WHY_BYTES + 64];

        own_mount_channel_print(mount, line);
        daemon_log("%s", line);
    }
    control->mount_point = mount_point;
    atomic_store(&control->mount, mount);
    return 0;
}

/* By a process of its own. */

/* Its patience is that of requests here, and where the daemon listens is told, as words of `shoal
 * up` go before what stands in shoal.conf. */
static void options_print(const struct config *config, char options[OPTIONS_BYTES]) {
    uint64_t patience_s = MAX(config->request_timeout_ms / 1000, (uint64_t)1);
    int size =
        snprintf(options, OPTIONS_BYTES, "own,patience=%" PRIu64 ",channel=%s%s", patience_s,
                 config_channel_word(config->channel), config->leaves_machine ? ",tune=no" : "");

    if (config->listen[0]) {
        snprintf(options + size, OPTIONS_BYTES - (size_t)size, ",address=%s",
                 config_address(config));
    }
}

/* One line, without the name of the verb that said it. */
static void problem_take(const char *text, char problem[512]) {
    static const char name[] = "shoal mount: ";
    size_t skip = strncmp(text, name, sizeof name - 1) == 0 ? sizeof name - 1 : 0;
    int size = (int)strcspn(text + skip, "\n");

    snprintf(problem, 512, "%.*s", size, text + skip);
    if (size == 0) {
        snprintf(problem, 512, "the process of the mount died at its start");
    }
}

static int program_run(struct control *control, const char *mount_point, char problem[512]) {
    const struct config *config = local_cluster_config(control->cluster);
    char options[OPTIONS_BYTES];
    const char *words[] = {"shoal",
                           "mount",
                           control->directory,
                           mount_point,
                           "-o",
                           options,
                           config->key_path[0] ? "--key" : NULL,
                           config->key_path,
                           NULL};

    options_print(config, options);
    own_mount_wait_forget(control->directory);
    int r = program_start("shoal", words, &control->mount_program);
    if (r < 0) {
        snprintf(problem, 512, "the process of the mount cannot be started: %s",
                 local_limits_text(r));
    }
    return r;
}

static int start_apart(struct control *control, const char *mount_point, char problem[512]) {
    struct own_mount own;
    int status = EXIT_OK;
    int r = 0;

    if (!control->mount_program) {
        own_mount_look(control->directory, &own);
        if (own.state == OWN_MOUNT_LIVES && strcmp(own.place, mount_point) == 0) {
            return 0;
        }
        r = program_run(control, mount_point, problem);
    }
    if (r < 0) {
        return r;
    }
    if (!program_has_ended(control->mount_program, &status)) {
        return LATER;
    }
    if (status != EXIT_OK) {
        problem_take(program_text(control->mount_program), problem);
        r = -ERR_CLOSED;
    }
    program_close(TAKE_PTR(control->mount_program));
    return r;
}

static bool is_given_up(struct control *control) {
    int signal_number;

    if (process_signal_wait(0, &signal_number) == 0) {
        atomic_store(&control->stop_wanted, true);
    }
    return atomic_load(&control->stop_wanted) ||
           atomic_load(&control->mount_unwanted) != UNWANTED_NOT;
}

void daemon_mount_print_given_up(const char *mount_point, char ret_text[512]) {
    snprintf(ret_text, 512,
             "the mount at %.300s waits no more, as `shoal umount` asked: nothing is there",
             mount_point);
}

/* By a stop of the daemon, or by `shoal umount`. */
static int given_up(struct control *control, const char *mount_point, char problem[512]) {
    if (atomic_load(&control->stop_wanted) ||
        atomic_load(&control->mount_unwanted) == UNWANTED_BY_DOWN) {
        control->mount_stopped = true;
        snprintf(problem, 512, "%s is stopping", control->directory);
        return -ERR_CLOSED;
    }
    daemon_mount_print_given_up(mount_point, problem);
    return GIVEN_UP;
}

static int start_until(struct control *control, const char *mount_point, uint64_t end_ns,
                       char problem[512]) {
    bool is_apart = config_mounts_apart(local_cluster_config(control->cluster));
    struct env *env = local_cluster_env(control->cluster);

    for (;;) {
        int r = is_apart ? start_apart(control, mount_point, problem)
                         : start_inside(control, mount_point, problem);

        if (r != LATER) {
            return r;
        }
        if (is_given_up(control)) {
            program_close(TAKE_PTR(control->mount_program));
            return given_up(control, mount_point, problem);
        }
        if (env_now_ns(env) >= end_ns) {
            return r;
        }
        local_cluster_rest(control->cluster);
    }
}

/* Those who ask meanwhile read the one before: it stays, and the same one is not made anew. */
static void place_tell(struct control *control, const char *mount_point) {
    const char *before = atomic_load(&control->mount_place);

    atomic_store(&control->mount_since_ns, env_now_ns(local_cluster_env(control->cluster)));
    atomic_store(&control->mount_result, 0);
    if (!before || strcmp(before, mount_point) != 0) {
        atomic_store(&control->mount_place, strdup(mount_point));
    }
}

int daemon_mount_start(struct control *control, const char *mount_point, char problem[512]) {
    place_tell(control, mount_point);
    const struct config *config = local_cluster_config(control->cluster);
    uint64_t now_ns = env_now_ns(local_cluster_env(control->cluster));
    uint64_t end_ns = config_is_first(config) ? UINT64_MAX : now_ns + patience_of(config);
    int r = start_until(control, mount_point, end_ns, problem);

    if (r == LATER) {
        control->mount_waits = strdup(mount_point);
        control->mount_try_ns = 0;
        control->mount_say_ns = end_ns + SAY_NS;
        if (control->mount_waits) {
            atomic_store(&control->mount_stage, MOUNT_WAITS);
            return 0;
        }
        program_close(TAKE_PTR(control->mount_program));
        r = -ERR_NO_MEMORY;
        snprintf(problem, 512, "%s", err_text(r));
    }
    atomic_store(&control->mount_stage, r < 0           ? MOUNT_FAILED
                                        : r == GIVEN_UP ? MOUNT_GIVEN_UP
                                                        : MOUNT_MADE);
    return r == GIVEN_UP ? 0 : r;
}

static void wait_end(struct control *control, enum control_mount_stage stage) {
    char *place = TAKE_PTR(control->mount_waits);

    if (control->mount_point != place) {
        free(place);
    }
    atomic_store(&control->mount_stage, stage);
}

void daemon_mount_give_up(struct control *control) {
    program_close(TAKE_PTR(control->mount_program));
    if (control->mount_waits) {
        wait_end(control, MOUNT_GIVEN_UP);
    }
}

void daemon_mount_go_on(struct control *control) {
    uint64_t now_ns = env_now_ns(local_cluster_env(control->cluster));
    char problem[512];

    if (!control->mount_waits) {
        return;
    }
    if (is_given_up(control)) {
        if (atomic_load(&control->mount_unwanted) == UNWANTED_BY_UMOUNT) {
            daemon_mount_print_given_up(control->mount_waits, problem);
            daemon_log("%s: %s", control->directory, problem);
        }
        daemon_mount_give_up(control);
        return;
    }
    if (now_ns < control->mount_try_ns) {
        return;
    }
    int r = start_until(control, control->mount_waits, 0, problem);
    if (r == 0) {
        daemon_log("%s: mounted at %s", control->directory, control->mount_waits);
        wait_end(control, MOUNT_MADE);
    } else if (r != LATER) {
        daemon_log("%s; tried again in a minute", problem);
        control->mount_try_ns = now_ns + SAY_NS;
        control->mount_say_ns = control->mount_try_ns + SAY_NS;
    } else if (now_ns >= control->mount_say_ns) {
        control_waits_text(control, problem);
        daemon_log("%s: %s", control->directory, problem);
        control->mount_say_ns = now_ns + SAY_NS;
    }
}

/* One that is dead stays in the table of mounts; one that was taken away does not. Which it is
 * shows at once: later its number may be another's, at the same place. */
void daemon_mount_watch(struct control *control) {
    struct fuse_mount *mount = atomic_load(&control->mount);
    char text[512];

    if (!mount || control->mount_gone || !fuse_mount_has_died(mount)) {
        return;
    }
    if (!fuse_mount_is_left_dead(mount)) {
        control->mount_gone = true;
        atomic_store(&control->mount_end, MOUNT_END_NONE);
        return;
    }
    if (atomic_load(&control->mount_end) != MOUNT_END_NONE) {
        return;
    }
    atomic_store(&control->mount_end,
                 fuse_mount_failure(mount) < 0 ? MOUNT_END_REFUSED : MOUNT_END_CUT);
    if (control_ended_text(control, text)) {
        daemon_log("%s: %s", control->directory, text);
    }
}

static void mount_stop(void *mount) {
    fuse_mount_stop(mount);
}

void daemon_mount_end(struct control *control) {
    struct fuse_mount *mount = control_mount_take(control);

    if (mount) {
        beside_run(control->cluster, mount_stop, mount);
    }
}

bool daemon_mount_waits(struct control *control) {
    return atomic_load(&control->mount_stage) >= MOUNT_BEGUN;
}

static void started_tell(struct control *control, const char *mount_point) {
    char text[512];

    if (control->mount_waits) {
        control_waits_text(control, text);
        daemon_log("%s: %s", control->directory, text);
    } else if (atomic_load(&control->mount_stage) == MOUNT_GIVEN_UP) {
        daemon_log("%s: %s", control->directory, control->mount_problem);
    } else {
        daemon_log("%s: mounted at %s", control->directory, mount_point);
    }
}

/* What `shoal up` asks of one that runs, in place of the one before, of which nothing is left but
 * its structure. */
void daemon_mount_wanted(struct control *control) {
    unsigned wanted = MOUNT_WANTED;
    char *mount_point;

    if (!atomic_compare_exchange_strong(&control->mount_stage, &wanted, MOUNT_BEGUN)) {
        return;
    }
    atomic_store(&control->mount_end, MOUNT_END_NONE);
    daemon_mount_end(control);
    control->mount_gone = false;
    mount_point = strdup(control->mount_wanted);
    if (!mount_point) {
        atomic_store(&control->mount_stage, MOUNT_FAILED);
        return;
    }
    if (daemon_mount_start(control, mount_point, control->mount_problem) == 0) {
        started_tell(control, mount_point);
    }
    if (control->mount_point != mount_point) {
        free(mount_point);
    }
}

void daemon_mounted_at(struct control *control, struct own_mount *ret_mount) {
    struct fuse_mount *mount = control_mount_get(control);
    bool is_inside = mount && fuse_mount_is_there(mount);

    if (is_inside) {
        own_mount_channel_get(mount, &ret_mount->channel);
    }
    if (mount) {
        control_mount_put(control);
    }
    if (!is_inside) {
        own_mount_look(control->directory, ret_mount);
        if (ret_mount->state == OWN_MOUNT_LIVES && daemon_mount_waits(control)) {
            ret_mount->state = OWN_MOUNT_NONE; /* The dead one is there still, in its way. */
        }
        return;
    }
    ret_mount->state = OWN_MOUNT_LIVES;
    ret_mount->process = process_own_id();
    snprintf(ret_mount->place, sizeof ret_mount->place, "%s", control->mount_point);
}

/* The mount is taken away first, so that what uses it is refused and nothing has changed. */
static int detach_inside(struct control *control, char problem[512]) {
    struct fuse_mount *mount = control_mount_get(control);
    const char *place = control->mount_point;
    bool is_left = false;
    int r = 0;

    if (mount) {
        r = fuse_mount_detach(mount);
        is_left =
            atomic_load(&control->mount_end) != MOUNT_END_NONE && fuse_mount_is_left_dead(mount);
        control_mount_put(control);
    }
    if (r == 0 && is_left) {
        r = fuse_path_clear(place);
    }
    if (r == 0) {
        atomic_store(&control->mount_end, MOUNT_END_NONE);
    }
    if (r == -ERR_IN_USE) {
        own_mount_say_used(place, problem);
    } else if (r < 0) {
        snprintf(problem, 512, "%s cannot be unmounted: %s", place, err_text(r));
    }
    return r;
}

int daemon_unmount(struct control *control, struct control_socket_connection *connection,
                   enum control_unwanted by) {
    struct env *env = local_cluster_env(control->cluster);
    char problem[512];

    atomic_store(&control->mount_unwanted, by);
    while (atomic_load(&control->mount_stage) >= MOUNT_ASKED) {
        local_cluster_rest(control->cluster);
    }
    atomic_store(&control->mount_unwanted, UNWANTED_NOT);
    int r = detach_inside(control, problem);
    if (r == 0) {
        r = own_mount_detach(control->directory, problem);
    }
    if (r < 0) {
        control_print(connection, "%s\n", problem);
        return EXIT_FAILED;
    }
    uint64_t end_ns = env_now_ns(env) + LEAVE_NS;
    while (own_mount_runs(control->directory) && env_now_ns(env) < end_ns) {
        local_cluster_rest(control->cluster);
    }
    return EXIT_OK;
}
