/* target: says of a target that it will not come back. */
#include "cmd/find.h"
#include "host/machine.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct target_words {
    struct find_words where; /* the first, for find_options */
    const char *id;
    bool yes;
};

static int words_parse(const struct verb *verb, int argc, char **argv, struct target_words *words) {
    unsigned long long id;

    if (argc < 3 || strcmp(argv[1], "lost") != 0 || argv[2][0] == '-') {
        return verb_usage(verb, "say lost and the number of a target, as `shoal status` lists it");
    }
    words->id = argv[2];
    if (!verb_parse_count(words->id, &id) || id > UINT32_MAX) {
        return verb_usage(verb, "%s is no number of a target: `shoal status` lists them",
                          words->id);
    }
    return verb_parse(verb, NULL, argv + 3, find_noun, words);
}

static int ask(const struct verb *verb, const struct target_words *words, const char *how) {
    return find_and_ask(verb, &words->where, 4,
                        (const char *const[]){"target", "lost", words->id, how});
}

/* The whole word, as it is for ever. */
static bool is_confirmed(void) {
    printf("Type yes to go on: ");
    fflush(stdout);
    return machine_is_answered("yes");
}

static int run_target(const struct verb *verb, int argc, char **argv) {
    struct target_words words = {.yes = false};
    int status = words_parse(verb, argc, argv, &words);

    if (status != EXIT_OK || words.yes) {
        return status != EXIT_OK ? status : ask(verb, &words, "yes");
    }
    if (!machine_is_terminal(stdin)) {
        status = ask(verb, &words, "check");
        return status != EXIT_OK
                   ? status
                   : verb_fail(verb,
                               "there is no terminal to ask at whether target %s is lost for "
                               "ever: --yes says so",
                               words.id);
    }
    status = ask(verb, &words, "ask");
    if (status == EXIT_OK && !is_confirmed()) {
        status = verb_fail(verb, "target %s is not declared lost: nothing has changed", words.id);
        return status;
    }
    return status != EXIT_OK ? status : ask(verb, &words, "yes");
}

static const struct verb_kind target_kinds[] = {
    {"lost", "it will not come back"},
    {NULL, NULL},
};
static const struct verb_option target_options[] = {
    {.name = "--yes",
     .help = "answers the question what it costs; for scripts",
     .offset = offsetof(struct target_words, yes)},
    {.name = NULL},
};

const struct verb verb_target = {
    .name = "target",
    .arguments = "lost ID [DIR|PATH|--join ADDR --key FILE] [--yes]",
    .summary = "Declares that a target, whose daemon is gone, will not come back.",
    .kinds = target_kinds,
    .options = target_options,
    .shared = find_options,
    .notes =
        "ID is the number that `shoal status` shows for the target. From then on nobody waits for "
        "it: what needs a part of a file that was there, or a file or directory of a metadata "
        "target, answers EIO at once, everything else goes on, new files and directories go "
        "elsewhere, and `shoal fsck` names what is gone. It is for ever.",
    .example = "shoal target lost 6 /srv/shoal",
    .run = run_target};
