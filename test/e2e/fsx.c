/* Random operations on files beside a model (fsx.h).
 *
 *     fsx SEED STEPS STATE DIRECTORY...
 *     fsx --kinds
 *
 * DIRECTORY is one directory as each of several mounts has it, or as a local file system has it:
 * what that does not know is left out, and named. STEPS 0: until STATE, a file that the driver maps
 * in, asks for the end. Names that are there at the end stay. Prints what it met; exit status 1 and
 * a line with seed, step, file and place, then the file's last steps, when something was wrong.
 * --kinds lists the kinds of steps, in the order of the state's counts. */
#include "fsx_steps.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define FUSE_MAGIC 0x65735546

static bool create(struct fsx_file *file) {
    return fsx_make(file->fsx, true);
}

static bool create_unnamed(struct fsx_file *file) {
    return fsx_make(file->fsx, false);
}

static const struct {
    const char *name;
    fsx_step *step;
    unsigned weight;
} kinds[] = {
    {"write", fsx_write, 10},
    {"pwritev", fsx_write_vector, 3},
    {"append", fsx_append, 3},
    {"direct-write", fsx_write_direct, 6},
    {"read", fsx_read, 6},
    {"preadv", fsx_read_vector, 3},
    {"direct-read", fsx_read_direct, 4},
    {"map", fsx_map, 2},
    {"map-write", fsx_map_write, 4},
    {"map-read", fsx_map_read, 4},
    {"map-sync", fsx_map_sync, 2},
    {"truncate", fsx_truncate, 6},
    {"allocate", fsx_allocate, 2},
    {"allocate-keep", fsx_allocate_keep, 2},
    {"punch", fsx_punch, 5},
    {"zero", fsx_zero, 3},
    {"zero-keep", fsx_zero_keep, 3},
    {"copy-within", fsx_copy_within, 4},
    {"copy-between", fsx_copy_between, 6},
    {"seek", fsx_seek, 3},
    {"stat", fsx_stat, 6},
    {"whole", fsx_whole, 2},
    {"fsync", fsx_sync, 2},
    {"fdatasync", fsx_sync_data, 1},
    {"drop", fsx_drop, 2},
    {"open", fsx_open_more, 3},
    {"close", fsx_close_one, 8},
    {"reopen", fsx_reopen, 4},
    {"create", create, 6},
    {"truncate-by-open", fsx_make_over, 1},
    {"tmpfile", create_unnamed, 3},
    {"name-tmpfile", fsx_name_it, 5},
    {"rename", fsx_rename, 3},
    {"link", fsx_link, 3},
    {"unlink", fsx_unlink, 3},
    {"list", fsx_list_step, 1},
    {"move", fsx_move_home, 4},
    {"peek", fsx_peek, 3},
};

_Static_assert(ARRAY_SIZE(kinds) <= FSX_KINDS_MAX, "the state has a count for each");

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t fsx_now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

void fsx_begin(struct fsx *fsx) {
    fsx->state->calls++;
    fsx->asked_ns = (int64_t)clock_ns(CLOCK_REALTIME_COARSE);
    __atomic_store_n(&fsx->state->began_ns, fsx_now_ns(), __ATOMIC_SEQ_CST);
}

void fsx_end(struct fsx *fsx) {
    __atomic_store_n(&fsx->state->began_ns, 0, __ATOMIC_SEQ_CST);
}

void fsx_note(struct fsx_file *file, const char *format, ...) {
    struct fsx_note *note = &file->journal[file->notes++ % FSX_JOURNAL];
    va_list arguments;

    note->step = file->fsx->state->steps;
    va_start(arguments, format);
    vsnprintf(note->text, sizeof note->text, format, arguments);
    va_end(arguments);
}

/* A name of the file, or how it has none. */
static void name_file(const struct fsx_file *file, char ret_name[4096]) {
    snprintf(ret_name, 4096, "without a name");
    for (unsigned name = 0; name < FSX_FOLDERS * FSX_NAMES; name++) {
        if (file->fsx->names[name] == file) {
            fsx_path(file->fsx, file->home, name, ret_name);
        }
    }
}

void fsx_wrong(struct fsx_file *file, uint64_t offset, const char *format, ...) {
    struct fsx *fsx = file->fsx;
    char name[4096], what[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    name_file(file, name);
    printf("FAILED seed %llu step %llu (%s) file %u (%s) offset %llu: %s\n",
           (unsigned long long)fsx->seed, (unsigned long long)fsx->state->steps,
           kinds[fsx->state->kind].name, file->number, name, (unsigned long long)offset, what);
    uint64_t first = file->notes > FSX_JOURNAL ? file->notes - FSX_JOURNAL : 0;
    for (uint64_t at = first; at < file->notes; at++) {
        const struct fsx_note *note = &file->journal[at % FSX_JOURNAL];
        printf("  step %llu: %s\n", (unsigned long long)note->step, note->text);
    }
    fflush(stdout);
    exit(1);
}

void fsx_must(struct fsx_file *file, int64_t result, const char *what, uint64_t offset) {
    if (result < 0) {
        fsx_wrong(file, offset, "%s: got %s, expected success", what, strerror(errno));
    }
}

static bool has_kind(const char *name, unsigned *ret_kind) {
    for (unsigned kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
        if (strcmp(kinds[kind].name, name) == 0) {
            *ret_kind = kind;
            return true;
        }
    }
    return false;
}

static void leave_out(struct fsx *fsx, const char *name, const char *why) {
    unsigned kind = 0;

    if (has_kind(name, &kind)) {
        fsx->lacks[kind] = true;
        printf("left out: %s (%s)\n", name, why);
    }
}

/* What this file system has not: asked of a file of its own. */
static bool probe(struct fsx *fsx) {
    static const struct {
        const char *name;
        int mode;
    } modes[] = {{"allocate", 0},
                 {"allocate-keep", FALLOC_FL_KEEP_SIZE},
                 {"punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE},
                 {"zero", FALLOC_FL_ZERO_RANGE},
                 {"zero-keep", FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE}};
    char path[4096];
    struct statfs system;

    snprintf(path, sizeof path, "%s/0", fsx->mounts[0]);
    int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EOPNOTSUPP) {
        leave_out(fsx, "tmpfile", strerror(errno));
        leave_out(fsx, "name-tmpfile", strerror(errno));
        snprintf(path, sizeof path, "%s/0/probe", fsx->mounts[0]);
        fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        unlink(path);
    }
    if (fd < 0 || fstatfs(fd, &system) != 0) {
        perror(path);
        return false;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
        if (fallocate(fd, modes[i].mode, 0, 4096) != 0 && errno == EOPNOTSUPP) {
            leave_out(fsx, modes[i].name, strerror(errno));
        }
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (direct < 0) {
        fsx->lacks_direct = true;
        leave_out(fsx, "direct-write", strerror(errno));
        leave_out(fsx, "direct-read", strerror(errno));
    } else {
        close(direct);
    }
    close(fd);
    fsx->is_fuse = system.f_type == FUSE_MAGIC;
    fsx->direct_bytes = fsx->is_fuse ? 1 : BLOCK_BYTES;
    if (fsx->mount_count < 2) {
        leave_out(fsx, "move", "one mount");
        leave_out(fsx, "peek", "one mount");
    }
    return true;
}

static unsigned draw_kind(struct fsx *fsx) {
    unsigned sum = 0;

    for (unsigned kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
        sum += kinds[kind].weight;
    }
    uint64_t at = fsx_below(fsx, sum);
    unsigned kind = 0;
    while (at >= kinds[kind].weight) {
        at -= kinds[kind++].weight;
    }
    return kind;
}

/* One of those that are there; one is made when there is none. */
static struct fsx_file *draw_file(struct fsx *fsx) {
    for (;;) {
        unsigned start = (unsigned)fsx_below(fsx, FSX_FILES_MAX);
        for (unsigned i = 0; i < FSX_FILES_MAX; i++) {
            struct fsx_file *file = &fsx->files[(start + i) % FSX_FILES_MAX];
            if (file->used) {
                return file;
            }
        }
        (void)fsx_make(fsx, true);
    }
}

static void compare_all(struct fsx *fsx) {
    for (unsigned i = 0; i < FSX_FILES_MAX; i++) {
        if (fsx->files[i].used) {
            fsx_compare(&fsx->files[i]);
        }
    }
    for (unsigned mount = 0; mount < fsx->mount_count; mount++) {
        fsx_list(fsx, mount);
    }
}

/* What a seed does stays the same, whenever a kill comes. */
static void compare_after_kill(struct fsx *fsx) {
    uint64_t kills = __atomic_load_n(&fsx->state->kills, __ATOMIC_SEQ_CST);

    if (kills != fsx->kills_seen) {
        struct prng before = fsx->prng;
        fsx->kills_seen = kills;
        compare_all(fsx);
        fsx->prng = before;
    }
}

static void play(struct fsx *fsx, uint64_t steps) {
    struct fsx_state *state = fsx->state;

    while (steps == 0 ? !__atomic_load_n(&state->ends, __ATOMIC_SEQ_CST) : state->steps < steps) {
        struct fsx_file *file = draw_file(fsx);
        unsigned kind = draw_kind(fsx);
        if (fsx->lacks[kind]) {
            continue;
        }
        state->kind = kind;
        state->met[kind] += kinds[kind].step(file);
        state->steps++;
        compare_after_kill(fsx);
    }
    compare_all(fsx);
    for (unsigned i = 0; i < FSX_FILES_MAX; i++) {
        struct fsx_file *file = &fsx->files[i];
        if (file->used) {
            fsx_close_all(file);
        }
        if (file->used && file->links > 0 && fsx->is_fuse && fsx->kills_seen == 0) {
            fsx_count(file);
        }
    }
}

static struct fsx_state *map_state(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(struct fsx_state)) == 0) {
        at = mmap(NULL, sizeof(struct fsx_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    return at == MAP_FAILED ? NULL : at;
}

static bool make_folders(const struct fsx *fsx) {
    char path[4096];

    for (unsigned folder = 0; folder < FSX_FOLDERS; folder++) {
        snprintf(path, sizeof path, "%s/%u", fsx->mounts[0], folder);
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            perror(path);
            return false;
        }
    }
    return true;
}

int main(int count, char **words) {
    static struct fsx fsx;

    if (count == 2 && strcmp(words[1], "--kinds") == 0) {
        for (unsigned kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
            puts(kinds[kind].name);
        }
        return 0;
    }
    if (count < 5 || count > 4 + FSX_MOUNTS_MAX) {
        fprintf(stderr, "usage: fsx SEED STEPS STATE DIRECTORY...\n");
        return 2;
    }
    umask(0);
    fsx.seed = strtoull(words[1], NULL, 10);
    prng_init(&fsx.prng, fsx.seed);
    fsx.state = map_state(words[3]);
    fsx.buffer = aligned_alloc(BLOCK_BYTES, FSX_PIECE + BLOCK_BYTES);
    if (!fsx.state || !fsx.buffer) {
        perror(words[3]);
        return 1;
    }
    while (fsx.mount_count < (unsigned)count - 4) {
        fsx.mounts[fsx.mount_count] = words[4 + fsx.mount_count];
        fsx.mount_count++;
    }
    if (!make_folders(&fsx) || !probe(&fsx)) {
        return 1;
    }
    play(&fsx, strtoull(words[2], NULL, 10));
    printf("seed %llu: %llu steps, all as the model has it\n", (unsigned long long)fsx.seed,
           (unsigned long long)fsx.state->steps);
    return 0;
}
