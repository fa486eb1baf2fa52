/* shoal: the one command. Finds the verb and hands over. */
#include "cmd/verb.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct verb *const verbs[] = {
    &verb_up,    &verb_down,   &verb_mount, &verb_umount, &verb_status,  &verb_df,
    &verb_stats, &verb_sync,   &verb_stat,  &verb_stripe, &verb_fsck,    &verb_target,
    &verb_key,   &verb_doctor, &verb_bench, &verb_plan,   &verb_version,
};

static void print_verbs(void) {
    printf("shoal: a parallel file system for AI training\n\nusage: shoal VERB ...\n\n");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        printf("  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    printf(
        "\n`shoal VERB --help` tells more. Exit status: 0 success, 1 failure, 2 usage, 3 not all "
        "nodes have answered.\n");
}

static const struct verb *verb_find(const char *name) {
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(name, verbs[i]->name) == 0) {
            return verbs[i];
        }
    }
    return NULL;
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
    return pretends ? EXIT_OK : verb_mount.run(&verb_mount, count, argv);
}

int main(int argc, char **argv) {
    if (is_mount_helper(argv[0])) {
        return run_mount_helper(argc, argv);
    }
    if (argc < 2) {
        fprintf(stderr, "shoal: a verb is missing: `shoal help` lists them\n");
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 || verb_is_help(1, argv + 1)) {
        return help(argc, argv);
    }
    const struct verb *verb =
        strcmp(argv[1], "--version") == 0 ? &verb_version : verb_find(argv[1]);
    if (!verb) {
        return refuse_unknown(argv[1]);
    }
    if (verb_is_help(argc - 2, argv + 2)) {
        print_help(verb, argc - 1, argv + 1);
        return EXIT_OK;
    }
    return verb->run(verb, argc - 1, argv + 1);
}
