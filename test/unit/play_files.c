/* Random operations on open files, each compared with the model: data inline and in chunks, sizes
 * that are settled, asked for or cut. */
#include "unit.h"
#include "play.h"
#include <string.h>

void do_open(struct play *play) {
    struct model_inode *inode = play_inode_any(play);

    play_begin(play, OP_OPEN);
    struct model_open open = {
        .session = play->session, .flags = (uint32_t)play_below(play, 32), .by_name = true};
    play->call.request.open = (struct open_request){play_ino_of(inode), *play->who, open.flags};
    int r = play_run(play);
    play_expect(play, r, model_open(play->fs, &play->model_who, inode, &open));
    if (r == 0) {
        if (open.flags & MODEL_TRUNCATE) {
            memset(shadow_of(inode)->bytes, 0, INLINE_BYTES);
        }
        play_attributes_check(play, &play->call.reply.open.attributes, inode);
        if (play->call.reply.open.name) {
            shadow_of(inode)->names[play->session] = play->call.reply.open.name;
        }
    }
    play_again(play, r);
}

/* An inode that the session has open; *ret_writes tells for what. */
static struct model_inode *open_any(struct play *play, uint32_t session, bool *ret_writes) {
    for (int i = 0; i < 40; i++) {
        struct model_inode *inode = play_inode_any(play);

        if (inode && model_is_open_by(inode, session)) {
            *ret_writes = inode->write_opens[session] > 0 &&
                          (play_below(play, 2) || !inode->read_opens[session]);
            return inode;
        }
    }
    return NULL;
}

/* By a name that is older now and then, which changes nothing. */
static void close_by_name(struct play *play, struct model_inode *inode) {
    uint64_t newest = shadow_of(inode)->names[play->session];
    bool older = play_below(play, 4) == 0 && newest > 1; /* 0 is no name */
    uint64_t name = newest - older;

    bench_prepare(play->bench, play->session, OP_SETTLE, &play->call);
    play->call.request.settle =
        (struct settle_request){.ino = play_ino_of(inode), .close = 1, .name = name};
    int r = play_run(play);
    play_expect(play, r, 0);
    if (!older) {
        model_close_by_name(play->fs, inode, play->session);
    }
    play_again(play, r);
}

static void close_one(struct play *play, struct model_inode *inode, bool writes) {
    uint32_t flags = writes ? OPEN_WRITE : OPEN_READ;

    bench_prepare(play->bench, play->session, OP_SETTLE, &play->call);
    play->call.request.settle =
        (struct settle_request){.ino = play_ino_of(inode), .close = 1, .open_flags = flags};
    int r = play_run(play);
    play_expect(play, r, model_close(play->fs, inode, play->session, flags));
    play_again(play, r);
}

void do_close(struct play *play) {
    bool writes = false;

    play_begin(play, OP_SETTLE);
    struct model_inode *inode = open_any(play, play->session, &writes);
    if (inode && inode->named[play->session] && !writes && play_below(play, 2)) {
        close_by_name(play, inode);
        return;
    }
    close_one(play, inode, inode ? writes : play_below(play, 2));
}

void do_setattr(struct play *play) {
    struct model_inode *inode = play_inode_any(play);

    play_begin(play, OP_SETATTR);
    uint32_t set = (uint32_t)(1U << play_below(play, 8));
    if (play_below(play, 4) == 0) {
        set |= (uint32_t)play_below(play, 256) & ~(uint32_t)MODEL_SET_SIZE;
    }
    if ((set & MODEL_SET_SIZE) == 0 && play_below(play, 4) == 0) {
        set = MODEL_SET_ATIME_NOW | MODEL_SET_MTIME_NOW;
    }
    struct model_change change = {
        .set = set,
        .mode = play_mode_any(play),
        .uid = (uint32_t)play_below(play, 4),
        .gid = (uint32_t)(play_below(play, 4) * 10),
        .size = play_below(play, 10) == 0 ? UINT64_C(1) << 62
                : play_below(play, 3)     ? play_below(play, 6000)
                                          : 0,
        .session = play->session,
        .opened = play_below(play, 2),
    };
    play->call.request.setattr = (struct setattr_request){
        .ino = play_ino_of(inode),
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
    int r = play_run(play);
    play_expect(play, r, model_setattr(play->fs, &play->model_who, inode, &change));
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
        play_attributes_check(play, attributes, inode);
    }
    play_again(play, r);
}

static void settle(struct play *play, struct model_inode *inode,
                   const struct capability *capability, uint64_t end) {
    bench_prepare(play->bench, play->session, OP_SETTLE, &play->call);
    play->call.request.settle = (struct settle_request){
        .ino = capability->ino, .truncate_seq = capability->truncate_seq, .size = end, .wrote = 1};
    play_expect(play, play_run(play), 0);
    inode->mtime_changes++;
    inode->ctime_changes++;
}

/* A truncation, or nothing, between the write and its settle. */
static void truncate_between(struct play *play, struct model_inode *inode) {
    struct model_who root = {0};
    struct model_change change = {.set = MODEL_SET_SIZE, .size = play_below(play, 20000)};

    bench_prepare(play->bench, play->session, OP_SETATTR, &play->call);
    play->call.request.setattr = (struct setattr_request){
        .ino = play_ino_of(inode), .valid = SETATTR_SIZE, .size = change.size};
    play_expect(play, play_run(play), 0);
    play_expect(play, model_setattr(play->fs, &root, inode, &change), 0);
}

static void chunk_write(struct play *play, struct model_inode *inode,
                        const struct capability *capability) {
    struct model_who root = {0};
    uint64_t end = 1 + play_below(play, 30000);
    uint64_t fate = play_below(play, 10);

    bench_chunk_write(play->bench, capability, end);
    if (fate == 0) {
        truncate_between(play, inode);
        settle(play, inode, capability, end);
    } else if (fate == 1) {
        /* Nobody settles: the group has to ask. It cannot know the time of the write. */
        if (end > inode->size) {
            model_written(inode, &root, end);
        }
        play_evict(play, play->session);
    } else {
        model_written(inode, &root, end);
        settle(play, inode, capability, end);
    }
}

static void inline_write(struct play *play, struct model_inode *inode) {
    struct shadow *shadow = shadow_of(inode);
    uint8_t data[INLINE_BYTES];
    uint64_t offset = play_below(play, 3) ? 0 : play_below(play, INLINE_BYTES);
    size_t size = 1 + (size_t)play_below(play, play_below(play, 2) ? 50 : INLINE_BYTES - offset);

    size = MIN(size, INLINE_BYTES - (size_t)offset);
    memset(data, (int)play_below(play, 256), size);
    uint32_t untouched = play->session == shadow->maker ? shadow->untouched : 0;
    shadow->untouched = 0; /* Who writes is told of them, or gives them back. */
    bench_prepare(play->bench, play->session, OP_INLINE_WRITE, &play->call);
    play->call.request.inline_write = (struct inline_write_request){
        play_ino_of(inode), offset, {data, size}, play->who->uid != 0, untouched};
    int r = play_run(play);
    play_expect(play, r, 0);
    const struct inline_write_reply *reply = &play->call.reply.inline_write;
    if (reply->attributes.data_state == DATA_CHUNKED) {
        struct capability capability = reply->capability;

        assert_true(shadow->chunked);
        assert_true(capability.rights & RIGHT_WRITE);
        chunk_write(play, inode, &capability);
        return;
    }
    assert_true(!shadow->chunked || untouched != 0);
    play->given_back += shadow->chunked;
    shadow->chunked = false;
    memcpy(shadow->bytes + offset, data, size);
    model_written(inode, &play->model_who, offset + size);
    play_attributes_check(play, &reply->attributes, inode);
    play_again(play, r);
}

/* The way out of the inode: BEGIN, chunk 0 with the old bytes, COMMIT; sometimes overtaken. */
static void convert(struct play *play, struct model_inode *inode) {
    struct shadow *shadow = shadow_of(inode);
    struct inline_convert_reply reply;

    bench_prepare(play->bench, play->session, OP_INLINE_CONVERT, &play->call);
    play->call.request.inline_convert =
        (struct inline_convert_request){.ino = play_ino_of(inode), .stage = INLINE_CONVERT_BEGIN};
    play_expect(play, play_run(play), 0);
    reply = play->call.reply.inline_convert;
    if (reply.attributes.data_state == DATA_CHUNKED) {
        shadow->chunked = true;
        shadow->untouched = 0;
        return;
    }
    size_t size = MIN((size_t)inode->size, (size_t)INLINE_BYTES);
    assert_int_equal(play->call.bulk_in.size, size);
    assert_memory_equal(play->call.bulk_in.data, shadow->bytes, size);
    bool promised = (reply.capability.rights & RIGHT_SYNC_FIRST) != 0;
    bool synced = play_below(play, 4) != 0;
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bool open = model_is_open_by(inode, i);
        assert_true(promised || !open || i == play->session || size == 0);
    }
    bench_chunk_write(play->bench, &reply.capability, size);
    bool overtaken = play_below(play, 4) == 0;
    if (overtaken) {
        inline_write(play, inode);
    }
    bench_prepare(play->bench, play->session, OP_INLINE_CONVERT, &play->call);
    play->call.request.inline_convert = (struct inline_convert_request){
        .ino = play_ino_of(inode),
        .stage = INLINE_CONVERT_COMMIT,
        .size = inode->size,
        .inline_epoch = reply.attributes.epoch,
        .generation = reply.capability.generation,
        .synced = synced,
    };
    int r = play_run(play);
    play_expect(play, r, overtaken || (promised && !synced) ? -ERR_CONFLICT : 0);
    if (r == 0) {
        shadow->chunked = true;
        inode->mtime_changes++;
        inode->ctime_changes++;
    }
    play_again(play, r);
}

void do_write(struct play *play) {
    bool writes = false;

    play_begin(play, OP_INLINE_WRITE);
    struct model_inode *inode = open_any(play, play->session, &writes);
    if (!inode || inode->mode >> 12 != 8) {
        return;
    }
    if (inode->write_opens[play->session] == 0) {
        play->call.request.inline_write = (struct inline_write_request){
            .ino = play_ino_of(inode), .data = {(const uint8_t *)"x", 1}};
        play_expect(play, play_run(play), -ERR_BAD_HANDLE);
    } else if (!shadow_of(inode)->chunked && play_below(play, 4) == 0) {
        convert(play, inode);
    } else {
        inline_write(play, inode);
    }
}

void do_inline_read(struct play *play) {
    bool writes = false;

    play_begin(play, OP_INLINE_READ);
    struct model_inode *inode = open_any(play, play->session, &writes);
    if (!inode || inode->mode >> 12 != 8) {
        return;
    }
    play->call.request.inline_read.ino = play_ino_of(inode);
    play_expect(play, play_run(play), 0);
    const struct attributes *attributes = &play->call.reply.inline_read.attributes;
    play_attributes_check(play, attributes, inode);
    if (attributes->data_state == DATA_INLINE) {
        size_t size = MIN((size_t)inode->size, (size_t)INLINE_BYTES);

        assert_int_equal(play->call.bulk_in.size, size);
        assert_memory_equal(play->call.bulk_in.data, shadow_of(inode)->bytes, size);
    }
}
