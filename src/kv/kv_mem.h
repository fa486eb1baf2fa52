/* A base in memory. The store outlives the kv that has it open, as a disk would; a power cut puts
 * it back to its last commit by itself, since a commit takes effect as a whole when its job runs. */
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
/* For tests and fsck's: removes or damages one row as a failing disk would. -ERR_NOT_FOUND. */
MUST_CHECK int kv_mem_store_drop(struct kv_mem_store *store, const struct kv_key *key);

extern const struct kv_base_ops kv_mem_ops;
