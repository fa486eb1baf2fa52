/* Attributes as the kernel wants them. */
#include "base/types.h"
#include "front/fuse/ops.h"

enum {
    FILE_BLOCK_BYTES = 1 << 20, /* what programs should read and write at once */
    DIRECTORY_BLOCK_BYTES = 4096,
    SECTOR_BYTES = 512, /* the unit of st_blocks */
    STATX_BASIC_AND_BTIME = 0xfff,
};

struct moment {
    int64_t s;
    uint32_t ns;
};

static struct moment moment_of(int64_t time_ns) {
    int64_t s = time_ns / (int64_t)NS_PER_S;
    int64_t ns = time_ns % (int64_t)NS_PER_S;

    if (ns < 0) {
        s--;
        ns += (int64_t)NS_PER_S;
    }
    return (struct moment){s, (uint32_t)ns};
}

static uint32_t block_bytes_of(const struct shoal_attributes *attributes) {
    return (attributes->mode & MODE_TYPE) == MODE_REGULAR ? FILE_BLOCK_BYTES
                                                          : DIRECTORY_BLOCK_BYTES;
}

static uint64_t sectors_of(uint64_t bytes) {
    return bytes / SECTOR_BYTES + (bytes % SECTOR_BYTES != 0);
}

void encode_attributes(struct abi_attributes *to, const struct shoal_attributes *from) {
    struct moment atime = moment_of(from->atime_ns);
    struct moment mtime = moment_of(from->mtime_ns);
    struct moment ctime = moment_of(from->ctime_ns);

    *to = (struct abi_attributes){
        .ino = from->ino,
        .size = from->size,
        .blocks = sectors_of(from->bytes_used),
        .atime = (uint64_t)atime.s,
        .mtime = (uint64_t)mtime.s,
        .ctime = (uint64_t)ctime.s,
        .atime_ns = atime.ns,
        .mtime_ns = mtime.ns,
        .ctime_ns = ctime.ns,
        .mode = from->mode,
        .nlink = from->nlink,
        .uid = from->uid,
        .gid = from->gid,
        .rdev = from->rdev,
        .block_bytes = block_bytes_of(from),
    };
}

/* What is lost but for its name holds for no time, so that a stat of it asks, and fails. */
static void entry_fill(const struct front *front, struct abi_entry_out *to,
                       const struct shoal_attributes *from, uint64_t age_ns) {
    uint64_t entry_ns = from->nlink > 0 ? front->entry_timeout_ns - age_ns : 0;
    uint64_t attributes_ns = from->nlink > 0 ? front->attributes_timeout_ns - age_ns : 0;

    to->nodeid = from->ino;
    to->generation = 0; /* No number is used again, and the kernel's root has this one. */
    to->entry_valid = entry_ns / NS_PER_S;
    to->entry_valid_ns = (uint32_t)(entry_ns % NS_PER_S);
    to->attributes_valid = attributes_ns / NS_PER_S;
    to->attributes_valid_ns = (uint32_t)(attributes_ns % NS_PER_S);
    encode_attributes(&to->attributes, from);
}

static void note(const struct fuse_request *request, const struct shoal_attributes *told) {
    const struct front *front = request->front;

    told_note(&front->told, told, request->started_ns, env_now_ns(front->env));
}

void encode_entry(const struct fuse_request *request, struct abi_entry_out *to,
                  const struct shoal_attributes *from) {
    entry_fill(request->front, to, from, 0);
    note(request, from);
}

void encode_entry_ahead(const struct fuse_request *request, struct abi_entry_out *to,
                        const struct shoal_attributes *from) {
    entry_fill(request->front, to, from, AHEAD_NS);
}

static int64_t time_ns_of(uint64_t s, uint32_t ns) {
    return (int64_t)s * (int64_t)NS_PER_S + (int64_t)ns;
}

void encode_entry_told(const struct fuse_request *request, const struct abi_entry_out *entry) {
    const struct abi_attributes *from = &entry->attributes;
    const struct shoal_attributes attributes = {
        .ino = from->ino,
        .size = from->size,
        .mtime_ns = time_ns_of(from->mtime, from->mtime_ns),
        .ctime_ns = time_ns_of(from->ctime, from->ctime_ns),
    };

    note(request, &attributes);
}

/* What is of some age already holds for so much less. */
static uint64_t valid_ns(const struct front *front, uint64_t age_ns) {
    return front->attributes_timeout_ns - MIN(age_ns, front->attributes_timeout_ns);
}

void encode_attributes_out(const struct fuse_request *request, struct abi_attributes_out *to,
                           const struct shoal_attributes *from, uint64_t age_ns) {
    to->valid = valid_ns(request->front, age_ns) / NS_PER_S;
    to->valid_ns = (uint32_t)(valid_ns(request->front, age_ns) % NS_PER_S);
    to->reserved = 0;
    encode_attributes(&to->attributes, from);
    note(request, from);
}

static struct abi_time time_of(int64_t time_ns) {
    struct moment moment = moment_of(time_ns);

    return (struct abi_time){.s = moment.s, .ns = moment.ns};
}

void encode_statx(const struct fuse_request *request, struct abi_statx_out *to,
                  const struct shoal_attributes *from, uint64_t age_ns) {
    *to = (struct abi_statx_out){
        .valid = valid_ns(request->front, age_ns) / NS_PER_S,
        .valid_ns = (uint32_t)(valid_ns(request->front, age_ns) % NS_PER_S),
        .mask = STATX_BASIC_AND_BTIME,
        .block_bytes = block_bytes_of(from),
        .nlink = from->nlink,
        .uid = from->uid,
        .gid = from->gid,
        .mode = (uint16_t)from->mode,
        .ino = from->ino,
        .size = from->size,
        .blocks = sectors_of(from->bytes_used),
        .atime = time_of(from->atime_ns),
        .btime = time_of(from->btime_ns),
        .ctime = time_of(from->ctime_ns),
        .mtime = time_of(from->mtime_ns),
        /* rdev as Linux packs it into 32 bits: 12 of the major between 8 and 12 of the minor. */
        .rdev_major = from->rdev >> 8 & 0xfff,
        .rdev_minor = (from->rdev & 0xff) | (from->rdev >> 12 & 0xfff00),
    };
    note(request, from);
}
