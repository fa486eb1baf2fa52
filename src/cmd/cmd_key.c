/* key: makes and changes key files, and asks a cluster to take back what others have. Secrets are
 * in files and memory only, never on a command line or a screen. */
#include "cmd/control_words.h"
#include "cmd/find.h"
#include "host/machine.h"
#include "host/plain_file.h"
#include "host/secret_file.h"
#include "node/key_path.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int file_read(const struct verb *verb, const char *path, struct key_file *ret_file) {
    char problem[512];

    return key_path_read(path, ret_file, problem) < 0 ? verb_fail(verb, "%s", problem) : EXIT_OK;
}

static int members_read(const struct verb *verb, const char *path, struct key_file *ret_file) {
    char problem[512];

    return key_path_read_members(path, ret_file, problem) < 0 ? verb_fail(verb, "%s", problem)
                                                              : EXIT_OK;
}

static int file_write(const struct verb *verb, const char *path, const struct key_file *file,
                      int (*write)(const char *path, struct bytes content)) {
    char text[KEY_FILE_BYTES_MAX];
    size_t size = key_file_print(file, text);
    int r = write(path, (struct bytes){(const uint8_t *)text, size});

    secret_wipe(text, sizeof text);
    if (r == -ERR_EXISTS) {
        return verb_fail(verb, "%s is there already and stays: name another file", path);
    }
    return r < 0 ? verb_fail(verb, "%s cannot be written: %s", path, err_text(r)) : EXIT_OK;
}

/* What the file is, which is no secret. */
static void file_tell(const char *path, const struct key_file *file) {
    char identity[IDENTITY_BYTES_MAX + 1];

    (void)identity_print(&file->identity, identity);
    printf("%s: %s, key %016" PRIx64, path, identity, file->keys[0].name.value);
    if (file->key_count > 1) {
        printf(", and the older %016" PRIx64, file->keys[1].name.value);
    }
    printf("\n");
}

static int run_new(const struct verb *verb, int argc, char **argv) {
    struct secret members_key;
    struct key_file file;

    if (argc != 3 || argv[2][0] == '-') {
        return verb_usage(verb, "new takes the file to make");
    }
    machine_random(&members_key, sizeof members_key);
    key_file_make(&members_key, &file);
    secret_wipe(&members_key, sizeof members_key);
    int status = file_write(verb, argv[2], &file, secret_file_make);
    if (status == EXIT_OK) {
        file_tell(argv[2], &file);
    }
    key_file_wipe(&file);
    return status;
}

struct key_words {
    struct find_words where; /* the first, for find_options */
    const char *from;
    const char *to;
    struct identity identity;
};

static int squash_take(const struct verb *verb, const char *value, void *context) {
    struct key_words *words = context;

    words->identity.squash_root = strcmp(value, "root") == 0;
    return words->identity.squash_root ? EXIT_OK
                                       : verb_usage(verb, "--squash takes root, not %s", value);
}

static int file_take(const struct verb *verb, const char *word, void *context) {
    struct key_words *words = context;

    if (words->to) {
        return verb_usage(verb, "%s is not understood", word);
    }
    *(words->from ? &words->to : &words->from) = word;
    return EXIT_OK;
}

static int parse_mount(const struct verb *verb, char **argv, struct key_words *words) {
    int status = verb_parse(verb, "mount", argv + 2, file_take, words);

    if (status == EXIT_OK && !words->to) {
        status = verb_usage(verb, "mount takes the file of the members' key, and the one to make");
    }
    return status;
}

static int run_mount(const struct verb *verb, int argc, char **argv) {
    struct key_words words = {.identity.kind = IDENTITY_MOUNT};
    struct key_file members;
    struct key_file mount;
    int status = parse_mount(verb, argv, &words);

    (void)argc;
    if (status == EXIT_OK) {
        status = members_read(verb, words.from, &members);
    }
    if (status != EXIT_OK) {
        return status;
    }
    while (words.identity.serial == 0) {
        machine_random(&words.identity.serial, sizeof words.identity.serial);
    }
    key_file_derive(&members, &words.identity, &mount);
    key_file_wipe(&members);
    status = file_write(verb, words.to, &mount, secret_file_make);
    if (status == EXIT_OK) {
        file_tell(words.to, &mount);
    }
    key_file_wipe(&mount);
    return status;
}

/* The file by a path that stays its own: what is read and what is written in its place are looked
 * up one after the other, and nobody else may lay something there meanwhile, or see what comes. */
static int own_find(const struct verb *verb, const char *path, char **ret_path) {
    int r = plain_file_resolve(path, ret_path);

    if (r == -ERR_NOT_FOUND) {
        return verb_fail(verb, "%s: there is no such file", path);
    }
    if (r < 0) {
        return verb_fail(verb, "%s cannot be read: %s", path, err_text(r));
    }
    if (plain_file_is_own_for_good(*ret_path)) {
        return EXIT_OK;
    }
    int status = verb_fail(verb,
                           "%s is not yours alone: let it be yours, and the directories on the "
                           "way to it yours or root's, where nobody else may write",
                           *ret_path);
    free(*ret_path);
    return status;
}

/* Both files are the caller's for good. */
static int add_own(const struct verb *verb, const char *path, const char *newer_path) {
    char problem[KEY_PROBLEM_BYTES];
    struct key_file file;
    struct key_file newer;
    int status = file_read(verb, path, &file);

    if (status != EXIT_OK) {
        return status;
    }
    status = file_read(verb, newer_path, &newer);
    if (status == EXIT_OK) {
        if (key_file_add(&file, &newer, problem) < 0) {
            status = verb_fail(verb, "%s: %s", path, problem);
        } else {
            status = file_write(verb, path, &file, secret_file_replace);
        }
        key_file_wipe(&newer);
    }
    if (status == EXIT_OK) {
        file_tell(path, &file);
    }
    key_file_wipe(&file);
    return status;
}

static int run_add(const struct verb *verb, int argc, char **argv) {
    char *path;
    char *newer_path;

    if (argc != 4 || argv[2][0] == '-' || argv[3][0] == '-') {
        return verb_usage(verb, "add takes the file to change, and the one with the new key");
    }
    int status = own_find(verb, argv[2], &path);
    if (status != EXIT_OK) {
        return status;
    }
    status = own_find(verb, argv[3], &newer_path);
    if (status == EXIT_OK) {
        status = add_own(verb, path, newer_path);
        free(newer_path);
    }
    free(path);
    return status;
}

/* rest: what stands behind them, and names the cluster. */
static int words_ask(const struct verb *verb, char *const *rest, size_t word_count,
                     const char *const *words) {
    struct key_words found = {.from = NULL};
    int status = verb_parse(verb, words[0], rest, find_noun, &found);

    return status == EXIT_OK ? find_and_ask(verb, &found.where, word_count, words) : status;
}

static int run_revoke(const struct verb *verb, int argc, char **argv) {
    uint64_t serial;

    if (argc < 3 || argv[2][0] == '-') {
        return verb_usage(verb, "revoke takes the serial of a mount's key");
    }
    if (!control_words_serial(argv[2], &serial)) {
        return verb_usage(verb,
                          "%s is no serial, which has 16 digits, as mount:SERIAL in a key file has "
                          "them",
                          argv[2]);
    }
    return words_ask(verb, argv + 3, 2, (const char *const[]){"revoke", argv[2]});
}

static int run_renew(const struct verb *verb, int argc, char **argv) {
    (void)argc;
    return words_ask(verb, argv + 2, 1, (const char *const[]){"renew"});
}

static const struct verb_kind key_kinds[] = {
    {"new", "makes a cluster's key"},
    {"mount", "derives from it the key of a mount"},
    {"add", "adds a new key beside the old"},
    {"revoke", "revokes the key of a mount"},
    {"renew", "takes back what was granted before the renewal before"},
    {NULL, NULL},
};

static int run_key(const struct verb *verb, int argc, char **argv) {
    /* In the order of the kinds. */
    static int (*const runs[])(const struct verb *verb, int argc,
                               char **argv) = {run_new, run_mount, run_add, run_revoke, run_renew};

    static_assert(ARRAY_SIZE(runs) + 1 == ARRAY_SIZE(key_kinds), "each kind is run");
    for (size_t i = 0; argc > 1 && key_kinds[i].name; i++) {
        if (strcmp(argv[1], key_kinds[i].name) == 0) {
            return runs[i](verb, argc, argv);
        }
    }
    return verb_usage(verb, "say new, mount, add, revoke or renew");
}

static const struct verb_option key_options[] = {
    {.name = "--ro",
     .help = "the mount may read only",
     .of = "mount",
     .offset = offsetof(struct key_words, identity.read_only)},
    {.name = "--squash",
     .value = "root",
     .help = "root of the mount is nobody (65534)",
     .of = "mount",
     .take = squash_take},
    {.name = "--join",
     .value = "ADDR:PORT[,...]",
     .help = "at the cluster that has nodes there",
     .of = "revoke renew",
     .offset = offsetof(struct key_words, where.join)},
    {.name = "--key",
     .value = "FILE",
     .help = "with the members' key",
     .of = "revoke renew",
     .offset = offsetof(struct key_words, where.key)},
    {.name = NULL},
};

const struct verb verb_key = {
    .name = "key",
    .arguments =
        "new FILE | mount FILE OUT [--ro] [--squash root] | add FILE NEW | "
        "revoke SERIAL [DIR|PATH|--join ADDR --key FILE] | renew [DIR|PATH|--join ADDR --key FILE]",
    .summary = "Makes and changes keys of clusters and mounts, and takes back what they grant.",
    .kinds = key_kinds,
    .options = key_options,
    .example = "shoal key new /etc/shoal/members.key",
    .run = run_key};
