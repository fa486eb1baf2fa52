/* Steps that change or read content. */
#include "fsx_steps.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    WRITERS = 1 << FSX_PLAIN | 1 << FSX_SYNC,
    CHANGERS = WRITERS | 1 << FSX_DIRECT | 1 << FSX_APPEND,
    READERS = WRITERS | 1 << FSX_READER | 1 << FSX_APPEND,
    DIRECT_READERS = 1 << FSX_DIRECT | 1 << FSX_DIRECT_READER,
    VECTORS = 4,
};

static unsigned long long told(uint64_t number) {
    return (unsigned long long)number;
}

static void note_range(struct fsx_file *file, const char *what, uint64_t offset, uint64_t length) {
    fsx_note(file, "%s %llu..%llu (%llu), size %llu", what, told(offset), told(offset + length),
             told(length), told(file->size));
}

/* All of it was done. */
static void must_be(struct fsx_file *file, int64_t result, uint64_t want, uint64_t offset) {
    fsx_must(file, result, "the call", offset);
    if ((uint64_t)result != want) {
        fsx_wrong(file, offset, "got %lld bytes, expected %llu", (long long)result, told(want));
    }
}

/* The buffer's bytes are there, by the call that has just ended. */
static void wrote(struct fsx_file *file, uint64_t offset, uint64_t length) {
    fsx_put(file, offset, file->fsx->buffer, length);
    file->written_ns = file->fsx->asked_ns;
}

/* Cuts the buffer into pieces of whole units. */
static int cut(struct fsx *fsx, uint64_t length, uint64_t unit, struct iovec ret_pieces[VECTORS]) {
    uint64_t at = 0;
    int count = 0;

    while (at < length) {
        uint64_t left = length - at;
        uint64_t piece = left;
        if (count < VECTORS - 1 && left > unit) {
            piece = prng_between(&fsx->prng, 1, left / unit) * unit;
        }
        ret_pieces[count++] = (struct iovec){.iov_base = fsx->buffer + at, .iov_len = piece};
        at += piece;
    }
    return count;
}

bool fsx_write(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    int fd = fsx_handle(file, WRITERS);
    uint64_t offset = fsx_offset(file);
    uint64_t length = fsx_length(file, offset);

    note_range(file, "write", offset, length);
    fsx_content(fsx, fsx->buffer, length);
    must_be(file, FSX_CALL(fsx, pwrite(fd, fsx->buffer, length, (off_t)offset)), length, offset);
    wrote(file, offset, length);
    return true;
}

bool fsx_write_vector(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    struct iovec pieces[VECTORS];
    int fd = fsx_handle(file, WRITERS);
    uint64_t offset = fsx_offset(file);
    uint64_t length = fsx_length(file, offset);

    note_range(file, "pwritev", offset, length);
    fsx_content(fsx, fsx->buffer, length);
    int count = cut(fsx, length, 1, pieces);
    must_be(file, FSX_CALL(fsx, pwritev(fd, pieces, count, (off_t)offset)), length, offset);
    wrote(file, offset, length);
    return true;
}

/* The offset that is given is not looked at, as Linux has it. */
bool fsx_append(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    int fd = fsx_handle(file, 1 << FSX_APPEND);
    uint64_t offset = file->size;

    if (offset >= file->limit) {
        return false;
    }
    uint64_t length = MIN(fsx_length(file, offset), UINT64_C(200000));
    note_range(file, "append", offset, length);
    fsx_content(fsx, fsx->buffer, length);
    must_be(file, FSX_CALL(fsx, pwrite(fd, fsx->buffer, length, (off_t)fsx_offset(file))), length,
            offset);
    wrote(file, offset, length);
    return true;
}

/* Aligned outwards; the limit is aligned. Any alignment now and then, where the system has that. */
static uint64_t direct_range(struct fsx_file *file, uint64_t *ret_offset, uint64_t *ret_length) {
    struct fsx *fsx = file->fsx;
    uint64_t unit = fsx_one_in(fsx, 4) ? fsx->direct_bytes : BLOCK_BYTES;
    uint64_t offset = fsx_offset(file);
    uint64_t end = offset + fsx_length(file, offset);

    *ret_offset = offset - offset % unit;
    *ret_length = MIN((end + unit - 1) / unit * unit - *ret_offset, (uint64_t)FSX_PIECE);
    return unit;
}

bool fsx_write_direct(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    struct iovec pieces[VECTORS];
    int fd = fsx_handle(file, 1 << FSX_DIRECT);
    uint64_t offset, length;
    uint64_t unit = direct_range(file, &offset, &length);

    note_range(file, "direct write", offset, length);
    fsx_content(fsx, fsx->buffer, length);
    int count = cut(fsx, length, fsx_one_in(fsx, 2) ? length : unit, pieces);
    must_be(file, FSX_CALL(fsx, pwritev(fd, pieces, count, (off_t)offset)), length, offset);
    wrote(file, offset, length);
    return true;
}

static void read_pieces(struct fsx_file *file, int fd, uint64_t offset, struct iovec *pieces,
                        int count) {
    struct fsx *fsx = file->fsx;
    uint64_t length = 0;

    for (int i = 0; i < count; i++) {
        length += pieces[i].iov_len;
    }
    memset(fsx->buffer, 0xa5, length);
    uint64_t want = fsx_found(file, offset, length);
    must_be(file, FSX_CALL(fsx, preadv(fd, pieces, count, (off_t)offset)), want, offset);
    fsx_same(file, offset, fsx->buffer, want);
}

bool fsx_read(struct fsx_file *file) {
    int fd = fsx_handle(file, READERS);
    uint64_t offset = fsx_offset(file);
    uint64_t length = fsx_length(file, offset);
    struct iovec piece = {.iov_base = file->fsx->buffer, .iov_len = length};

    note_range(file, "read", offset, length);
    read_pieces(file, fd, offset, &piece, 1);
    return true;
}

bool fsx_read_vector(struct fsx_file *file) {
    struct iovec pieces[VECTORS];
    int fd = fsx_handle(file, READERS);
    uint64_t offset = fsx_offset(file);
    uint64_t length = fsx_length(file, offset);

    note_range(file, "preadv", offset, length);
    read_pieces(file, fd, offset, pieces, cut(file->fsx, length, 1, pieces));
    return true;
}

bool fsx_read_direct(struct fsx_file *file) {
    struct iovec pieces[VECTORS];
    int fd = fsx_handle(file, DIRECT_READERS);
    uint64_t offset, length;
    uint64_t unit = direct_range(file, &offset, &length);

    note_range(file, "direct read", offset, length);
    unit = fsx_one_in(file->fsx, 2) ? length : unit;
    read_pieces(file, fd, offset, pieces, cut(file->fsx, length, unit, pieces));
    return true;
}

void fsx_unmap(struct fsx_file *file) {
    struct fsx_mapping *mapping = &file->mapping;

    if (mapping->at) {
        fsx_must(file, FSX_CALL(file->fsx, munmap(mapping->at, mapping->bytes)), "munmap",
                 mapping->offset);
        *mapping = (struct fsx_mapping){0};
    }
}

bool fsx_map(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    struct fsx_mapping *mapping = &file->mapping;

    if (file->size == 0) {
        return false;
    }
    fsx_unmap(file);
    int fd = fsx_handle(file, WRITERS);
    uint64_t offset = MIN(fsx_offset(file), file->size - 1) / BLOCK_BYTES * BLOCK_BYTES;
    uint64_t bytes = MIN(fsx_length(file, offset) + BLOCK_BYTES, file->size - offset);
    note_range(file, "mmap", offset, bytes);
    void *at =
        FSX_CALL(fsx, mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset));
    fsx_must(file, at == MAP_FAILED ? -1 : 0, "mmap", offset);
    *mapping = (struct fsx_mapping){.at = at, .offset = offset, .bytes = bytes};
    return true;
}

/* Within the mapping and the file; false: it has no such place. */
static bool mapped_range(struct fsx_file *file, uint64_t *ret_offset, uint64_t *ret_length) {
    struct fsx_mapping *mapping = &file->mapping;

    if ((!mapping->at && !fsx_map(file)) || mapping->offset >= file->size) {
        return false;
    }
    uint64_t end = MIN(mapping->offset + mapping->bytes, file->size);
    *ret_offset = mapping->offset + fsx_below(file->fsx, end - mapping->offset);
    *ret_length = MIN(fsx_length(file, *ret_offset), end - *ret_offset);
    return true;
}

bool fsx_map_write(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    uint64_t offset, length;

    if (!mapped_range(file, &offset, &length)) {
        return false;
    }
    note_range(file, "write to the mapping", offset, length);
    fsx_content(fsx, fsx->buffer, length);
    fsx_begin(fsx);
    memcpy(file->mapping.at + (offset - file->mapping.offset), fsx->buffer, length);
    fsx_end(fsx);
    fsx_put(file, offset, fsx->buffer, length);
    file->dirty = true;
    return true;
}

bool fsx_map_read(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    uint64_t offset, length;

    if (!mapped_range(file, &offset, &length)) {
        return false;
    }
    note_range(file, "read of the mapping", offset, length);
    fsx_begin(fsx);
    memcpy(fsx->buffer, file->mapping.at + (offset - file->mapping.offset), length);
    fsx_end(fsx);
    fsx_same(file, offset, fsx->buffer, length);
    return true;
}

bool fsx_map_sync(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    struct fsx_mapping *mapping = &file->mapping;

    if (!mapping->at) {
        return false;
    }
    int flags = fsx_one_in(fsx, 4) ? MS_ASYNC : MS_SYNC;
    fsx_note(file, "msync %s", flags == MS_SYNC ? "MS_SYNC" : "MS_ASYNC");
    fsx_must(file, FSX_CALL(fsx, msync(mapping->at, mapping->bytes, flags)), "msync",
             mapping->offset);
    if (fsx_one_in(fsx, 2)) {
        fsx_unmap(file);
    }
    return true;
}

bool fsx_truncate(struct fsx_file *file) {
    int fd = fsx_handle(file, CHANGERS);
    uint64_t size = fsx_one_in(file->fsx, 12) ? 0 : fsx_offset(file);

    fsx_note(file, "truncate %llu to %llu", told(file->size), told(size));
    fsx_must(file, FSX_CALL(file->fsx, ftruncate(fd, (off_t)size)), "ftruncate", size);
    fsx_resize(file, size);
    return true;
}

/* The range that fallocate was asked for with this mode. */
static void change_range(struct fsx_file *file, int mode, const char *what, uint64_t *ret_offset,
                         uint64_t *ret_length) {
    int fd = fsx_handle(file, CHANGERS);

    *ret_offset = fsx_offset(file);
    *ret_length = fsx_length(file, *ret_offset);
    note_range(file, what, *ret_offset, *ret_length);
    fsx_must(file, FSX_CALL(file->fsx, fallocate(fd, mode, (off_t)*ret_offset, (off_t)*ret_length)),
             "fallocate", *ret_offset);
    if (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)) {
        file->highest = MAX(file->highest, *ret_offset + *ret_length);
    }
}

bool fsx_allocate(struct fsx_file *file) {
    uint64_t offset, length;

    change_range(file, 0, "fallocate", &offset, &length);
    if (offset + length > file->size) {
        fsx_resize(file, offset + length);
    }
    return true;
}

bool fsx_allocate_keep(struct fsx_file *file) {
    uint64_t offset, length;

    change_range(file, FALLOC_FL_KEEP_SIZE, "fallocate KEEP_SIZE", &offset, &length);
    return true;
}

bool fsx_punch(struct fsx_file *file) {
    uint64_t offset, length;

    change_range(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, "punch", &offset, &length);
    fsx_clear(file, offset, length);
    return true;
}

bool fsx_zero(struct fsx_file *file) {
    uint64_t offset, length;

    change_range(file, FALLOC_FL_ZERO_RANGE, "zero", &offset, &length);
    fsx_put(file, offset, NULL, length);
    return true;
}

bool fsx_zero_keep(struct fsx_file *file) {
    uint64_t offset, length;

    change_range(file, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, "zero KEEP_SIZE", &offset,
                 &length);
    fsx_clear(file, offset, length);
    return true;
}

struct copy {
    struct fsx_file *from;
    struct fsx_file *to;
    uint64_t from_offset;
    uint64_t to_offset;
    uint64_t length;
};

/* Asks until all is copied, as programs do: a call may copy less. */
static void copy_range(const struct copy *copy) {
    struct fsx *fsx = copy->to->fsx;
    uint64_t done = 0;

    fsx_make_room(copy->from);
    int from = fsx_handle(copy->from, READERS);
    /* Where direct writes are aligned, so must be what is copied by such a handle. */
    int to = fsx_handle(copy->to, WRITERS | (fsx->direct_bytes == 1) << FSX_DIRECT);

    while (done < copy->length) {
        off_t source = (off_t)(copy->from_offset + done);
        off_t target = (off_t)(copy->to_offset + done);
        ssize_t copied =
            FSX_CALL(fsx, copy_file_range(from, &source, to, &target, copy->length - done, 0));
        fsx_must(copy->to, copied, "copy_file_range", copy->to_offset + done);
        if (copied == 0) {
            fsx_wrong(copy->to, copy->to_offset + done,
                      "copy_file_range says the source ends after %llu of %llu bytes", told(done),
                      told(copy->length));
        }
        done += (uint64_t)copied;
    }
    fsx_put(copy->to, copy->to_offset, copy->from->bytes + copy->from_offset, copy->length);
    copy->to->written_ns = fsx->asked_ns;
}

static bool copy_to(struct fsx_file *from, struct fsx_file *to) {
    if (from->size == 0) {
        return false;
    }
    struct copy copy = {.from = from, .to = to};
    copy.from_offset = MIN(fsx_offset(from), from->size - 1);
    copy.to_offset = fsx_offset(to);
    copy.length = MIN(fsx_length(from, copy.from_offset), from->size - copy.from_offset);
    copy.length = MIN(copy.length, to->limit - copy.to_offset);
    if (from == to && copy.from_offset < copy.to_offset + copy.length &&
        copy.to_offset < copy.from_offset + copy.length) {
        return false;
    }
    fsx_note(to, "copy %llu bytes from %llu of file %u to %llu, size %llu", told(copy.length),
             told(copy.from_offset), from->number, told(copy.to_offset), told(to->size));
    copy_range(&copy);
    return true;
}

bool fsx_copy_within(struct fsx_file *file) {
    return copy_to(file, file);
}

bool fsx_copy_between(struct fsx_file *file) {
    struct fsx_file *other = &file->fsx->files[fsx_below(file->fsx, FSX_FILES_MAX)];

    return other->used && other != file && other->home == file->home && copy_to(other, file);
}

bool fsx_sync(struct fsx_file *file) {
    fsx_note(file, "fsync");
    fsx_must(file, FSX_CALL(file->fsx, fsync(fsx_handle(file, CHANGERS))), "fsync", 0);
    file->dirty = false;
    return true;
}

bool fsx_sync_data(struct fsx_file *file) {
    fsx_note(file, "fdatasync");
    fsx_must(file, FSX_CALL(file->fsx, fdatasync(fsx_handle(file, CHANGERS))), "fdatasync", 0);
    file->dirty = false;
    return true;
}

bool fsx_drop(struct fsx_file *file) {
    if (fsx_one_in(file->fsx, 2)) {
        fsx_sync_data(file);
    }
    int fd = fsx_handle(file, READERS);
    fsx_note(file, "pages dropped");
    int error = FSX_CALL(file->fsx, posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    errno = error;
    fsx_must(file, error == 0 ? 0 : -1, "posix_fadvise", 0);
    return true;
}
