/* Random operations on names, each compared with the model. */
#include "unit.h"
#include "play.h"
#include <string.h>

void do_lookup(struct play *play) {
    play_begin(play, OP_LOOKUP);
    struct model_place place = play_place_any(play);
    struct model_inode *inode = NULL;

    play->call.request.lookup =
        (struct lookup_request){play_ino_of(place.parent), place.name, *play->who};
    int r = play_run(play);
    play_expect(play, r, model_lookup(play->fs, &place, &inode));
    if (r == 0) {
        play_attributes_check(play, &play->call.reply.lookup.attributes, inode);
    }
}

void do_getattr(struct play *play) {
    struct model_inode *inode = play_inode_any(play);

    play_begin(play, OP_GETATTR);
    play->call.request.getattr.ino = play_ino_of(inode);
    int r = play_run(play);
    play_expect(play, r, inode ? 0 : -ERR_STALE);
    if (r == 0) {
        play_attributes_check(play, &play->call.reply.getattr.attributes, inode);
    }
}

static void made(struct play *play, struct model_inode *inode,
                 const struct attributes *attributes) {
    inode->ino = attributes->ino.value;
    play_attributes_check(play, attributes, inode);
}

void do_create(struct play *play) {
    play_begin(play, OP_CREATE);
    struct model_place place = play_place_any(play);
    struct model_open open = {
        .session = play->session,
        .flags =
            (uint32_t)(1 + play_below(play, 3)) | (play_below(play, 4) == 0 ? MODEL_TRUNCATE : 0),
        .mode = play_mode_any(play),
        .exclusive = play_below(play, 2),
    };
    struct model_inode *inode = NULL;
    bool created = false;
    bool draws = play_below(play, 2);

    play->call.request.create = (struct create_request){play_ino_of(place.parent),
                                                        place.name,
                                                        *play->who,
                                                        open.mode,
                                                        open.flags,
                                                        open.exclusive,
                                                        0,
                                                        draws};
    int r = play_run(play);
    play_expect(play, r, model_create(play->fs, &place, &open, &inode, &created));
    if (r == 0) {
        assert_int_equal(play->call.reply.create.created, created);
        if (created) {
            made(play, inode, &play->call.reply.create.attributes);
            shadow_of(inode)->maker = play->session;
            shadow_of(inode)->untouched = play->call.reply.create.capability.generation;
            shadow_of(inode)->chunked = draws && (open.flags & OPEN_WRITE);
            assert_int_equal(shadow_of(inode)->untouched != 0, shadow_of(inode)->chunked);
        } else if (open.flags & MODEL_TRUNCATE) {
            memset(shadow_of(inode)->bytes, 0, INLINE_BYTES);
        }
        play_attributes_check(play, &play->call.reply.create.attributes, inode);
        assert_true(play->call.reply.create.capability.rights & RIGHT_READ);
    }
    play_again(play, r);
}

void do_create_unnamed(struct play *play) {
    play_begin(play, OP_CREATE);
    struct model_place place = play_place_any(play);
    struct model_open open = {
        .session = play->session,
        .flags = MODEL_WRITE | (play_below(play, 2) ? MODEL_READ : 0),
        .mode = play_mode_any(play),
        .exclusive = play_below(play, 4) == 0,
    };
    struct model_inode *inode = NULL;

    play->call.request.create = (struct create_request){.parent = play_ino_of(place.parent),
                                                        .who = *play->who,
                                                        .mode = open.mode,
                                                        .open_flags = open.flags,
                                                        .exclusive = open.exclusive,
                                                        .unnamed = 1};
    int r = play_run(play);
    play_expect(play, r, model_create_unnamed(play->fs, &place, &open, &inode));
    if (r == 0) {
        assert_true(play->call.reply.create.created);
        made(play, inode, &play->call.reply.create.attributes);
    }
    play_again(play, r);
}

void do_mkdir(struct play *play) {
    play_begin(play, OP_MKDIR);
    struct model_place place = play_place_any(play);
    struct model_new_inode what = {.mode = 0040000 | play_mode_any(play)};
    struct model_inode *inode = NULL;

    play->call.request.mkdir = (struct mkdir_request){play_ino_of(place.parent), place.name,
                                                      *play->who, what.mode & 07777};
    int r = play_run(play);
    play_expect(play, r, model_make(play->fs, &place, &what, &inode));
    if (r == 0) {
        made(play, inode, &play->call.reply.mkdir.attributes);
    }
    play_again(play, r);
}

void do_mknod(struct play *play) {
    static const uint32_t types[] = {0100000, 0010000, 0020000, 0060000, 0140000};

    play_begin(play, OP_MKNOD);
    struct model_place place = play_place_any(play);
    struct model_new_inode what = {.mode = types[play_below(play, 5)] | play_mode_any(play),
                                   .rdev = (uint32_t)play_below(play, 1000)};
    struct model_inode *inode = NULL;

    play->call.request.mknod = (struct mknod_request){play_ino_of(place.parent), place.name,
                                                      *play->who, what.mode, what.rdev};
    int r = play_run(play);
    play_expect(play, r, model_make(play->fs, &place, &what, &inode));
    if (r == 0) {
        made(play, inode, &play->call.reply.mknod.attributes);
    }
    play_again(play, r);
}

void do_symlink(struct play *play) {
    static uint8_t target[4096];

    play_begin(play, OP_SYMLINK);
    struct model_place place = play_place_any(play);
    struct model_new_inode what = {
        .mode = 0120777,
        .target = {target, play_below(play, 3) ? play_below(play, 60) : play_below(play, 4097)}};
    struct model_inode *inode = NULL;

    memset(target, (int)('a' + play_below(play, 26)), sizeof target);
    play->call.request.symlink =
        (struct symlink_request){play_ino_of(place.parent), place.name, *play->who, what.target};
    int r = play_run(play);
    play_expect(play, r, model_make(play->fs, &place, &what, &inode));
    if (r == 0) {
        made(play, inode, &play->call.reply.symlink.attributes);
    }
    play_again(play, r);
}

void do_readlink(struct play *play) {
    struct model_inode *inode = play_inode_any(play);

    play_begin(play, OP_READLINK);
    play->call.request.readlink.ino = play_ino_of(inode);
    int r = play_run(play);
    play_expect(play, r, !inode ? -ERR_STALE : inode->target ? 0 : -ERR_NOT_LINK);
    if (r == 0) {
        assert_int_equal(play->call.bulk_in.size, inode->size);
        assert_memory_equal(play->call.bulk_in.data, inode->target, inode->size);
    }
}

void do_link(struct play *play) {
    play_begin(play, OP_LINK);
    struct model_place place = play_place_any(play);
    struct model_inode *inode = play_inode_any(play);

    play->call.request.link = (struct link_request){play_ino_of(inode), play_ino_of(place.parent),
                                                    place.name, *play->who};
    int r = play_run(play);
    play_expect(play, r, model_link(play->fs, inode, &place));
    if (r == 0) {
        play_attributes_check(play, &play->call.reply.link.attributes, inode);
    }
    play_again(play, r);
}

void do_unlink(struct play *play) {
    play_begin(play, OP_UNLINK);
    struct model_place place = play_place_any(play);

    play->call.request.unlink =
        (struct unlink_request){play_ino_of(place.parent), place.name, *play->who};
    int r = play_run(play);
    play_expect(play, r, model_unlink(play->fs, &place));
    play_again(play, r);
}

void do_rmdir(struct play *play) {
    play_begin(play, OP_RMDIR);
    struct model_place place = play_place_any(play);

    play->call.request.rmdir =
        (struct rmdir_request){play_ino_of(place.parent), place.name, *play->who};
    int r = play_run(play);
    play_expect(play, r, model_rmdir(play->fs, &place));
    play_again(play, r);
}

void do_rename(struct play *play) {
    play_begin(play, OP_RENAME);
    struct model_place from = play_place_any(play);
    struct model_place to = play_place_any(play);
    uint32_t flags = play_below(play, 3) ? 0 : (uint32_t)play_below(play, 4);

    if (play_below(play, 3) == 0) {
        to.parent = from.parent;
    }
    play->call.request.rename = (struct rename_request){
        play_ino_of(from.parent), from.name, play_ino_of(to.parent), to.name, *play->who, flags};
    int r = play_run(play);
    play_expect(play, r, model_rename(play->fs, &from, &to, flags));
    play_again(play, r);
}

void do_access(struct play *play) {
    struct model_inode *inode = play_inode_any(play);
    uint32_t mask = (uint32_t)play_below(play, 8);

    play_begin(play, OP_ACCESS);
    play->call.request.access = (struct access_request){play_ino_of(inode), *play->who, mask};
    play_expect(play, play_run(play), model_access(&play->model_who, inode, mask));
}

void do_readdir(struct play *play) {
    struct model_inode *directory = play_directory_any(play);

    play_begin(play, OP_READDIR);
    if (directory && directory->mode >> 12 == 4) {
        play_list(play, directory, play_below(play, 2) ? 400 : 4000, play_below(play, 2));
        return;
    }
    play->call.request.readdir =
        (struct readdir_request){play_ino_of(directory), 0, 4000, 0, *play->who};
    play_expect(play, play_run(play), directory ? -ERR_NOT_DIRECTORY : -ERR_STALE);
}

void do_layout(struct play *play) {
    struct model_inode *inode = play_inode_any(play);
    struct layout layout = {.chunk_bytes = 65536 * (1 + (uint32_t)play_below(play, 4)),
                            .stripe_count = (uint16_t)play_below(play, 3)};

    play_begin(play, OP_LAYOUT_SET);
    play->call.request.layout_set =
        (struct layout_set_request){.ino = play_ino_of(inode), .who = *play->who, .layout = layout};
    int r = play_run(play);
    int wanted = 0;
    if (!inode) {
        wanted = -ERR_STALE;
    } else if (play->who->uid != 0 && play->who->uid != inode->uid) {
        wanted = -ERR_NOT_PERMITTED;
    } else if (layout.stripe_count == 0 || (inode->mode >> 12 != 4 && inode->mode >> 12 != 8) ||
               shadow_of(inode)->chunked) {
        wanted = -ERR_INVALID;
    }
    play_expect(play, r, wanted);
    if (r == 0) {
        inode->ctime_changes++;
        bench_prepare(play->bench, play->session, OP_LAYOUT_GET, &play->call);
        play->call.request.layout_get.ino = play_ino_of(inode);
        play_expect(play, play_run(play), 0);
        assert_int_equal(play->call.reply.layout_get.layout.chunk_bytes, layout.chunk_bytes);
        assert_int_equal(play->call.reply.layout_get.layout.stripe_count, layout.stripe_count);
    }
}
