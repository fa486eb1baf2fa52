/* shoald: the daemon in the foreground, for service managers. `shoal up` runs the same code. */
#include "cmd/verb.h"
#include <stdlib.h>
#include <string.h>

static const struct verb shoald = {
    .name = "shoald",
    .arguments = "DIR [--mount MNT] [--mdts N] [--osts N] [--roles LIST] [--size BYTES]\n"
                 "        and all other words of `shoal up`",
    .summary =
        "Starts a cluster on this machine with its data in DIR, and stays until it is told to "
        "stop\nby a signal or by `shoal down`.",
    .options = "  --mount MNT    mount it at this directory (needs root)\n"
               "  --mdts N       metadata targets of a new node, 1 to 8 (1)\n"
               "  --osts N       storage targets of a new cluster, 1 to 64 (4)\n"
               "  --size BYTES   space of each storage target of a new one\n"
               "  --version      print the version and the on-disk format\n",
    .example = "shoald /var/lib/shoal --mount /mnt/shoal",
};

int main(int argc, char **argv) {
    char **words = calloc((size_t)argc + 2, sizeof *words);
    static char foreground[] = "--foreground";

    if (!words) {
        return EXIT_FAILED;
    }
    memcpy(words, argv, (size_t)argc * sizeof *words);
    words[argc] = foreground;
    int status = EXIT_OK;
    if (verb_is_help(argc - 1, argv + 1)) {
        verb_help(&shoald);
    } else if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        status = verb_version.run(&verb_version, 1, argv);
    } else {
        status = verb_up.run(&shoald, argc + 1, words);
    }
    free(words);
    return status;
}
