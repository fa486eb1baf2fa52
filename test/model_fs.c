/* The model. Directories are lists: what a test makes is small. */
#include "model_fs.h"
#include <stdlib.h>
#include <string.h>

enum { TYPE_BITS = 0170000, REGULAR = 0100000, FILE_BITS = 07777 };
enum { SET_UID = 04000, SET_GID = 02000, STICKY = 01000 };
enum { T_FIFO = 1, T_CHR = 2, T_DIR = 4, T_BLK = 6, T_REG = 8, T_LNK = 10, T_SOCK = 12 };
enum { MAY_EXEC = 1, MAY_WRITE = 2, MAY_READ = 4 };
#define SIZE_LIMIT ((UINT64_C(1) << 62) - 1)

struct model_fs {
    struct model_options options;
    struct model_inode *inodes;
    struct model_inode *root;
    size_t count;
};

static void *allocate(size_t size) {
    void *memory = calloc(1, size);

    if (!memory) {
        abort();
    }
    return memory;
}

static uint32_t type_of(const struct model_inode *inode) {
    return inode->mode >> 12;
}

static bool is_directory(const struct model_inode *inode) {
    return type_of(inode) == T_DIR;
}

static bool in_group(const struct model_who *who, uint32_t gid) {
    bool found = who->gid == gid;

    for (size_t i = 0; i < who->group_count; i++) {
        found = found || who->groups[i] == gid;
    }
    return found;
}

static int permit(const struct model_who *who, const struct model_inode *inode, uint32_t mask) {
    uint32_t bits = inode->mode;

    if (who->uid == 0) {
        bool runs = is_directory(inode) || (inode->mode & 0111) != 0;

        return (mask & MAY_EXEC) && !runs ? -ERR_ACCESS : 0;
    }
    if (who->uid == inode->uid) {
        bits >>= 6;
    } else if (in_group(who, inode->gid)) {
        bits >>= 3;
    }
    return mask & ~bits & 7 ? -ERR_ACCESS : 0;
}

static struct model_inode *inode_new(struct model_fs *fs, uint32_t mode) {
    struct model_inode *inode = allocate(sizeof *inode);

    inode->mode = mode;
    inode->nlink = is_directory(inode) ? 2 : 1;
    inode->mtime_changes = 1;
    inode->ctime_changes = 1;
    inode->next = fs->inodes;
    fs->inodes = inode;
    fs->count++;
    return inode;
}

static void inode_free(struct model_fs *fs, struct model_inode *inode) {
    struct model_inode **link = &fs->inodes;

    while (*link != inode) {
        link = &(*link)->next;
    }
    *link = inode->next;
    fs->count--;
    if (fs->options.forget) {
        fs->options.forget(inode);
    }
    while (inode->entries) {
        struct model_entry *entry = inode->entries;

        inode->entries = entry->next;
        free(entry);
    }
    free(inode->target);
    free(inode);
}

bool model_is_open_by(const struct model_inode *inode, uint32_t session) {
    return inode->named[session] || inode->read_opens[session] + inode->write_opens[session] > 0;
}

static bool is_open(const struct model_inode *inode) {
    for (int i = 0; i < MODEL_SESSIONS; i++) {
        if (model_is_open_by(inode, (uint32_t)i)) {
            return true;
        }
    }
    return false;
}

static void inode_look(struct model_fs *fs, struct model_inode *inode) {
    if (inode->nlink == 0 && !is_open(inode)) {
        inode_free(fs, inode);
    }
}

struct model_fs *model_new(const struct model_options *options) {
    struct model_fs *fs = allocate(sizeof *fs);

    fs->options = *options;
    fs->root = inode_new(fs, T_DIR << 12 | (options->root_mode & FILE_BITS));
    fs->root->uid = options->root_uid;
    fs->root->gid = options->root_gid;
    fs->root->parent = fs->root;
    fs->root->ino = 1;
    return fs;
}

void model_free(struct model_fs *fs) {
    while (fs && fs->inodes) {
        inode_free(fs, fs->inodes);
    }
    free(fs);
}

struct model_inode *model_root(struct model_fs *fs) {
    return fs->root;
}

struct model_inode *model_first(struct model_fs *fs) {
    return fs->inodes;
}

size_t model_inode_count(const struct model_fs *fs) {
    return fs->count;
}

struct model_inode *model_find(struct model_fs *fs, uint64_t ino) {
    struct model_inode *inode = fs->inodes;

    while (inode && inode->ino != ino) {
        inode = inode->next;
    }
    return inode;
}

static int name_valid(struct bytes name) {
    if (name.size > NAME_BYTES_MAX) {
        return -ERR_NAME_TOO_LONG;
    }
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == 0 || name.data[i] == '/') {
            return -ERR_INVALID;
        }
    }
    return name.size == 0 ? -ERR_INVALID : 0;
}

static bool is_dots(struct bytes name, size_t count) {
    return name.size == count && memcmp(name.data, "..", count) == 0;
}

static bool is_plain(struct bytes name) {
    return !is_dots(name, 1) && !is_dots(name, 2);
}

static struct model_entry **entry_find(struct model_inode *directory, struct bytes name) {
    struct model_entry **link = &directory->entries;

    while (*link &&
           ((*link)->name_bytes != name.size || memcmp((*link)->name, name.data, name.size) != 0)) {
        link = &(*link)->next;
    }
    return link;
}

/* What every walk to a name does: -ERR_NOT_FOUND with *ret_found false when only the name is
 * missing. */
int model_lookup(struct model_fs *fs, const struct model_place *place,
                 struct model_inode **ret_inode) {
    int r = name_valid(place->name);

    (void)fs;
    if (r < 0) {
        return r;
    }
    if (!place->parent) {
        return -ERR_NOT_FOUND;
    }
    if (!is_directory(place->parent)) {
        return -ERR_NOT_DIRECTORY;
    }
    r = permit(place->who, place->parent, MAY_EXEC);
    if (r < 0) {
        return r;
    }
    if (is_dots(place->name, 1)) {
        *ret_inode = place->parent;
        return 0;
    }
    if (is_dots(place->name, 2)) {
        if (!place->parent->parent) {
            return -ERR_NOT_FOUND;
        }
        *ret_inode = place->parent->parent;
        return 0;
    }
    struct model_entry *entry = *entry_find(place->parent, place->name);
    if (!entry) {
        return -ERR_NOT_FOUND;
    }
    *ret_inode = entry->inode;
    return 0;
}

/* Whether a new name may be made: -ERR_EXISTS with the inode that has it. */
static int may_make(struct model_fs *fs, const struct model_place *place,
                    struct model_inode **ret_existing) {
    int r = model_lookup(fs, place, ret_existing);

    if (r == 0) {
        return -ERR_EXISTS;
    }
    if (r != -ERR_NOT_FOUND || !place->parent || place->parent->nlink == 0) {
        return r;
    }
    return permit(place->who, place->parent, MAY_WRITE | MAY_EXEC);
}

/* mtime and ctime of a directory whose entries changed. */
static void entries_changed(struct model_inode *directory) {
    directory->mtime_changes++;
    directory->ctime_changes++;
}

static void entry_add(struct model_inode *directory, struct bytes name, struct model_inode *inode) {
    struct model_entry *entry = allocate(sizeof *entry);

    entry->inode = inode;
    entry->name_bytes = name.size;
    memcpy(entry->name, name.data, name.size);
    entry->next = directory->entries;
    directory->entries = entry;
    directory->entry_count++;
    if (is_directory(inode)) {
        directory->nlink++;
        inode->parent = directory;
    }
    entries_changed(directory);
}

static void entry_remove(struct model_inode *directory, struct bytes name) {
    struct model_entry **link = entry_find(directory, name);
    struct model_entry *entry = *link;

    *link = entry->next;
    directory->entry_count--;
    if (is_directory(entry->inode)) {
        directory->nlink--;
    }
    free(entry);
    entries_changed(directory);
}

static struct model_inode *make_unnamed(struct model_fs *fs, const struct model_place *place,
                                        uint32_t mode) {
    struct model_inode *inode = inode_new(fs, mode);
    const struct model_inode *parent = place->parent;

    inode->uid = place->who->uid;
    inode->gid = place->who->gid;
    if (parent->mode & SET_GID) {
        bool executable = (mode & (SET_GID | 0010)) == (SET_GID | 0010);

        inode->gid = parent->gid;
        if (is_directory(inode)) {
            inode->mode |= SET_GID;
        } else if (executable && place->who->uid != 0 && !in_group(place->who, parent->gid)) {
            inode->mode &= ~(uint32_t)SET_GID;
        }
    }
    return inode;
}

static struct model_inode *make(struct model_fs *fs, const struct model_place *place,
                                uint32_t mode) {
    struct model_inode *inode = make_unnamed(fs, place, mode);

    entry_add(place->parent, place->name, inode);
    return inode;
}

int model_make(struct model_fs *fs, const struct model_place *place,
               const struct model_new_inode *what, struct model_inode **ret_inode) {
    uint32_t type = what->mode >> 12;
    bool device = type == T_CHR || type == T_BLK;
    struct model_inode *existing;

    if (type == T_LNK && what->target.size == 0) {
        return -ERR_NOT_FOUND;
    }
    if (type == T_LNK && what->target.size > 4095) {
        return -ERR_NAME_TOO_LONG;
    }
    int r = may_make(fs, place, &existing);
    if (r == 0 && device && place->who->uid != 0) {
        r = -ERR_NOT_PERMITTED;
    }
    if (r < 0) {
        return r;
    }
    struct model_inode *inode = make(fs, place, what->mode);
    inode->rdev = device ? what->rdev : 0;
    if (type == T_LNK) {
        inode->target = allocate(what->target.size);
        memcpy(inode->target, what->target.data, what->target.size);
        inode->size = what->target.size;
    }
    *ret_inode = inode;
    return 0;
}

static uint32_t without_set_ids(uint32_t mode) {
    return mode & ~(uint32_t)(SET_UID | (mode & 0010 ? SET_GID : 0));
}

static void truncate(struct model_inode *inode, const struct model_who *who, uint64_t size) {
    inode->size = size;
    inode->mtime_changes++;
    inode->ctime_changes++;
    if (who->uid != 0) {
        inode->mode = without_set_ids(inode->mode);
    }
}

static void open_count(struct model_inode *inode, const struct model_open *open) {
    if (open->by_name && !(open->flags & (MODEL_WRITE | MODEL_TRUNCATE))) {
        inode->named[open->session] = true;
    } else if (open->flags & MODEL_WRITE) {
        inode->write_opens[open->session]++;
    } else {
        inode->read_opens[open->session]++;
    }
}

int model_open(struct model_fs *fs, const struct model_who *who, struct model_inode *inode,
               const struct model_open *open) {
    uint32_t writes = open->flags & (MODEL_WRITE | MODEL_TRUNCATE);
    uint32_t mask = (open->flags & MODEL_READ ? MAY_READ : 0) | (writes ? MAY_WRITE : 0) |
                    (open->flags & MODEL_EXECUTE ? MAY_EXEC : 0);

    (void)fs;
    if (!inode) {
        return -ERR_STALE;
    }
    if (type_of(inode) == T_LNK) {
        return -ERR_LOOP;
    }
    if ((open->flags & MODEL_DIRECTORY) && !is_directory(inode)) {
        return -ERR_NOT_DIRECTORY;
    }
    if (is_directory(inode) && writes) {
        return -ERR_IS_DIRECTORY;
    }
    if (mask == 0) {
        return -ERR_INVALID;
    }
    int r = permit(who, inode, mask);
    if (r < 0) {
        return r;
    }
    if (!is_directory(inode) && type_of(inode) != T_REG) {
        return -ERR_NO_DEVICE;
    }
    if (open->flags & MODEL_TRUNCATE) {
        truncate(inode, who, 0);
    }
    open_count(inode, open);
    return 0;
}

int model_create(struct model_fs *fs, const struct model_place *place,
                 const struct model_open *open, struct model_inode **ret_inode, bool *ret_created) {
    struct model_inode *existing = NULL;
    int r = may_make(fs, place, &existing);

    if (r == -ERR_EXISTS && !open->exclusive) {
        *ret_created = false;
        *ret_inode = existing;
        return is_directory(existing) ? -ERR_IS_DIRECTORY
                                      : model_open(fs, place->who, existing, open);
    }
    if (r < 0) {
        return r;
    }
    *ret_created = true;
    *ret_inode = make(fs, place, T_REG << 12 | (open->mode & FILE_BITS));
    open_count(*ret_inode, open);
    return 0;
}

int model_create_unnamed(struct model_fs *fs, const struct model_place *place,
                         const struct model_open *open, struct model_inode **ret_inode) {
    if (!place->parent) {
        return -ERR_NOT_FOUND;
    }
    if (!is_directory(place->parent)) {
        return -ERR_NOT_DIRECTORY;
    }
    if (place->parent->nlink == 0) {
        return -ERR_NOT_FOUND;
    }
    int r = permit(place->who, place->parent, MAY_WRITE | MAY_EXEC);
    if (r < 0) {
        return r;
    }
    *ret_inode = make_unnamed(fs, place, T_REG << 12 | (open->mode & FILE_BITS));
    (*ret_inode)->nlink = 0;
    (*ret_inode)->may_be_named = !open->exclusive;
    open_count(*ret_inode, open);
    return 0;
}

void model_close_by_name(struct model_fs *fs, struct model_inode *inode, uint32_t session) {
    inode->named[session] = false;
    inode_look(fs, inode);
}

int model_close(struct model_fs *fs, struct model_inode *inode, uint32_t session, uint32_t flags) {
    uint32_t *opens = !inode                ? NULL
                      : flags & MODEL_WRITE ? &inode->write_opens[session]
                                            : &inode->read_opens[session];

    if (!opens || *opens == 0) {
        return -ERR_BAD_HANDLE;
    }
    (*opens)--;
    inode_look(fs, inode);
    return 0;
}

void model_session_end(struct model_fs *fs, uint32_t session) {
    struct model_inode *inode = fs->inodes;

    while (inode) {
        struct model_inode *next = inode->next;

        inode->named[session] = false;
        inode->read_opens[session] = 0;
        inode->write_opens[session] = 0;
        inode_look(fs, inode);
        inode = next;
    }
}

int model_link(struct model_fs *fs, struct model_inode *inode, const struct model_place *place) {
    struct model_inode *existing;

    if (!inode) {
        return -ERR_STALE;
    }
    int r = may_make(fs, place, &existing);
    if (r < 0) {
        return r;
    }
    if (is_directory(inode)) {
        return -ERR_NOT_PERMITTED;
    }
    if (inode->nlink == 0 && !inode->may_be_named) {
        return -ERR_NOT_FOUND;
    }
    inode->may_be_named = false;
    inode->nlink++;
    inode->ctime_changes++;
    entry_add(place->parent, place->name, inode);
    return 0;
}

/* Linux' may_delete, without the question of types. */
static int may_remove(const struct model_place *place, const struct model_inode *victim) {
    uint32_t uid = place->who->uid;
    int r = permit(place->who, place->parent, MAY_WRITE | MAY_EXEC);

    if (r < 0) {
        return r;
    }
    bool owns = uid == 0 || uid == victim->uid || uid == place->parent->uid;
    return (place->parent->mode & STICKY) && !owns ? -ERR_NOT_PERMITTED : 0;
}

/* A name of the inode is gone. */
static void link_drop(struct model_fs *fs, struct model_inode *inode) {
    inode->ctime_changes++;
    if (is_directory(inode)) {
        inode->nlink = 0;
        inode->parent = NULL;
    } else {
        inode->nlink--;
    }
    inode_look(fs, inode);
}

int model_unlink(struct model_fs *fs, const struct model_place *place) {
    struct model_inode *victim;
    int r = model_lookup(fs, place, &victim);

    if (r == 0 && !is_plain(place->name)) {
        r = -ERR_IS_DIRECTORY;
    }
    r = r < 0 ? r : may_remove(place, victim);
    if (r == 0 && is_directory(victim)) {
        r = -ERR_IS_DIRECTORY;
    }
    if (r == 0) {
        entry_remove(place->parent, place->name);
        link_drop(fs, victim);
    }
    return r;
}

int model_rmdir(struct model_fs *fs, const struct model_place *place) {
    struct model_inode *victim;
    int r = model_lookup(fs, place, &victim);

    if (r == 0 && !is_plain(place->name)) {
        r = place->name.size == 1 ? -ERR_INVALID : -ERR_NOT_EMPTY;
    }
    r = r < 0 ? r : may_remove(place, victim);
    if (r == 0 && !is_directory(victim)) {
        r = -ERR_NOT_DIRECTORY;
    }
    if (r == 0 && victim->entry_count > 0) {
        r = -ERR_NOT_EMPTY;
    }
    if (r == 0) {
        entry_remove(place->parent, place->name);
        link_drop(fs, victim);
    }
    return r;
}

static bool lies_within(const struct model_inode *directory, const struct model_inode *ancestor) {
    while (directory != ancestor && directory->parent && directory->parent != directory) {
        directory = directory->parent;
    }
    return directory == ancestor;
}

struct renaming {
    const struct model_place *from;
    const struct model_place *to;
    struct model_inode *what;
    struct model_inode *other; /* NULL: the new name is free */
    bool exchange;
};

static int rename_find(struct model_fs *fs, struct renaming *renaming, uint32_t flags) {
    const struct model_place *to = renaming->to;
    int r = name_valid(renaming->from->name);

    r = r < 0 ? r : name_valid(to->name);
    if (r == 0 && !is_plain(renaming->from->name)) {
        return -ERR_IN_USE;
    }
    if (r == 0 && !is_plain(to->name)) {
        return flags & MODEL_NO_REPLACE ? -ERR_EXISTS : -ERR_IN_USE;
    }
    r = r < 0 ? r : model_lookup(fs, renaming->from, &renaming->what);
    if (r == -ERR_NOT_FOUND && to->parent && !is_directory(to->parent)) {
        return -ERR_NOT_DIRECTORY;
    }
    if (r < 0) {
        return r;
    }
    r = model_lookup(fs, to, &renaming->other);
    if (r == -ERR_NOT_FOUND && to->parent && to->parent->nlink > 0 && !renaming->exchange) {
        renaming->other = NULL;
        return 0;
    }
    return r == 0 && (flags & MODEL_NO_REPLACE) ? -ERR_EXISTS : r;
}

static int rename_check(const struct renaming *renaming) {
    const struct model_place *from = renaming->from;
    const struct model_place *to = renaming->to;
    const struct model_inode *other = renaming->other;
    bool moves = from->parent != to->parent;

    if (is_directory(renaming->what) && lies_within(to->parent, renaming->what)) {
        return -ERR_INVALID;
    }
    if (other && is_directory(other) && lies_within(from->parent, other)) {
        return renaming->exchange ? -ERR_INVALID : -ERR_NOT_EMPTY;
    }
    if (other == renaming->what) {
        return 0;
    }
    int r = may_remove(from, renaming->what);
    if (r == 0 && other) {
        r = may_remove(to, other);
        if (r == 0 && !renaming->exchange && is_directory(other) != is_directory(renaming->what)) {
            r = is_directory(other) ? -ERR_IS_DIRECTORY : -ERR_NOT_DIRECTORY;
        }
    } else if (r == 0) {
        r = permit(to->who, to->parent, MAY_WRITE | MAY_EXEC);
    }
    if (r == 0 && moves && is_directory(renaming->what)) {
        r = permit(from->who, renaming->what, MAY_WRITE);
    }
    if (r == 0 && moves && renaming->exchange && is_directory(other)) {
        r = permit(from->who, other, MAY_WRITE);
    }
    if (r == 0 && other && !renaming->exchange && is_directory(other) && other->entry_count > 0) {
        r = -ERR_NOT_EMPTY;
    }
    return r;
}

int model_rename(struct model_fs *fs, const struct model_place *from, const struct model_place *to,
                 uint32_t flags) {
    struct renaming renaming = {.from = from, .to = to, .exchange = flags & MODEL_EXCHANGE};

    if (flags > MODEL_EXCHANGE) {
        return -ERR_INVALID;
    }
    int r = rename_find(fs, &renaming, flags);
    r = r < 0 ? r : rename_check(&renaming);
    if (r < 0 || renaming.other == renaming.what) {
        return r;
    }
    entry_remove(from->parent, from->name);
    if (renaming.other) {
        entry_remove(to->parent, to->name);
    }
    entry_add(to->parent, to->name, renaming.what);
    renaming.what->ctime_changes++;
    if (renaming.exchange) {
        entry_add(from->parent, from->name, renaming.other);
        renaming.other->ctime_changes++;
    } else if (renaming.other) {
        link_drop(fs, renaming.other);
    }
    return 0;
}

static int size_check(const struct model_who *who, const struct model_inode *inode,
                      const struct model_change *change) {
    if (is_directory(inode)) {
        return -ERR_IS_DIRECTORY;
    }
    if (type_of(inode) != T_REG) {
        return -ERR_INVALID;
    }
    if (change->opened && inode->write_opens[change->session] > 0) {
        return 0;
    }
    return permit(who, inode, MAY_WRITE);
}

static int times_check(const struct model_who *who, const struct model_inode *inode, uint32_t set) {
    uint32_t now = MODEL_SET_ATIME_NOW | MODEL_SET_MTIME_NOW;
    uint32_t times = set & (now | MODEL_SET_ATIME | MODEL_SET_MTIME);

    if (times == 0 || who->uid == 0 || who->uid == inode->uid) {
        return 0;
    }
    return times == now ? permit(who, inode, MAY_WRITE) : -ERR_NOT_PERMITTED;
}

static int owner_check(const struct model_who *who, const struct model_inode *inode,
                       const struct model_change *change) {
    bool owner = who->uid == inode->uid;

    if (who->uid == 0) {
        return 0;
    }
    if ((change->set & MODEL_SET_UID) && !(owner && change->uid == inode->uid)) {
        return -ERR_NOT_PERMITTED;
    }
    if ((change->set & MODEL_SET_GID) &&
        !(owner && (change->gid == inode->gid || in_group(who, change->gid)))) {
        return -ERR_NOT_PERMITTED;
    }
    return (change->set & MODEL_SET_MODE) && !owner ? -ERR_NOT_PERMITTED : 0;
}

static void owner_change(const struct model_who *who, struct model_inode *inode,
                         const struct model_change *change) {
    uint32_t gid = change->set & MODEL_SET_GID ? change->gid : inode->gid;
    uint32_t mode = inode->mode;

    if (change->set & MODEL_SET_MODE) {
        mode = (mode & TYPE_BITS) | (change->mode & FILE_BITS);
        if (who->uid != 0 && !in_group(who, gid)) {
            mode &= ~(uint32_t)SET_GID;
        }
    } else if ((change->set & (MODEL_SET_UID | MODEL_SET_GID)) && !is_directory(inode)) {
        mode = without_set_ids(mode);
    }
    inode->mode = mode;
    inode->gid = gid;
    inode->uid = change->set & MODEL_SET_UID ? change->uid : inode->uid;
}

/* Another session has it open for writing, and it would begin to act for its owner or group. */
static int acts_check(const struct model_who *who, const struct model_inode *inode,
                      const struct model_change *change) {
    struct model_inode after = *inode;

    owner_change(who, &after, change);
    bool same = after.uid == inode->uid && after.gid == inode->gid;
    uint32_t acted = same ? inode->mode & ~without_set_ids(inode->mode) : 0;
    uint32_t acts = after.mode & ~without_set_ids(after.mode);
    if ((inode->mode & TYPE_BITS) != REGULAR || (acts & ~acted) == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < MODEL_SESSIONS; i++) {
        if (i != change->session && inode->write_opens[i] > 0) {
            return -ERR_IN_USE;
        }
    }
    return 0;
}

int model_setattr(struct model_fs *fs, const struct model_who *who, struct model_inode *inode,
                  const struct model_change *change) {
    (void)fs;
    if (!inode) {
        return -ERR_STALE;
    }
    int r = change->set & MODEL_SET_SIZE ? size_check(who, inode, change)
                                         : times_check(who, inode, change->set);
    r = r < 0 ? r : owner_check(who, inode, change);
    r = r < 0 ? r : acts_check(who, inode, change);
    if (r == 0 && (change->set & MODEL_SET_SIZE) && change->size > SIZE_LIMIT) {
        r = -ERR_FILE_TOO_BIG;
    }
    if (r < 0 || change->set == 0) {
        return r;
    }
    owner_change(who, inode, change);
    if (change->set & MODEL_SET_SIZE) {
        truncate(inode, who, change->size);
    } else if (change->set & (MODEL_SET_MTIME | MODEL_SET_MTIME_NOW)) {
        inode->mtime_changes++;
    }
    inode->ctime_changes++;
    return 0;
}

int model_access(const struct model_who *who, const struct model_inode *inode, uint32_t mask) {
    if (!inode) {
        return -ERR_STALE;
    }
    return permit(who, inode, mask);
}

void model_written(struct model_inode *inode, const struct model_who *who, uint64_t end) {
    inode->size = MAX(inode->size, end);
    inode->mtime_changes++;
    inode->ctime_changes++;
    if (who->uid != 0) {
        inode->mode = without_set_ids(inode->mode);
    }
}
