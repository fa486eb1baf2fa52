/* A storage target's life: sizes, opening, turns, endings. */
#include "kv/kv_internal.h"
#include "store_internal.h"
#include "store/ost_internal.h"
#include "store/store_format.h"
#include <stdlib.h>

enum {
    TURNS_MAX = 20000,
    RING_BYTES_MIN = 448 * 1024,
    RING_BYTES_SMALL = 96 * 1024, /* where a transaction of a cut frees little */
    STEP_SEGMENTS_SMALL = 4,
    DATA_BYTES_MIN = 256 * 1024,
};

void store_count(struct store *store, enum total total) {
    if (!store->owner.recovering) {
        store->owner.counts[total]++;
    }
}

static void log_line(void *context, const char *line) {
    struct store *store = context;

    machine_say(store->owner.machine, "       store says: %s", line);
}

static size_t data_draw(struct prng *prng) {
    return DATA_BYTES_MIN + BLOCK_BYTES * prng_below(prng, 32);
}

static void options_draw(struct store *store, bool smallest, bool fills) {
    struct prng *prng = store->owner.prng;
    struct ost_options *options = &store->options;
    size_t more = smallest ? 0 : BLOCK_BYTES * prng_below(prng, 64);
    bool small = fills || prng_chance(prng, 3, 4);

    options->step_segments = small ? STEP_SEGMENTS_SMALL : 0;
    store->ring_bytes_min = small ? RING_BYTES_SMALL : RING_BYTES_MIN;
    options->kv.ring_bytes =
        store->ring_bytes_min + (small ? BLOCK_BYTES * prng_below(prng, 4) : more);
    options->kv.ring_data_bytes = smallest ? DATA_BYTES_MIN : data_draw(prng);
    options->kv.disk_log_bytes = 8 * (uint64_t)options->kv.ring_bytes;
    if (!fills && prng_chance(prng, 1, 2)) {
        options->kv.disk_log_bytes += 8 * BLOCK_BYTES * prng_between(prng, 1, 8); /* it may grow */
    }
    options->kv.changes_bytes_max = fills || prng_chance(prng, 1, 2) ? MIB : MIB / 2;
    options->kv.outcomes_max = 64;
    options->data_bytes_max = (prng_chance(prng, 1, 2) ? 1 : 2) * MIB / 2;
    options->grow_bytes = 512 * KIB;
    options->reserve_bytes = 128 * KIB;
    options->sync_bytes = prng_chance(prng, 1, 2) ? MIB : 64 * MIB;
    if (prng_chance(prng, 1, 3)) {
        /* Its files fill it: what is overwritten at once is all that is free, or a little less. */
        options->data_bytes_max = 384 * KIB;
        options->reserve_bytes = 64 * KIB;
    }
    options->cache_bytes = prng_chance(prng, 1, 2) ? 16 * BLOCK_BYTES : 0;
    store->temper.write_of_16 = (uint32_t)prng_between(prng, 8, 14);
    store->temper.small_of_4 = (uint32_t)prng_between(prng, 1, 4);
    store->temper.sync_of_16 = (uint32_t)prng_below(prng, 5);
    store->temper.checkpoint_of_64 = (uint32_t)prng_below(prng, 6);
}

/* One that has nothing left to do is as good as new. */
static void worker_fresh(struct store *store) {
    struct worker *worker = &store->worker;

    if (worker->chain_first || worker->in_step || !run_queue_is_all_empty(&worker->run_queue)) {
        worker_init(worker);
    }
    worker_bind(worker);
}

/* What is posted from inside a step has its turn behind it: also of one that the machine runs. */
static void actors_run(struct store *store) {
    if (store->running || store->worker.in_step) {
        return;
    }
    store->running = true;
    worker_bind(&store->worker);
    while (worker_run_one(&store->worker)) {
    }
    store->running = false;
}

static int open_store(struct owner *owner, char problem[256]) {
    struct store *store = store_of(owner);

    worker_fresh(store);
    store->client.in_flight = false;
    store->aside.in_flight = false;
    owner->opening = true;
    int r = ost_open(&store->options, &store->ost, problem);
    owner->opening = false;
    owner->kv = r == 0 ? ost_kv(store->ost) : NULL;
    store->told_synced = 0;
    return r;
}

static void abandon(struct owner *owner) {
    struct store *store = store_of(owner);

    ost_abandon(store->ost);
    store->ost = NULL;
    owner->kv = NULL;
}

static void close_store(struct owner *owner) {
    struct store *store = store_of(owner);

    actors_run(store);
    MUST(actor_is_idle(ost_actor(store->ost)), "store: it has messages behind its stop");
    MUST(store->ost->free_io_count == store->options.io_max && !store->ost->growing &&
             !store->ost->label_writing,
         "store: a stop has ended while an I/O of its data is in flight");
    ost_close(store->ost);
    store->ost = NULL;
    owner->kv = NULL;
}

static void stop(struct owner *owner, void (*done)(void *context, int result), void *context) {
    ost_stop_start(store_of(owner)->ost, done, context);
    actors_run(store_of(owner));
}

static void claim_synced(struct store *store) {
    uint64_t synced = kv_synced_position(store->owner.kv);

    if (!store->owner.recovering && synced > store->told_synced) {
        store->told_synced = synced;
        claims_add(&store->claims, CLAIM_SYNCED, synced,
                   machine_told(store->owner.machine, CLAIM_SYNCED, synced));
    }
}

static void turn(struct owner *owner) {
    struct store *store = store_of(owner);

    worker_bind(&store->worker);
    ost_tick(store->ost);
    actors_run(store);
    if (kv_failure(owner->kv) == 0) {
        owner_kv_check(owner);
        claim_synced(store);
    }
}

static void replied(struct call *call) {
    struct store_call *mine = CONTAINER_OF(call, struct store_call, call);

    MUST(mine->in_flight && !mine->answered, "store: a call is answered twice");
    mine->answered = true;
    mine->in_flight = false;
    store_answered(mine->store, mine);
}

struct call *store_call_begin(struct store *store, struct store_call *call, uint16_t opcode) {
    call->call = (struct call){
        .message = {.kind = CALL_MESSAGE_KIND, .message_class = wire_class(opcode)},
        .header = {.opcode = opcode,
                   .message_class = wire_class(opcode),
                   .log = kv_log_id(ost_kv(store->ost)),
                   .session = {STORE_SESSION},
                   .incarnation = STORE_INCARNATION},
        .reply_to = replied,
    };
    return &call->call;
}

void store_post(struct store *store, struct store_call *call) {
    struct call_header *header = &call->call.header;

    call->answered = false;
    call->in_flight = true;
    if (wire_is_mutation(header->opcode) && header->sequence == 0) {
        header->sequence = store->next_sequence++;
        header->floor = header->sequence;
    }
    if (!store->running && !store->worker.in_step) {
        worker_bind(&store->worker);
    }
    actor_post(ost_actor(store->ost), &call->call.message);
    actors_run(store);
}

int store_run(struct store *store, struct store_call *call) {
    store_post(store, call);
    for (int i = 0; !call->answered; i++) {
        MUST(i < TURNS_MAX, "store: call %u is not answered", call->call.header.opcode);
        if (machine_pump(store->owner.machine, 4) == 0) {
            machine_advance(store->owner.machine, 10 * NS_PER_MS);
        }
        turn(&store->owner);
    }
    return call->call.result;
}

static void resume(struct owner *owner) {
    struct store *store = store_of(owner);
    uint64_t position = owner->found;
    size_t event = machine_told(owner->machine, CLAIM_RESUMED, position);

    for (size_t i = 0; i < store->wish_count; i++) {
        struct store_wish *wish = &store->wishes[i];

        if (wish->answered != SIZE_MAX && wish->position > position && wish->lost == SIZE_MAX) {
            wish->lost = event;
        }
    }
    claims_add(&store->claims, CLAIM_RESUMED, position, event);
    claim_synced(store);
    store_resend(store);
}

static void powered(struct owner *owner) {
    claims_add(&store_of(owner)->claims, CLAIM_POWER, 0,
               machine_told(owner->machine, CLAIM_POWER, 0));
}

static void sizes_keep(struct store *store) {
    MUST(store->sizes_count < STORE_LIVES_MAX, "too many lives");
    store->sizes[store->sizes_count++] =
        (struct store_sizes){machine_event_count(store->owner.machine),
                             store->options.kv.ring_bytes, store->options.kv.ring_data_bytes};
}

static void resize(struct owner *owner, struct prng *prng) {
    struct store *store = store_of(owner);
    size_t most = (size_t)(store->options.kv.disk_log_bytes / 8 / BLOCK_BYTES * BLOCK_BYTES);
    size_t blocks = (most - store->ring_bytes_min) / BLOCK_BYTES;

    store->options.kv.ring_bytes =
        store->ring_bytes_min + BLOCK_BYTES * prng_below(prng, blocks + 1);
    store->options.kv.ring_data_bytes = data_draw(prng);
}

static void settings(struct owner *owner) {
    resize(owner, owner->prng);
    sizes_keep(store_of(owner));
}

static bool ring_be(struct owner *owner, size_t ring_bytes, size_t data_bytes) {
    struct store *store = store_of(owner);
    struct kv_options *options = &store->options.kv;

    if (options->ring_bytes == ring_bytes && options->ring_data_bytes == data_bytes) {
        return false;
    }
    options->ring_bytes = ring_bytes;
    options->ring_data_bytes = data_bytes;
    if (!owner->recovering) {
        sizes_keep(store);
    }
    return true;
}

static void settings_of(struct owner *owner, size_t point) {
    struct store *store = store_of(owner);

    for (size_t i = 0; i < store->sizes_count && store->sizes[i].event <= point; i++) {
        store->options.kv.ring_bytes = store->sizes[i].ring_bytes;
        store->options.kv.ring_data_bytes = store->sizes[i].data_bytes;
    }
}

static void named(struct bytes note, uint64_t *ret_offset, uint64_t *ret_size) {
    struct store_note fields;

    memcpy(&fields, note.data, sizeof fields);
    *ret_offset = fields.ring_offset;
    *ret_size = (uint64_t)fields.block_count * BLOCK_BYTES;
}

static void free_store(struct owner *owner) {
    struct store *store = store_of(owner);

    ost_abandon(store->ost);
    worker_bind(NULL);
    claims_deinit(&store->claims);
    free(store->wishes);
    free(store->client.memory);
    free(store->aside.memory);
    free(store);
}

static const struct owner_ops store_ops = {
    .open = open_store,
    .abandon = abandon,
    .close = close_store,
    .stop = stop,
    .act = store_act,
    .turn = turn,
    .check = store_check,
    .resume = resume,
    .powered = powered,
    .content = store_content,
    .left = store_left,
    .settings = settings,
    .settings_of = settings_of,
    .resize = resize,
    .ring_be = ring_be,
    .named = named,
    .free = free_store,
};

static void options_fixed(struct store *store, unsigned index) {
    (void)snprintf(store->directory, sizeof store->directory, "s%u", index);
    (void)snprintf(store->ring_name, sizeof store->ring_name, "ring-s%u", index);
    (void)snprintf(store->log_path, sizeof store->log_path, "s%u/log", index);
    (void)snprintf(store->data_path, sizeof store->data_path, "s%u/data", index);
    store->options = (struct ost_options){
        .env = machine_env(store->owner.machine),
        .kv = {.env = machine_env(store->owner.machine),
               .directory = store->directory,
               .shared_name = store->ring_name,
               .base = &machine_base_ops,
               .warm_sets = 8,
               .base_store = machine_base(store->owner.machine, index),
               .sync_interval_ns = NS_PER_S},
        .data_path = store->data_path,
        .target = {5 + index},
        .requests_max = 8,
        .io_max = 40,
        .bounce_max = 3,
        .request_bytes_max = STORE_USED_BYTES,
        .sessions_max = 4,
        .freed_max = 1,
        .unsigned_allowed = true,
        .log = log_line,
        .log_context = store,
    };
    memset(store->options.kv.owner_id, 'A' + (int)index, sizeof store->options.kv.owner_id);
}

static void call_memory(struct store *store, struct store_call *call) {
    call->store = store;
    call->memory = aligned_alloc(BLOCK_BYTES, STORE_USED_BYTES);
    if (!call->memory) {
        abort();
    }
}

struct owner *store_new(struct machine *machine, struct prng *prng, const struct store_plan *plan) {
    struct store *store = calloc(1, sizeof *store);

    if (!store) {
        abort();
    }
    store->owner = (struct owner){.ops = &store_ops,
                                  .name = "store",
                                  .machine = machine,
                                  .prng = prng,
                                  .ring_name = store->ring_name,
                                  .log_path = store->log_path,
                                  .base = plan->index};
    options_fixed(store, plan->index);
    options_draw(store, plan->smallest, plan->fills);
    call_memory(store, &store->client);
    call_memory(store, &store->aside);
    sizes_keep(store);
    worker_init(&store->worker);
    store->next_sequence = 1;
    store->next_stamp = 1;
    return &store->owner;
}
