/* Names: a few that are moved about all the time, or many that come and go. */
#include "soak_load.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, SLOTS = 64, DIRECTORIES = 2, LONG_EACH = 8, LONG_WIDTH = 200 };

struct entry {
    bool there;
    uint32_t mode;
    uint32_t size;
    uint64_t number; /* of its content, when it has a size */
    uint64_t inode;  /* 0: unknown */
};

/* `next` is `now` with the change that is under way. */
struct names {
    struct load *load;
    bool many;
    uint32_t slots;
    struct entry *now;
    struct entry *next;
    struct entry *found;
    int64_t (*change)(struct names *names); /* NULL: none is under way */
    uint32_t from;
    uint32_t to;
    uint32_t made; /* of its directories */
    bool grows;    /* many: until all are there */
    uint64_t number;
};

static const char *path_of(const struct names *names, uint32_t slot, char *path) {
    snprintf(path, LOAD_PATH_BYTES, "%s/d%u/%0*u", names->load->directory, slot % DIRECTORIES,
             slot % LONG_EACH == 0 ? LONG_WIDTH : 1, slot);
    return path;
}

static const char *directory_of(const struct names *names, uint32_t index, char *path) {
    if (index == 0) {
        snprintf(path, LOAD_PATH_BYTES, "%s", names->load->directory);
    } else {
        snprintf(path, LOAD_PATH_BYTES, "%s/d%u", names->load->directory, index - 1);
    }
    return path;
}

static int64_t change_create(struct names *names) {
    struct entry *entry = &names->next[names->from];
    struct load *load = names->load;
    char path[LOAD_PATH_BYTES];
    struct stat status;

    load_begin(load, 0, 0, "create %u", names->from);
    int64_t fd = load_end(load, open(path_of(names, names->from, path),
                                     O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, entry->mode));
    if (fd < 0) {
        return fd;
    }
    load_begin(load, 0, 0, "stat %u", names->from);
    if (load_end(load, fstat((int)fd, &status)) == 0) {
        entry->inode = status.st_ino;
    }
    load_begin(load, 0, 0, "close %u", names->from);
    int64_t closed = load_end(load, close((int)fd));
    return closed == LOAD_DEAD ? 0 : closed;
}

static int64_t change_write(struct names *names) {
    const struct entry *entry = &names->next[names->from];
    struct load *load = names->load;
    char path[LOAD_PATH_BYTES];
    uint8_t bytes[PAGE];

    load_fill(bytes, entry->size, entry->number);
    load_begin(load, 0, 0, "open %u", names->from);
    int64_t fd = load_end(load, open(path_of(names, names->from, path), O_WRONLY | O_CLOEXEC));
    if (fd < 0) {
        return fd;
    }
    load_begin(load, 0, entry->size, "write %u", names->from);
    int64_t wrote = load_end(load, pwrite((int)fd, bytes, entry->size, 0));
    if (wrote == (int64_t)entry->size && !names->many && prng_chance(&load->prng, 1, 8)) {
        load_begin(load, 0, 0, "fsync %u", names->from);
        load_end(load, fsync((int)fd));
    }
    load_begin(load, 0, 0, "close %u", names->from);
    load_end(load, close((int)fd));
    if (wrote >= 0 && wrote != (int64_t)entry->size) {
        return load_complain(load, "%lld bytes of %u were written", (long long)wrote, entry->size);
    }
    return wrote < 0 ? wrote : 0;
}

static int64_t change_mode(struct names *names) {
    char path[LOAD_PATH_BYTES];

    load_begin(names->load, 0, names->next[names->from].mode, "chmod %u", names->from);
    return load_end(names->load,
                    chmod(path_of(names, names->from, path), names->next[names->from].mode));
}

static int64_t change_rename(struct names *names) {
    char from[LOAD_PATH_BYTES];
    char to[LOAD_PATH_BYTES];
    bool exchange = names->next[names->from].there;

    load_begin(names->load, exchange, 0, "rename %u to %u", names->from, names->to);
    return load_end(names->load,
                    renameat2(AT_FDCWD, path_of(names, names->from, from), AT_FDCWD,
                              path_of(names, names->to, to), exchange ? RENAME_EXCHANGE : 0));
}

static int64_t change_remove(struct names *names) {
    char path[LOAD_PATH_BYTES];

    load_begin(names->load, 0, 0, "unlink %u", names->from);
    return load_end(names->load, unlink(path_of(names, names->from, path)));
}

static void plan_create(struct names *names) {
    struct entry *next = &names->next[names->from];

    *next = (struct entry){.there = true, .mode = 0600};
    if (!names->many) {
        next->mode = 0400 | (uint32_t)prng_below(&names->load->prng, 0400);
    }
    names->change = change_create;
}

static void plan_write(struct names *names) {
    struct entry *next = &names->next[names->from];

    if (next->size == 0) {
        next->size = (uint32_t)prng_between(&names->load->prng, 8, PAGE);
    }
    next->number = ++names->number;
    names->change = change_write;
}

static void plan_rename(struct names *names) {
    struct entry held = names->next[names->to];
    bool exchange = held.there && prng_chance(&names->load->prng, 1, 3);

    names->next[names->to] = names->next[names->from];
    names->next[names->from] = exchange ? held : (struct entry){0};
    names->change = change_rename;
}

static void plan_few(struct names *names) {
    struct prng *prng = &names->load->prng;

    names->from = (uint32_t)prng_below(prng, names->slots);
    names->to = (uint32_t)prng_below(prng, names->slots);
    uint64_t kind = prng_below(prng, 12);
    if (!names->now[names->from].there) {
        plan_create(names);
    } else if (kind < 4 && names->from != names->to) {
        plan_rename(names);
    } else if (kind < 8) {
        plan_write(names);
    } else if (kind < 10) {
        names->next[names->from].mode = 0400 | (uint32_t)prng_below(prng, 0400);
        names->change = change_mode;
    } else {
        names->next[names->from] = (struct entry){0};
        names->change = change_remove;
    }
}

/* Up to all of them, then down to none; `from` goes round. */
static void plan_many(struct names *names) {
    const struct entry *now = &names->now[names->from];

    if (names->grows ? now->there && now->size > 0 : !now->there) {
        names->from = (names->from + 1) % names->slots;
        names->grows = names->from == 0 ? !names->grows : names->grows;
        now = &names->now[names->from];
    }
    if (names->grows && !now->there) {
        plan_create(names);
    } else if (names->grows && now->size == 0) {
        plan_write(names);
    } else if (!names->grows && now->there) {
        names->next[names->from] = (struct entry){0};
        names->change = change_remove;
    }
}

static int sync_directory(struct names *names) {
    struct load *load = names->load;
    char path[LOAD_PATH_BYTES];

    load_begin(load, 0, 0, "open a directory");
    int64_t fd =
        load_end(load, open(directory_of(names, 1 + names->from % DIRECTORIES, path), O_RDONLY));
    if (fd < 0) {
        return (int)fd;
    }
    load_begin(load, 0, 0, "fsync a directory");
    int64_t result = load_end(load, fsync((int)fd));
    close((int)fd);
    return (int)result;
}

static int names_step(void *context) {
    struct names *names = context;

    if (!names->change) {
        if (names->many) {
            plan_many(names);
        } else {
            plan_few(names);
        }
    }
    if (!names->change) {
        return 0;
    }
    int64_t result = names->change(names);
    if (result < 0) {
        /* After ENOSPC of the many it is time to make room. */
        bool full = result == LOAD_FULL && names->many && names->grows;

        if (full && names->change == change_create) {
            names->next[names->from] = names->now[names->from];
            names->change = NULL;
            names->grows = names->from == 0;
            names->from = 0;
        }
        return (int)result;
    }
    names->now[names->from] = names->next[names->from];
    names->now[names->to] = names->next[names->to];
    names->change = NULL;
    load_acknowledge(names->load);
    return prng_chance(&names->load->prng, 1, 100) ? sync_directory(names) : 0;
}

/* What lies at a path, content compared with its own number. */
static int look(struct names *names, uint32_t slot, struct entry *ret_entry) {
    struct load *load = names->load;
    char path[LOAD_PATH_BYTES];
    uint8_t bytes[PAGE + 1] = {0};
    uint8_t wanted[PAGE];
    struct stat status;

    load_begin(load, 0, 0, "open %u to check", slot);
    int64_t fd = load_end(load, open(path_of(names, slot, path), O_RDONLY | O_CLOEXEC));
    if (fd < 0) {
        return (int)fd;
    }
    load_begin(load, 0, 0, "stat %u to check", slot);
    int64_t result = load_end(load, fstat((int)fd, &status));
    if (result == 0) {
        load_begin(load, 0, sizeof bytes, "read %u to check", slot);
        result = load_end(load, pread((int)fd, bytes, sizeof bytes, 0));
    }
    close((int)fd);
    if (result < 0) {
        return (int)result;
    }
    if (result > PAGE || status.st_size != result) {
        return load_complain(load, "%u has %lld bytes, its size is %lld", slot, (long long)result,
                             (long long)status.st_size);
    }
    *ret_entry = (struct entry){.there = true,
                                .mode = status.st_mode & 07777,
                                .size = (uint32_t)result,
                                .inode = status.st_ino};
    if (result > 0) {
        memcpy(&ret_entry->number, bytes, sizeof ret_entry->number);
        load_fill(wanted, (size_t)result, ret_entry->number);
        if (memcmp(wanted, bytes, (size_t)result) != 0) {
            return load_complain(load, "the bytes of %u are of no write", slot);
        }
    }
    return 0;
}

static bool is_same(const struct entry *found, const struct entry *wanted) {
    return found->there == wanted->there && found->mode == wanted->mode &&
           found->size == wanted->size && found->number == wanted->number &&
           (wanted->inode == 0 || found->inode == wanted->inode);
}

/* All alike, or the slots that a change was under way on alike in `next`. */
static int compare_found(struct names *names) {
    const struct entry *expected = names->now;
    uint32_t from = names->from;
    uint32_t to = names->to;

    if (names->change && is_same(&names->found[from], &names->next[from]) &&
        is_same(&names->found[to], &names->next[to])) {
        expected = names->next;
    }
    for (uint32_t slot = 0; slot < names->slots; slot++) {
        const struct entry *found = &names->found[slot];
        const struct entry *wanted = &expected[slot];

        if (!is_same(found, wanted)) {
            return load_complain(names->load,
                                 "name %u: there %d, mode %o, %u bytes, content %llu; wanted: %d, "
                                 "%o, %u, %llu; in flight: %d, of %u and %u",
                                 slot, found->there, found->mode, found->size,
                                 (unsigned long long)found->number, wanted->there, wanted->mode,
                                 wanted->size, (unsigned long long)wanted->number,
                                 names->change != NULL, from, to);
        }
    }
    return 0;
}

/* Of many, each is listed, and a few are looked into: those near the change, and some by lot. */
static bool is_looked_into(struct names *names, uint32_t slot) {
    uint32_t distance = (names->from + names->slots - slot) % names->slots;

    return !names->many || distance < 200 || distance + 2 > names->slots ||
           prng_chance(&names->load->prng, 1, 100);
}

static int take_listed(struct names *names, uint32_t directory, const char *name) {
    char path[LOAD_PATH_BYTES];
    char *end;
    unsigned long slot = strtoul(name, &end, 10);

    if (name[0] == '.') {
        return 0;
    }
    if (*end != 0 || slot >= names->slots || slot % DIRECTORIES != directory ||
        names->found[slot].there ||
        strcmp(strrchr(path_of(names, (uint32_t)slot, path), '/') + 1, name) != 0) {
        return load_complain(names->load, "d%u lists %s", directory, name);
    }
    if (is_looked_into(names, (uint32_t)slot)) {
        return look(names, (uint32_t)slot, &names->found[slot]);
    }
    names->found[slot] = names->now[slot];
    names->found[slot].there = true;
    return 0;
}

static int list(struct names *names, uint32_t directory) {
    struct load *load = names->load;
    char path[LOAD_PATH_BYTES];
    struct dirent *entry;
    int result = 0;

    load_begin(load, 0, 0, "open d%u to list", directory);
    DIR *stream = opendir(directory_of(names, 1 + directory, path));
    int64_t opened = load_end(load, stream ? 0 : -1);
    if (opened != 0) {
        return (int)opened;
    }
    do {
        load_begin(load, 0, 0, "list d%u", directory);
        errno = 0;
        entry = readdir(stream);
        result = (int)load_end(load, entry || errno == 0 ? 0 : -1);
        if (result == 0 && entry) {
            result = take_listed(names, directory, entry->d_name);
        }
    } while (result == 0 && entry);
    closedir(stream);
    return result;
}

static int make_directories(struct names *names) {
    struct load *load = names->load;
    char path[LOAD_PATH_BYTES];

    while (names->made < 1 + DIRECTORIES) {
        load_begin(load, 0, 0, "mkdir");
        load_may_fail(load, EEXIST);
        int64_t result = load_end(load, mkdir(directory_of(names, names->made, path), 0700));

        if (result < 0 && (result != LOAD_WRONG || load->problem[0] != 0)) {
            return (int)result;
        }
        names->made++;
    }
    return 0;
}

static int names_check(void *context) {
    struct names *names = context;
    size_t bytes = names->slots * sizeof *names->now;
    int result = make_directories(names);

    memset(names->found, 0, bytes);
    for (uint32_t i = 0; result == 0 && i < DIRECTORIES; i++) {
        result = list(names, i);
    }
    if (result == 0) {
        result = compare_found(names);
    }
    if (result != 0) {
        return result;
    }
    memcpy(names->now, names->found, bytes);
    memcpy(names->next, names->found, bytes);
    names->change = NULL;
    return 0;
}

struct load_work names_load(struct load *load, const char *kind, uint64_t bytes) {
    struct names *names = calloc(1, sizeof *names);

    if (!names || (strcmp(kind, "names") != 0 && strcmp(kind, "many") != 0)) {
        free(names);
        return (struct load_work){0};
    }
    names->load = load;
    names->many = strcmp(kind, "many") == 0;
    names->slots = names->many ? (uint32_t)(bytes / PAGE) : SLOTS;
    names->grows = true;
    names->now = calloc(names->slots, sizeof *names->now);
    names->next = calloc(names->slots, sizeof *names->next);
    names->found = calloc(names->slots, sizeof *names->found);
    if (!names->now || !names->next || !names->found) {
        return (struct load_work){0};
    }
    return (struct load_work){.context = names, .step = names_step, .check = names_check};
}
