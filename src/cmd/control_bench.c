/* bench --native: the workload runs in the daemon, on its own client.
 *
 *     arguments   bench, the absolute path, then the words of the user */
#include "cmd/bench/bench.h"
#include "cmd/control.h"
#include "cmd/verb.h"
#include "host/machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_out(void *context, const char *text) {
    control_print(context, "%s", text);
}

static void row(void *user, const struct bench_row *row) {
    bench_print_row(user, row);
}

/* The path below the root of the file system, or NULL. */
static const char *inside(const struct control *control, const char *absolute) {
    const char *mount_point = control->mount_point;
    size_t size = mount_point ? strlen(mount_point) : 0;

    if (!atomic_load(&control->mount) || !mount_point ||
        strncmp(absolute, mount_point, size) != 0 ||
        (absolute[size] != '/' && absolute[size] != '\0')) {
        return NULL;
    }
    return absolute + size;
}

struct native_run {
    struct bench_run run;
    char problem[256];
    int result;
};

static void native_run(void *context, unsigned index) {
    struct native_run *native = context;

    (void)index;
    native->result = bench_run(&native->run, native->problem);
}

/* On a thread that is not entered: one that is must not sleep but in its loop. */
static int run_apart(struct native_run *native) {
    int r = machine_threads(1, native_run, native);

    if (r < 0) {
        snprintf(native->problem, sizeof native->problem, "no thread can be had");
    }
    return r < 0 ? r : native->result;
}

int control_bench(struct control *control, struct control_socket_connection *connection,
                  size_t argument_count, char **arguments) {
    const char *below = argument_count > 2 ? inside(control, arguments[1]) : NULL;
    struct bench_options *options = calloc(1, sizeof *options);
    struct bench_print print = {.out = print_out, .context = connection};
    struct native_run native = {.run = {.options = options,
                                        .files = &bench_native_files,
                                        .context = local_cluster_client(control->cluster),
                                        .row = row,
                                        .user = &print},
                                .problem = "memory could not be had"};
    int status = EXIT_FAILED;

    if (!below) {
        control_print(connection, "the path lies in no mount of this cluster\n");
    } else if (!options || !bench_parse(argument_count - 2, (const char *const *)(arguments + 2),
                                        options, native.problem)) {
        control_print(connection, "%s\n", native.problem);
    } else {
        snprintf(options->path, sizeof options->path, "%s", below);
        print.json = options->json;
        int r = run_apart(&native);
        bench_print_end(&print);
        if (r < 0) {
            control_print(connection, "%s\n", native.problem);
        }
        status = r == 0 ? EXIT_OK : EXIT_FAILED;
    }
    free(options);
    return status;
}
