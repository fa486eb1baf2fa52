/* The functions that ops.def names, and what they share. Each is straight: it reads the request,
 * sets up a call of libshoal, and on its return fills in the reply. */
#pragma once
#include "front/fuse/fuse_abi_copy.h"
#include "front/fuse/request.h"

/* Numbers. */
enum opcode {
#define OP(name, number, body, names, flags, start, finish) OPCODE_##name = (number),
#include "front/fuse/ops.def"
#undef OP
};

/* Indexed by number; name is NULL where there is none. */
extern const struct op ops[OPERATION_COUNT];

/* Of operations that need more than one call; see ops_set_id.c. */
enum fuse_op_stage {
    STAGE_START,
    STAGE_LOOK,    /* are there set-id bits? */
    STAGE_CLEAR,   /* clear them */
    STAGE_FETCH,   /* read what is to be copied */
    STAGE_ACT,     /* what was asked for */
    STAGE_SYNC,    /* make it durable */
    STAGE_RELEASE, /* close again what was opened */
};

fuse_op_fn fuse_op_silent, fuse_op_forget, fuse_op_forget_batch;
fuse_op_fn fuse_op_nothing, fuse_op_unknown, fuse_op_interrupt, fuse_op_ioctl;
fuse_op_fn fuse_op_lookup, fuse_op_readlink, fuse_op_symlink, fuse_op_mknod, fuse_op_mkdir,
    fuse_op_unlink, fuse_op_rmdir, fuse_op_rename, fuse_op_rename2, fuse_op_link,
    fuse_op_entry_finish, fuse_op_data_finish;
fuse_op_fn fuse_op_getattr, fuse_op_setattr, fuse_op_statx, fuse_op_access, fuse_op_statfs,
    fuse_op_attributes_finish, fuse_op_setattr_finish, fuse_op_statx_finish, fuse_op_statfs_finish;
fuse_op_fn fuse_op_open, fuse_op_create, fuse_op_tmpfile, fuse_op_opendir, fuse_op_open_finish,
    fuse_op_release;
fuse_op_fn fuse_op_read, fuse_op_read_finish, fuse_op_write, fuse_op_write_finish, fuse_op_flush,
    fuse_op_fsync, fuse_op_syncfs, fuse_op_fallocate, fuse_op_fallocate_finish, fuse_op_lseek,
    fuse_op_lseek_finish;
fuse_op_fn fuse_op_copy, fuse_op_copy_64, fuse_op_copy_finish;
fuse_op_fn fuse_op_readdir, fuse_op_readdir_finish, fuse_op_releasedir;

/* Sets up the call of READDIR or READDIRPLUS, its file aside. */
void fuse_op_list_prepare(struct fuse_request *request, uint32_t opcode);

/* Writing to, truncating or allocating a file by someone without privilege clears its set-id bits
 * first. Answers VERDICT_REPLY when nothing is (or is left) to be done, VERDICT_SUBMIT with a call
 * set up and request->stage at LOOK or CLEAR, or the call's error; then, on its return, set_id_next
 * goes on. request->handle is the open file. */
int set_id_start(struct fuse_request *request);
int set_id_next(struct fuse_request *request);
/* Sets up the call that clears them, on the inode of request->handle, or of the request; stage
 * becomes CLEAR. The last answer has the attributes. */
int set_id_clear(struct fuse_request *request);
bool set_id_in_mode(uint32_t mode);
/* Learns the caller's groups where this mode, which he asks for, depends on them. */
void set_id_learn(struct fuse_request *request, uint32_t mode);
/* Whether the bits in the answer's attributes are to be cleared for this caller. */
bool set_id_must_go(const struct fuse_request *request);

/* encode.c: attributes as the kernel wants them. */
void encode_attributes(struct abi_attributes *to, const struct shoal_attributes *from);
void encode_entry(const struct fuse_request *request, struct abi_entry_out *to,
                  const struct shoal_attributes *from);
/* Of an entry that may be AHEAD_NS old when the kernel gets it; the second when it does get it. */
void encode_entry_ahead(const struct fuse_request *request, struct abi_entry_out *to,
                        const struct shoal_attributes *from);
void encode_entry_told(const struct fuse_request *request, const struct abi_entry_out *entry);
void encode_attributes_out(const struct fuse_request *request, struct abi_attributes_out *to,
                           const struct shoal_attributes *from, uint64_t age_ns);
void encode_statx(const struct fuse_request *request, struct abi_statx_out *to,
                  const struct shoal_attributes *from, uint64_t age_ns);
