/* The model's names and bytes. */
#include "kill_tree.h"
#include "base/err.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DIRECTORY_BITS = 0040000,
    TYPE_MASK = 0170000,
    DEPTH_MAX = 5,
    HEIGHT_MAX = 10,
    CHOICES_MAX = 1024
};

const struct model_who tree_root = {0};

static void content_forget(struct model_inode *inode) {
    struct content *content = inode->context;

    if (content) {
        free(content->data);
        free(content);
    }
}

static struct model_inode *root_make(struct tree *tree, const char *name) {
    const struct model_place place = {.who = &tree_root,
                                      .parent = model_root(tree->fs),
                                      .name = {(const uint8_t *)name, strlen(name)}};
    const struct model_new_inode what = {.mode = DIRECTORY_BITS | 0755};
    struct model_inode *inode;

    if (model_make(tree->fs, &place, &what, &inode) < 0) {
        abort();
    }
    return inode;
}

void tree_init(struct tree *tree, const char *mount, unsigned thread, uint64_t seed) {
    const struct model_options options = {.root_mode = 0755, .forget = content_forget};
    char name[32];

    memset(tree, 0, sizeof *tree);
    tree->mount = mount;
    tree->thread = thread;
    tree->fs = model_new(&options);
    prng_init(&tree->prng, seed);
    snprintf(name, sizeof name, "own-%u", thread);
    root_make(tree, name);
    for (unsigned i = 0; i < SHARED_COUNT; i++) {
        snprintf(name, sizeof name, "shared-%u", i);
        root_make(tree, name);
    }
    for (size_t i = 0; i < HANDLES_MAX; i++) {
        tree->handles[i].fd = -1;
    }
}

void tree_make_roots(struct tree *tree) {
    char path[KILL_PATH_BYTES];

    for (struct model_entry *entry = model_root(tree->fs)->entries; entry; entry = entry->next) {
        tree_path(tree, entry->inode, (struct bytes){0}, path);
        if (mkdir(path, 0755) != 0 && errno != EEXIST) {
            tree_complain(tree, "mkdir %s: %s", path, strerror(errno));
        }
    }
}

void tree_deinit(struct tree *tree) {
    tree_drop_handles(tree);
    model_free(tree->fs);
}

void tree_complain(struct tree *tree, const char *format, ...) {
    va_list arguments;

    if (tree->problem[0]) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(tree->problem, sizeof tree->problem, format, arguments);
    va_end(arguments);
}

struct content *tree_content(struct model_inode *inode) {
    if (!inode->context) {
        inode->context = calloc(1, sizeof(struct content));
        if (!inode->context) {
            abort();
        }
    }
    return inode->context;
}

void tree_fill(struct model_inode *inode, uint64_t offset, struct bytes bytes) {
    struct content *content = tree_content(inode);
    size_t end = offset + bytes.size;

    if (end > content->capacity) {
        uint8_t *data = realloc(content->data, end);

        if (!data) {
            abort();
        }
        memset(data + content->capacity, 0, end - content->capacity);
        content->data = data;
        content->capacity = end;
    }
    memcpy(content->data + offset, bytes.data, bytes.size);
    content->mtime_ns = 0;
}

void tree_cut(struct model_inode *inode, uint64_t size) {
    struct content *content = tree_content(inode);

    if (size < content->capacity) {
        memset(content->data + size, 0, content->capacity - size);
    }
    content->mtime_ns = 0;
}

bool tree_is_shared(const struct tree *tree, const struct model_inode *directory) {
    const struct model_inode *root = model_root(tree->fs);

    for (const struct model_entry *entry = root->entries; entry; entry = entry->next) {
        if (entry->inode == directory) {
            return entry->name[0] == 's';
        }
    }
    return directory == root;
}

bool tree_is_mine(const struct tree *tree, const char *name) {
    char prefix[16];
    int size = snprintf(prefix, sizeof prefix, "%u-", tree->thread);

    return strncmp(name, prefix, (size_t)size) == 0;
}

static unsigned depth_of(const struct tree *tree, const struct model_inode *directory) {
    unsigned depth = 0;

    while (directory != model_root(tree->fs)) {
        directory = directory->parent;
        depth++;
    }
    return depth;
}

static unsigned height_of(const struct model_inode *inode) {
    unsigned height = 0;

    for (const struct model_entry *entry = inode->entries; entry; entry = entry->next) {
        height = MAX(height, 1 + height_of(entry->inode));
    }
    return height;
}

bool tree_may_move(const struct tree *tree, const struct model_inode *inode,
                   const struct model_inode *parent) {
    return depth_of(tree, parent) + 1 + height_of(inode) <= HEIGHT_MAX;
}

/* A directory to work in: any but the root, all alike. */
static struct model_inode *choose_directory(struct tree *tree) {
    struct model_inode *found[CHOICES_MAX];
    size_t count = 0;

    for (struct model_inode *inode = model_first(tree->fs); inode; inode = inode->next) {
        if ((inode->mode & TYPE_MASK) == DIRECTORY_BITS && inode->parent &&
            inode != model_root(tree->fs) && count < CHOICES_MAX &&
            depth_of(tree, inode) < DEPTH_MAX) {
            found[count++] = inode;
        }
    }
    return found[prng_below(&tree->prng, count)];
}

/* Mostly short; some of any bytes and up to the longest. Never one that was there before. */
static void name_make(struct tree *tree, struct place *place) {
    int size = snprintf((char *)place->name, NAME_BYTES_MAX, "%u-%llx", tree->thread,
                        (unsigned long long)tree->names_made++);

    place->name_bytes = (size_t)size;
    if (prng_chance(&tree->prng, 1, 8)) {
        size_t end = prng_between(&tree->prng, place->name_bytes + 1, NAME_BYTES_MAX);

        place->name[place->name_bytes++] = '-';
        while (place->name_bytes < end) {
            uint8_t byte = (uint8_t)prng_between(&tree->prng, 1, 255);

            place->name[place->name_bytes++] = byte == '/' ? '_' : byte;
        }
    }
}

bool tree_choose_new(struct tree *tree, struct place *ret_place) {
    if (prng_chance(&tree->prng, 1, 20)) {
        return tree_choose_old(tree, ret_place);
    }
    ret_place->parent = choose_directory(tree);
    name_make(tree, ret_place);
    return true;
}

bool tree_choose_old(struct tree *tree, struct place *ret_place) {
    for (int attempt = 0; attempt < 10; attempt++) {
        struct model_inode *directory = choose_directory(tree);

        if (directory->entry_count > 0) {
            struct model_entry *entry = directory->entries;

            for (size_t skip = prng_below(&tree->prng, directory->entry_count); skip > 0; skip--) {
                entry = entry->next;
            }
            ret_place->parent = directory;
            ret_place->name_bytes = entry->name_bytes;
            memcpy(ret_place->name, entry->name, entry->name_bytes);
            return true;
        }
    }
    return false;
}

struct model_place tree_place(const struct place *place) {
    return (struct model_place){
        .who = &tree_root, .parent = place->parent, .name = {place->name, place->name_bytes}};
}

struct model_inode *tree_look(struct tree *tree, const struct place *place) {
    const struct model_place model_place = tree_place(place);
    struct model_inode *inode;

    return model_lookup(tree->fs, &model_place, &inode) == 0 ? inode : NULL;
}

static const struct model_entry *entry_of(const struct model_inode *parent,
                                          const struct model_inode *inode) {
    const struct model_entry *entry = parent->entries;

    while (entry && entry->inode != inode) {
        entry = entry->next;
    }
    return entry;
}

void tree_path(struct tree *tree, const struct model_inode *parent, struct bytes name,
               char ret_path[KILL_PATH_BYTES]) {
    const struct model_entry *chain[HEIGHT_MAX + 2];
    size_t count = 0;
    size_t at = (size_t)snprintf(ret_path, KILL_PATH_BYTES, "%s", tree->mount);

    while (parent != model_root(tree->fs) && count < ARRAY_SIZE(chain)) {
        chain[count++] = entry_of(parent->parent, parent);
        parent = parent->parent;
    }
    while (count-- > 0) {
        if (at + 1 + chain[count]->name_bytes < KILL_PATH_BYTES) {
            ret_path[at++] = '/';
            memcpy(ret_path + at, chain[count]->name, chain[count]->name_bytes);
            at += chain[count]->name_bytes;
        }
    }
    if (name.size > 0 && at + 1 + name.size < KILL_PATH_BYTES) {
        ret_path[at++] = '/';
        memcpy(ret_path + at, name.data, name.size);
        at += name.size;
    }
    ret_path[at] = '\0';
}

bool tree_path_of(struct tree *tree, const struct model_inode *inode,
                  char ret_path[KILL_PATH_BYTES]) {
    for (struct model_inode *parent = model_first(tree->fs); parent; parent = parent->next) {
        const struct model_entry *entry = entry_of(parent, inode);

        if (entry && parent->parent) {
            tree_path(tree, parent, (struct bytes){entry->name, entry->name_bytes}, ret_path);
            return true;
        }
    }
    return false;
}

void tree_drop_handles(struct tree *tree) {
    for (size_t i = 0; i < HANDLES_MAX; i++) {
        if (tree->handles[i].fd >= 0) {
            close(tree->handles[i].fd);
            tree->handles[i].fd = -1;
        }
    }
    model_session_end(tree->fs, 0);
}
