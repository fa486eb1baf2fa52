/* CRC-32C (Castagnoli), the checksum of every block, record and message.
 *
 * Pure and safe from any thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The checksum of what seed stands for, followed by data; start with seed 0. So
 * crc32c(crc32c(0, a), b) is the checksum of a and b together. No bytes leave seed as it is. */
uint32_t crc32c(uint32_t seed, const void *data, size_t size_bytes);

/* The checksum of size_bytes at data, behind which lie next_bytes whose checksums are asked for
 * next: as many as size_bytes of them are fetched from memory meanwhile, if there are so many. */
uint32_t crc32c_ahead(const void *data, size_t size_bytes, size_t next_bytes);

/* crc32c() from tables alone: what it is on a processor without a CRC instruction. */
uint32_t crc32c_portable(uint32_t seed, const void *data, size_t size_bytes);
