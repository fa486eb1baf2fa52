/* Finding clusters: the registry lists the daemons of this machine, each knows its mount. */
#include "cmd/find.h"
#include "cmd/config.h"
#include "cmd/daemon.h"
#include "env/env_control.h"
#include "env/env_linux.h"
#include "env/env_system.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A daemon that is asked for its mount only, and does not say it by then, is passed over. */
enum { SILENCE_MS = 2000 };

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

int call_daemon(const struct verb *verb, const char *directory, size_t argument_count,
                const char *const *arguments) {
    struct text text = {NULL, 0};
    const struct env_control_request request = {
        .directory = directory,
        .name = DAEMON_CONTROL_NAME,
        .argument_count = argument_count,
        .arguments = arguments,
        .output = collect,
        .context = &text,
    };
    int status = EXIT_FAILED;
    int r = env_control_call(&request, &status);

    if (r == -ERR_NOT_FOUND) {
        status = verb_fail(verb, "nothing runs on %s: start it with `shoal up %s`", directory,
                           directory);
    } else if (r < 0) {
        status = verb_fail(verb, "the daemon of %s cannot be asked: %s", directory, err_text(r));
    } else if (status == EXIT_OK) {
        fputs(text.data ? text.data : "", stdout);
    } else {
        size_t size = text.size;

        while (size > 0 && text.data[size - 1] == '\n') {
            text.data[--size] = '\0';
        }
        (void)verb_fail(verb, "%s", size > 0 ? text.data : "failed");
    }
    free(text.data);
    return status;
}

struct search {
    struct env *env;
    const char *path; /* to be found in a mount; NULL: any cluster */
    char directory[FIND_PATH_BYTES];
    size_t count;
};

/* Whether the cluster's mount is, or is above, the path. */
static bool is_mounted_above(const char *directory, const char *path) {
    const char *const arguments[] = {"mount-point"};
    struct text text = {NULL, 0};
    const struct env_control_request request = {.directory = directory,
                                                .name = DAEMON_CONTROL_NAME,
                                                .argument_count = 1,
                                                .arguments = arguments,
                                                .silence_ms_max = SILENCE_MS,
                                                .output = collect,
                                                .context = &text};
    int status = EXIT_FAILED;
    bool above = env_control_call(&request, &status) == 0 && status == EXIT_OK && text.size > 0 &&
                 strncmp(path, text.data, text.size) == 0 &&
                 (path[text.size] == '/' || path[text.size] == '\0' || text.size == 1);

    free(text.data);
    return above;
}

/* A killed daemon leaves its entry, and its number may have become somebody else's; the lock on its
 * directory went with it. */
static bool runs_on(const char *directory, int process) {
    const struct env_linux_options options = {.root = directory};
    struct env *env;
    int holder = 0;

    if (env_linux_new(&options, &env) < 0) {
        return false;
    }
    bool runs = env_lock_holder(env, "lock", &holder) == 0 && holder == process;
    env_linux_free(env);
    return runs;
}

static int search_one(void *context, const struct env_entry *entry) {
    struct search *search = context;
    unsigned long long process;
    char *directory;
    size_t size;

    if (!verb_parse_count(entry->name, &process) || process > INT_MAX ||
        env_file_read(search->env, entry->name, FIND_PATH_BYTES - 1, &directory, &size) < 0) {
        return 0;
    }
    if (runs_on(directory, (int)process) &&
        (!search->path || is_mounted_above(directory, search->path))) {
        memcpy(search->directory, directory, size + 1);
        search->count++;
    }
    free(directory);
    return 0;
}

static void search_all(struct search *search) {
    const struct env_linux_options options = {.root = DAEMON_REGISTRY};

    if (env_linux_new(&options, &search->env) == 0) {
        (void)!env_directory_list(search->env, ".", search_one, search);
        env_linux_free(search->env);
    }
}

static bool is_cluster_directory(const char *path) {
    const struct env_linux_options options = {.root = path};
    struct env *env;
    char *text;
    size_t size;

    if (env_linux_new(&options, &env) < 0) {
        return false;
    }
    bool found = env_file_read(env, CONFIG_NAME, 65536, &text, &size) == 0;
    if (found) {
        free(text);
    }
    env_linux_free(env);
    return found;
}

int find_cluster(const struct verb *verb, const char *what, char ret_directory[FIND_PATH_BYTES]) {
    struct search search = {.count = 0};
    char *path = NULL;

    if (what && env_path_resolve(what, &path) < 0) {
        return verb_fail(verb, "%s: there is no such file or directory", what);
    }
    if (path && is_cluster_directory(path)) {
        snprintf(ret_directory, FIND_PATH_BYTES, "%s", path);
        free(path);
        return EXIT_OK;
    }
    search.path = path;
    search_all(&search);
    free(path);
    if (search.count == 1) {
        snprintf(ret_directory, FIND_PATH_BYTES, "%s", search.directory);
        return EXIT_OK;
    }
    if (what) {
        return verb_fail(verb, "%s is neither a Shoal directory nor in a Shoal mount", what);
    }
    return search.count == 0
               ? verb_fail(verb, "no cluster runs here: start one with `shoal up DIR`")
               : verb_fail(verb, "%zu clusters run here: name one by its directory", search.count);
}

int find_and_call(const struct verb *verb, const char *what, size_t argument_count,
                  const char *const *arguments) {
    char directory[FIND_PATH_BYTES];
    int status = find_cluster(verb, what, directory);

    return status != EXIT_OK ? status : call_daemon(verb, directory, argument_count, arguments);
}
