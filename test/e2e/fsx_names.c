/* Steps that open, close and name files. */
#include "fsx_steps.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINKS_MAX = 3, NAMES = FSX_FOLDERS * FSX_NAMES };

static const struct {
    int flags;
    const char *name;
} ways[FSX_WAYS] = {
    [FSX_PLAIN] = {O_RDWR, "O_RDWR"},
    [FSX_APPEND] = {O_RDWR | O_APPEND, "O_RDWR | O_APPEND"},
    [FSX_DIRECT] = {O_RDWR | O_DIRECT, "O_RDWR | O_DIRECT"},
    [FSX_SYNC] = {O_RDWR | O_DSYNC, "O_RDWR | O_DSYNC"},
    [FSX_READER] = {O_RDONLY, "O_RDONLY"},
    [FSX_DIRECT_READER] = {O_RDONLY | O_DIRECT, "O_RDONLY | O_DIRECT"},
};

void fsx_path(const struct fsx *fsx, unsigned mount, unsigned name, char ret_path[4096]) {
    snprintf(ret_path, 4096, "%s/%u/n%u", fsx->mounts[mount], name / FSX_NAMES, name % FSX_NAMES);
}

/* Of a file that has one. */
static unsigned name_of(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    uint64_t skip = fsx_below(fsx, file->links);
    unsigned name = 0;

    while (fsx->names[name] != file || skip-- > 0) {
        name++;
    }
    return name;
}

static bool free_name(struct fsx *fsx, unsigned *ret_name) {
    unsigned name = (unsigned)fsx_below(fsx, NAMES);

    *ret_name = name;
    return fsx->names[name] == NULL;
}

static void keep_handle(struct fsx_file *file, int fd, enum fsx_way way) {
    file->handles[file->handle_count++] = (struct fsx_handle){.fd = fd, .way = way};
}

static void close_handle(struct fsx_file *file, unsigned handle) {
    int fd = file->handles[handle].fd;

    fsx_note(file, "close %s", ways[file->handles[handle].way].name);
    file->handles[handle] = file->handles[--file->handle_count];
    fsx_must(file, FSX_CALL(file->fsx, close(fd)), "close", 0);
}

int fsx_open(struct fsx_file *file, enum fsx_way way) {
    struct fsx *fsx = file->fsx;
    char path[4096];
    int flags = ways[way].flags & (fsx->lacks_direct ? ~O_DIRECT : ~0);

    if (file->links > 0) {
        fsx_path(fsx, file->home, name_of(file), path);
    } else {
        snprintf(path, sizeof path, "/proc/self/fd/%d", file->handles[0].fd);
    }
    int fd = FSX_CALL(fsx, open(path, flags | O_CLOEXEC));
    if (fd < 0) {
        fsx_must(file, fd, path, 0);
    }
    return fd;
}

static int open_kept(struct fsx_file *file, enum fsx_way way) {
    if (file->handle_count == FSX_HANDLES_MAX) {
        /* Not the first: by it a file without a name is opened. */
        close_handle(file, 1 + (unsigned)fsx_below(file->fsx, FSX_HANDLES_MAX - 1));
    }
    fsx_note(file, "open %s by mount %u", ways[way].name, file->home);
    int fd = fsx_open(file, way);
    keep_handle(file, fd, way);
    return fd;
}

void fsx_make_room(struct fsx_file *file) {
    while (file->handle_count > FSX_HANDLES_MAX - 2) {
        close_handle(file, 1 + (unsigned)fsx_below(file->fsx, file->handle_count - 1));
    }
}

int fsx_handle(struct fsx_file *file, unsigned wanted) {
    struct fsx *fsx = file->fsx;
    unsigned start = (unsigned)fsx_below(fsx, FSX_HANDLES_MAX);

    if (!fsx_one_in(fsx, 8)) {
        for (unsigned i = 0; i < file->handle_count; i++) {
            struct fsx_handle *handle = &file->handles[(start + i) % file->handle_count];
            if (wanted & 1u << handle->way) {
                return handle->fd;
            }
        }
    }
    enum fsx_way way;
    do {
        way = (enum fsx_way)fsx_below(fsx, FSX_WAYS);
    } while ((wanted & 1u << way) == 0);
    return open_kept(file, way);
}

static void close_lurker(struct fsx_file *file) {
    if (file->lurker >= 0) {
        fsx_must(file, FSX_CALL(file->fsx, close(file->lurker)), "close of the other mount's", 0);
        file->lurker = -1;
    }
}

void fsx_close_all(struct fsx_file *file) {
    fsx_unmap(file);
    close_lurker(file);
    while (file->handle_count > 0) {
        close_handle(file, file->handle_count - 1);
    }
}

/* Nothing leads to it any more. */
static void end_file(struct fsx_file *file) {
    fsx_close_all(file);
    file->may_be_named = false;
    munmap(file->bytes, FSX_CAPACITY);
    file->used = false;
}

static void lose_name(struct fsx_file *file) {
    file->links--;
    if (file->links == 0) {
        close_lurker(file);
        if (file->handle_count == 0) {
            end_file(file);
        }
    }
}

bool fsx_open_more(struct fsx_file *file) {
    open_kept(file, (enum fsx_way)fsx_below(file->fsx, FSX_WAYS));
    return true;
}

bool fsx_close_one(struct fsx_file *file) {
    if (file->handle_count == 0) {
        return false;
    }
    if (file->links == 0 && (file->handle_count == 1 || fsx_one_in(file->fsx, 2))) {
        fsx_compare(file);
        end_file(file);
        return true;
    }
    close_handle(file, (unsigned)fsx_below(file->fsx, file->handle_count));
    return true;
}

bool fsx_reopen(struct fsx_file *file) {
    if (file->links == 0) {
        return false;
    }
    while (file->handle_count > 0) {
        close_handle(file, file->handle_count - 1);
    }
    open_kept(file, (enum fsx_way)fsx_below(file->fsx, FSX_WAYS));
    if (fsx_one_in(file->fsx, 3)) {
        fsx_look(file);
    }
    return true;
}

static struct fsx_file *new_file(struct fsx *fsx) {
    static const uint64_t limits[] = {2 * BLOCK_BYTES, 300 * KIB, 300 * KIB, 3 * MIB,
                                      3 * MIB,         3 * MIB,   3 * MIB,   FSX_CAPACITY};
    unsigned place = 0;

    while (place < FSX_FILES_MAX && fsx->files[place].used) {
        place++;
    }
    if (place == FSX_FILES_MAX) {
        return NULL;
    }
    struct fsx_file *file = &fsx->files[place];
    void *bytes = mmap(NULL, FSX_CAPACITY, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *file = (struct fsx_file){.fsx = fsx, .bytes = bytes, .lurker = -1, .used = true};
    file->number = fsx->files_made++;
    file->limit = limits[fsx_below(fsx, ARRAY_SIZE(limits))];
    file->home = (unsigned)fsx_below(fsx, fsx->mount_count);
    fsx_must(file, bytes == MAP_FAILED ? -1 : 0, "memory for the model", 0);
    return file;
}

bool fsx_make(struct fsx *fsx, bool named) {
    char path[4096];
    unsigned name = 0;

    if (named && !free_name(fsx, &name)) {
        return false;
    }
    struct fsx_file *file = new_file(fsx);
    if (!file) {
        return false;
    }
    if (named) {
        fsx_path(fsx, file->home, name, path);
    } else {
        snprintf(path, sizeof path, "%s/%u", fsx->mounts[file->home],
                 (unsigned)fsx_below(fsx, FSX_FOLDERS));
    }
    fsx_note(file, "%s %s", named ? "create" : "O_TMPFILE in", path);
    int fd = FSX_CALL(
        fsx, open(path, O_RDWR | O_CLOEXEC | (named ? O_CREAT | O_EXCL : O_TMPFILE), 0600));
    fsx_must(file, fd, "open", 0);
    keep_handle(file, fd, FSX_PLAIN);
    if (named) {
        fsx->names[name] = file;
        file->links = 1;
    }
    file->may_be_named = !named;
    return true;
}

/* An open that empties what is there. */
bool fsx_make_over(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    char path[4096];

    if (file->links == 0) {
        return false;
    }
    if (file->handle_count == FSX_HANDLES_MAX) {
        close_handle(file, 0);
    }
    fsx_path(fsx, file->home, name_of(file), path);
    fsx_note(file, "open O_CREAT | O_TRUNC %s, size %llu", path, (unsigned long long)file->size);
    int fd = FSX_CALL(fsx, open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    fsx_must(file, fd, "open", 0);
    keep_handle(file, fd, FSX_PLAIN);
    fsx_resize(file, 0);
    return true;
}

/* What rename(2) with these flags does to the names; an error number, or 0. */
static int rename_names(struct fsx *fsx, unsigned from, unsigned to, unsigned flags) {
    struct fsx_file *file = fsx->names[from];
    struct fsx_file *other = fsx->names[to];

    if (flags & RENAME_NOREPLACE && other) {
        return EEXIST;
    }
    if (file == other) {
        return 0;
    }
    fsx->names[to] = file;
    fsx->names[from] = NULL;
    if (flags & RENAME_EXCHANGE) {
        fsx->names[from] = other;
    } else if (other) {
        lose_name(other);
    }
    return 0;
}

bool fsx_rename(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    char from_path[4096], to_path[4096];
    unsigned to = (unsigned)fsx_below(fsx, NAMES);
    unsigned flags = 0;

    if (file->links == 0) {
        return false;
    }
    unsigned from = name_of(file);
    if (from == to) {
        return false;
    }
    if (fsx_one_in(fsx, 4)) {
        flags = fsx->names[to] && fsx_one_in(fsx, 2) ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    }
    fsx_path(fsx, file->home, from, from_path);
    fsx_path(fsx, file->home, to, to_path);
    fsx_note(file, "rename %s to %s, flags %u", from_path, to_path, flags);
    if (fsx->names[to]) {
        fsx_note(fsx->names[to], "rename of %s to its name %s, flags %u", from_path, to_path,
                 flags);
    }
    int result = FSX_CALL(fsx, renameat2(AT_FDCWD, from_path, AT_FDCWD, to_path, flags));
    int error = result < 0 ? errno : 0;
    int want = rename_names(fsx, from, to, flags);
    if (error != want) {
        fsx_wrong(file, 0, "rename of %s to %s, flags %u: got %s, expected %s", from_path, to_path,
                  flags, strerror(error), strerror(want));
    }
    return true;
}

bool fsx_unlink(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    char path[4096];

    if (file->links == 0) {
        return false;
    }
    if (fsx_one_in(fsx, 2)) {
        fsx_open_more(file);
    }
    if (fsx_one_in(fsx, 2)) {
        fsx_compare(file);
    }
    unsigned name = name_of(file);
    fsx_path(fsx, file->home, name, path);
    fsx_note(file, "unlink %s, %u handles", path, file->handle_count);
    fsx_must(file, FSX_CALL(fsx, unlink(path)), "unlink", 0);
    fsx->names[name] = NULL;
    lose_name(file);
    return true;
}

bool fsx_link(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    char from[4096], to[4096];
    unsigned name;

    if (file->links == 0 || file->links >= LINKS_MAX || !free_name(fsx, &name)) {
        return false;
    }
    fsx_path(fsx, file->home, name_of(file), from);
    fsx_path(fsx, file->home, name, to);
    fsx_note(file, "link %s to %s", from, to);
    fsx_must(file, FSX_CALL(fsx, link(from, to)), "link", 0);
    fsx->names[name] = file;
    file->links++;
    return true;
}

/* Of a file that was made without a name. */
bool fsx_name_it(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    char from[64], to[4096];
    unsigned name;

    for (unsigned i = 0; i < FSX_FILES_MAX && !file->may_be_named; i++) {
        file = &fsx->files[i];
    }
    if (!file->used || !file->may_be_named || !free_name(fsx, &name)) {
        return false;
    }
    snprintf(from, sizeof from, "/proc/self/fd/%d",
             file->handles[fsx_below(fsx, file->handle_count)].fd);
    fsx_path(fsx, file->home, name, to);
    fsx_note(file, "linkat to %s", to);
    fsx_must(file, FSX_CALL(fsx, linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW)), "linkat",
             0);
    fsx->names[name] = file;
    file->links = 1;
    file->may_be_named = false;
    return true;
}

/* What was closed here is seen there. A reader may stay open here. */
bool fsx_move_home(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;

    if (file->links == 0 || fsx->mount_count < 2) {
        return false;
    }
    if (file->dirty) {
        fsx_sync(file);
    }
    int lurker = fsx_one_in(fsx, 3) ? fsx_open(file, FSX_READER) : -1;
    fsx_close_all(file);
    file->lurker = lurker;
    file->home =
        (file->home + 1 + (unsigned)fsx_below(fsx, fsx->mount_count - 1)) % fsx->mount_count;
    fsx_note(file, "moves to mount %u, size %llu", file->home, (unsigned long long)file->size);
    open_kept(file, (enum fsx_way)fsx_below(fsx, FSX_WAYS));
    fsx_look(file);
    if (fsx_one_in(fsx, 2)) {
        fsx_compare(file);
    }
    return true;
}

/* The number in "nNUMBER", or NAMES. */
static unsigned number_of(const char *text) {
    char *end = NULL;
    unsigned long number = text[0] == 'n' ? strtoul(text + 1, &end, 10) : NAMES;

    return end && *end == 0 && number < FSX_NAMES ? (unsigned)number : NAMES;
}

static void list_folder(struct fsx *fsx, unsigned mount, unsigned folder) {
    struct fsx_file *any = &fsx->files[0];
    bool seen[FSX_NAMES] = {false};
    char path[4096];
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/%u", fsx->mounts[mount], folder);
    DIR *directory = FSX_CALL(fsx, opendir(path));
    fsx_must(any, directory ? 0 : -1, path, 0);
    while ((entry = FSX_CALL(fsx, readdir(directory))) != NULL) {
        unsigned number = number_of(entry->d_name);
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (number == NAMES || seen[number] || !fsx->names[folder * FSX_NAMES + number]) {
            fsx_wrong(any, 0, "%s lists %s, which is not there, or is twice", path, entry->d_name);
        }
        seen[number] = true;
    }
    closedir(directory);
    for (unsigned number = 0; number < FSX_NAMES; number++) {
        struct fsx_file *file = fsx->names[folder * FSX_NAMES + number];
        if (file && !seen[number]) {
            fsx_wrong(file, 0, "%s does not list n%u", path, number);
        }
    }
}

void fsx_list(struct fsx *fsx, unsigned mount) {
    for (unsigned folder = 0; folder < FSX_FOLDERS; folder++) {
        list_folder(fsx, mount, folder);
    }
}

bool fsx_list_step(struct fsx_file *file) {
    fsx_list(file->fsx, (unsigned)fsx_below(file->fsx, file->fsx->mount_count));
    return true;
}
