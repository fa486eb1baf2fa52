/* shoald: the daemon in the foreground, for service managers. `shoal up` runs the same code. */
#include "cmd/verb.h"
#include <stdio.h>
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
    int status = verb_up.run(&verb_up, argc + 1, words);
    free(words);
    return status;
}
