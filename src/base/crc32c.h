/* CRC-32C (Castagnoli), the checksum of every block, record and message.
 *
 * Pure and safe from any thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The checksum of what seed stands for, followed by data; start with seed 0. So
 * crc32c(crc32c(0, a), b) is the checksum of a and b together. No bytes leave seed as it is. */
uint32_t crc32c(uint32_t seed, const void *data, size_t size_bytes);

/* The same from tables alone: what crc32c() is on a processor without a CRC instruction. */
uint32_t crc32c_portable(uint32_t seed, const void *data, size_t size_bytes);
