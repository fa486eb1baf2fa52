/* The stand-in's file system: inodes, names, data. */
#include "memory_shoal_tree.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

void *memory_need(void *memory) {
    if (!memory) {
        (void)fprintf(stderr, "memory_shoal: out of memory\n");
        abort();
    }
    return memory;
}

int64_t tree_now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Zeroed where it is touched, which is most of it never. */
static void *pages_take(size_t bytes) {
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory_need(pages == MAP_FAILED ? NULL : pages);
}

/* Its content is anything. */
static uint8_t *chunk_take(struct tree_chunks *chunks) {
    uint8_t *chunk;

    pthread_mutex_lock(&chunks->mutex);
    chunk = chunks->free;
    if (chunk) {
        memcpy(&chunks->free, chunk, sizeof(chunks->free));
    } else {
        /* The last chunk of a slab holds the link to the one before. */
        if (!chunks->slab || chunks->slab_used == SLAB_BYTES - CHUNK_BYTES) {
            uint8_t *slab = pages_take(SLAB_BYTES);

            (void)madvise(slab, SLAB_BYTES, MADV_HUGEPAGE);
            memcpy(slab + SLAB_BYTES - CHUNK_BYTES, &chunks->slab, sizeof(chunks->slab));
            chunks->slab = slab;
            chunks->slab_used = 0;
        }
        chunk = chunks->slab + chunks->slab_used;
        chunks->slab_used += CHUNK_BYTES;
    }
    pthread_mutex_unlock(&chunks->mutex);
    return chunk;
}

static void chunk_put(struct tree_chunks *chunks, uint8_t *chunk) {
    if (!chunk)
        return;
    pthread_mutex_lock(&chunks->mutex);
    memcpy(chunk, &chunks->free, sizeof(chunks->free));
    chunks->free = chunk;
    pthread_mutex_unlock(&chunks->mutex);
}

static void chunks_deinit(struct tree_chunks *chunks) {
    while (chunks->slab) {
        uint8_t *slab = chunks->slab;

        memcpy(&chunks->slab, slab + SLAB_BYTES - CHUNK_BYTES, sizeof(chunks->slab));
        (void)munmap(slab, SLAB_BYTES);
    }
    pthread_mutex_destroy(&chunks->mutex);
}

struct tree *tree_new(uint32_t root_mode) {
    struct tree *tree = pages_take(sizeof(*tree));
    struct tree_inode *root;

    pthread_rwlock_init(&tree->lock, NULL);
    for (int i = 0; i < DATA_LOCKS; i++)
        pthread_rwlock_init(&tree->data_locks[i], NULL);
    pthread_mutex_init(&tree->chunks.mutex, NULL);
    tree->ino_next = SHOAL_INO_ROOT;
    root = tree_inode_add(tree, S_IFDIR | root_mode);
    root->attributes.nlink = 2;
    root->parent = root;
    return tree;
}

static void inode_free(struct tree *tree, struct tree_inode *inode) {
    uint64_t ino = inode->attributes.ino;

    tree->tables[ino / INODES_PER_TABLE][ino % INODES_PER_TABLE] = NULL;
    tree->inode_count--;
    for (size_t i = 0; i < inode->chunk_count; i++)
        chunk_put(&tree->chunks, inode->chunks[i]);
    free(inode->chunks);
    free(inode->entries);
    free(inode->target);
    free(inode);
}

/* Touches what was used, as fuzzing makes and frees thousands. */
void tree_free(struct tree *tree) {
    for (uint64_t ino = 1; ino < tree->ino_next; ino++) {
        struct tree_inode *inode = tree_find(tree, ino);

        for (size_t i = 0; inode && i < inode->entry_count; i++)
            free(inode->entries[i]);
        if (inode)
            inode_free(tree, inode);
    }
    for (uint64_t i = 0; i <= tree->ino_next / INODES_PER_TABLE; i++)
        free(tree->tables[i]);
    chunks_deinit(&tree->chunks);
    for (int i = 0; i < DATA_LOCKS; i++)
        pthread_rwlock_destroy(&tree->data_locks[i]);
    pthread_rwlock_destroy(&tree->lock);
    (void)munmap(tree, sizeof(*tree));
}

pthread_rwlock_t *tree_data_lock(struct tree *tree, const struct tree_inode *inode) {
    return &tree->data_locks[inode->attributes.ino % DATA_LOCKS];
}

struct tree_inode *tree_find(struct tree *tree, uint64_t ino) {
    if (ino >= tree->ino_next || !tree->tables[ino / INODES_PER_TABLE])
        return NULL;
    return tree->tables[ino / INODES_PER_TABLE][ino % INODES_PER_TABLE];
}

struct tree_inode *tree_inode_add(struct tree *tree, uint32_t mode) {
    struct tree_inode *inode = memory_need(calloc(1, sizeof(*inode)));
    uint64_t ino = tree->ino_next++;
    struct tree_inode ***table = &tree->tables[ino / INODES_PER_TABLE];
    int64_t now_ns = tree_now_ns();

    if (!*table)
        *table = memory_need(calloc(INODES_PER_TABLE, sizeof(struct tree_inode *)));
    (*table)[ino % INODES_PER_TABLE] = inode;
    tree->inode_count++;
    inode->attributes = (struct shoal_attributes){
        .ino = ino,
        .mode = mode,
        .atime_ns = now_ns,
        .mtime_ns = now_ns,
        .ctime_ns = now_ns,
        .btime_ns = now_ns,
        .generation = 1,
    };
    return inode;
}

void tree_inode_drop(struct tree *tree, struct tree_inode *inode) {
    if (inode->attributes.nlink == 0 && atomic_load(&inode->open_count) == 0)
        inode_free(tree, inode);
}

/* FNV-1a over the parent's number and the name. */
static uint64_t name_hash(uint64_t parent, const char *text, size_t bytes) {
    uint64_t hash = UINT64_C(14695981039346656037) ^ (parent * UINT64_C(0x9e3779b97f4a7c15));

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

struct tree_name *tree_name_find(struct tree *tree, const struct tree_inode *parent,
                                 const char *text, size_t bytes) {
    uint64_t hash = name_hash(parent->attributes.ino, text, bytes);
    struct tree_name *name = tree->names[hash % NAME_BUCKETS];

    while (name && !(name->hash == hash && name->parent == parent && name->bytes == bytes &&
                     memcmp(name->text, text, bytes) == 0))
        name = name->next;
    return name;
}

void tree_name_add(struct tree *tree, struct tree_inode *parent, const char *text, size_t bytes,
                   struct tree_inode *child) {
    uint64_t hash = name_hash(parent->attributes.ino, text, bytes);
    struct tree_name **bucket = &tree->names[hash % NAME_BUCKETS];
    struct tree_name *name = memory_need(malloc(sizeof(*name) + bytes));

    if (parent->entry_count == parent->entry_space) {
        parent->entry_space = parent->entry_space ? 2 * parent->entry_space : 16;
        parent->entries =
            memory_need(realloc(parent->entries, parent->entry_space * sizeof(*parent->entries)));
    }
    *name = (struct tree_name){
        .next = *bucket,
        .parent = parent,
        .child = child,
        .place = parent->entry_count,
        .hash = hash,
        .bytes = bytes,
    };
    memcpy(name->text, text, bytes);
    *bucket = name;
    parent->entries[parent->entry_count++] = name;
    parent->live_count++;
    parent->attributes.mtime_ns = parent->attributes.ctime_ns = tree_now_ns();
}

void tree_name_remove(struct tree *tree, struct tree_name *name) {
    struct tree_inode *parent = name->parent;
    struct tree_name **link = &tree->names[name->hash % NAME_BUCKETS];

    while (*link != name)
        link = &(*link)->next;
    *link = name->next;
    parent->entries[name->place] = NULL;
    parent->live_count--;
    if (parent->live_count == 0)
        parent->entry_count = 0;
    parent->attributes.mtime_ns = parent->attributes.ctime_ns = tree_now_ns();
    free(name);
}

/* The part of [offset, offset + bytes) that lies in its first chunk. */
static size_t part_bytes(uint64_t offset, size_t bytes) {
    size_t left = CHUNK_BYTES - (size_t)(offset % CHUNK_BYTES);

    return bytes < left ? bytes : left;
}

size_t tree_read(const struct tree_inode *inode, uint64_t offset, uint8_t *data, size_t bytes) {
    size_t done = 0;

    if (offset >= inode->attributes.size)
        return 0;
    if (bytes > inode->attributes.size - offset)
        bytes = (size_t)(inode->attributes.size - offset);
    while (done < bytes) {
        uint64_t at = offset + done;
        size_t part = part_bytes(at, bytes - done);
        size_t chunk = (size_t)(at / CHUNK_BYTES);

        if (chunk < inode->chunk_count && inode->chunks[chunk])
            memcpy(data + done, inode->chunks[chunk] + at % CHUNK_BYTES, part);
        else
            memset(data + done, 0, part);
        done += part;
    }
    return bytes;
}

/* The chunk, of which `bytes` are about to be written; a new one is zeroed unless that is all. */
static uint8_t *chunk_get(struct tree *tree, struct tree_inode *inode, size_t chunk, size_t bytes) {
    if (chunk >= inode->chunk_count) {
        size_t count = chunk + 1 > 2 * inode->chunk_count ? chunk + 1 : 2 * inode->chunk_count;

        inode->chunks = memory_need(realloc(inode->chunks, count * sizeof(*inode->chunks)));
        memset(inode->chunks + inode->chunk_count, 0,
               (count - inode->chunk_count) * sizeof(*inode->chunks));
        inode->chunk_count = count;
    }
    if (!inode->chunks[chunk]) {
        inode->chunks[chunk] = chunk_take(&tree->chunks);
        if (bytes < CHUNK_BYTES)
            memset(inode->chunks[chunk], 0, CHUNK_BYTES);
        inode->attributes.bytes_used += CHUNK_BYTES;
    }
    return inode->chunks[chunk];
}

void tree_write(struct tree *tree, struct tree_inode *inode, uint64_t offset, const uint8_t *data,
                size_t bytes) {
    size_t done = 0;

    while (done < bytes) {
        uint64_t at = offset + done;
        size_t part = part_bytes(at, bytes - done);

        memcpy(chunk_get(tree, inode, (size_t)(at / CHUNK_BYTES), part) + at % CHUNK_BYTES,
               data + done, part);
        done += part;
    }
    if (offset + bytes > inode->attributes.size)
        inode->attributes.size = offset + bytes;
    inode->attributes.mtime_ns = inode->attributes.ctime_ns = tree_now_ns();
}

void tree_resize(struct tree *tree, struct tree_inode *inode, uint64_t bytes) {
    size_t keep = (size_t)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES);

    for (size_t i = keep; i < inode->chunk_count; i++) {
        if (inode->chunks[i])
            inode->attributes.bytes_used -= CHUNK_BYTES;
        chunk_put(&tree->chunks, inode->chunks[i]);
        inode->chunks[i] = NULL;
    }
    if (bytes % CHUNK_BYTES && bytes / CHUNK_BYTES < inode->chunk_count &&
        inode->chunks[bytes / CHUNK_BYTES])
        memset(inode->chunks[bytes / CHUNK_BYTES] + bytes % CHUNK_BYTES, 0,
               CHUNK_BYTES - bytes % CHUNK_BYTES);
    inode->attributes.size = bytes;
    inode->attributes.mtime_ns = inode->attributes.ctime_ns = tree_now_ns();
}
