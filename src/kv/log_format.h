/* Bytes of the log: records (the same in ring and disk log), the ring's header, the disk log's
 * superblocks and batches. Little-endian; docs/internals/log.md draws them. */
#pragma once
#include "base/endian.h"
#include "base/types.h"

enum {
    LOG_FORMAT = 2,                /* 1: operation_count may be wrong, see counted_from */
    LOG_RING_FORMAT = 1,           /* one of an earlier version has no ring_newest: zeros there */
    LOG_RECORD_MAGIC = 0x43455253, /* "SREC" */
    LOG_FILLER_MAGIC = 0x4c494653, /* "SFIL": the next record is at the ring's beginning */
    LOG_BATCH_MAGIC = 0x54414253,  /* "SBAT" */
    LOG_ALIGN = 8,
    LOG_OWNER_BYTES = 16,
    LOG_ID_BYTES = 16, /* drawn when a log is made: its ring bears the same */
    LOG_STARTS = 16,   /* that a superblock remembers */
    DISK_LOG_REGION_START = 2 * BLOCK_BYTES,
};

#define LOG_SUPERBLOCK_MAGIC UINT64_C(0x4b4c424c414f4853) /* "SHOALBLK" */
#define LOG_RING_MAGIC UINT64_C(0x474e524c414f4853)       /* "SHOALRNG" */

/* crc covers header (with crc 0) and body and is seeded with the previous record's crc. */
struct log_record {
    uint32_t magic;
    uint32_t length; /* of header and body, before padding to LOG_ALIGN */
    uint64_t position;
    uint64_t term;
    uint64_t durable_upto;
    uint64_t data_end; /* bytes ever allocated in the data area when the record was closed */
    uint32_t crc;
    uint32_t operation_count;
};
_Static_assert(sizeof(struct log_record) == 48, "the record header is 48 bytes");

enum log_operation_kind {
    LOG_PUT = 1,    /* key, value */
    LOG_DELETE = 2, /* key */
    LOG_PATCH = 3,  /* key, u16 offset, bytes */
    LOG_NOTE = 4,
    LOG_OUTCOME = 5,      /* struct log_outcome, reply */
    LOG_OUTCOME_DROP = 6, /* u64 session */
};

struct log_operation {
    uint8_t kind;
    uint8_t reserved[3];
    uint32_t size; /* of what follows */
};
_Static_assert(sizeof(struct log_operation) == 8, "operations have an 8-byte header");

struct log_outcome {
    uint64_t session;
    uint64_t sequence;
    uint64_t floor;
    int32_t result;
    uint16_t slot;
    uint16_t reserved;
};
_Static_assert(sizeof(struct log_outcome) == 32, "no padding");

/* No running total, of positions or of bytes, comes this far: at 100 GB/s 2^63 bytes take three
 * years. What is added to one then never runs over. */
#define LOG_TOTAL_MAX (UINT64_MAX / 4 * 3)

/* Where the records begin that the disk log does not have. The newer valid one of two counts. */
struct ring_start {
    uint64_t sequence;
    uint64_t offset; /* running total; the place is offset % record_bytes */
    uint64_t position;
    uint64_t data_start; /* running total: what lies before it is free */
    uint32_t previous_crc;
    uint32_t crc;
};
_Static_assert(sizeof(struct ring_start) == 40, "no padding");

/* What the newest sealed record was, stored after each seal: recovery finds that much, or the ring
 * is damaged. The one of the highest position among two that are whole counts. */
struct ring_newest {
    uint64_t position;
    uint64_t end;   /* running offset behind it */
    uint32_t check; /* CRC-32C of both, seeded with LOG_RECORD_MAGIC */
    uint32_t reserved;
};
_Static_assert(sizeof(struct ring_newest) == 24, "no padding");

struct ring_header {
    uint64_t magic;
    uint32_t format;
    uint32_t crc; /* of the fields up to data_bytes, this one 0 */
    uint8_t owner_id[LOG_OWNER_BYTES];
    uint8_t boot_id[16];
    uint8_t log_id[LOG_ID_BYTES];
    uint64_t record_bytes;
    uint64_t data_bytes;
    struct ring_start starts[2];
    struct ring_newest newest[2];
};
_Static_assert(sizeof(struct ring_header) <= BLOCK_BYTES, "the header has a page");

/* A term, and the newest record that there was when it began: of the term before it the records up
 * to this one were left. */
struct log_start {
    uint64_t term;
    uint64_t position;
};

struct log_superblock {
    uint64_t magic;
    uint32_t format;
    uint32_t crc; /* of the whole, this one 0 */
    uint8_t owner_id[LOG_OWNER_BYTES];
    uint64_t sequence;
    uint64_t region_bytes;
    uint64_t tail_offset; /* running total: the oldest batch still needed */
    uint64_t tail_position;
    uint64_t term;
    uint64_t written_bytes; /* of the region, once written through */
    uint32_t tail_previous_crc;
    uint16_t losses;   /* starts that found no ring although there had been no stop; counts round */
    uint8_t stopped;   /* the last term ended with a stop, or its ring gave way: the log has all */
    uint8_t ring_log2; /* no ring of this log was longer than 1 << this; 0: not noted */
    struct log_start starts[LOG_STARTS]; /* that of a term is at term % LOG_STARTS */
    uint8_t log_id[LOG_ID_BYTES];
    uint64_t counted_from; /* position from which on each record's operation_count is exact */
};
enum { LOG_SUPERBLOCK_BYTES_OF_1 = 88 + 16 * LOG_STARTS + LOG_ID_BYTES }; /* of format 1 */
_Static_assert(sizeof(struct log_superblock) == LOG_SUPERBLOCK_BYTES_OF_1 + 8, "no padding");

/* offset is the batch's own place as a running total, so that one of an earlier lap is known. */
struct log_batch {
    uint32_t magic;
    uint32_t crc; /* of this header (crc 0) and the payload */
    uint64_t owner;
    uint64_t offset;
    uint64_t first_position;
    uint64_t last_position;
    uint64_t durable_upto; /* synced position when it was written */
    uint32_t payload_bytes;
    uint32_t previous_crc; /* of the record before the first */
    uint64_t reserved;
};
_Static_assert(sizeof(struct log_batch) == 64, "no padding");
