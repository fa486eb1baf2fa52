/* The contract is in log_edits.h. */
#include "log_edits.h"
#include "base/crc32c.h"
#include "kv/record.h"

uint32_t log_edits_records(uint8_t *at, size_t size, uint32_t crc) {
    struct log_record *record = (void *)at;

    while (size >= sizeof *record && record->magic == LOG_RECORD_MAGIC &&
           record->length >= sizeof *record && record_padded(record->length) <= size) {
        crc = record->crc = record_crc(record, record + 1, crc);
        size -= record_padded(record->length);
        record = (void *)((uint8_t *)record + record_padded(record->length));
    }
    return crc;
}

void log_edits_superblocks(uint8_t *log) {
    for (uint64_t i = 0; i < 2; i++) {
        struct log_superblock *superblock = (void *)(log + i * BLOCK_BYTES);

        superblock->crc = 0;
        superblock->crc = crc32c(0, superblock,
                                 superblock->format == 1 ? (size_t)LOG_SUPERBLOCK_BYTES_OF_1
                                                         : sizeof *superblock);
    }
}

uint32_t log_edits_batches(uint8_t *log, size_t size, bool with_records) {
    uint32_t crc = 0;

    for (size_t at = DISK_LOG_REGION_START; at < size;) {
        struct log_batch *batch = (void *)(log + at);
        size_t left = size - at - sizeof *batch;

        if (batch->magic != LOG_BATCH_MAGIC || batch->payload_bytes > left) {
            break;
        }
        if (with_records) {
            batch->previous_crc = crc;
            crc = log_edits_records((uint8_t *)(batch + 1), batch->payload_bytes, crc);
        }
        batch->crc = 0;
        batch->crc = crc32c(crc32c(0, batch, sizeof *batch), batch + 1, batch->payload_bytes);
        at += (sizeof *batch + batch->payload_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    }
    return crc;
}

void log_edits_ring_header(struct ring_header *header) {
    header->crc = 0;
    header->crc = crc32c(0, header, offsetof(struct ring_header, starts));
    for (size_t i = 0; i < 2; i++) {
        struct ring_start *start = &header->starts[i];
        struct ring_newest *newest = &header->newest[i];

        start->crc = crc32c(0, start, offsetof(struct ring_start, crc));
        newest->check = crc32c(LOG_RECORD_MAGIC, newest, offsetof(struct ring_newest, check));
    }
}
