/* Finding clusters: the registry lists the daemons of this machine, each knows its mount. */
#include "cmd/find.h"
#include "cmd/daemon.h"
#include "env/env_linux.h"
#include "front/fuse/fuse.h"
#include "host/control_socket.h"
#include "host/folder.h"
#include "host/plain_file.h"
#include "host/plain_text.h"
#include "host/process.h"
#include "node/config.h"
#include "node/local_directory.h"
#include "node/local_mark.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A daemon that is asked for its mount only, and does not say it by then, is passed over. */
enum { SILENCE_MS = 2000, MOUNT_POINT_BYTES_MAX = 65536 };

/* Of 1,024 nodes, 64 KiB each. */
enum { ANSWER_BYTES_MAX = 64 << 20 };

struct text {
    char *data;
    size_t size;
};

static void collect(void *context, const char *part, size_t size) {
    struct text *text = context;
    char *data = realloc(text->data, text->size + size + 1);

    if (data) {
        memcpy(data + text->size, part, size);
        text->data = data;
        text->size += size;
        data[text->size] = '\0';
    }
}

static int say_denied(const struct verb *verb, const char *what) {
    return verb_fail(verb,
                     "permission denied for %s: run it as root, or as the user who started the "
                     "cluster",
                     what);
}

int call_failed(const struct verb *verb, const char *directory, int error) {
    if (error == -ERR_ACCESS) {
        return say_denied(verb, directory);
    }
    if (error == -ERR_NOT_PERMITTED) {
        return verb_fail(verb,
                         "another user's daemon listens in %s, which could answer anything: run it "
                         "as that user",
                         directory);
    }
    if (error == -ERR_OVERFLOW) {
        return verb_fail(verb, "the daemon of %s says more than %d MiB", directory,
                         ANSWER_BYTES_MAX / (int)MIB);
    }
    return verb_fail(verb, "the daemon of %s cannot be asked: %s", directory, err_text(error));
}

/* Whether the last daemon of the directory ended without a stop. */
static bool has_died(const char *directory) {
    const struct env_linux_options options = {.root = directory};
    struct local_mark mark = {.unclean = false};
    struct env *env;

    if (env_linux_new(&options, &env) == 0) {
        (void)!local_mark_read(env, &mark);
        env_linux_free(env);
    }
    return mark.was_served;
}

int find_print(const struct verb *verb, int status, char *text) {
    size_t size = text ? strlen(text) : 0;

    if (status == EXIT_OK || status == EXIT_PARTLY) {
        fputs(text ? plain_text(text, true) : "", stdout);
    } else {
        while (size > 0 && text[size - 1] == '\n') {
            text[--size] = '\0';
        }
        (void)verb_fail(verb, "%s", size > 0 ? text : "failed");
    }
    free(text);
    return status;
}

int call_daemon(const struct verb *verb, const char *directory, size_t argument_count,
                const char *const *arguments) {
    struct text text = {NULL, 0};
    const struct control_socket_request request = {
        .directory = directory,
        .name = LOCAL_CONTROL_NAME,
        .argument_count = argument_count,
        .arguments = arguments,
        .answer_bytes_max = ANSWER_BYTES_MAX,
        .output = collect,
        .context = &text,
    };
    int status = EXIT_FAILED;
    int r = control_socket_call(&request, &status);

    if (r == -ERR_NOT_FOUND) {
        status = verb_fail(verb, "nothing runs on %s%s: start it with `shoal up %s`", directory,
                           has_died(directory) ? ", its daemon has died" : "", directory);
    } else if (r < 0) {
        status = call_failed(verb, directory, r);
    } else {
        return find_print(verb, status, text.data);
    }
    free(text.data);
    return status;
}

struct search {
    struct env *env;
    const char *path; /* to be found in a mount; NULL: any cluster */
    char directory[FIND_PATH_BYTES];
    size_t count;
    bool denied;         /* there is something that this user may not look at */
    bool silent;         /* a daemon runs that did not say where it is mounted */
    char elsewhere[512]; /* the addresses that a mount says its cluster has; empty: none */
};

static void note_denied(struct search *search, int r) {
    search->denied = search->denied || r == -ERR_ACCESS || r == -ERR_NOT_PERMITTED;
}

/* The text, for the caller to free, is empty where nothing is mounted. */
static int ask_mount_point(const char *directory, bool waits, struct text *ret_text) {
    const char *const arguments[] = {"mount-point", "--waits"};
    const struct control_socket_request request = {.directory = directory,
                                                   .name = LOCAL_CONTROL_NAME,
                                                   .argument_count = waits ? 2 : 1,
                                                   .arguments = arguments,
                                                   .silence_ms_max = SILENCE_MS,
                                                   .answer_bytes_max = MOUNT_POINT_BYTES_MAX,
                                                   .output = collect,
                                                   .context = ret_text};
    int status = EXIT_FAILED;
    int r = control_socket_call(&request, &status);

    return r == 0 && status != EXIT_OK ? -ERR_CLOSED : r;
}

bool find_is_unmounted(const char *directory) {
    struct text text = {NULL, 0};
    int r = ask_mount_point(directory, false, &text);

    free(text.data);
    return r == 0 && text.size == 0;
}

static bool is_told(const char *directory, bool waits, const char *path) {
    struct text text = {NULL, 0};
    int r = ask_mount_point(directory, waits, &text);
    bool is = r == 0 && text.size > 0 && strcmp(text.data, path) == 0;

    free(text.data);
    return is;
}

bool find_is_mounted_at(const char *directory, const char *path) {
    return is_told(directory, false, path);
}

bool find_waits_at(const char *directory, const char *path) {
    return is_told(directory, true, path);
}

/* Whether the cluster's mount is, or is above, the path; or waits or is dead there. */
static bool is_mounted_above(struct search *search, const char *directory, const char *path) {
    struct text text = {NULL, 0};
    int r = ask_mount_point(directory, false, &text);
    bool above = r == 0 && text.size > 0 && strncmp(path, text.data, text.size) == 0 &&
                 (path[text.size] == '/' || path[text.size] == '\0' || text.size == 1);

    note_denied(search, r);
    search->silent = search->silent || r < 0;
    free(text.data);
    return above || (r == 0 && find_waits_at(directory, path));
}

/* A killed daemon leaves its entry, and its number may have become somebody else's; the lock on its
 * directory went with it. Such an entry is taken away. Where there is no such directory it may only
 * be out of sight (in a container, say), so there the process decides. */
static bool runs_on(struct search *search, const char *entry, const char *directory, int process) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;
    int holder = 0;
    bool gone;
    int r = env_linux_new(&options, &env);

    if (r == 0) {
        r = folder_lock_holder(env, "lock", &holder);
        gone = r == -ERR_NOT_FOUND || (r == 0 && holder != process);
        env_linux_free(env);
    } else {
        gone = r == -ERR_NOT_FOUND && process_signal(process, 0) == -ERR_NOT_FOUND;
    }
    note_denied(search, r);
    if (gone) {
        (void)!search->env->ops->file_remove(search->env, entry);
    }
    return r == 0 && holder == process;
}

/* An entry that was being written; of a daemon that was killed meanwhile it is taken away. */
static void half_written(struct search *search, const char *entry) {
    char number[16];
    size_t size = strcspn(entry, ".");
    unsigned long long process;

    snprintf(number, sizeof number, "%.*s", (int)MIN(size, sizeof number), entry);
    if (strcmp(entry + size, FOLDER_FILE_NEW_SUFFIX) == 0 && verb_parse_count(number, &process) &&
        process <= INT_MAX && process_signal((int)process, 0) == -ERR_NOT_FOUND) {
        (void)!search->env->ops->file_remove(search->env, entry);
    }
}

static int search_one(void *context, const struct folder_entry *entry) {
    struct search *search = context;
    unsigned long long process;
    char *directory;
    size_t size;

    if (!verb_parse_count(entry->name, &process) || process > INT_MAX) {
        half_written(search, entry->name);
        return 0;
    }
    int r = folder_file_read(search->env, entry->name, FIND_PATH_BYTES - 1, &directory, &size);
    if (r < 0) {
        note_denied(search, r);
        return 0;
    }
    if (runs_on(search, entry->name, directory, (int)process) &&
        (!search->path || is_mounted_above(search, directory, search->path))) {
        memcpy(search->directory, directory, size + 1);
        search->count++;
    }
    free(directory);
    return 0;
}

static void search_all(struct search *search) {
    const struct env_linux_options options = {.root = DAEMON_REGISTRY};
    int r = env_linux_new(&options, &search->env);

    if (r == 0) {
        r = folder_list(search->env, ".", search_one, search);
        env_linux_free(search->env);
    }
    note_denied(search, r);
}

static bool is_cluster_directory(struct search *search, const char *path) {
    const struct env_linux_options options = {.root = path};
    struct env *env;
    char *text;
    size_t size;
    int r = env_linux_new(&options, &env);

    if (r == 0) {
        r = folder_file_read(env, CONFIG_NAME, 65536, &text, &size);
        env_linux_free(env);
    }
    if (r == 0) {
        free(text);
    }
    note_denied(search, r);
    return r == 0;
}

bool find_is_addresses(const char *source) {
    size_t size = sizeof FIND_SERVED_INSIDE - 1;

    return source[0] != '/' && strncmp(source, FIND_SERVED_INSIDE, size) != 0 &&
           strchr(source, ':') != NULL;
}

/* A mount that a process of its own serves says in the table of mounts where its cluster is. */
static bool find_by_source(struct search *search, const char *path,
                           char ret_directory[FIND_PATH_BYTES]) {
    char *source = fuse_path_source(path);
    bool found = source && source[0] == '/' && is_cluster_directory(search, source);

    if (found) {
        snprintf(ret_directory, FIND_PATH_BYTES, "%s", source);
    } else if (source && find_is_addresses(source)) {
        snprintf(search->elsewhere, sizeof search->elsewhere, "%s", source);
    }
    free(source);
    return found;
}

/* A daemon that lives may be the one of a mount that answers nothing; it is not waited for. */
static int say_not_found(const struct verb *verb, const char *what, const struct search *search) {
    if (search->denied && search->count == 0) {
        return say_denied(verb, what ? what : "the clusters of this machine");
    }
    if (what && !search->silent && fuse_path_is_dead(what)) {
        return verb_fail(verb,
                         "the daemon of the mount at %s is dead: `shoal up DIR --mount MNT` brings "
                         "it back, `umount -l MNT` takes the mount away",
                         what);
    }
    if (what && search->elsewhere[0]) {
        return verb_fail(verb, "%s is a mount of the cluster at %s: ask on that machine", what,
                         search->elsewhere);
    }
    if (what) {
        return verb_fail(verb, "%s is neither a Shoal directory nor in a Shoal mount", what);
    }
    return search->count == 0
               ? verb_fail(verb, "no cluster runs here: start one with `shoal up DIR`")
               : verb_fail(verb, "%zu clusters run here: name one by its directory", search->count);
}

/* The path of what was typed. One below a mount is asked for, too, as it has to be there, but an
 * error of the mount is no answer. */
static int resolve(const char *what, char **ret_path, bool *ret_is_mount_point) {
    char *text = NULL;
    bool in_mount = fuse_path_in_mount(what, &text, ret_is_mount_point);
    int r = *ret_is_mount_point ? 0 : plain_file_resolve(what, ret_path);

    if (*ret_is_mount_point ||
        (in_mount && r < 0 && r != -ERR_NOT_FOUND && r != -ERR_NOT_DIRECTORY && r != -ERR_ACCESS &&
         r != -ERR_NOT_PERMITTED)) {
        *ret_path = text;
        return 0;
    }
    free(text);
    return r;
}

int find_path(const struct verb *verb, const char *what, char **ret_path) {
    bool is_mount_point;
    int r = resolve(what, ret_path, &is_mount_point);

    return r == 0 ? EXIT_OK : verb_fail(verb, "%s: there is no such file or directory", what);
}

int find_cluster(const struct verb *verb, const char *what, char ret_directory[FIND_PATH_BYTES]) {
    return find_cluster_or_addresses(verb, what, ret_directory, NULL);
}

int find_cluster_or_addresses(const struct verb *verb, const char *what,
                              char ret_directory[FIND_PATH_BYTES],
                              char ret_addresses[FIND_ADDRESSES_BYTES]) {
    struct search search = {.count = 0};
    char *path = NULL;
    bool is_mount_point = false;
    int r = what ? resolve(what, &path, &is_mount_point) : 0;

    note_denied(&search, r);
    if (search.denied) {
        return say_not_found(verb, what, &search);
    }
    if (r < 0) {
        return verb_fail(verb, "%s: there is no such file or directory", what);
    }
    if (path && !is_mount_point && is_cluster_directory(&search, path)) {
        snprintf(ret_directory, FIND_PATH_BYTES, "%s", path);
        free(path);
        return EXIT_OK;
    }
    search.path = path;
    search_all(&search);
    if (path && search.count == 0 && find_by_source(&search, path, ret_directory)) {
        free(path);
        return EXIT_OK;
    }
    free(path);
    if (search.count == 1) {
        snprintf(ret_directory, FIND_PATH_BYTES, "%s", search.directory);
        return EXIT_OK;
    }
    if (ret_addresses && search.elsewhere[0]) {
        ret_directory[0] = '\0';
        snprintf(ret_addresses, FIND_ADDRESSES_BYTES, "%s", search.elsewhere);
        return EXIT_OK;
    }
    return say_not_found(verb, what, &search);
}

int find_and_call(const struct verb *verb, const char *what, size_t argument_count,
                  const char *const *arguments) {
    char directory[FIND_PATH_BYTES];
    int status = find_cluster(verb, what, directory);

    return status != EXIT_OK ? status : call_daemon(verb, directory, argument_count, arguments);
}
