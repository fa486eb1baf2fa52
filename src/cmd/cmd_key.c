/* key: makes and changes key files, and asks a cluster to take back what others have. Secrets are
 * in files and memory only, never on a command line or a screen. */
#include "cmd/find.h"
#include "host/machine.h"
#include "host/secret_file.h"
#include "node/key_path.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SERIAL_DIGITS = 16 };

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

struct mount_words {
    const char *from;
    const char *to;
    struct identity identity;
};

static int parse_mount(const struct verb *verb, int argc, char **argv, struct mount_words *words) {
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--ro") == 0) {
            words->identity.read_only = true;
        } else if (strcmp(argv[i], "--squash") == 0 && i + 1 < argc) {
            if (strcmp(argv[++i], "root") != 0) {
                return verb_usage(verb, "--squash takes root, not %s", argv[i]);
            }
            words->identity.squash_root = true;
        } else if (strcmp(argv[i], "--squash") == 0) {
            return verb_usage(verb, "the value of --squash is missing");
        } else if (argv[i][0] == '-' || words->to) {
            return verb_usage(verb, "%s is not understood", argv[i]);
        } else if (words->from) {
            words->to = argv[i];
        } else {
            words->from = argv[i];
        }
    }
    if (!words->to) {
        return verb_usage(verb, "mount takes the file of the members' key, and the one to make");
    }
    return EXIT_OK;
}

static int run_mount(const struct verb *verb, int argc, char **argv) {
    struct mount_words words = {.identity.kind = IDENTITY_MOUNT};
    struct key_file members;
    struct key_file mount;
    int status = parse_mount(verb, argc, argv, &words);

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

static int run_add(const struct verb *verb, int argc, char **argv) {
    char problem[KEY_PROBLEM_BYTES];
    struct key_file file;
    struct key_file newer;

    if (argc != 4 || argv[2][0] == '-' || argv[3][0] == '-') {
        return verb_usage(verb, "add takes the file to change, and the one with the new key");
    }
    int status = file_read(verb, argv[2], &file);
    if (status != EXIT_OK) {
        return status;
    }
    status = file_read(verb, argv[3], &newer);
    if (status == EXIT_OK) {
        if (key_file_add(&file, &newer, problem) < 0) {
            status = verb_fail(verb, "%s: %s", argv[2], problem);
        } else {
            status = file_write(verb, argv[2], &file, secret_file_replace);
        }
        key_file_wipe(&newer);
    }
    if (status == EXIT_OK) {
        file_tell(argv[2], &file);
    }
    key_file_wipe(&file);
    return status;
}

/* Of a mount's key: 16 hexadecimal digits, as `key mount` has told them. */
static bool is_serial(const char *text) {
    return strlen(text) == SERIAL_DIGITS && strspn(text, "0123456789abcdef") == SERIAL_DIGITS &&
           strspn(text, "0") < SERIAL_DIGITS;
}

/* rest: what stands behind them, and names the cluster. */
static int words_ask(const struct verb *verb, char **rest, size_t word_count,
                     const char *const *words) {
    struct find_words found = {0};
    int status = EXIT_OK;

    for (int i = 0; rest[i] && status == EXIT_OK; i++) {
        status = find_parse(verb, rest, &i, &found);
    }
    return status == EXIT_OK ? find_and_ask(verb, &found, word_count, words) : status;
}

static int run_revoke(const struct verb *verb, int argc, char **argv) {
    if (argc < 3 || argv[2][0] == '-') {
        return verb_usage(verb, "revoke takes the serial of a mount's key");
    }
    if (!is_serial(argv[2])) {
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

static int run_key(const struct verb *verb, int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(const struct verb *verb, int argc, char **argv);
    } kinds[] = {{"new", run_new},
                 {"mount", run_mount},
                 {"add", run_add},
                 {"revoke", run_revoke},
                 {"renew", run_renew}};

    for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(argv[1], kinds[i].name) == 0) {
            return kinds[i].run(verb, argc, argv);
        }
    }
    return verb_usage(verb, "say new, mount, add, revoke or renew");
}

const struct verb verb_key = {
    "key",
    "new FILE | mount FILE OUT [--ro] [--squash root] | add FILE NEW | "
    "revoke SERIAL [DIR|PATH|--join ADDR --key FILE] | renew [DIR|PATH|--join ADDR --key FILE]",
    "Makes a cluster's key, derives keys for mounts and revokes them, adds a new key beside the "
    "old; takes back what was granted before the renewal before.",
    "  --ro                    the mount may read only\n"
    "  --squash root           root of the mount is nobody (65534)\n"
    "  --join ADDR:PORT[,...]  revoke, or renew, at the cluster that has nodes there\n"
    "  --key FILE              with the members' key\n",
    "shoal key new /etc/shoal/members.key",
    run_key,
    NULL};
