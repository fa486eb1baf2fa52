/* Plays of random operations against one group and the model of a file system: what operations are
 * drawn from, and the comparison of answers. Any difference fails the test with seed and step. */
#pragma once
#include "../model_fs.h"
#include "meta_bench.h"

enum { NAMES = 14, WHOS = 4, INLINE_BYTES = 4096 };

/* What a test knows of an inode beside the model: times as last seen, first bytes of a file. */
struct shadow {
    uint64_t mtime_changes;
    uint64_t ctime_changes;
    int64_t mtime_ns;
    int64_t ctime_ns;
    bool chunked;
    uint32_t untouched;             /* chunks that its maker has written nothing to, or 0 */
    uint32_t maker;                 /* session */
    uint64_t names[MODEL_SESSIONS]; /* of the newest open by name of each session */
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
    uint64_t parents_told; /* in answers, with the change */
    uint64_t given_back;   /* chunks, by who made the file */
    int step;
    /* The present operation. */
    uint32_t session;
    const struct credentials *who;
    struct model_who model_who;
    struct call call;
};

/* Of `attributes` in a function that has `play`. */
#define CHECK_FIELD(field, wanted)                                                                 \
    if ((uint64_t)attributes->field != (uint64_t)(wanted)) {                                       \
        fail_msg("seed %llu step %d: after %s ino %llx has " #field " %llu, the model %llu",       \
                 (unsigned long long)play->bench->seed, play->step,                                \
                 wire_name(play->call.header.opcode), (unsigned long long)attributes->ino.value,   \
                 (unsigned long long)attributes->field, (unsigned long long)(wanted));             \
    }

void play_new(struct play *play, const struct bench_options *options);
void play_free(struct play *play);
struct shadow *shadow_of(struct model_inode *inode);

uint64_t play_below(struct play *play, uint64_t bound);
/* Any inode that there is, seldom NULL for one that there is not. */
struct model_inode *play_inode_any(struct play *play);
struct model_inode *play_directory_any(struct play *play);
struct ino play_ino_of(const struct model_inode *inode);
struct model_place play_place_any(struct play *play);
uint32_t play_mode_any(struct play *play);

/* Draws session and identity and prepares the call. */
void play_begin(struct play *play, uint16_t opcode);
int play_run(struct play *play);
void play_expect(struct play *play, int got, int wanted);
/* Attributes are the model's; a time has changed exactly if the model says so. */
void play_attributes_check(struct play *play, const struct attributes *attributes,
                           struct model_inode *inode);
/* Sometimes sends a second copy of the mutation that was just answered: it gets the same answer. */
void play_again(struct play *play, int wanted);
/* Lists a directory in pieces of that size; it is exactly what the model has. */
void play_list(struct play *play, struct model_inode *directory, uint32_t bytes_max, bool plus);
/* A session ends uncleanly; a new one takes its place. */
void play_evict(struct play *play, uint32_t session);
/* After a restart: the session presents its opens. closing: one that it was about to close, which
 * may have happened; or NULL. */
void play_present(struct play *play, uint32_t session, const struct model_inode *closing);

void do_lookup(struct play *play);
void do_getattr(struct play *play);
void do_create(struct play *play);
void do_create_unnamed(struct play *play);
void do_mkdir(struct play *play);
void do_mknod(struct play *play);
void do_symlink(struct play *play);
void do_readlink(struct play *play);
void do_link(struct play *play);
void do_unlink(struct play *play);
void do_rmdir(struct play *play);
void do_rename(struct play *play);
void do_access(struct play *play);
void do_readdir(struct play *play);
void do_layout(struct play *play);
void do_open(struct play *play);
void do_close(struct play *play);
void do_setattr(struct play *play);
void do_write(struct play *play);
void do_inline_read(struct play *play);
