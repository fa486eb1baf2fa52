/* Whether the bytes that are read are those that were written. */
#include "store_internal.h"
#include "store/fsck_format.h"
#include "store/ost_internal.h"

void store_fill(uint32_t stamp, uint8_t *data, size_t size) {
    uint64_t first = (stamp + 1) * UINT64_C(0x9e3779b97f4a7c15);

    for (size_t at = 0; at + sizeof first <= size; at += sizeof first) {
        uint64_t word = first + at;

        memcpy(data + at, &word, sizeof word);
    }
    for (size_t at = size & ~(sizeof first - 1); at < size; at++) {
        data[at] = (uint8_t)(stamp + at);
    }
}

struct store_file store_file_at(const struct store *store, uint32_t file, size_t point) {
    struct store_file of = {.generation = 1, .truncate_size = UINT64_MAX};

    for (size_t i = 0; i < store->wish_count; i++) {
        const struct store_wish *wish = &store->wishes[i];

        if (wish->file != file || wish->issued >= point) {
            continue;
        }
        if (wish->kind == STORE_CUT) {
            of.truncate_seq++;
            of.truncate_size = wish->keep;
        } else if (wish->kind == STORE_DELETE) {
            of = (struct store_file){of.generation + 1, 0, UINT64_MAX};
        }
    }
    return of;
}

static void fold_order(const struct store_wish *wish, store_bytes *bytes) {
    for (uint32_t chunk = 0; chunk < STORE_CHUNKS; chunk++) {
        uint64_t start = (uint64_t)chunk * STORE_CHUNK_BYTES;
        uint64_t keep = wish->kind == STORE_DELETE || wish->keep <= start ? 0 : wish->keep - start;

        keep = MIN(keep, (uint64_t)STORE_USED_BYTES);
        memset((*bytes)[wish->file][chunk] + keep, 0, STORE_USED_BYTES - keep);
    }
}

/* Truncations and removals are the metadata target's, which has them on its disk when it orders
 * them; so they are seen as soon as they are ordered. */
static bool is_seen(const struct store_wish *wish, size_t point, uint64_t position,
                    bool in_flight) {
    return store_is_order(wish->kind) ||
           (!wish->refused &&
            (wish->answered < point ? wish->position <= position && wish->lost >= point
                                    : in_flight));
}

void store_fold(const struct store *store, size_t point, uint64_t position, bool in_flight,
                struct store_folded *ret_folded) {
    store_bytes *bytes = &ret_folded->bytes;
    uint64_t of = UINT64_C(0x243f6a8885a308d3);

    for (size_t i = 0; i < store->wish_count && store->wishes[i].issued < point; i++) {
        if (is_seen(&store->wishes[i], point, position, in_flight)) {
            of = (of ^ (i + 1)) * UINT64_C(0x9e3779b97f4a7c15);
            of ^= of >> 29;
        }
    }
    if (ret_folded->of == of) {
        return;
    }
    ret_folded->of = of;
    memset(*bytes, 0, sizeof *bytes);
    for (size_t i = 0; i < store->wish_count && store->wishes[i].issued < point; i++) {
        const struct store_wish *wish = &store->wishes[i];

        if (!is_seen(wish, point, position, in_flight)) {
            continue;
        }
        if (store_is_order(wish->kind)) {
            fold_order(wish, bytes);
        } else if (wish->kind == STORE_HOLE || wish->kind == STORE_ZERO) {
            memset((*bytes)[wish->file][wish->chunk] + wish->offset, 0, wish->size);
        } else if (wish->kind == STORE_WRITE) {
            store_fill(wish->stamp, (*bytes)[wish->file][wish->chunk] + wish->offset, wish->size);
        }
    }
}

void store_read_fill(struct store *store, struct store_call *call, const struct store_wish *wish,
                     size_t point) {
    struct store_file file = store_file_at(store, wish->file, point);

    call->call.request.chunk_read =
        (struct chunk_read_request){.capability = {.ino = {1000 + wish->file},
                                                   .generation = file.generation,
                                                   .rights = RIGHT_READ | RIGHT_WRITE,
                                                   .max_offset = FILE_BYTES_MAX,
                                                   .truncate_seq = file.truncate_seq,
                                                   .truncate_size = file.truncate_size,
                                                   .session = STORE_SESSION,
                                                   .session_incarnation = STORE_INCARNATION},
                                    .chunk = wish->chunk,
                                    .chunk_bytes = STORE_CHUNK_BYTES,
                                    .offset = wish->offset,
                                    .size = wish->size};
    call->call.bulk_in = (struct buffer){call->memory, 0, wish->size};
    call->call.checksums = call->checksums;
    call->call.checksum_count = ARRAY_SIZE(call->checksums);
}

/* What the data file may still grow by: this target's share of what the machine has, in steps. */
static uint64_t growth_blocks(const struct store *store) {
    const struct ost *ost = store->ost;
    struct machine *machine = store->owner.machine;
    uint64_t step = MIN(ost->options.grow_bytes, 16 * MIB) / BLOCK_BYTES;
    uint64_t wanted = ost->block_size_max - ost->blocks.block_count;
    uint64_t room = machine_free_bytes(machine) / BLOCK_BYTES / step * step;

    return ost->grow_failed ? 0 : MIN(wanted, room);
}

void store_check_space(struct store *store) {
    const struct ost *ost = store->ost;
    const struct blocks *blocks = &ost->blocks;
    uint64_t wanted = ost->block_size_max - blocks->block_count;
    uint64_t now = blocks->free_count + blocks->quarantine_blocks;
    uint64_t growth = growth_blocks(store);
    /* What a write holds that fills promised holes is neither free nor spent. */
    uint64_t kept = MIN(blocks->promised_count, now + wanted);
    uint64_t taken = ost->reserve_blocks + kept;
    uint64_t may = now + growth > taken ? now + growth - taken : 0;
    struct call *call = store_call_begin(store, &store->aside, OP_STATFS);
    int r = store_run(store, &store->aside);
    const struct statfs_reply *reply = &call->reply.statfs;

    MUST(r == 0 || kv_failure(store->owner.kv) < 0, "a look at the space answers %s", err_name(r));
    MUST(r < 0 || (reply->bytes_total == ost->block_size_max * BLOCK_BYTES &&
                   reply->bytes_free == (now + wanted - kept) * BLOCK_BYTES &&
                   reply->bytes_available == may * BLOCK_BYTES),
         "%llu bytes are said to be free, %llu to be available; it is %llu blocks, and %llu",
         (unsigned long long)reply->bytes_free, (unsigned long long)reply->bytes_available,
         (unsigned long long)(now + wanted), (unsigned long long)may);
}

/* Nobody is attached without the list of the ended sessions: here none has ended. */
static void list_tell(struct store *store) {
    struct call *call = store_call_begin(store, &store->aside, OP_SESSIONS_ENDED);

    call->request.sessions_ended = (struct sessions_ended_request){.from = 0, .number = 1};
    int r = store_run(store, &store->aside);
    MUST(r == 0, "the list of the ended sessions answers %s", err_name(r));
}

static void attach(struct store *store) {
    struct call *call = store_call_begin(store, &store->aside, OP_SESSION_ATTACH);

    call->request.session_attach = (struct session_attach_request){
        .session = STORE_SESSION, .incarnation = STORE_INCARNATION, .node = 1, .known_term = 0};
    int r = store_run(store, &store->aside);
    MUST(r == 0, "an attachment answers %s", err_name(r));
}

static size_t difference(const uint8_t *left, const uint8_t *right, size_t size) {
    size_t at = 0;

    while (at < size && left[at] == right[at]) {
        at++;
    }
    return at;
}

static void check_chunk(struct store *store, uint32_t file, uint32_t chunk, size_t point,
                        bool in_flight) {
    const struct store_wish range = {.file = file, .chunk = chunk, .size = STORE_USED_BYTES};

    (void)store_call_begin(store, &store->aside, OP_CHUNK_READ);
    store_read_fill(store, &store->aside, &range, point);
    int r = store_run(store, &store->aside);
    MUST(r == 0, "a read of chunk %u.%u answers %s", file, chunk, err_name(r));
    const uint8_t *found = store->aside.memory;
    const uint8_t *expected = store->expected.bytes[file][chunk];
    const uint8_t *other = in_flight ? store->other.bytes[file][chunk] : expected;
    MUST(memcmp(found, expected, STORE_USED_BYTES) == 0 ||
             memcmp(found, other, STORE_USED_BYTES) == 0,
         "chunk %u.%u has other bytes, from %zu (%zu) on", file, chunk,
         difference(found, expected, STORE_USED_BYTES), difference(found, other, STORE_USED_BYTES));
}

/* What the heads among rows that were listed promise; the key of the last one is kept. */
static uint64_t promised_in(struct bytes rows, struct kv_key *last) {
    uint64_t promised = 0;

    for (size_t at = 0; at < rows.size;) {
        struct store_head head = {0};
        struct store_fsck_row row;

        memcpy(&row, rows.data + at, sizeof row);
        memcpy(last->bytes, row.key, sizeof row.key);
        if (kv_key_split(last).index % (1 << STORE_INDEX_BITS) == 0) {
            memcpy(&head, rows.data + at + sizeof row, MIN((size_t)row.value_bytes, sizeof head));
        }
        promised += head.promised;
        at += row.row_bytes;
    }
    return promised;
}

/* What heads promise is what the target keeps. */
static void check_promised(struct store *store) {
    struct kv_key last = {{0}};
    uint64_t promised = 0;
    size_t cursor_bytes = 0;
    struct call *call;

    do {
        call = store_call_begin(store, &store->aside, OP_FSCK_LIST);
        call->request.fsck_list = (struct fsck_list_request){.what = FSCK_CHUNKS,
                                                             .cursor = {last.bytes, cursor_bytes},
                                                             .bytes_max = STORE_USED_BYTES};
        call->bulk_in = (struct buffer){store->aside.memory, 0, STORE_USED_BYTES};
        int r = store_run(store, &store->aside);
        MUST(r == 0, "a list of rows answers %s", err_name(r));
        promised += promised_in((struct bytes){store->aside.memory, call->bulk_in.size}, &last);
        cursor_bytes = call->bulk_in.size > 0 ? sizeof last.bytes : cursor_bytes;
    } while (!call->reply.fsck_list.end);
    MUST(promised == store->ost->blocks.promised_count,
         "chunks promise %llu blocks, and %llu are kept", (unsigned long long)promised,
         (unsigned long long)store->ost->blocks.promised_count);
}

static bool has_in_flight(const struct store *store, size_t point) {
    for (size_t i = store->wish_count; i > 0; i--) {
        const struct store_wish *wish = &store->wishes[i - 1];

        if (wish->issued < point && wish->answered >= point && !store_is_order(wish->kind) &&
            !wish->refused) {
            return true;
        }
    }
    return false;
}

void store_check(struct owner *owner, size_t point, bool power) {
    struct store *store = store_of(owner);
    struct bounds bounds = claims_bounds(&store->claims, point, 0);
    /* Behind that, records are of a recovery, which attaches sessions and reads. */
    uint64_t position = MIN(kv_position(owner->kv), owner->found);
    uint64_t least = power ? bounds.least_by_power : bounds.least_by_kill;

    machine_say(owner->machine, "       store opened: record %llu; owed %llu",
                (unsigned long long)position, (unsigned long long)least);
    MUST(position >= least, "record %llu was acknowledged, the newest is %llu",
         (unsigned long long)least, (unsigned long long)position);
    MUST(kv_synced_position(owner->kv) >= bounds.least_by_power, "synced is %llu, was %llu",
         (unsigned long long)kv_synced_position(owner->kv),
         (unsigned long long)bounds.least_by_power);
    MUST(power || bounds.powered || owner->may_lose || kv_losses(owner->kv) == owner->losses,
         "a loss is counted where nothing was lost");
    owner->found = position;
    list_tell(store);
    attach(store);
    store_fold(store, point, position, false, &store->expected);
    bool in_flight = has_in_flight(store, point);
    if (in_flight) {
        store_fold(store, point, position, true, &store->other);
    }
    for (uint32_t file = 0; file < STORE_FILES; file++) {
        for (uint32_t chunk = 0; chunk < STORE_CHUNKS; chunk++) {
            check_chunk(store, file, chunk, point, in_flight);
        }
    }
    check_promised(store);
}
