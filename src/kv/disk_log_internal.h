/* Inside of the disk log, shared by disk_log*.c only. */
#pragma once
#include "kv/disk_log.h"

static inline uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* disk_log.c */
/* (start) With the stage as its buffer. A read of fewer bytes is -ERR_CORRUPT. */
MUST_CHECK int disk_log_run(struct disk_log *log, enum env_io_kind kind, uint64_t offset,
                            size_t size);
uint32_t disk_log_batch_crc(const struct log_batch *batch);
/* No ring of this log was longer; a log is eight rings long at the least. */
uint64_t disk_log_ring_bytes_max(const struct disk_log *log);
