/* A base on LMDB (http://www.lmdb.tech): one file a target, root/directory/base.mdb, sorted,
 * copy-on-write, each commit synced. Does its own I/O: this and front/fuse/channel_*.c are the two
 * named exemptions.
 *
 * LMDB reads through a mapping of the file. So the pages that it read are the page cache's, not
 * the process's own; and a medium that fails under a read ends the process, as a crash would, with
 * a line that names the file where there is a handler (env/env_fault.h). Rows that rotted are found
 * by their CRC; pages of LMDB's own at open, in a file that kv_lmdb_check looks through. One that
 * rots later, or in a larger file, may only be found by LMDB's assertions, which end the process.
 *
 * Limit: the file may grow to 1 TiB, or to as much as could be mapped at open when the address
 * space of the process is limited (16 GiB at least). An eighth, 1.2 GB at most, is kept for commits
 * that delete; others get -ERR_NO_SPACE. */
#pragma once
#include "kv/kv_base.h"

#define KV_LMDB_NAME "base.mdb"
#define KV_LMDB_MAP_BYTES_MIN (16 * GIB) /* of address space, of each */

extern const struct kv_base_ops kv_lmdb_ops;
