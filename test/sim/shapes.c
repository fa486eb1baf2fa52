/* The contract is in shapes.h. */
#include "shapes.h"
#include "fulls.h"

enum {
    FILES_MAX_GROWING = 500,
    SHAPE_EVERY = 8, /* of so many seeds one has a small storage target, one has some that get
                      * full, one unlinks most, one moves most, one makes most files grow: which */
    SHAPE_TIGHT = 2,
    SHAPE_FULL = 3,
    SHAPE_UNLINKS = 5,
    SHAPE_MOVES = 6,
    SHAPE_GROWS = 7,
};

/* A small storage target whose blocks go round quickly, and loses power often. */
static void tighten(struct shape *shape, struct world_options *options,
                    struct workload_options *load) {
    options->ost_count = 1;
    options->data_bytes_max = prng_between(shape->prng, 3, 5) * 512 * KIB;
    options->sync_interval_ns = prng_between(shape->prng, 50, 200) * NS_PER_MS;
    load->overwrites = true;
    load->files_max = 4;
    load->size_max = 200000;
    shape->plan->has[FAULT_POWER] = true;
    shape->plan->has[FAULT_BIT_ROT] = false; /* It would excuse what is to be found. */
    shape->plan->crashes_max = 100;
    excuses_no_space(shape->excuses);
}

/* Several storage targets that are full again and again, while others have room. */
static void fills(struct shape *shape, struct world_options *options,
                  struct workload_options *load) {
    options->ost_count = MAX(options->ost_count, 3U);
    options->data_bytes_max = prng_between(shape->prng, 5, 7) * 256 * KIB;
    options->chunk_bytes = 256 * KIB;
    load->think_ns = prng_between(shape->prng, 5, 20) * NS_PER_MS;
    shape->removes = true;
    excuses_no_space(shape->excuses);
}

/* Unlinks that a power failure of the metadata target undoes: few syncs cover them. */
static void unlinks(struct shape *shape, struct world_options *options,
                    struct workload_options *load) {
    options->sync_interval_ns = NS_PER_S;
    load->unlinks = true;
    load->depth = 2;
    shape->names_die = true;
    shape->plan->has[FAULT_POWER] = true;
    shape->plan->has[FAULT_BIT_ROT] = false;
    shape->plan->crashes_max = 100;
}

/* Small files that are synced, and move from the inode to chunks that power loss soon takes. */
static void grows(struct shape *shape, struct world_options *options,
                  struct workload_options *load) {
    options->sync_interval_ns = prng_between(shape->prng, 100, 1000) * NS_PER_MS;
    load->grows = true;
    shape->removes = true;
    load->files_max = FILES_MAX_GROWING;
    shape->plan->drop_per_million = 30000; /* So that some syncs arrive late. */
    shape->plan->reset_per_million = 1000;
    shape->plan->has[FAULT_POWER] = true;
    shape->plan->has[FAULT_BIT_ROT] = false;
    shape->plan->crashes_max = 100;
}

/* Directories that get other parents all the time, over several metadata targets. */
static void moves(struct shape *shape, struct world_options *options,
                  struct workload_options *load) {
    options->late_mdt = options->seed / SHAPE_EVERY % 2 == 1; /* and gets lost, of three */
    options->mdt_count = MAX(options->mdt_count, options->late_mdt ? 3U : 2U);
    options->move_refusals = (uint32_t)prng_between(shape->prng, 1, 4);
    load->moves = true;
    load->think_ns = prng_between(shape->prng, 100, 1000) * NS_PER_US;
    shape->moves = true;
    shape->names_die = true; /* also while they hold turns */
    shape->plan->has[FAULT_KILL] = true;
    shape->plan->crashes_max = 40;
}

/* Rings of storage targets that come round again and again before anybody dies. */
static void wraps(struct shape *shape, struct world_options *options,
                  struct workload_options *load) {
    options->wraps = true;
    options->ost_count = options->ost_count == WORLD_OSTS_MAX ? 2 : 1;
    options->late_ost = false;
    options->ring_bytes = 64 * KIB;
    options->log_rings = 8;
    load->wraps = true;
    load->files_max = 8;
    shape->plan->crashes_max = MIN(shape->plan->crashes_max, 3U);
}

/* A tenth of all seeds, of those that are about nothing else. */
static bool draws_wraps(uint64_t seed) {
    struct prng prng;

    prng_init(&prng, seed ^ UINT64_C(0x7772617073));
    return prng_chance(&prng, 4, 15);
}

/* Many limits are small at once, whatever else the seed is about; checkpoints come only as memory
 * and log fill. */
static void fill_all(struct shape *shape, struct world_options *options,
                     struct workload_options *load) {
    options->full = true;
    options->ring_bytes = 64 * KIB;
    options->log_rings = 8;
    options->sync_interval_ns = MAX(options->sync_interval_ns, 300 * NS_PER_MS);
    options->checkpoint_ns = 0;
    options->data_bytes_max = MIN(options->data_bytes_max, 3 * MIB);
    load->depth = MAX(load->depth, 8U);
    load->think_ns = MIN(load->think_ns, 300 * NS_PER_US);
    shape->plan->crashes_max = MIN(shape->plan->crashes_max, 20U);
    excuses_no_space(shape->excuses);
}

void shapes_draw(struct shape *shape, struct world_options *options,
                 struct workload_options *load) {
    if (options->seed % SHAPE_EVERY == SHAPE_TIGHT) {
        tighten(shape, options, load);
    } else if (options->seed % SHAPE_EVERY == SHAPE_FULL) {
        fills(shape, options, load);
    } else if (options->seed % SHAPE_EVERY == SHAPE_UNLINKS) {
        unlinks(shape, options, load);
    } else if (options->seed % SHAPE_EVERY == SHAPE_MOVES) {
        moves(shape, options, load);
    } else if (options->seed % SHAPE_EVERY == SHAPE_GROWS) {
        grows(shape, options, load);
    } else if (draws_wraps(options->seed)) {
        wraps(shape, options, load);
    }
    if (fulls_draw(options->seed)) {
        fill_all(shape, options, load);
    }
}
