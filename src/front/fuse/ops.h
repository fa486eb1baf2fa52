/* The functions that ops.def names, and what they share. Each is straight: it reads the request,
 * sets up a call of libshoal, and on its return fills in the reply. */
#pragma once
#include "front/fuse/request.h"

/* Indexed by number; name is NULL where there is none. */
extern const struct op ops[OPERATION_COUNT];

/* Of operations that need more than one call; see ops_set_id.c. */
enum op_stage {
    STAGE_START,
    STAGE_LOOK,    /* are there set-id bits? */
    STAGE_CLEAR,   /* clear them */
    STAGE_ACT,     /* what was asked for */
    STAGE_SYNC,    /* make it durable */
    STAGE_RELEASE, /* close again what was opened */
};

op_fn op_silent, op_nothing, op_unknown, op_ioctl;
op_fn op_lookup, op_readlink, op_symlink, op_mknod, op_mkdir, op_unlink, op_rmdir, op_rename,
    op_rename2, op_link, op_entry_finish, op_data_finish;
op_fn op_getattr, op_setattr, op_statx, op_access, op_statfs, op_attributes_finish,
    op_setattr_finish, op_statx_finish, op_statfs_finish;
op_fn op_open, op_create, op_opendir, op_open_finish, op_release;
op_fn op_read, op_write, op_write_finish, op_flush, op_fsync, op_syncfs, op_fallocate,
    op_fallocate_finish;
op_fn op_readdir, op_readdirplus, op_readdir_finish;

/* Writing to, truncating or allocating a file by someone without privilege clears its set-id bits
 * first. Answers VERDICT_REPLY when nothing is (or is left) to be done, VERDICT_SUBMIT with a call
 * set up and request->stage at LOOK or CLEAR, or the call's error; then, on its return, set_id_next
 * goes on. request->handle is the open file. */
int set_id_start(struct fuse_request *request);
int set_id_next(struct fuse_request *request);
/* Sets up the call that clears them, on the inode of request->handle; stage becomes CLEAR. */
int set_id_clear(struct fuse_request *request);
bool set_id_in_mode(uint32_t mode);

/* encode.c: attributes as the kernel wants them. */
void encode_attributes(struct abi_attributes *to, const struct shoal_attributes *from);
void encode_entry(const struct front *front, struct abi_entry_out *to,
                  const struct shoal_attributes *from);
void encode_attributes_out(const struct front *front, struct abi_attributes_out *to,
                           const struct shoal_attributes *from);
void encode_statx(const struct front *front, struct abi_statx_out *to,
                  const struct shoal_attributes *from);
