/* Reading key files; the contract is in key_path.h. */
#include "node/key_path.h"
#include "base/err.h"
#include "host/secret_file.h"
#include <stdio.h>

static void say_unreadable(const char *path, int r, char problem[512]) {
    switch (r) {
    case -ERR_NOT_FOUND:
        snprintf(problem, 512, "%s: there is no such file", path);
        break;
    case -ERR_NOT_PERMITTED:
        snprintf(problem, 512,
                 "%s: others may read or change it: chmod 600 it, and if they may have done so "
                 "make a new key",
                 path);
        break;
    case -ERR_FILE_TOO_BIG:
        snprintf(problem, 512, "%s: too long for a key file of Shoal", path);
        break;
    default:
        snprintf(problem, 512, "%s cannot be read: %s", path, err_text(r));
    }
}

int key_path_read(const char *path, struct key_file *ret_file, char problem[512]) {
    uint8_t text[KEY_FILE_BYTES_MAX];
    struct buffer buffer = {.data = text, .capacity = sizeof text};
    char detail[KEY_PROBLEM_BYTES];
    int r = secret_file_read(path, &buffer);

    if (r < 0) {
        say_unreadable(path, r, problem);
        return r;
    }
    r = key_file_parse((struct bytes){text, buffer.size}, ret_file, detail);
    secret_wipe(text, sizeof text);
    if (r < 0) {
        snprintf(problem, 512, "%s: %s", path, detail);
    }
    return r;
}

int key_path_read_members(const char *path, struct key_file *ret_file, char problem[512]) {
    int r = key_path_read(path, ret_file, problem);

    if (r == 0 && ret_file->identity.kind != IDENTITY_MEMBER) {
        key_file_wipe(ret_file);
        snprintf(problem, 512, "%s: the key of a mount: name a file with the members' key", path);
        r = -ERR_INVALID;
    }
    return r;
}
