/* completion: prints the script by which a shell completes the words of `shoal`. */
#include "cmd/completion.h"
#include <stdio.h>
#include <string.h>

struct completion_words {
    const char *shell;
};

static int shell_take(const struct verb *verb, const char *word, void *context) {
    struct completion_words *words = context;

    if (words->shell) {
        return verb_usage(verb, "one shell, not %s as well", word);
    }
    words->shell = word;
    return EXIT_OK;
}

static int run_completion(const struct verb *verb, int argc, char **argv) {
    struct completion_words words = {.shell = NULL};
    int status = verb_parse(verb, NULL, argv + 1, shell_take, &words);

    (void)argc;
    if (status != EXIT_OK) {
        return status;
    }
    if (words.shell && strcmp(words.shell, "bash") == 0) {
        completion_print_bash();
    } else if (words.shell && strcmp(words.shell, "zsh") == 0) {
        completion_print_zsh();
    } else {
        return verb_usage(verb, "say bash or zsh");
    }
    return EXIT_OK;
}

static const struct verb_kind completion_kinds[] = {
    {"bash", "for /usr/share/bash-completion/completions/shoal"},
    {"zsh", "for a file _shoal in a folder of $fpath"},
    {NULL, NULL},
};

const struct verb verb_completion = {
    .name = "completion",
    .arguments = "bash|zsh",
    .summary = "Prints the script by which a shell completes verbs, options and files.",
    .kinds = completion_kinds,
    .notes = "`meson install` puts both where shells look.",
    .nouns = VERB_NO_NOUNS,
    .example = "shoal completion bash >/etc/bash_completion.d/shoal",
    .run = run_completion};
