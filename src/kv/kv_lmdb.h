/* A base on LMDB (http://www.lmdb.tech): one file a target, sorted, copy-on-write, each commit
 * synced. Does its own I/O: this and front/fuse/channel_*.c are the two named exemptions. */
#pragma once
#include "kv/kv_base.h"

extern const struct kv_base_ops kv_lmdb_ops;
