/* What plays share. */
#include "unit.h"
#include "play.h"
#include <stdlib.h>
#include <string.h>

static const uint32_t groups_of_2[] = {20, 30};

static void shadow_forget(struct model_inode *inode) {
    free(inode->context);
}

struct shadow *shadow_of(struct model_inode *inode) {
    if (!inode->context) {
        inode->context = calloc(1, sizeof(struct shadow));
        assert_non_null(inode->context);
    }
    return inode->context;
}

void play_new(struct play *play, const struct bench_options *options) {
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

void play_free(struct play *play) {
    model_free(play->fs);
    bench_free(play->bench);
}

uint64_t play_below(struct play *play, uint64_t bound) {
    return prng_below(play->prng, bound);
}

static struct bytes name_any(struct play *play) {
    if (play_below(play, 60) == 0) {
        static const struct bytes bad[] = {
            {(const uint8_t *)"", 0}, {(const uint8_t *)"a/b", 3}, {(const uint8_t *)"a\0b", 3}};

        return bad[play_below(play, ARRAY_SIZE(bad))];
    }
    if (play_below(play, 60) == 0) {
        return (struct bytes){play->long_name, NAME_BYTES_MAX + 1};
    }
    return play->names[play_below(play, NAMES)];
}

/* Any inode that there is, seldom one that there is not. */
struct model_inode *play_inode_any(struct play *play) {
    uint64_t index = play_below(play, model_inode_count(play->fs));
    struct model_inode *inode = model_first(play->fs);

    if (play_below(play, 50) == 0) {
        return NULL;
    }
    while (index-- > 0) {
        inode = inode->next;
    }
    return inode;
}

struct model_inode *play_directory_any(struct play *play) {
    struct model_inode *inode = NULL;

    for (int i = 0; i < 6; i++) {
        inode = play_inode_any(play);
        if (inode && inode->mode >> 12 == 4) {
            break;
        }
    }
    return inode;
}

struct ino play_ino_of(const struct model_inode *inode) {
    return (struct ino){inode ? inode->ino : UINT64_C(0x123456789)};
}

struct model_place play_place_any(struct play *play) {
    return (struct model_place){&play->model_who, play_directory_any(play), name_any(play)};
}

uint32_t play_mode_any(struct play *play) {
    static const uint32_t modes[] = {0755, 0644, 0700, 0777, 02775, 01777, 04711, 02755, 0, 0070};

    return modes[play_below(play, ARRAY_SIZE(modes))];
}

void play_begin(struct play *play, uint16_t opcode) {
    play->session = (uint32_t)play_below(play, BENCH_SESSIONS);
    play->who = &play->whos[play_below(play, 2) ? 0 : play_below(play, WHOS)];
    play->model_who = (struct model_who){play->who->uid, play->who->gid, play->who->groups,
                                         play->who->group_count};
    play->started_ns = (int64_t)env_wall_ns(memory_env_env(play->bench->world));
    bench_prepare(play->bench, play->session, opcode, &play->call);
}

int play_run(struct play *play) {
    int r = bench_run(play->bench, &play->call);

    play->answered++;
    play->succeeded += r == 0;
    return r;
}

void play_expect(struct play *play, int got, int wanted) {
    if (got != wanted) {
        char text[512];

        wire_print_request(play->call.header.opcode, &play->call.request, text, sizeof text);
        fail_msg("seed %llu step %d session %u uid %u: %s answers %s, the model %s",
                 (unsigned long long)play->bench->seed, play->step, play->session, play->who->uid,
                 text, err_name(got), err_name(wanted));
    }
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
void play_attributes_check(struct play *play, const struct attributes *attributes,
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

/* What the answer tells of directories that it has changed is as the model has them with the
 * change. A second copy is not told. */
static void parents_check(struct play *play, struct call *call) {
    struct wire_parent parents[WIRE_PARENTS_MAX];
    uint32_t count = wire_parents(call->header.opcode, &call->request, &call->reply, parents);

    for (uint32_t i = 0; i < count; i++) {
        const struct attributes *told = parents[i].attributes;

        if (told->ino.value != 0) {
            assert_int_equal(told->ino.value, parents[i].ino.value);
            play_attributes_check(play, told, model_find(play->fs, told->ino.value));
            play->parents_told++;
        }
        *parents[i].attributes = (struct attributes){.ino = {0}};
    }
}

/* As bytes on the wire: padding within the structs says nothing. */
static bool replies_differ(const struct call *a, const struct call *b) {
    uint8_t bytes[2][1024];
    struct buffer out[2] = {{bytes[0], 0, sizeof bytes[0]}, {bytes[1], 0, sizeof bytes[1]}};

    assert_int_equal(wire_encode_reply(a->header.opcode, &a->reply, &out[0]), 0);
    assert_int_equal(wire_encode_reply(b->header.opcode, &b->reply, &out[1]), 0);
    return out[0].size != out[1].size || memcmp(bytes[0], bytes[1], out[0].size) != 0;
}

/* A second copy of the mutation that was just answered gets the same answer, and does nothing. */
void play_again(struct play *play, int wanted) {
    struct call call = play->call;

    if (wanted == 0) {
        parents_check(play, &call);
    }
    if (play_below(play, 4) != 0 || !wire_is_mutation(call.header.opcode)) {
        return;
    }
    int r = bench_run(play->bench, &play->call);
    play_expect(play, r, wanted);
    if (r == 0 && replies_differ(&call, &play->call)) {
        fail_msg("seed %llu step %d: a copy of %s gets another reply",
                 (unsigned long long)play->bench->seed, play->step, wire_name(call.header.opcode));
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
        play_attributes_check(play, &attributes, inode);
    }
}

/* Lists a directory in pieces of that size; the model is not changed meanwhile. */
void play_list(struct play *play, struct model_inode *directory, uint32_t bytes_max, bool plus) {
    uint64_t cookie = 0;
    uint64_t last = 0;
    size_t count = 0;
    bool end = false;

    while (!end) {
        bench_prepare(play->bench, play->session, OP_READDIR, &play->call);
        play->call.request.readdir = (struct readdir_request){play_ino_of(directory), cookie,
                                                              bytes_max, plus, play->whos[0]};
        play_expect(play, play_run(play), 0);
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

/* A session ends uncleanly; a new one takes its place. */
void play_evict(struct play *play, uint32_t session) {
    struct bench_session *who = &play->bench->sessions[session];
    struct call call;

    bench_evict(play->bench, who->id);
    model_session_end(play->fs, session);
    bench_prepare(play->bench, session, OP_GETATTR, &call);
    call.request.getattr.ino = INO_ROOT;
    assert_int_equal(bench_run(play->bench, &call), -ERR_UNKNOWN_SESSION);
    bench_prepare(play->bench, session, OP_SESSION_ATTACH, &call);
    call.request.session_attach = (struct session_attach_request){
        .session = who->id, .incarnation = who->incarnation, .node = 0, .known_term = 0};
    assert_int_equal(bench_run(play->bench, &call), -ERR_FENCED);
    *who = (struct bench_session){.id = ++play->bench->next_session_id, .incarnation = 7};
    bench_attach(play->bench, session);
}

void play_present(struct play *play, uint32_t session, const struct model_inode *closing) {
    for (struct model_inode *inode = model_first(play->fs); inode; inode = inode->next) {
        struct call call;

        if (!model_is_open_by(inode, session)) {
            continue;
        }
        for (uint64_t copies = 1 + play_below(play, 2); copies > 0; copies--) {
            bench_prepare(play->bench, session, OP_REOPEN, &call);
            call.request.reopen = (struct reopen_request){
                .ino = play_ino_of(inode),
                .open_flags = inode->write_opens[session] ? OPEN_WRITE : OPEN_READ,
                .read_count = inode->read_opens[session],
                .write_count = inode->write_opens[session],
                .name = inode->named[session] ? shadow_of(inode)->names[session] : 0,
            };
            int r = bench_run(play->bench, &call);
            assert_true(r == 0 || (r == -ERR_STALE && inode == closing));
        }
    }
}
