/* The one way in which the engine stores into the shared region.
 *
 * A process may be killed between any two stores, so their order is part of the format. In a traced
 * build (-Dring_trace=true) each store is also told to ring_store_traced, which the torture
 * implements, and the engine reads the region through a mapping that it may not write to: a store
 * that goes round this function faults.
 *
 * Thread: the kv's owner. */
#pragma once
#include "base/types.h"
#include <string.h>

#ifdef RING_TRACE
void ring_store_traced(const void *at, const void *from, size_t size_bytes);
/* The same place in the mapping that may be written to. */
void *ring_data_traced(const void *at);
#endif

/* Copies to `at` in the region. Stores of one call come in any order; those of two calls in that of
 * the calls: a signal, or the death of the process, finds them so. */
static inline void ring_store(const void *at, const void *from, size_t size_bytes) {
#ifdef RING_TRACE
    ring_store_traced(at, from, size_bytes);
#else
    memcpy((void *)(uintptr_t)at, from, size_bytes);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

/* A place of the data area, which its owner fills. No order is kept there: records name its bytes
 * by their CRC. */
static inline void *ring_data_writable(const void *at) {
#ifdef RING_TRACE
    return ring_data_traced(at);
#else
    return (void *)(uintptr_t)at;
#endif
}
