/* Checksums of a disk log and of a ring whose bytes were edited, put right again: each as far as
 * lengths make sense. */
#pragma once
#include "kv/log_format.h"

/* Records one behind the other from here on, the first behind one with this crc; answers the last
 * one's. */
uint32_t log_edits_records(uint8_t *at, size_t size, uint32_t crc);
void log_edits_superblocks(uint8_t *log);
/* All from the region's start on; size: of the file, or of as much of it as is there. Answers the
 * crc of the last record. */
uint32_t log_edits_batches(uint8_t *log, size_t size, bool with_records);
void log_edits_ring_header(struct ring_header *header);
