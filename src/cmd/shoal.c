/* shoal: the one command. Finds the verb and hands over. */
#include "cmd/verb.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void print_verbs(void) {
    printf("shoal: a parallel file system for AI training\n\nusage: shoal VERB ...\n\n");
    for (size_t i = 0; verb_list[i]; i++) {
        verb_print_line(verb_list[i]->name, verb_list[i]->summary, VERB_LIST_COLUMN);
    }
    printf("\n");
    verb_print_text(
        "`shoal VERB --help` tells more, as `man shoal-VERB` does; `shoal --version` is "
        "`shoal version`. Exit status: 0 success, 1 failure, 2 usage, 3 not all nodes "
        "have answered.",
        0, 0);
}

static int refuse_unknown(const char *name) {
    fprintf(stderr, "shoal: there is no verb \"%s\": `shoal help` lists them\n", name);
    return EXIT_USAGE;
}

static void print_help(const struct verb *verb, int argc, char **argv) {
    if (verb->help) {
        verb->help(verb, argc, argv);
    } else {
        verb_help(verb);
    }
}

static int help(int argc, char **argv) {
    const struct verb *verb = argc > 2 ? verb_find(argv[2]) : NULL;

    if (verb) {
        print_help(verb, argc - 2, argv + 2);
    } else if (argc > 2) {
        return refuse_unknown(argv[2]);
    } else {
        print_verbs();
    }
    return EXIT_OK;
}

/* mount(8) calls /sbin/mount.fuse.shoal SOURCE MNT [-fnsv] [-o OPTIONS]: a link to this program. */
static bool is_mount_helper(const char *path) {
    const char *name = strrchr(path, '/');

    return strcmp(name ? name + 1 : path, "mount.fuse.shoal") == 0;
}

/* What it passes besides means nothing here, but -f, which asks to do all but mount. */
static int run_mount_helper(int argc, char **argv) {
    bool pretends = false;
    int count = 1;

    for (int i = 1; i < argc; i++) {
        bool is_flags = argv[i][0] == '-' && argv[i][1] != '\0' &&
                        strspn(argv[i] + 1, "fnsv") == strlen(argv[i] + 1);

        pretends = pretends || (is_flags && strchr(argv[i], 'f'));
        if (!is_flags) {
            argv[count++] = argv[i];
        }
    }
    argv[0] = (char *)(uintptr_t)verb_mount.name;
    argv[count] = NULL;
    return pretends ? EXIT_OK : verb_mount.run(&verb_mount, count, argv);
}

int main(int argc, char **argv) {
    if (is_mount_helper(argv[0])) {
        return run_mount_helper(argc, argv);
    }
    if (argc < 2 || strcmp(argv[1], "help") == 0 || verb_is_help(1, argv + 1)) {
        return help(argc, argv);
    }
    const struct verb *verb = verb_is_version(argv[1]) ? &verb_version : verb_find(argv[1]);
    if (!verb) {
        return refuse_unknown(argv[1]);
    }
    if (verb_is_help(argc - 2, argv + 2)) {
        print_help(verb, argc - 1, argv + 1);
        return EXIT_OK;
    }
    return verb->run(verb, argc - 1, argv + 1);
}
