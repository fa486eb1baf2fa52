/* The model of a group as an owner.
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "owner.h"

enum { GROUP_NO_SESSION = 1000 };

/* first: the position that the log begins behind. */
struct group_plan {
    unsigned index; /* of the machine's owners */
    uint64_t first;
    bool smallest;
    bool fills;        /* its log shall be full before its memory is */
    size_t data_bytes; /* 0: drawn */
};
struct owner *group_new(struct machine *machine, struct prng *prng, const struct group_plan *plan);

/* For those who have a plan of their own. */
struct group_wish {
    enum kv_class class;
    uint32_t rows, value_bytes; /* each */
    uint32_t record_bytes;      /* instead of the two: of the record that holds nothing else */
    bool lazy;                  /* its floor stays */
    bool aborts;
    uint32_t data_bytes;
    uint32_t session; /* GROUP_NO_SESSION: none */
    bool drops;
};
/* One transaction as it is asked for; what kv_admit answers. */
int group_ask(struct owner *owner, const struct group_wish *plan);
void group_seal_told(struct owner *owner);
void group_sync_want(struct owner *owner);
/* Records are as long as they are meant to be, nothing is answered before its time. */
void group_be_plain(struct owner *owner);
