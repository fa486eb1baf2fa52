/* What the caller of a storage target wants, one thing after another. */
#include "base/crc32c.h"
#include "kv/kv_internal.h"
#include "store_internal.h"
#include <stdlib.h>

static uint32_t size_draw(struct store *store) {
    struct prng *prng = store->owner.prng;

    if (prng_chance(prng, store->temper.small_of_4, 4)) {
        return prng_chance(prng, 1, 2) ? (uint32_t)prng_between(prng, 1, 6000)
                                       : BLOCK_BYTES * (uint32_t)prng_between(prng, 1, 15);
    }
    return (uint32_t)MIN((uint64_t)STORE_USED_BYTES, 64 * KIB + BLOCK_BYTES * prng_below(prng, 5));
}

static struct store_wish *wish_add(struct store *store, const struct store_wish *wish) {
    if (store->wish_count == store->wish_capacity) {
        store->wish_capacity = store->wish_capacity > 0 ? 2 * store->wish_capacity : 128;
        store->wishes = realloc(store->wishes, store->wish_capacity * sizeof *store->wishes);
        if (!store->wishes) {
            abort();
        }
    }
    store->at_work = store->wish_count;
    store->has_wish = true;
    struct store_wish *added = &store->wishes[store->wish_count++];
    *added = *wish;
    added->issued = machine_told(store->owner.machine, 16 + (uint32_t)wish->kind, wish->stamp);
    added->answered = SIZE_MAX;
    added->lost = SIZE_MAX;
    machine_say(store->owner.machine,
                "       wish %zu: kind %d, chunk %u.%u, %u bytes at %u, keep %llu", store->at_work,
                (int)wish->kind, wish->file, wish->chunk, wish->size, wish->offset,
                (unsigned long long)wish->keep);
    return added;
}

static void write_send(struct store *store, const struct store_wish *wish, uint64_t sequence) {
    struct call *call = store_call_begin(store, &store->client, OP_CHUNK_WRITE);
    uint32_t skip = wish->offset % BLOCK_BYTES;
    uint32_t at = 0;

    store_read_fill(store, &store->client, wish, SIZE_MAX);
    call->request.chunk_write =
        (struct chunk_write_request){.capability = call->request.chunk_read.capability,
                                     .chunk = wish->chunk,
                                     .chunk_bytes = STORE_CHUNK_BYTES,
                                     .offset = wish->offset,
                                     .size = wish->size};
    store_fill(wish->stamp, store->client.memory, wish->size);
    call->bulk_in = (struct buffer){0};
    call->bulk_out[0] = (struct bytes){store->client.memory, wish->size};
    call->bulk_out_count = 1;
    call->checksum_count = (skip + wish->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
    for (uint32_t i = 0; i < call->checksum_count; i++) {
        uint32_t size = MIN(wish->size - at, BLOCK_BYTES - (i == 0 ? skip : 0));

        store->client.checksums[i] = crc32c(0, store->client.memory + at, size);
        at += size;
    }
    call->header.sequence = sequence;
    call->header.floor = sequence;
    store_post(store, &store->client);
}

static void space_send(struct store *store, const struct store_wish *wish, uint64_t sequence) {
    static const uint32_t what[] = {
        [STORE_HOLE] = SPACE_PUNCH, [STORE_ZERO] = SPACE_ZERO, [STORE_PROMISE] = SPACE_PROMISE};
    struct call *call = store_call_begin(store, &store->client, OP_CHUNK_SPACE);

    store_read_fill(store, &store->client, wish, SIZE_MAX);
    call->request.chunk_space =
        (struct chunk_space_request){.capability = call->request.chunk_read.capability,
                                     .chunk = wish->chunk,
                                     .chunk_bytes = STORE_CHUNK_BYTES,
                                     .offset = wish->offset,
                                     .size = wish->size,
                                     .what = what[wish->kind],
                                     .call = wish->stamp};
    call->bulk_in = (struct buffer){0};
    call->checksum_count = 0;
    call->header.sequence = sequence;
    call->header.floor = sequence;
    store_post(store, &store->client);
}

static void order_send(struct store *store, const struct store_wish *wish, uint64_t resume) {
    bool cut = wish->kind == STORE_CUT;
    struct call *call =
        store_call_begin(store, &store->client, cut ? OP_CHUNK_CUT : OP_CHUNK_DELETE);
    struct store_file file = store_file_at(store, wish->file, cut ? SIZE_MAX : wish->issued);

    if (cut) {
        call->request.chunk_cut = (struct chunk_cut_request){.ino = {1000 + wish->file},
                                                             .generation = file.generation,
                                                             .chunk_bytes = STORE_CHUNK_BYTES,
                                                             .truncate_seq = file.truncate_seq,
                                                             .truncate_size = file.truncate_size,
                                                             .resume_chunk = resume};
    } else {
        call->request.chunk_delete =
            (struct chunk_delete_request){{1000 + wish->file}, file.generation, resume};
    }
    store_post(store, &store->client);
}

static void send(struct store *store, uint64_t sequence) {
    const struct store_wish *wish = &store->wishes[store->at_work];

    if (store_is_order(wish->kind)) {
        order_send(store, wish, 0);
        return;
    }
    sequence = sequence > 0 ? sequence : store->next_sequence++;
    if (wish->kind == STORE_WRITE) {
        write_send(store, wish, sequence);
    } else {
        space_send(store, wish, sequence);
    }
}

void store_resend(struct store *store) {
    if (store->has_wish) {
        send(store, store->client.call.header.sequence);
    }
}

static void happened(struct store *store, uint64_t position) {
    struct store_wish *wish = &store->wishes[store->at_work];

    wish->position = position;
    wish->answered = machine_told(store->owner.machine, CLAIM_SEALED, position);
    wish->lost = SIZE_MAX;
    claims_add(&store->claims, CLAIM_SEALED, position, wish->answered);
    store->has_wish = false;
    machine_say(store->owner.machine, "       wish %zu is in record %llu", store->at_work,
                (unsigned long long)position);
    store_count(store, TOTAL_TRANSACTIONS);
    if (wish->kind == STORE_WRITE && wish->size < 64 * KIB) {
        store_count(store, TOTAL_NOTES);
    }
}

/* An answer that the disk is full, or that too much is under way, has changed nothing. */
static void refused(struct store *store, int result) {
    struct store_wish *wish = &store->wishes[store->at_work];

    MUST(result == -ERR_NO_SPACE || result == -ERR_BUSY || kv_failure(store->owner.kv) < 0 ||
             result == -ERR_CLOSED || result == -ERR_IO,
         "store: wish %zu answers %s", store->at_work, err_name(result));
    if (result == -ERR_NO_SPACE) {
        store_count(store, TOTAL_REQUEST_FULL);
    }
    if (!store_is_order(wish->kind) && result == -ERR_NO_SPACE) {
        wish->refused = true;
        store->has_wish = false;
    }
}

static void order_answered(struct store *store, const struct call *call) {
    const struct store_wish *wish = &store->wishes[store->at_work];
    bool cut = wish->kind == STORE_CUT;
    bool end = cut ? call->reply.chunk_cut.end : call->reply.chunk_delete.end;
    uint64_t resume =
        cut ? call->reply.chunk_cut.resume_chunk : call->reply.chunk_delete.resume_chunk;

    if (end) {
        happened(store, cut ? call->reply.chunk_cut.position : call->reply.chunk_delete.position);
    } else {
        order_send(store, wish, resume);
    }
}

void store_answered(struct store *store, struct store_call *mine) {
    const struct call *call = &mine->call;

    if (mine != &store->client || store->owner.recovering) {
        return;
    }
    if (call->header.opcode == OP_SYNC) {
        MUST(call->result == 0 || kv_failure(store->owner.kv) < 0 || call->result == -ERR_CLOSED ||
                 call->result == -ERR_NO_SPACE,
             "store: a sync answers %s", err_name(call->result));
    } else if (call->result < 0) {
        refused(store, call->result);
    } else if (call->header.opcode == OP_CHUNK_WRITE) {
        happened(store, call->reply.chunk_write.position);
    } else if (call->header.opcode == OP_CHUNK_SPACE) {
        happened(store, call->reply.chunk_space.position);
    } else {
        order_answered(store, call);
    }
}

static void range_start(struct store *store, enum store_kind kind, uint32_t size) {
    struct prng *prng = store->owner.prng;
    struct store_wish wish = {.kind = kind,
                              .file = (uint32_t)prng_below(prng, STORE_FILES),
                              .chunk = (uint32_t)prng_below(prng, STORE_CHUNKS),
                              .size = size,
                              .stamp = store->next_stamp++};

    wish.offset = (uint32_t)prng_below(prng, STORE_USED_BYTES - size + 1);
    if (prng_chance(prng, 1, 2)) {
        wish.offset &= ~(uint32_t)(BLOCK_BYTES - 1);
    }
    (void)wish_add(store, &wish);
    send(store, 0);
}

static void write_start(struct store *store, uint32_t size) {
    range_start(store, STORE_WRITE, size);
}

static void sync_start(struct store *store) {
    (void)store_call_begin(store, &store->client, OP_SYNC);
    store_post(store, &store->client);
}

static void order_again(struct store *store, size_t index) {
    store->at_work = index;
    store->has_wish = true;
    send(store, 0);
}

/* A removal that a loss of power took is given again: what it removes is nobody's. */
static bool removal_is_owed(struct store *store) {
    for (size_t i = store->wish_count; i > 0; i--) {
        const struct store_wish *wish = &store->wishes[i - 1];

        if (wish->kind == STORE_DELETE && wish->lost != SIZE_MAX) {
            order_again(store, i - 1);
            return true;
        }
    }
    return false;
}

/* An order is done when it is on disk; only then may the next truncation of its file go out. One
 * that a loss of power took is given again. True: something else comes first. */
static bool cut_is_owed(struct store *store, uint32_t file) {
    for (size_t i = store->wish_count; i > 0; i--) {
        const struct store_wish *wish = &store->wishes[i - 1];

        if (wish->file != file || !store_is_order(wish->kind)) {
            continue;
        }
        if (wish->kind == STORE_DELETE) {
            return false;
        }
        if (wish->lost != SIZE_MAX) {
            order_again(store, i - 1);
            return true;
        }
        if (wish->position > kv_synced_position(store->owner.kv)) {
            sync_start(store);
            return true;
        }
        return false;
    }
    return false;
}

/* The metadata target has the truncation, or the removal, on its disk before the order goes out. */
static bool order_start(struct store *store, enum store_kind kind) {
    struct prng *prng = store->owner.prng;
    struct store_wish wish = {.kind = kind,
                              .file = (uint32_t)prng_below(prng, STORE_FILES),
                              .keep = prng_below(prng, (uint64_t)STORE_CHUNK_BYTES * STORE_CHUNKS)};

    if (removal_is_owed(store) || (kind == STORE_CUT && cut_is_owed(store, wish.file))) {
        return false;
    }
    (void)wish_add(store, &wish);
    send(store, 0);
    return true;
}

void store_act(struct owner *owner) {
    struct store *store = store_of(owner);
    struct prng *prng = owner->prng;

    store->content_stage = 0;
    if (kv_failure(owner->kv) == 0 && !store->running) {
        store_check_space(store);
    }
    if (prng_chance(prng, store->temper.checkpoint_of_64, 64)) {
        kv_checkpoint_want(owner->kv);
    }
    if (store->client.in_flight || kv_failure(owner->kv) < 0) {
        return;
    }
    if (store->has_wish) {
        store_resend(store); /* it was refused for now */
    } else if (prng_chance(prng, owner->holds_up ? 8 : store->temper.sync_of_16, 16)) {
        sync_start(store);
    } else if (prng_chance(prng, store->temper.write_of_16, 16)) {
        range_start(store,
                    prng_chance(prng, 1, 4)
                        ? (enum store_kind)prng_between(prng, STORE_HOLE, STORE_PROMISE)
                        : STORE_WRITE,
                    size_draw(store));
    } else {
        (void)order_start(store, prng_chance(prng, 2, 3) ? STORE_CUT : STORE_DELETE);
    }
}

/* A small write, a large one, a cut: each is taken at last. */
bool store_content(struct owner *owner) {
    struct store *store = store_of(owner);

    if (store->client.in_flight) {
        return false;
    }
    if (store->has_wish) {
        store_resend(store);
        return false;
    }
    if (store->wish_count > 0 && store->wishes[store->wish_count - 1].refused) {
        store->content_stage = MIN(store->content_stage, 1U); /* once more from the first write */
    }
    switch (store->content_stage) {
    case 0:
        store->content_stage += order_start(store, STORE_DELETE);
        return false;
    case 1:
        store->content_stage++;
        write_start(store, BLOCK_BYTES);
        return false;
    case 2:
        store->content_stage++;
        write_start(store, STORE_USED_BYTES);
        return false;
    case 3:
        store->content_stage += order_start(store, STORE_CUT);
        return false;
    default:
        return true;
    }
}

void store_left(struct owner *owner) {
    struct store *store = store_of(owner);

    store->content_stage = 0;
    owner->found = UINT64_MAX;
    store_check(owner, machine_event_count(owner->machine) + 1, false);
}
