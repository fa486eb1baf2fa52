/* A file system under a cluster's directory that forgets at a power cut what was not synced.
 *
 *     power_layer BACK MOUNT
 *
 * Serves BACK (power_store.h) at MOUNT, over /dev/fuse. Says "ready" when it is mounted. Then reads
 * one line: "power SEED" cuts, says what it took, and ends; the end of input ends it without a cut.
 *
 * The kernel's page cache holds no secrets: it writes through, and each run is a mount of its own.
 * Memory maps work, as files are opened cached; O_DIRECT goes past the cache.
 *
 * Thread: some serve requests, all but reads under one lock; the first one waits for the line. */
#include "power_store.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum { THREADS = 4, WRITE_BYTES_MAX = 1 << 20, BUFFER_BYTES = WRITE_BYTES_MAX + 8192 };
enum { KEPT_S = 3600 };

struct layer {
    int device;
    struct power_store *store;
    pthread_mutex_t lock;
    bool off; /* no power: nobody gets an answer any more */
};

struct request {
    struct layer *layer;
    const struct fuse_in_header *head;
    const void *body;
    char *names;             /* of calls that have no body */
    struct power_node *node; /* that it is about */
    uint8_t *out;            /* the answer's body, BUFFER_BYTES */
    size_t out_bytes;
};

static struct fuse_attr attr_of(const struct power_node *node) {
    struct stat status = {0};

    (void)fstat(node->fd, &status);
    return (struct fuse_attr){.ino = node->id,
                              .size = (uint64_t)status.st_size,
                              .blocks = (uint64_t)status.st_blocks,
                              .mtime = (uint64_t)status.st_mtim.tv_sec,
                              .ctime = (uint64_t)status.st_ctim.tv_sec,
                              .mtimensec = (uint32_t)status.st_mtim.tv_nsec,
                              .ctimensec = (uint32_t)status.st_ctim.tv_nsec,
                              .mode = status.st_mode,
                              .nlink = (uint32_t)status.st_nlink,
                              .blksize = 4096};
}

/* Room in the answer. */
static void *out_add(struct request *request, size_t bytes) {
    void *at = request->out + request->out_bytes;

    memset(at, 0, bytes);
    request->out_bytes += bytes;
    return at;
}

static void out_entry(struct request *request, const struct power_node *node) {
    struct fuse_entry_out *out = out_add(request, sizeof *out);

    out->nodeid = node->id;
    out->entry_valid = KEPT_S;
    out->attr_valid = KEPT_S;
    out->attr = attr_of(node);
}

static void out_open(struct request *request) {
    struct fuse_open_out *out = out_add(request, sizeof *out);

    out->open_flags = FOPEN_KEEP_CACHE;
}

static int do_lookup(struct request *request) {
    struct power_node *found;
    int r = power_lookup(request->layer->store, request->node, request->names, &found);

    if (r == 0) {
        out_entry(request, found);
    }
    return r;
}

static int do_getattr(struct request *request) {
    struct fuse_attr_out *out = out_add(request, sizeof *out);

    out->attr_valid = KEPT_S;
    out->attr = attr_of(request->node);
    return 0;
}

static int do_setattr(struct request *request) {
    const struct fuse_setattr_in *in = request->body;
    int r = 0;

    if (in->valid & FATTR_SIZE) {
        r = power_truncate(request->node, in->size);
    }
    if (r == 0 && in->valid & FATTR_MODE && !S_ISSOCK(request->node->mode)) {
        r = fchmod(request->node->fd, in->mode & 07777) < 0 ? -errno : 0;
    }
    return r < 0 ? r : do_getattr(request);
}

static int make(struct request *request, const char *name, mode_t mode) {
    struct power_node *made;
    int r = power_make(request->layer->store, request->node, name, mode, &made);

    if (r == 0) {
        out_entry(request, made);
    }
    return r;
}

static int do_mknod(struct request *request) {
    const struct fuse_mknod_in *in = request->body;

    return make(request, (const char *)(in + 1), in->mode);
}

static int do_mkdir(struct request *request) {
    const struct fuse_mkdir_in *in = request->body;

    return make(request, (const char *)(in + 1), S_IFDIR | (in->mode & 07777));
}

static int do_create(struct request *request) {
    const struct fuse_create_in *in = request->body;
    int r = make(request, (const char *)(in + 1), S_IFREG | (in->mode & 07777));

    if (r == 0) {
        out_open(request);
    }
    return r;
}

static int do_remove(struct request *request) {
    return power_remove(request->layer->store, request->node, request->names);
}

static int rename_to(struct request *request, uint64_t to, uint32_t flags, const char *names) {
    if (to != request->node->id || flags != 0) {
        return -EXDEV; /* nobody here does that */
    }
    return power_rename(request->layer->store, request->node, names, names + strlen(names) + 1);
}

static int do_rename(struct request *request) {
    const struct fuse_rename_in *in = request->body;

    return rename_to(request, in->newdir, 0, (const char *)(in + 1));
}

static int do_rename2(struct request *request) {
    const struct fuse_rename2_in *in = request->body;

    return rename_to(request, in->newdir, in->flags, (const char *)(in + 1));
}

static int do_open(struct request *request) {
    out_open(request);
    return 0;
}

static int do_read(struct request *request) {
    const struct fuse_read_in *in = request->body;
    size_t size = MIN((size_t)in->size, (size_t)WRITE_BYTES_MAX);
    ssize_t got = power_read(request->node, request->out, size, in->offset);

    request->out_bytes = got > 0 ? (size_t)got : 0;
    return got < 0 ? (int)got : 0;
}

static int do_write(struct request *request) {
    const struct fuse_write_in *in = request->body;
    ssize_t wrote = power_write(request->node, in + 1, in->size, in->offset);

    if (wrote < 0) {
        return (int)wrote;
    }
    if (in->flags & (O_SYNC | O_DSYNC)) {
        power_sync(request->layer->store, request->node);
    }
    struct fuse_write_out *out = out_add(request, sizeof *out);
    out->size = (uint32_t)wrote;
    return 0;
}

static int do_fsync(struct request *request) {
    power_sync(request->layer->store, request->node);
    return 0;
}

static int do_fallocate(struct request *request) {
    const struct fuse_fallocate_in *in = request->body;

    return in->mode != 0 ? -EOPNOTSUPP : power_allocate(request->node, in->offset, in->length);
}

static int do_statfs(struct request *request) {
    struct statvfs status;

    if (fstatvfs(request->node->fd, &status) < 0) {
        return -errno;
    }
    struct fuse_statfs_out *out = out_add(request, sizeof *out);
    out->st.blocks = status.f_blocks;
    out->st.bfree = status.f_bfree;
    out->st.bavail = status.f_bavail;
    out->st.files = status.f_files;
    out->st.ffree = status.f_ffree;
    out->st.bsize = (uint32_t)status.f_bsize;
    out->st.frsize = (uint32_t)status.f_frsize;
    out->st.namelen = 255;
    return 0;
}

/* From the beginning each time: these are small folders. */
static int do_readdir(struct request *request) {
    const struct fuse_read_in *in = request->body;
    int fd = openat(request->node->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    uint64_t at = 0;

    if (!directory) {
        return -errno;
    }
    while ((entry = readdir(directory))) {
        size_t name_bytes = strlen(entry->d_name);
        size_t bytes = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + name_bytes);

        if (at++ < in->offset) {
            continue;
        }
        if (request->out_bytes + bytes > MIN((size_t)in->size, (size_t)WRITE_BYTES_MAX)) {
            break;
        }
        struct fuse_dirent *out = out_add(request, bytes);
        out->ino = entry->d_ino;
        out->off = at;
        out->namelen = (uint32_t)name_bytes;
        out->type = entry->d_type;
        memcpy(out->name, entry->d_name, name_bytes);
    }
    closedir(directory);
    return 0;
}

static int do_nothing(struct request *request) {
    (void)request;
    return 0;
}

static int do_init(struct request *request) {
    const struct fuse_init_in *in = request->body;
    struct fuse_init_out *out = out_add(request, sizeof *out);

    out->major = FUSE_KERNEL_VERSION;
    out->minor = MIN(in->minor, (uint32_t)FUSE_KERNEL_MINOR_VERSION);
    out->max_readahead = in->max_readahead;
    out->flags = in->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ASYNC_DIO | FUSE_MAX_PAGES |
                              FUSE_PARALLEL_DIROPS);
    out->max_background = 64;
    out->congestion_threshold = 64;
    out->max_write = WRITE_BYTES_MAX;
    out->max_pages = WRITE_BYTES_MAX / 4096;
    out->time_gran = 1;
    return 0;
}

typedef int operation_fn(struct request *request);

static operation_fn *const operations[] = {
    [FUSE_INIT] = do_init,       [FUSE_LOOKUP] = do_lookup,       [FUSE_GETATTR] = do_getattr,
    [FUSE_SETATTR] = do_setattr, [FUSE_MKNOD] = do_mknod,         [FUSE_MKDIR] = do_mkdir,
    [FUSE_UNLINK] = do_remove,   [FUSE_RMDIR] = do_remove,        [FUSE_RENAME] = do_rename,
    [FUSE_RENAME2] = do_rename2, [FUSE_OPEN] = do_open,           [FUSE_CREATE] = do_create,
    [FUSE_READ] = do_read,       [FUSE_WRITE] = do_write,         [FUSE_STATFS] = do_statfs,
    [FUSE_RELEASE] = do_nothing, [FUSE_FSYNC] = do_fsync,         [FUSE_FLUSH] = do_nothing,
    [FUSE_OPENDIR] = do_open,    [FUSE_READDIR] = do_readdir,     [FUSE_RELEASEDIR] = do_nothing,
    [FUSE_FSYNCDIR] = do_fsync,  [FUSE_FALLOCATE] = do_fallocate,
};

static bool needs_lock(uint32_t opcode) {
    return opcode != FUSE_READ && opcode != FUSE_READDIR;
}

static int run(struct request *request) {
    struct layer *layer = request->layer;
    uint32_t opcode = request->head->opcode;
    operation_fn *operation = opcode < ARRAY_SIZE(operations) ? operations[opcode] : NULL;

    if (!operation) {
        return -ENOSYS;
    }
    pthread_mutex_lock(&layer->lock);
    bool off = layer->off;
    request->node = power_node_get(layer->store, request->head->nodeid);
    if (!needs_lock(opcode)) {
        pthread_mutex_unlock(&layer->lock);
    }
    int r = -EIO;
    if (!off) {
        r = request->node || opcode == FUSE_INIT ? operation(request) : -ESTALE;
    }
    if (needs_lock(opcode)) {
        pthread_mutex_unlock(&layer->lock);
    }
    return r;
}

static void answer(struct layer *layer, uint64_t unique, int result, const struct request *from) {
    struct fuse_out_header head = {.error = result, .unique = unique};
    size_t bytes = result == 0 ? from->out_bytes : 0;
    const struct iovec parts[] = {{&head, sizeof head}, {from->out, bytes}};

    head.len = (uint32_t)(sizeof head + bytes);
    /* Fails when who asked was killed. */
    (void)!writev(layer->device, parts, 2);
}

static void *serve(void *context) {
    struct layer *layer = context;
    uint8_t *in = malloc(BUFFER_BYTES);
    uint8_t *out = malloc(BUFFER_BYTES);

    while (in && out) {
        ssize_t got = read(layer->device, in, BUFFER_BYTES);

        if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) {
            continue;
        }
        if (got < (ssize_t)sizeof(struct fuse_in_header)) {
            break; /* unmounted */
        }
        struct request request = {.layer = layer,
                                  .head = (const void *)in,
                                  .body = in + sizeof(struct fuse_in_header),
                                  .names = (char *)in + sizeof(struct fuse_in_header),
                                  .out = out};
        uint32_t opcode = request.head->opcode;

        if (opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT) {
            continue;
        }
        answer(layer, request.head->unique, run(&request), &request);
    }
    free(in);
    free(out);
    return NULL;
}

static void power_off(struct layer *layer, uint64_t seed) {
    struct power_counts counts;

    pthread_mutex_lock(&layer->lock);
    layer->off = true;
    power_cut(layer->store, seed, &counts);
    pthread_mutex_unlock(&layer->lock);
    printf("blocks kept %llu, lost %llu, torn %llu; sizes lost %llu; names kept %llu, lost %llu\n",
           (unsigned long long)counts.kept, (unsigned long long)counts.restored,
           (unsigned long long)counts.torn, (unsigned long long)counts.sizes_restored,
           (unsigned long long)counts.names_kept, (unsigned long long)counts.names_restored);
    fflush(stdout);
}

static int layer_mount(struct layer *layer, const char *path) {
    char options[128];

    layer->device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
             layer->device);
    if (layer->device < 0 || mount("power_layer", path, "fuse.power_layer", 0, options) < 0) {
        perror("power_layer: mount");
        return -1;
    }
    return 0;
}

int main(int argc, char **argv) {
    struct layer layer = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[THREADS];
    char line[128];

    if (argc != 3) {
        fprintf(stderr, "usage: power_layer BACK MOUNT\n");
        return 2;
    }
    int r = power_store_open(argv[1], &layer.store);
    if (r < 0) {
        fprintf(stderr, "power_layer: %s: %s\n", argv[1], strerror(-r));
        return 1;
    }
    if (layer_mount(&layer, argv[2]) < 0) {
        return 1;
    }
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, serve, &layer) != 0) {
            return 1;
        }
    }
    printf("ready\n");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) && strncmp(line, "power ", 6) == 0) {
        power_off(&layer, strtoull(line + 6, NULL, 10));
    }
    (void)umount2(argv[2], MNT_DETACH);
    return 0;
}
