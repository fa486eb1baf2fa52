/* The contract is in own_mount.h. */
#include "cmd/own_mount.h"
#include "cmd/json_text.h"
#include "env/env_linux.h"
#include "front/fuse/fuse.h"
#include "host/folder.h"
#include "host/plain_file.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCK_NAME "mount.lock"
#define PLACE_NAME "mount.place"
#define CHANNEL_NAME "mount.channel"
#define WAITS_NAME "mount.waits"
#define WAITS_FULL "full"
#define WAITS_SILENT "silent"
#define TELL_NS (10 * NS_PER_S)
/* Who only looks at a lock has it for a moment. */
enum { TAKE_TRIES = 1000, WAITS_BYTES = 16 };

static int place_read(struct env *env, char place[FIND_PATH_BYTES]) {
    char *text;
    size_t size;
    int r = folder_file_read(env, PLACE_NAME, FIND_PATH_BYTES - 1, &text, &size);

    if (r == 0) {
        memcpy(place, text, size + 1);
        free(text);
    }
    return r;
}

static const char *const channel_names[] = {
    [FUSE_CHANNEL_DEV] = "/dev/fuse", [FUSE_CHANNEL_URING] = "io_uring"};

void own_mount_channel_get(const struct fuse_mount *mount, struct own_mount_channel *ret_channel) {
    struct fuse_counters counters;

    fuse_mount_counters(mount, &counters);
    *ret_channel = (struct own_mount_channel){
        .name = channel_names[fuse_mount_channel(mount)],
        .may_stand_aside = counters.may_stand_aside,
        .stood_aside = counters.stood_aside,
        .served_aside = counters.served_aside,
    };
    snprintf(ret_channel->why, sizeof ret_channel->why, "%s", fuse_mount_channel_why(mount));
}

void own_mount_channel_print(const struct fuse_mount *mount,
                             char ret_line[OWN_MOUNT_WHY_BYTES + 64]) {
    enum fuse_channel channel = fuse_mount_channel(mount);
    const char *why = fuse_mount_channel_why(mount);

    ret_line[0] = '\0';
    if (channel == FUSE_CHANNEL_URING || why[0]) {
        snprintf(ret_line, OWN_MOUNT_WHY_BYTES + 64, "requests come by %s%s%s",
                 channel_names[channel], why[0] ? ": " : "", why);
    }
}

size_t own_mount_channel_line(const struct own_mount_channel *channel,
                              char ret_line[OWN_MOUNT_WHY_BYTES + 64]) {
    int size = snprintf(ret_line, OWN_MOUNT_WHY_BYTES + 64, "%s %d %" PRIu64 " %" PRIu64 " %.400s",
                        channel->name, (int)channel->may_stand_aside, channel->stood_aside,
                        channel->served_aside, channel->why);

    return (size_t)size;
}

void own_mount_channel_parse(const char *text, struct own_mount_channel *ret_channel) {
    struct own_mount_channel channel = {.name = NULL};
    char name[16];
    int may = 0;
    int at = 0;

    *ret_channel = channel;
    if (sscanf(text, "%15s %d %" SCNu64 " %" SCNu64 "%n", name, &may, &channel.stood_aside,
               &channel.served_aside, &at) != 4 ||
        text[at] != ' ') {
        return;
    }
    channel.may_stand_aside = may != 0;
    snprintf(channel.why, sizeof channel.why, "%s", text + at + 1);
    for (size_t i = FUSE_CHANNEL_DEV; i < ARRAY_SIZE(channel_names); i++) {
        if (strcmp(name, channel_names[i]) == 0) {
            channel.name = channel_names[i];
            *ret_channel = channel;
        }
    }
}

json_t *own_mount_json(const struct own_mount *mount) {
    const struct own_mount_channel *channel = &mount->channel;
    bool is_told = channel->name != NULL;

    return json_pack(
        "{s:o?, s:s?, s:o?, s:o, s:o, s:o, s:i}", "path", json_text(mount->place), "channel",
        channel->name, "channel_why", json_text(channel->why[0] ? channel->why : NULL),
        "may_stand_aside", is_told ? json_boolean(channel->may_stand_aside) : json_null(),
        "stood_aside", is_told ? json_integer((json_int_t)channel->stood_aside) : json_null(),
        "served_aside", is_told ? json_integer((json_int_t)channel->served_aside) : json_null(),
        "process", mount->process);
}

static void channel_read(struct env *env, struct own_mount_channel *ret_channel) {
    char *text;
    size_t size;

    *ret_channel = (struct own_mount_channel){.name = NULL};
    if (folder_file_read(env, CHANNEL_NAME, OWN_MOUNT_WHY_BYTES + 64, &text, &size) == 0) {
        own_mount_channel_parse(text, ret_channel);
        free(text);
    }
}

/* Shoal is mounted there, and this directory is what the table of mounts names. */
static bool is_mount_of(const char *directory, const char *place) {
    bool is_mount_point = false;
    char *source = NULL;
    char *text = NULL;

    if (fuse_path_in_mount(place, &text, &is_mount_point)) {
        source = is_mount_point ? fuse_path_source(place) : NULL;
        free(text);
    }
    bool is = source && strcmp(source, directory) == 0;
    free(source);
    return is;
}

/* -ERR_NOT_FOUND: nobody. Its number may be on the way. */
static int holder_get(struct env *env, int *ret_process) {
    int r = folder_lock_holder(env, LOCK_NAME, ret_process);

    if (r == -ERR_MALFORMED) {
        *ret_process = 0;
        r = 0;
    }
    return r;
}

void own_mount_look(const char *directory, struct own_mount *ret_mount) {
    const struct env_linux_options options = {.root = directory};
    struct own_mount mount = {.state = OWN_MOUNT_NONE};
    char path[FIND_PATH_BYTES + sizeof PLACE_NAME + 1];
    struct env *env;

    snprintf(path, sizeof path, "%s/" PLACE_NAME, directory);
    if (plain_file_stat(path) == 0 && env_linux_new(&options, &env) == 0) {
        if (place_read(env, mount.place) == 0 && is_mount_of(directory, mount.place)) {
            int r = holder_get(env, &mount.process);

            mount.state = r == 0                ? OWN_MOUNT_LIVES
                          : r == -ERR_NOT_FOUND ? OWN_MOUNT_LEFT
                                                : OWN_MOUNT_NONE;
        }
        if (mount.state == OWN_MOUNT_LIVES) {
            channel_read(env, &mount.channel);
        }
        env_linux_free(env);
    }
    *ret_mount = mount;
}

bool own_mount_runs(const char *directory) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;
    int process;
    bool runs = false;

    if (env_linux_new(&options, &env) == 0) {
        runs = holder_get(env, &process) == 0;
        env_linux_free(env);
    }
    return runs;
}

static void place_forget(const char *directory) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;

    if (env_linux_new(&options, &env) == 0) {
        (void)!env->ops->file_remove(env, PLACE_NAME);
        (void)!env->ops->file_remove(env, CHANNEL_NAME);
        env_linux_free(env);
    }
}

void own_mount_say_used(const char *place, char problem[512]) {
    snprintf(problem, 512, "%.200s is in use: end what uses it (fuser -m %.200s), then try again",
             place, place);
}

int own_mount_detach(const char *directory, char problem[512]) {
    struct own_mount mount;
    int r = 0;

    own_mount_look(directory, &mount);
    if (mount.state == OWN_MOUNT_LEFT) {
        r = fuse_path_clear(mount.place);
        if (r == 0) {
            place_forget(directory);
        }
    } else if (mount.state == OWN_MOUNT_LIVES) {
        r = fuse_path_unmount(mount.place);
    }
    if (r == -ERR_IN_USE || r == -ERR_BUSY) {
        own_mount_say_used(mount.place, problem);
    } else if (r < 0 && r != -ERR_NOT_FOUND) {
        snprintf(problem, 512, "%.300s cannot be unmounted: %s", mount.place, err_text(r));
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

struct own_mount_holder {
    struct env *env;
    struct folder_lock *lock;
    bool has_place;
    bool has_told;
    int told_wait; /* 0: none */
    uint64_t told_ns;
    struct own_mount_channel told;
    char directory[FIND_PATH_BYTES];
    char place[FIND_PATH_BYTES];
};

static int lock_take(struct own_mount_holder *holder, char problem[512]) {
    char place[FIND_PATH_BYTES] = "another place";
    int process = 0;
    int r = -ERR_IN_USE;

    for (int i = 0; i < TAKE_TRIES && r == -ERR_IN_USE; i++) {
        r = folder_lock_open(holder->env, LOCK_NAME, &holder->lock);
        if (r == -ERR_IN_USE && holder_get(holder->env, &process) == 0) {
            break;
        }
    }
    if (r == -ERR_IN_USE) {
        (void)!place_read(holder->env, place);
        snprintf(
            problem, 512,
            "process %d mounts %.150s at %.150s: `shoal umount` that first, or end the process",
            process, holder->directory, place);
    }
    return r;
}

int own_mount_take(const char *directory, const char *place, struct own_mount_holder **ret_holder,
                   char problem[512]) {
    const struct env_linux_options options = {.root = directory};
    struct own_mount_holder *holder = calloc(1, sizeof *holder);
    int r = holder ? env_linux_new(&options, &holder->env) : -ERR_NO_MEMORY;

    problem[0] = '\0';
    if (r == 0) {
        snprintf(holder->directory, sizeof holder->directory, "%s", directory);
        snprintf(holder->place, sizeof holder->place, "%s", place);
        r = lock_take(holder, problem);
    }
    if (r == 0) {
        /* Of one that was killed. */
        (void)!holder->env->ops->file_remove(holder->env, CHANNEL_NAME);
        r = folder_file_write(holder->env, PLACE_NAME, place, strlen(place));
        holder->has_place = r == 0;
    }
    if (r < 0) {
        if (!problem[0]) {
            snprintf(problem, 512, "%.300s/" PLACE_NAME " cannot be written: %s", directory,
                     err_text(r));
        }
        own_mount_leave(holder);
        return r;
    }
    *ret_holder = holder;
    return 0;
}

void own_mount_tell(struct own_mount_holder *holder, const struct fuse_mount *mount) {
    char text[OWN_MOUNT_WHY_BYTES + 64];
    struct own_mount_channel now;

    if (!holder || (holder->has_told && env_now_ns(holder->env) - holder->told_ns < TELL_NS)) {
        return;
    }
    own_mount_channel_get(mount, &now);
    if (!holder->has_told || now.served_aside != holder->told.served_aside ||
        now.stood_aside != holder->told.stood_aside) {
        (void)!folder_file_note(holder->env, CHANNEL_NAME, text,
                                own_mount_channel_line(&now, text));
        holder->told = now;
    }
    holder->has_told = true;
    holder->told_ns = env_now_ns(holder->env);
}

void own_mount_tell_wait(struct own_mount_holder *holder, int result) {
    const char *word = result == -ERR_TOO_MANY_SESSIONS ? WAITS_FULL : WAITS_SILENT;

    if (holder && holder->told_wait != result) {
        (void)!folder_file_note(holder->env, WAITS_NAME, word, strlen(word));
        holder->told_wait = result;
    }
}

int own_mount_wait_read(const char *directory) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;
    char *text;
    size_t size;
    int result = 0;

    if (env_linux_new(&options, &env) < 0) {
        return 0;
    }
    if (folder_file_read(env, WAITS_NAME, WAITS_BYTES, &text, &size) == 0) {
        result = strcmp(text, WAITS_FULL) == 0     ? -ERR_TOO_MANY_SESSIONS
                 : strcmp(text, WAITS_SILENT) == 0 ? -ERR_TIMED_OUT
                                                   : 0;
        free(text);
    }
    env_linux_free(env);
    return result;
}

void own_mount_wait_forget(const char *directory) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;

    if (env_linux_new(&options, &env) == 0) {
        (void)!env->ops->file_remove(env, WAITS_NAME);
        env_linux_free(env);
    }
}

/* A dead mount that was there before is there still if no other came in its place. */
void own_mount_leave(struct own_mount_holder *holder) {
    if (!holder) {
        return;
    }
    if (holder->has_place && !is_mount_of(holder->directory, holder->place)) {
        (void)!holder->env->ops->file_remove(holder->env, PLACE_NAME);
        (void)!holder->env->ops->file_remove(holder->env, CHANNEL_NAME);
    }
    if (holder->lock) {
        folder_lock_close(holder->lock);
    }
    if (holder->env) {
        env_linux_free(holder->env);
    }
    free(holder);
}
