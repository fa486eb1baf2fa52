/* Files of settings below a root: plain system calls. */
#include "host/doctor_files.h"
#include "env/errno_map.h"
#include "host/plain_file.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int doctor_path(const char *root, const char *path, char ret_path[DOCTOR_FILE_BYTES]) {
    size_t root_size = strlen(root);
    size_t size = strlen(path);

    if (root_size + size >= DOCTOR_FILE_BYTES) {
        return -ERR_NAME_TOO_LONG;
    }
    memcpy(ret_path, root, root_size);
    memcpy(ret_path + root_size, path, size + 1);
    return 0;
}

static int file_open(const char *root, const char *path, int flags, int *ret_fd) {
    char whole[DOCTOR_FILE_BYTES];
    int r = doctor_path(root, path, whole);

    if (r < 0) {
        return r;
    }
    int fd = open(whole, flags | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    *ret_fd = fd;
    return 0;
}

/* The value as it is kept and compared: its line, between blanks. */
static int value_cut(char *text, size_t size, char ret_value[DOCTOR_VALUE_BYTES]) {
    size_t begin = 0;
    size_t end = 0;

    while (end < size && text[end] != '\n') {
        end++;
    }
    while (begin < end && text[begin] == ' ') {
        begin++;
    }
    while (end > begin && text[end - 1] == ' ') {
        end--;
    }
    for (size_t i = begin; i < end; i++) {
        if (!isprint((unsigned char)text[i])) {
            return -ERR_MALFORMED;
        }
    }
    if (end == begin || end - begin >= DOCTOR_VALUE_BYTES) {
        return -ERR_MALFORMED;
    }
    memcpy(ret_value, text + begin, end - begin);
    ret_value[end - begin] = '\0';
    return 0;
}

int doctor_value_read(const char *root, const char *path, char ret_value[DOCTOR_VALUE_BYTES]) {
    char text[256];
    size_t size = 0;
    int fd = -1;
    int r = file_open(root, path, O_RDONLY, &fd);

    if (r < 0) {
        return r;
    }
    r = plain_file_read(fd, text, sizeof text, 0, &size);
    (void)close(fd);
    if (r < 0) {
        return r;
    }
    return value_cut(text, size, ret_value);
}

int doctor_value_write(const char *root, const char *path, const char *value) {
    char text[DOCTOR_VALUE_BYTES + 1];
    char found[DOCTOR_VALUE_BYTES];
    int fd = -1;
    int size = snprintf(text, sizeof text, "%s\n", value);
    int r = file_open(root, path, O_WRONLY | O_TRUNC, &fd);

    if (r < 0) {
        return r;
    }
    /* One write, as the kernel takes each for a whole value. */
    ssize_t put = write(fd, text, (size_t)size);
    r = put == size ? 0 : put < 0 ? err_from_errno(errno) : -ERR_IO;
    if (close(fd) < 0 && r == 0) {
        r = err_from_errno(errno);
    }
    if (r == 0) {
        r = doctor_value_read(root, path, found);
    }
    return r == 0 && strcmp(found, value) != 0 ? -ERR_INVALID : r;
}

int doctor_value_denied(const char *root, const char *path) {
    char whole[DOCTOR_FILE_BYTES];
    int r = doctor_path(root, path, whole);

    return r == 0 && access(whole, W_OK) < 0 ? err_from_errno(errno) : r;
}

bool doctor_file_exists(const char *root, const char *path) {
    char whole[DOCTOR_FILE_BYTES];

    return doctor_path(root, path, whole) == 0 && access(whole, F_OK) == 0;
}

int doctor_file_open(const char *root, const char *path, FILE **ret_file) {
    int fd;
    int r = file_open(root, path, O_RDONLY, &fd);

    if (r < 0) {
        return r;
    }
    *ret_file = fdopen(fd, "r");
    if (!*ret_file) {
        (void)close(fd);
        return -ERR_NO_MEMORY;
    }
    return 0;
}

static int is_plain_name(const struct dirent *entry) {
    return isalnum((unsigned char)entry->d_name[0]);
}

void doctor_folder_walk(const char *root, const char *path,
                        bool (*each)(void *context, const char *name), void *context) {
    char whole[DOCTOR_FILE_BYTES];
    struct dirent **entries = NULL;
    bool goes_on = true;

    if (doctor_path(root, path, whole) < 0) {
        return;
    }
    int count = scandir(whole, &entries, is_plain_name, alphasort);
    for (int i = 0; i < count; i++) {
        goes_on = goes_on && each(context, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

/* The next word of the line, which is cut behind it; NULL at its end. */
static char *word_cut(char **line) {
    char *word = *line + strspn(*line, " \n");
    size_t size = strcspn(word, " \n");

    if (size == 0) {
        return NULL;
    }
    *line = word + size + (word[size] != '\0');
    word[size] = '\0';
    return word;
}

/* ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [TAG...] - KIND SOURCE SUPER_OPTIONS */
bool doctor_mount_parse(char *line, struct doctor_mount *ret_mount) {
    enum { DEVICE = 2, PLACE = 4, OPTIONS = 5, HEAD_WORDS = 6 };
    char *head[HEAD_WORDS];
    char *word;
    unsigned major;
    unsigned minor;
    char rest;

    for (size_t i = 0; i < HEAD_WORDS; i++) {
        head[i] = word_cut(&line);
        if (!head[i]) {
            return false;
        }
    }
    do {
        word = word_cut(&line);
    } while (word && strcmp(word, "-") != 0);
    char *kind = word ? word_cut(&line) : NULL;
    char *source = kind ? word_cut(&line) : NULL;
    char *super_options = source ? word_cut(&line) : NULL;
    if (!super_options || sscanf(head[DEVICE], "%u:%u%c", &major, &minor, &rest) != 2) {
        return false;
    }
    *ret_mount = (struct doctor_mount){.major = major,
                                       .minor = minor,
                                       .place = head[PLACE],
                                       .options = head[OPTIONS],
                                       .kind = kind,
                                       .super_options = super_options};
    return true;
}

bool doctor_option_is(const char *options, const char *word) {
    size_t size = strlen(word);

    for (;;) {
        size_t at = strcspn(options, ",");

        if (at == size && memcmp(options, word, size) == 0) {
            return true;
        }
        if (options[at] == '\0') {
            return false;
        }
        options += at + 1;
    }
}
