/* Inside of the store, shared by store*.c only. */
#pragma once
#include "claim.h"
#include "fail.h"
#include "rpc/call.h"
#include "rpc/worker.h"
#include "store.h"
#include "store/ost.h"

enum {
    STORE_FILES = 2,
    STORE_CHUNKS = 2,
    STORE_CHUNK_BYTES = 128 * 1024,
    STORE_USED_BYTES = 80 * 1024, /* of each chunk */
    STORE_SESSION = 7,
    STORE_INCARNATION = 3,
    STORE_LIVES_MAX = 32,
};

/* Those of a range, which come back from an outcome, and orders of a file. */
enum store_kind { STORE_WRITE, STORE_HOLE, STORE_ZERO, STORE_PROMISE, STORE_CUT, STORE_DELETE };
static inline bool store_is_order(enum store_kind kind) {
    return kind == STORE_CUT || kind == STORE_DELETE;
}

/* One thing that the caller wanted. */
struct store_wish {
    enum store_kind kind;
    uint32_t file, chunk, offset, size, stamp;
    uint64_t keep; /* of a cut: bytes of the file */
    uint64_t position;
    size_t issued, answered, lost; /* events; SIZE_MAX: not */
    bool refused;                  /* it has no effect */
};

/* How the metadata target knows a file at an event. */
struct store_file {
    uint32_t generation, truncate_seq;
    uint64_t truncate_size;
};

/* The sizes of its ring, from an event on. */
struct store_sizes {
    size_t event;
    size_t ring_bytes, data_bytes;
};

typedef uint8_t store_bytes[STORE_FILES][STORE_CHUNKS][STORE_USED_BYTES];
struct store_folded {
    uint64_t of; /* which wishes, as a number; 0: of none yet */
    store_bytes bytes;
};

/* A call with its memory. */
struct store_call {
    struct call call;
    struct store *store;
    uint8_t *memory;
    uint32_t checksums[STORE_USED_BYTES / BLOCK_BYTES + 2];
    bool in_flight, answered;
};

struct store {
    struct owner owner;
    struct ost_options options;
    struct store_sizes sizes[STORE_LIVES_MAX];
    size_t sizes_count;
    size_t ring_bytes_min;
    char directory[8], ring_name[16], log_path[16], data_path[16];
    struct worker worker;
    struct ost *ost;
    struct store_wish *wishes;
    size_t wish_count, wish_capacity;
    struct claims claims;
    struct store_call client; /* the caller's one call */
    struct store_call aside;  /* attachments, and reads that compare */
    size_t at_work;           /* index of the wish that the caller's call is for */
    bool has_wish, running;   /* an actor's step */
    uint64_t next_sequence;
    uint32_t next_stamp;
    uint64_t told_synced;
    uint32_t content_stage;
    struct store_folded expected, other;
    struct {
        uint32_t write_of_16, small_of_4, sync_of_16, checkpoint_of_64;
    } temper;
};

static inline struct store *store_of(struct owner *owner) {
    return CONTAINER_OF(owner, struct store, owner);
}

/* store.c */
void store_count(struct store *store, enum total total);
void store_post(struct store *store, struct store_call *call);
int store_run(struct store *store, struct store_call *call);
struct call *store_call_begin(struct store *store, struct store_call *call, uint16_t opcode);
/* store_work.c */
void store_act(struct owner *owner);
bool store_content(struct owner *owner);
void store_left(struct owner *owner);
void store_answered(struct store *store, struct store_call *call);
/* What was in flight when the process died is sent again. */
void store_resend(struct store *store);
/* store_check.c */
void store_check(struct owner *owner, size_t point, bool power);
/* What is free, and what of it may be written, is what the target says. */
void store_check_space(struct store *store);
void store_fill(uint32_t stamp, uint8_t *data, size_t size);
/* What the caller may find; in_flight: what was not answered at `point` has happened. */
void store_fold(const struct store *store, size_t point, uint64_t position, bool in_flight,
                struct store_folded *ret_folded);
struct store_file store_file_at(const struct store *store, uint32_t file, size_t point);
/* Fills the request of a read or write. */
void store_read_fill(struct store *store, struct store_call *call, const struct store_wish *wish,
                     size_t point);
