/* The group against the model: thousands of random operations by several sessions, with reads that
 * have to wait, duplicates, restarts, evictions and files that are removed while open. Every answer
 * and, in the end, every row must be what the model says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "meta_bench.h"
#include "model_fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 24, STEPS = 700, NAMES = 14, WHOS = 4, INLINE_BYTES = 4096 };

/* What a test knows of an inode beside the model: times as last seen, first bytes of a file. */
struct shadow {
    uint64_t mtime_changes;
    uint64_t ctime_changes;
    int64_t mtime_ns;
    int64_t ctime_ns;
    bool chunked;
    uint8_t bytes[INLINE_BYTES];
};

struct play {
    struct meta_bench *bench;
    struct model_fs *fs;
    struct prng *prng;
    struct credentials whos[WHOS];
    struct bytes names[NAMES];
    uint8_t long_name[NAME_BYTES_MAX + 1];
    int64_t started_ns; /* wall time at the start of the present operation */
    uint64_t answered;
    uint64_t succeeded;
    int step;
    /* The present operation. */
    uint32_t session;
    const struct credentials *who;
    struct model_who model_who;
    struct call call;
};

static const uint32_t groups_of_2[] = {20, 30};

static void shadow_forget(struct model_inode *inode) {
    free(inode->context);
}

static struct shadow *shadow_of(struct model_inode *inode) {
    if (!inode->context) {
        inode->context = calloc(1, sizeof(struct shadow));
        assert_non_null(inode->context);
    }
    return inode->context;
}

static void play_new(struct play *play, const struct bench_options *options) {
    static const char *const names[NAMES] = {"a", "b",    "c",  "d",  "e",      "f", "g",
                                             "h", "\xff", NULL, NULL, "\x80\n", ".", ".."};
    const struct model_options model = {.root_mode = 0755, .forget = shadow_forget};

    memset(play, 0, sizeof *play);
    play->bench = bench_new(options);
    play->prng = &play->bench->prng;
    play->fs = model_new(&model);
    memset(play->long_name, 'x', sizeof play->long_name);
    for (int i = 0; i < NAMES; i++) {
        play->names[i] = names[i] ? (struct bytes){(const uint8_t *)names[i], strlen(names[i])}
                                  : (struct bytes){play->long_name, NAME_BYTES_MAX};
    }
    play->names[10].size = 200;
    play->whos[0] = (struct credentials){.uid = 0, .gid = 0};
    play->whos[1] = (struct credentials){.uid = 1, .gid = 10};
    play->whos[2] = (struct credentials){2, 10, 2, groups_of_2};
    play->whos[3] = (struct credentials){.uid = 3, .gid = 30};
}

static void play_free(struct play *play) {
    model_free(play->fs);
    bench_free(play->bench);
}

static uint64_t below(struct play *play, uint64_t bound) {
    return prng_below(play->prng, bound);
}

static struct bytes name_any(struct play *play) {
    if (below(play, 60) == 0) {
        static const struct bytes bad[] = {
            {(const uint8_t *)"", 0}, {(const uint8_t *)"a/b", 3}, {(const uint8_t *)"a\0b", 3}};

        return bad[below(play, ARRAY_SIZE(bad))];
    }
    if (below(play, 60) == 0) {
        return (struct bytes){play->long_name, NAME_BYTES_MAX + 1};
    }
    return play->names[below(play, NAMES)];
}

/* Any inode that there is, seldom one that there is not. */
static struct model_inode *inode_any(struct play *play) {
    uint64_t index = below(play, model_inode_count(play->fs));
    struct model_inode *inode = model_first(play->fs);

    if (below(play, 50) == 0) {
        return NULL;
    }
    while (index-- > 0) {
        inode = inode->next;
    }
    return inode;
}

static struct model_inode *directory_any(struct play *play) {
    struct model_inode *inode = NULL;

    for (int i = 0; i < 6; i++) {
        inode = inode_any(play);
        if (inode && inode->mode >> 12 == 4) {
            break;
        }
    }
    return inode;
}

static struct ino ino_of(const struct model_inode *inode) {
    return (struct ino){inode ? inode->ino : UINT64_C(0x123456789)};
}

static struct model_place place_any(struct play *play) {
    return (struct model_place){&play->model_who, directory_any(play), name_any(play)};
}

static void begin(struct play *play, uint16_t opcode) {
    play->session = (uint32_t)below(play, BENCH_SESSIONS);
    play->who = &play->whos[below(play, 2) ? 0 : below(play, WHOS)];
    play->model_who = (struct model_who){play->who->uid, play->who->gid, play->who->groups,
                                         play->who->group_count};
    play->started_ns = (int64_t)env_wall_ns(memory_env_env(play->bench->world));
    bench_prepare(play->bench, play->session, opcode, &play->call);
}

static int run(struct play *play) {
    int r = bench_run(play->bench, &play->call);

    play->answered++;
    play->succeeded += r == 0;
    return r;
}

static void expect(struct play *play, int got, int wanted) {
    if (got != wanted) {
        char text[512];

        wire_print_request(play->call.header.opcode, &play->call.request, text, sizeof text);
        fail_msg("seed %llu step %d session %u uid %u: %s answers %s, the model %s",
                 (unsigned long long)play->bench->seed, play->step, play->session, play->who->uid,
                 text, err_name(got), err_name(wanted));
    }
}

#define CHECK_FIELD(field, wanted)                                                                 \
    if ((uint64_t)attributes->field != (uint64_t)(wanted)) {                                       \
        fail_msg("seed %llu step %d: after %s ino %llx has " #field " %llu, the model %llu",       \
                 (unsigned long long)play->bench->seed, play->step,                                \
                 wire_name(play->call.header.opcode), (unsigned long long)attributes->ino.value,   \
                 (unsigned long long)attributes->field, (unsigned long long)(wanted));             \
    }

static void times_check(struct play *play, const struct attributes *attributes,
                        const struct model_inode *inode, struct shadow *shadow) {
    if (shadow->mtime_changes == inode->mtime_changes) {
        CHECK_FIELD(mtime_ns, shadow->mtime_ns);
    }
    if (shadow->ctime_changes == inode->ctime_changes) {
        CHECK_FIELD(ctime_ns, shadow->ctime_ns);
    } else if (attributes->ctime_ns < shadow->ctime_ns) {
        fail_msg("seed %llu step %d: ctime goes back", (unsigned long long)play->bench->seed,
                 play->step);
    }
    shadow->mtime_changes = inode->mtime_changes;
    shadow->ctime_changes = inode->ctime_changes;
    shadow->mtime_ns = attributes->mtime_ns;
    shadow->ctime_ns = attributes->ctime_ns;
}

/* Attributes are the model's; a time has changed exactly if the model says so. */
static void attributes_check(struct play *play, const struct attributes *attributes,
                             struct model_inode *inode) {
    bool directory = inode->mode >> 12 == 4;

    CHECK_FIELD(ino.value, inode->ino);
    CHECK_FIELD(mode, inode->mode);
    CHECK_FIELD(uid, inode->uid);
    CHECK_FIELD(gid, inode->gid);
    CHECK_FIELD(rdev, inode->rdev);
    CHECK_FIELD(nlink, inode->nlink);
    CHECK_FIELD(size, directory ? BLOCK_BYTES : inode->size);
    times_check(play, attributes, inode, shadow_of(inode));
}

/* A second copy of the mutation that was just answered gets the same answer, and does nothing. */
static void again(struct play *play, int wanted) {
    struct call call = play->call;

    if (below(play, 4) != 0 || !wire_is_mutation(call.header.opcode)) {
        return;
    }
    int r = bench_run(play->bench, &play->call);
    expect(play, r, wanted);
    if (r == 0 && memcmp(&call.reply, &play->call.reply, sizeof call.reply) != 0) {
        fail_msg("seed %llu step %d: a copy of %s gets another reply",
                 (unsigned long long)play->bench->seed, play->step, wire_name(call.header.opcode));
    }
}

static void do_lookup(struct play *play) {
    begin(play, OP_LOOKUP);
    struct model_place place = place_any(play);
    struct model_inode *inode = NULL;

    play->call.request.lookup =
        (struct lookup_request){ino_of(place.parent), place.name, *play->who};
    int r = run(play);
    expect(play, r, model_lookup(play->fs, &place, &inode));
    if (r == 0) {
        attributes_check(play, &play->call.reply.lookup.attributes, inode);
    }
}

static void do_getattr(struct play *play) {
    struct model_inode *inode = inode_any(play);

    begin(play, OP_GETATTR);
    play->call.request.getattr.ino = ino_of(inode);
    int r = run(play);
    expect(play, r, inode ? 0 : -ERR_STALE);
    if (r == 0) {
        attributes_check(play, &play->call.reply.getattr.attributes, inode);
    }
}

static uint32_t mode_any(struct play *play) {
    static const uint32_t modes[] = {0755, 0644, 0700, 0777, 02775, 01777, 04711, 02755, 0, 0070};

    return modes[below(play, ARRAY_SIZE(modes))];
}

static void made(struct play *play, struct model_inode *inode,
                 const struct attributes *attributes) {
    inode->ino = attributes->ino.value;
    attributes_check(play, attributes, inode);
}

static void do_create(struct play *play) {
    begin(play, OP_CREATE);
    struct model_place place = place_any(play);
    struct model_open open = {
        .session = play->session,
        .flags = (uint32_t)(1 + below(play, 3)) | (below(play, 4) == 0 ? MODEL_TRUNCATE : 0),
        .mode = mode_any(play),
        .exclusive = below(play, 2),
    };
    struct model_inode *inode = NULL;
    bool created = false;

    play->call.request.create = (struct create_request){
        ino_of(place.parent), place.name, *play->who, open.mode, open.flags, open.exclusive};
    int r = run(play);
    expect(play, r, model_create(play->fs, &place, &open, &inode, &created));
    if (r == 0) {
        assert_int_equal(play->call.reply.create.created, created);
        if (created) {
            made(play, inode, &play->call.reply.create.attributes);
        } else if (open.flags & MODEL_TRUNCATE) {
            memset(shadow_of(inode)->bytes, 0, INLINE_BYTES);
        }
        attributes_check(play, &play->call.reply.create.attributes, inode);
        assert_true(play->call.reply.create.capability.rights & RIGHT_READ);
    }
    again(play, r);
}

static void do_mkdir(struct play *play) {
    begin(play, OP_MKDIR);
    struct model_place place = place_any(play);
    struct model_new_inode what = {.mode = 0040000 | mode_any(play)};
    struct model_inode *inode = NULL;

    play->call.request.mkdir =
        (struct mkdir_request){ino_of(place.parent), place.name, *play->who, what.mode & 07777};
    int r = run(play);
    expect(play, r, model_make(play->fs, &place, &what, &inode));
    if (r == 0) {
        made(play, inode, &play->call.reply.mkdir.attributes);
    }
    again(play, r);
}

static void do_mknod(struct play *play) {
    static const uint32_t types[] = {0100000, 0010000, 0020000, 0060000, 0140000};

    begin(play, OP_MKNOD);
    struct model_place place = place_any(play);
    struct model_new_inode what = {.mode = types[below(play, 5)] | mode_any(play),
                                   .rdev = (uint32_t)below(play, 1000)};
    struct model_inode *inode = NULL;

    play->call.request.mknod =
        (struct mknod_request){ino_of(place.parent), place.name, *play->who, what.mode, what.rdev};
    int r = run(play);
    expect(play, r, model_make(play->fs, &place, &what, &inode));
    if (r == 0) {
        made(play, inode, &play->call.reply.mknod.attributes);
    }
    again(play, r);
}

static void do_symlink(struct play *play) {
    static uint8_t target[4096];

    begin(play, OP_SYMLINK);
    struct model_place place = place_any(play);
    struct model_new_inode what = {
        .mode = 0120777, .target = {target, below(play, 3) ? below(play, 60) : below(play, 4097)}};
    struct model_inode *inode = NULL;

    memset(target, (int)('a' + below(play, 26)), sizeof target);
    play->call.request.symlink =
        (struct symlink_request){ino_of(place.parent), place.name, *play->who, what.target};
    int r = run(play);
    expect(play, r, model_make(play->fs, &place, &what, &inode));
    if (r == 0) {
        made(play, inode, &play->call.reply.symlink.attributes);
    }
    again(play, r);
}

static void do_readlink(struct play *play) {
    struct model_inode *inode = inode_any(play);

    begin(play, OP_READLINK);
    play->call.request.readlink.ino = ino_of(inode);
    int r = run(play);
    expect(play, r, !inode ? -ERR_STALE : inode->target ? 0 : -ERR_NOT_LINK);
    if (r == 0) {
        assert_int_equal(play->call.bulk_in.size, inode->size);
        assert_memory_equal(play->call.bulk_in.data, inode->target, inode->size);
    }
}

static void do_link(struct play *play) {
    begin(play, OP_LINK);
    struct model_place place = place_any(play);
    struct model_inode *inode = inode_any(play);

    play->call.request.link =
        (struct link_request){ino_of(inode), ino_of(place.parent), place.name, *play->who};
    int r = run(play);
    expect(play, r, model_link(play->fs, inode, &place));
    if (r == 0) {
        attributes_check(play, &play->call.reply.link.attributes, inode);
    }
    again(play, r);
}

static void do_unlink(struct play *play) {
    begin(play, OP_UNLINK);
    struct model_place place = place_any(play);

    play->call.request.unlink =
        (struct unlink_request){ino_of(place.parent), place.name, *play->who};
    int r = run(play);
    expect(play, r, model_unlink(play->fs, &place));
    again(play, r);
}

static void do_rmdir(struct play *play) {
    begin(play, OP_RMDIR);
    struct model_place place = place_any(play);

    play->call.request.rmdir = (struct rmdir_request){ino_of(place.parent), place.name, *play->who};
    int r = run(play);
    expect(play, r, model_rmdir(play->fs, &place));
    again(play, r);
}

static void do_rename(struct play *play) {
    begin(play, OP_RENAME);
    struct model_place from = place_any(play);
    struct model_place to = place_any(play);
    uint32_t flags = below(play, 3) ? 0 : (uint32_t)below(play, 4);

    if (below(play, 3) == 0) {
        to.parent = from.parent;
    }
    play->call.request.rename = (struct rename_request){
        ino_of(from.parent), from.name, ino_of(to.parent), to.name, *play->who, flags};
    int r = run(play);
    expect(play, r, model_rename(play->fs, &from, &to, flags));
    again(play, r);
}

static void do_access(struct play *play) {
    struct model_inode *inode = inode_any(play);
    uint32_t mask = (uint32_t)below(play, 8);

    begin(play, OP_ACCESS);
    play->call.request.access = (struct access_request){ino_of(inode), *play->who, mask};
    expect(play, run(play), model_access(&play->model_who, inode, mask));
}

static void do_open(struct play *play) {
    struct model_inode *inode = inode_any(play);

    begin(play, OP_OPEN);
    struct model_open open = {.session = play->session, .flags = (uint32_t)below(play, 32)};
    play->call.request.open = (struct open_request){ino_of(inode), *play->who, open.flags};
    int r = run(play);
    expect(play, r, model_open(play->fs, &play->model_who, inode, &open));
    if (r == 0) {
        if (open.flags & MODEL_TRUNCATE) {
            memset(shadow_of(inode)->bytes, 0, INLINE_BYTES);
        }
        attributes_check(play, &play->call.reply.open.attributes, inode);
    }
    again(play, r);
}

/* An inode that the session has open; *ret_writes tells for what. */
static struct model_inode *open_any(struct play *play, uint32_t session, bool *ret_writes) {
    for (int i = 0; i < 40; i++) {
        struct model_inode *inode = inode_any(play);

        if (inode && inode->read_opens[session] + inode->write_opens[session] > 0) {
            *ret_writes =
                inode->write_opens[session] > 0 && (below(play, 2) || !inode->read_opens[session]);
            return inode;
        }
    }
    return NULL;
}

static void close_one(struct play *play, struct model_inode *inode, bool writes) {
    uint32_t flags = writes ? OPEN_WRITE : OPEN_READ;

    bench_prepare(play->bench, play->session, OP_SETTLE, &play->call);
    play->call.request.settle =
        (struct settle_request){.ino = ino_of(inode), .close = 1, .open_flags = flags};
    int r = run(play);
    expect(play, r, model_close(play->fs, inode, play->session, flags));
    again(play, r);
}

static void do_close(struct play *play) {
    bool writes = false;

    begin(play, OP_SETTLE);
    struct model_inode *inode = open_any(play, play->session, &writes);
    close_one(play, inode, inode ? writes : below(play, 2));
}

static void do_setattr(struct play *play) {
    struct model_inode *inode = inode_any(play);

    begin(play, OP_SETATTR);
    uint32_t set = (uint32_t)(1U << below(play, 8));
    if (below(play, 4) == 0) {
        set |= (uint32_t)below(play, 256) & ~(uint32_t)MODEL_SET_SIZE;
    }
    if ((set & MODEL_SET_SIZE) == 0 && below(play, 4) == 0) {
        set = MODEL_SET_ATIME_NOW | MODEL_SET_MTIME_NOW;
    }
    struct model_change change = {
        .set = set,
        .mode = mode_any(play),
        .uid = (uint32_t)below(play, 4),
        .gid = (uint32_t)(below(play, 4) * 10),
        .size = below(play, 10) == 0 ? UINT64_C(1) << 62
                : below(play, 3)     ? below(play, 6000)
                                     : 0,
        .session = play->session,
        .opened = below(play, 2),
    };
    play->call.request.setattr = (struct setattr_request){
        .ino = ino_of(inode),
        .who = *play->who,
        .valid = set,
        .mode = change.mode,
        .uid = change.uid,
        .gid = change.gid,
        .size = change.size,
        .atime_ns = 1111,
        .mtime_ns = 2222,
        .opened = change.opened,
    };
    int r = run(play);
    expect(play, r, model_setattr(play->fs, &play->model_who, inode, &change));
    if (r == 0) {
        const struct attributes *attributes = &play->call.reply.setattr.attributes;

        if (set & MODEL_SET_SIZE && change.size < INLINE_BYTES) {
            memset(shadow_of(inode)->bytes + change.size, 0, INLINE_BYTES - change.size);
        }
        if ((set & MODEL_SET_MTIME) && !(set & MODEL_SET_MTIME_NOW)) {
            CHECK_FIELD(mtime_ns, 2222);
        }
        if ((set & MODEL_SET_ATIME) && !(set & MODEL_SET_ATIME_NOW)) {
            CHECK_FIELD(atime_ns, 1111);
        }
        attributes_check(play, attributes, inode);
    }
    again(play, r);
}

static void settle(struct play *play, struct model_inode *inode,
                   const struct capability *capability, uint64_t end) {
    bench_prepare(play->bench, play->session, OP_SETTLE, &play->call);
    play->call.request.settle = (struct settle_request){
        .ino = capability->ino, .truncate_seq = capability->truncate_seq, .size = end, .wrote = 1};
    expect(play, run(play), 0);
    inode->mtime_changes++;
    inode->ctime_changes++;
}

/* A truncation, or nothing, between the write and its settle. */
static void truncate_between(struct play *play, struct model_inode *inode) {
    struct model_who root = {0};
    struct model_change change = {.set = MODEL_SET_SIZE, .size = below(play, 20000)};

    bench_prepare(play->bench, play->session, OP_SETATTR, &play->call);
    play->call.request.setattr =
        (struct setattr_request){.ino = ino_of(inode), .valid = SETATTR_SIZE, .size = change.size};
    expect(play, run(play), 0);
    expect(play, model_setattr(play->fs, &root, inode, &change), 0);
}

static void evict(struct play *play, uint32_t session);

static void chunk_write(struct play *play, struct model_inode *inode,
                        const struct capability *capability) {
    struct model_who root = {0};
    uint64_t end = 1 + below(play, 30000);
    uint64_t fate = below(play, 10);

    bench_chunk_write(play->bench, capability, end);
    if (fate == 0) {
        truncate_between(play, inode);
        settle(play, inode, capability, end);
    } else if (fate == 1) {
        /* Nobody settles: the group has to ask. It cannot know the time of the write. */
        if (end > inode->size) {
            model_written(inode, &root, end);
        }
        evict(play, play->session);
    } else {
        model_written(inode, &root, end);
        settle(play, inode, capability, end);
    }
}

static void inline_write(struct play *play, struct model_inode *inode) {
    struct shadow *shadow = shadow_of(inode);
    uint8_t data[INLINE_BYTES];
    uint64_t offset = below(play, 3) ? 0 : below(play, INLINE_BYTES);
    size_t size = 1 + (size_t)below(play, below(play, 2) ? 50 : INLINE_BYTES - offset);

    size = MIN(size, INLINE_BYTES - (size_t)offset);
    memset(data, (int)below(play, 256), size);
    bench_prepare(play->bench, play->session, OP_INLINE_WRITE, &play->call);
    play->call.request.inline_write =
        (struct inline_write_request){ino_of(inode), offset, {data, size}, play->who->uid != 0};
    int r = run(play);
    expect(play, r, 0);
    const struct inline_write_reply *reply = &play->call.reply.inline_write;
    if (reply->attributes.data_state == DATA_CHUNKED) {
        struct capability capability = reply->capability;

        assert_true(shadow->chunked);
        assert_true(capability.rights & RIGHT_WRITE);
        chunk_write(play, inode, &capability);
        return;
    }
    assert_false(shadow->chunked);
    memcpy(shadow->bytes + offset, data, size);
    model_written(inode, &play->model_who, offset + size);
    attributes_check(play, &reply->attributes, inode);
    again(play, r);
}

/* The way out of the inode: BEGIN, chunk 0 with the old bytes, COMMIT; sometimes overtaken. */
static void convert(struct play *play, struct model_inode *inode) {
    struct shadow *shadow = shadow_of(inode);
    struct inline_convert_reply reply;

    bench_prepare(play->bench, play->session, OP_INLINE_CONVERT, &play->call);
    play->call.request.inline_convert =
        (struct inline_convert_request){.ino = ino_of(inode), .stage = INLINE_CONVERT_BEGIN};
    expect(play, run(play), 0);
    reply = play->call.reply.inline_convert;
    if (reply.attributes.data_state == DATA_CHUNKED) {
        shadow->chunked = true;
        return;
    }
    size_t size = MIN((size_t)inode->size, (size_t)INLINE_BYTES);
    assert_int_equal(play->call.bulk_in.size, size);
    assert_memory_equal(play->call.bulk_in.data, shadow->bytes, size);
    assert_true(reply.capability.rights & RIGHT_SYNC_FIRST);
    bench_chunk_write(play->bench, &reply.capability, MAX(size, (size_t)1));
    bool overtaken = below(play, 4) == 0;
    if (overtaken) {
        inline_write(play, inode);
    }
    bench_prepare(play->bench, play->session, OP_INLINE_CONVERT, &play->call);
    play->call.request.inline_convert = (struct inline_convert_request){
        .ino = ino_of(inode),
        .stage = INLINE_CONVERT_COMMIT,
        .size = inode->size,
        .inline_epoch = reply.attributes.epoch,
        .generation = reply.capability.generation,
    };
    int r = run(play);
    expect(play, r, overtaken ? -ERR_CONFLICT : 0);
    if (r == 0) {
        shadow->chunked = true;
        inode->mtime_changes++;
        inode->ctime_changes++;
    }
    again(play, r);
}

static void do_write(struct play *play) {
    bool writes = false;

    begin(play, OP_INLINE_WRITE);
    struct model_inode *inode = open_any(play, play->session, &writes);
    if (!inode || inode->mode >> 12 != 8) {
        return;
    }
    if (inode->write_opens[play->session] == 0) {
        play->call.request.inline_write =
            (struct inline_write_request){ino_of(inode), 0, {(const uint8_t *)"x", 1}, false};
        expect(play, run(play), -ERR_BAD_HANDLE);
    } else if (!shadow_of(inode)->chunked && below(play, 4) == 0) {
        convert(play, inode);
    } else {
        inline_write(play, inode);
    }
}

static void do_inline_read(struct play *play) {
    bool writes = false;

    begin(play, OP_INLINE_READ);
    struct model_inode *inode = open_any(play, play->session, &writes);
    if (!inode || inode->mode >> 12 != 8) {
        return;
    }
    play->call.request.inline_read.ino = ino_of(inode);
    expect(play, run(play), 0);
    const struct attributes *attributes = &play->call.reply.inline_read.attributes;
    attributes_check(play, attributes, inode);
    if (attributes->data_state == DATA_INLINE) {
        size_t size = MIN((size_t)inode->size, (size_t)INLINE_BYTES);

        assert_int_equal(play->call.bulk_in.size, size);
        assert_memory_equal(play->call.bulk_in.data, shadow_of(inode)->bytes, size);
    }
}

static void dirent_check(struct play *play, struct model_inode *directory,
                         const struct wire_dirent *dirent, const uint8_t *at) {
    const uint8_t *name = at + sizeof *dirent;
    struct model_who root = {0};
    struct model_place place = {&root, directory, {name, dirent->name_bytes}};
    struct model_inode *inode = NULL;
    struct attributes attributes;

    assert_int_equal(model_lookup(play->fs, &place, &inode), 0);
    assert_true(inode->ino == dirent->ino);
    assert_int_equal(inode->mode >> 12, dirent->type);
    assert_true(dirent->cookie > 0 && dirent->cookie >> 63 == 0);
    if (dirent->attribute_bytes) {
        struct bytes encoded = {name + dirent->name_bytes, dirent->attribute_bytes};

        assert_int_equal(wire_decode_attributes(encoded, &attributes), 0);
        attributes_check(play, &attributes, inode);
    }
}

/* Lists a directory in pieces of that size; the model is not changed meanwhile. */
static void list(struct play *play, struct model_inode *directory, uint32_t bytes_max, bool plus) {
    uint64_t cookie = 0;
    uint64_t last = 0;
    size_t count = 0;
    bool end = false;

    while (!end) {
        bench_prepare(play->bench, play->session, OP_READDIR, &play->call);
        play->call.request.readdir =
            (struct readdir_request){ino_of(directory), cookie, bytes_max, plus, play->whos[0]};
        expect(play, run(play), 0);
        assert_true(play->call.bulk_in.size <= bytes_max);
        for (size_t at = 0; at < play->call.bulk_in.size;) {
            struct wire_dirent dirent;

            memcpy(&dirent, play->call.bulk_in.data + at, sizeof dirent);
            assert_true(dirent.cookie > last);
            last = dirent.cookie;
            dirent_check(play, directory, &dirent, play->call.bulk_in.data + at);
            at += dirent.entry_bytes;
            count++;
        }
        end = play->call.reply.readdir.end;
        assert_true(end || play->call.bulk_in.size > 0);
        cookie = play->call.reply.readdir.next_cookie;
        assert_true(cookie == last || count == 0);
    }
    assert_int_equal(count, directory->nlink == 0 ? 0 : directory->entry_count + 2);
}

static void do_readdir(struct play *play) {
    struct model_inode *directory = directory_any(play);

    begin(play, OP_READDIR);
    if (directory && directory->mode >> 12 == 4) {
        list(play, directory, below(play, 2) ? 400 : 4000, below(play, 2));
        return;
    }
    play->call.request.readdir =
        (struct readdir_request){ino_of(directory), 0, 4000, 0, *play->who};
    expect(play, run(play), directory ? -ERR_NOT_DIRECTORY : -ERR_STALE);
}

static void do_layout(struct play *play) {
    struct model_inode *inode = inode_any(play);
    struct layout layout = {.chunk_bytes = 65536 * (1 + (uint32_t)below(play, 4)),
                            .stripe_count = (uint16_t)below(play, 3)};

    begin(play, OP_LAYOUT_SET);
    play->call.request.layout_set = (struct layout_set_request){ino_of(inode), *play->who, layout};
    int r = run(play);
    int wanted = 0;
    if (!inode) {
        wanted = -ERR_STALE;
    } else if (play->who->uid != 0 && play->who->uid != inode->uid) {
        wanted = -ERR_NOT_PERMITTED;
    } else if (layout.stripe_count == 0 || (inode->mode >> 12 != 4 && inode->mode >> 12 != 8) ||
               shadow_of(inode)->chunked) {
        wanted = -ERR_INVALID;
    }
    expect(play, r, wanted);
    if (r == 0) {
        inode->ctime_changes++;
        bench_prepare(play->bench, play->session, OP_LAYOUT_GET, &play->call);
        play->call.request.layout_get.ino = ino_of(inode);
        expect(play, run(play), 0);
        assert_int_equal(play->call.reply.layout_get.layout.chunk_bytes, layout.chunk_bytes);
        assert_int_equal(play->call.reply.layout_get.layout.stripe_count, layout.stripe_count);
    }
}

/* A session ends uncleanly; a new one takes its place. */
static void evict(struct play *play, uint32_t session) {
    struct bench_session *who = &play->bench->sessions[session];
    struct call call;

    bench_prepare(play->bench, session, OP_SESSION_EVICT, &call);
    call.request.session_evict = (struct session_evict_request){who->id, who->incarnation};
    assert_int_equal(bench_run(play->bench, &call), 0);
    model_session_end(play->fs, session);
    bench_prepare(play->bench, session, OP_GETATTR, &call);
    call.request.getattr.ino = INO_ROOT;
    assert_int_equal(bench_run(play->bench, &call), -ERR_UNKNOWN_SESSION);
    bench_prepare(play->bench, session, OP_SESSION_ATTACH, &call);
    call.request.session_attach = (struct session_attach_request){who->id, who->incarnation, 0};
    assert_int_equal(bench_run(play->bench, &call), -ERR_FENCED);
    *who = (struct bench_session){.id = who->id + BENCH_SESSIONS, .incarnation = 7};
    bench_attach(play->bench, session);
}

static void present(struct play *play, uint32_t session) {
    for (struct model_inode *inode = model_first(play->fs); inode; inode = inode->next) {
        struct call call;

        if (inode->read_opens[session] + inode->write_opens[session] == 0) {
            continue;
        }
        for (uint64_t copies = 1 + below(play, 2); copies > 0; copies--) {
            bench_prepare(play->bench, session, OP_REOPEN, &call);
            call.request.reopen = (struct reopen_request){
                .ino = ino_of(inode),
                .open_flags = inode->write_opens[session] ? OPEN_WRITE : OPEN_READ,
                .read_count = inode->read_opens[session],
                .write_count = inode->write_opens[session],
            };
            assert_int_equal(bench_run(play->bench, &call), 0);
        }
    }
}

static void do_restart(struct play *play) {
    uint64_t how = below(play, 3);
    struct call call;

    begin(play, OP_SYNC);
    if (how == 0) {
        bench_restart(play->bench, false);
    } else if (how == 1) {
        assert_int_equal(run(play), 0);
        bench_restart(play->bench, true);
    } else {
        bench_stop_and_start(play->bench);
    }
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_prepare(play->bench, i, OP_GETATTR, &call);
        call.request.getattr.ino = INO_ROOT;
        assert_int_equal(bench_run(play->bench, &call), -ERR_STALE_TERM);
    }
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        if (below(play, 6) == 0) {
            evict(play, i);
        } else {
            present(play, i);
            bench_attach(play->bench, i);
        }
    }
}

static void do_evict(struct play *play) {
    evict(play, (uint32_t)below(play, BENCH_SESSIONS));
}

static const struct {
    void (*run)(struct play *play);
    uint32_t weight;
} operations[] = {
    {do_lookup, 8},      {do_getattr, 6},  {do_create, 14}, {do_mkdir, 9},   {do_mknod, 4},
    {do_symlink, 3},     {do_readlink, 2}, {do_link, 5},    {do_unlink, 9},  {do_rmdir, 5},
    {do_rename, 14},     {do_access, 3},   {do_open, 8},    {do_close, 10},  {do_setattr, 12},
    {do_write, 16},      {do_readdir, 5},  {do_layout, 2},  {do_restart, 1}, {do_evict, 1},
    {do_inline_read, 4},
};

static void one(struct play *play) {
    uint32_t sum = 0;

    for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
        sum += operations[i].weight;
    }
    uint64_t drawn = below(play, sum);
    size_t i = 0;
    while (drawn >= operations[i].weight) {
        drawn -= operations[i].weight;
        i++;
    }
    operations[i].run(play);
}

/* Everything that the model has, and not one inode more. */
static void all_check(struct play *play) {
    struct group_stats stats;

    for (struct model_inode *inode = model_first(play->fs); inode; inode = inode->next) {
        bench_prepare(play->bench, 0, OP_GETATTR, &play->call);
        play->call.request.getattr.ino = ino_of(inode);
        expect(play, run(play), 0);
        attributes_check(play, &play->call.reply.getattr.attributes, inode);
        if (inode->mode >> 12 == 4) {
            list(play, inode, 1000, false);
        }
    }
    bench_stats(play->bench, &stats);
    assert_int_equal(stats.inode_count, model_inode_count(play->fs));
}

/* Rows of that kind as fsck is told of them. */
static size_t rows_count(struct play *play, uint32_t what) {
    uint8_t cursor[KV_KEY_BYTES];
    size_t cursor_bytes = 0;
    size_t count = 0;

    do {
        bench_prepare(play->bench, 0, OP_FSCK_LIST, &play->call);
        play->call.header.session.value = 0;
        play->call.request.fsck_list =
            (struct fsck_list_request){what, {cursor, cursor_bytes}, 2000};
        expect(play, run(play), 0);
        for (size_t at = 0; at < play->call.bulk_in.size; count++) {
            const uint8_t *row = play->call.bulk_in.data + at;

            cursor_bytes = sizeof cursor;
            memcpy(cursor, row + 2, sizeof cursor);
            at += 2 + KV_KEY_BYTES + load_le16(row);
        }
    } while (!play->call.reply.fsck_list.end);
    return count;
}

/* When all is closed and quiet nothing is left of what was removed. */
static void rest_check(struct play *play) {
    size_t directories = 0;
    size_t entries = 0;

    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        evict(play, i);
    }
    bench_advance(play->bench, 30 * NS_PER_S);
    for (struct model_inode *inode = model_first(play->fs); inode; inode = inode->next) {
        directories += inode->mode >> 12 == 4;
        entries += inode->entry_count;
    }
    assert_int_equal(rows_count(play, FSCK_INODES), model_inode_count(play->fs));
    assert_int_equal(rows_count(play, FSCK_PARTITIONS), directories);
    assert_true(rows_count(play, FSCK_DENTRIES) >= entries);
    assert_int_equal(rows_count(play, FSCK_ORPHANS), 0);
    assert_int_equal(rows_count(play, FSCK_QUEUE), 0);
    for (uint32_t i = 0; i < play->bench->chunks_count; i++) {
        const struct bench_chunks *chunks = &play->bench->chunks[i];
        const struct model_inode *inode = model_find(play->fs, chunks->ino);

        if (!inode && !chunks->deleted) {
            fail_msg("seed %llu: chunks of %llx are left", (unsigned long long)play->bench->seed,
                     (unsigned long long)chunks->ino);
        }
    }
}

static void play_seed(const struct bench_options *options) {
    struct play play;

    play_new(&play, options);
    for (play.step = 0; play.step < STEPS; play.step++) {
        one(&play);
    }
    all_check(&play);
    rest_check(&play);
    all_check(&play);
    assert_true(play.succeeded > STEPS / 4);
    play_free(&play);
}

static void test_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct bench_options options = {
            .seed = seed,
            .cold_per_mille = seed % 3 == 0 ? 0 : 200,
            .hash_bits = seed % 2 ? 2 : 0,
            .gone_sessions_max = seed % 4 ? 0 : 3,
        };
        play_seed(&options);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
