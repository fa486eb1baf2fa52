/* A base in memory. The store outlives the kv that has it open, as a disk would; a power cut puts
 * it back to its last commit by itself, since a commit takes effect as a whole when its job runs.
 *
 * Each commit makes a new version of the sorted rows beside the old one; a step reads the version
 * that it met first until read_end. So it costs time with all rows: for simulation and tests.
 *
 * Thread: as kv_base.h says; one base at a time has a store open.  Memory: malloc, in the job. */
#pragma once
#include "base/prng.h"
#include "kv/kv_base.h"

struct kv_mem_store;

/* With prng (borrowed; NULL for none) is_cold answers true with probability numerator/denominator,
 * so that operations meet PENDING. */
struct kv_mem_options {
    struct prng *prng;
    uint64_t cold_numerator;
    uint64_t cold_denominator;
};
MUST_CHECK int kv_mem_store_new(const struct kv_mem_options *options,
                                struct kv_mem_store **ret_store);
void kv_mem_store_free(struct kv_mem_store *store);
/* For tests: removes one row, or flips a bit of it, as a failing disk would. No commit is in
 * flight and no read is open. -ERR_NOT_FOUND. */
MUST_CHECK int kv_mem_store_drop(struct kv_mem_store *store, const struct kv_key *key);
MUST_CHECK int kv_mem_store_damage(struct kv_mem_store *store, const struct kv_key *key);

/* For tests: whether commits answer -ERR_NO_SPACE, as on a full file system. */
void kv_mem_store_full(struct kv_mem_store *store, bool full);

extern const struct kv_base_ops kv_mem_ops;
