/* The directory of a simulated disk and its space. */
#include "env/sim_disk.h"
#include "env/env_sim.h"
#include "env/sim_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    char *path;
    struct sim_file *file; /* NULL: a directory */
};

struct sim_disk {
    struct sim *sim;
    const struct sim_faults *faults;
    struct entry *entries; /* oldest first */
    uint64_t used_blocks;
    uint64_t sequence;
};

struct sim_disk *sim_disk_new(struct sim *sim, const struct sim_faults *faults) {
    struct sim_disk *disk = sim_allocate(sizeof *disk);

    disk->sim = sim;
    disk->faults = faults;
    return disk;
}

static void entry_free(struct entry *entry) {
    if (entry->file) {
        sim_file_put(entry->file);
    }
    free(entry->path);
    free(entry);
}

void sim_disk_free(struct sim_disk *disk) {
    while (disk->entries) {
        struct entry *entry = disk->entries;

        disk->entries = entry->next;
        entry_free(entry);
    }
    assert(disk->used_blocks == 0);
    free(disk);
}

struct sim *sim_disk_world(const struct sim_disk *disk) {
    return disk->sim;
}

const struct sim_faults *sim_disk_faults(const struct sim_disk *disk) {
    return disk->faults;
}

uint64_t sim_disk_next_sequence(struct sim_disk *disk) {
    return ++disk->sequence;
}

uint64_t sim_disk_sequence(const struct sim_disk *disk) {
    return disk->sequence;
}

uint64_t sim_disk_used_blocks(const struct sim_disk *disk) {
    return disk->used_blocks;
}

bool sim_disk_has_room(const struct sim_disk *disk, uint64_t block_count) {
    uint64_t capacity = disk->faults->capacity_bytes / BLOCK_BYTES;

    /* A capacity that was lowered below what is used leaves no room, and no less than none. */
    return disk->faults->capacity_bytes == 0 ||
           (disk->used_blocks < capacity && block_count <= capacity - disk->used_blocks);
}

uint64_t sim_disk_free_bytes(const struct sim_disk *disk) {
    uint64_t capacity = disk->faults->capacity_bytes / BLOCK_BYTES;

    if (disk->faults->capacity_bytes == 0) {
        return UINT64_MAX;
    }
    return disk->used_blocks < capacity ? (capacity - disk->used_blocks) * BLOCK_BYTES : 0;
}

bool sim_disk_take(struct sim_disk *disk, uint64_t block_count) {
    if (!sim_disk_has_room(disk, block_count)) {
        sim_count(disk->sim, "disk full", 1);
        return false;
    }
    disk->used_blocks += block_count;
    return true;
}

void sim_disk_give(struct sim_disk *disk, uint64_t block_count) {
    assert(block_count <= disk->used_blocks);
    disk->used_blocks -= block_count;
}

static struct entry **entry_link(struct sim_disk *disk, const char *path) {
    struct entry **link = &disk->entries;

    while (*link && strcmp((*link)->path, path) != 0) {
        link = &(*link)->next;
    }
    return link;
}

/* 0 when path names an entry that could be, in a directory that is there. */
static int path_check(struct sim_disk *disk, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    if (*name == '\0') {
        return -ERR_NOT_FOUND;
    }
    if (strlen(name) > NAME_BYTES_MAX) {
        return -ERR_NAME_TOO_LONG;
    }
    if (!slash) {
        return 0;
    }
    for (struct entry *entry = disk->entries; entry; entry = entry->next) {
        if (strlen(entry->path) == (size_t)(slash - path) &&
            memcmp(entry->path, path, (size_t)(slash - path)) == 0) {
            return entry->file ? -ERR_NOT_DIRECTORY : 0;
        }
    }
    return -ERR_NOT_FOUND;
}

static struct entry *entry_add(struct sim_disk *disk, const char *path, struct sim_file *file) {
    struct entry **link = entry_link(disk, path);
    size_t size = strlen(path) + 1;

    *link = sim_allocate(sizeof **link);
    (*link)->path = sim_allocate(size);
    memcpy((*link)->path, path, size);
    (*link)->file = file;
    return *link;
}

struct sim_file *sim_disk_find(struct sim_disk *disk, const char *path) {
    struct entry *entry = *entry_link(disk, path);

    return entry ? entry->file : NULL;
}

bool sim_disk_open_creates(struct sim_disk *disk, const char *path, unsigned flags) {
    return flags & ENV_FILE_CREATE && !*entry_link(disk, path) && path_check(disk, path) == 0;
}

int sim_disk_open(struct sim_disk *disk, const char *path, unsigned flags,
                  struct sim_file **ret_file) {
    struct entry *entry = *entry_link(disk, path);
    int r = path_check(disk, path);

    if (r) {
        return r;
    }
    if (!entry && !(flags & ENV_FILE_CREATE)) {
        return -ERR_NOT_FOUND;
    }
    if (!entry) {
        entry = entry_add(disk, path, sim_file_new(disk));
    } else if (flags & ENV_FILE_CREATE && flags & ENV_FILE_EXCLUSIVE) {
        return -ERR_EXISTS;
    } else if (!entry->file) {
        return -ERR_IS_DIRECTORY;
    }
    sim_file_get(entry->file);
    *ret_file = entry->file;
    return 0;
}

int sim_disk_directory_make(struct sim_disk *disk, const char *path) {
    struct entry *entry = *entry_link(disk, path);
    int r = path_check(disk, path);

    if (r) {
        return r;
    }
    if (entry) {
        return entry->file ? -ERR_NOT_DIRECTORY : 0;
    }
    entry_add(disk, path, NULL);
    return 0;
}

int sim_disk_remove(struct sim_disk *disk, const char *path) {
    struct entry **link = entry_link(disk, path);
    struct entry *entry = *link;

    if (!entry) {
        return -ERR_NOT_FOUND;
    }
    if (!entry->file) {
        return -ERR_IS_DIRECTORY;
    }
    *link = entry->next;
    entry_free(entry);
    return 0;
}

int sim_disk_rename(struct sim_disk *disk, const char *from, const char *to) {
    struct entry *entry = *entry_link(disk, from);
    struct entry *replaced = *entry_link(disk, to);
    int r = path_check(disk, to);

    if (!entry) {
        return -ERR_NOT_FOUND;
    }
    if (r || entry == replaced) {
        return r;
    }
    if (!entry->file) {
        return -ERR_NOT_SUPPORTED;
    }
    if (replaced) {
        if (!replaced->file) {
            return -ERR_IS_DIRECTORY;
        }
        (void)sim_disk_remove(disk, to);
    }
    struct sim_file *file = entry->file;
    sim_file_get(file);
    (void)sim_disk_remove(disk, from);
    entry_add(disk, to, file);
    return 0;
}

void sim_disk_power(struct sim_disk *disk) {
    for (struct entry *entry = disk->entries; entry; entry = entry->next) {
        if (entry->file) {
            sim_file_power(entry->file);
        }
    }
}
