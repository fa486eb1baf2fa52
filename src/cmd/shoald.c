/* shoald: the daemon in the foreground, for service managers. `shoal up` runs the same code. */
#include "cmd/verb.h"
#include <stdlib.h>
#include <string.h>

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
        verb_help(&verb_shoald);
    } else if (argc == 2 && verb_is_version(argv[1])) {
        status = verb_version.run(&verb_version, 1, argv + 1);
    } else {
        status = verb_shoald.run(&verb_shoald, argc + 1, words);
    }
    free(words);
    return status;
}
