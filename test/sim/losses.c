/* The contract is in losses.h. */
#include "losses.h"
#include "losses_aim.h"
#include "client/client_internal.h"
#include "layout/map_lost.h"
#include "life.h"
#include "rpc/call_origin.h"
#include "stragglers.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CHANCE = 2, PAUSE_MS = 300, PATIENCE_S = 5, NOTED = 64, LOOKS_MAX = 300, SHAKES_MS = 3000 };

struct losses {
    struct world *world;
    struct prng prng; /* of its own, so that it changes nothing of other seeds */
    bool is_due;      /* this seed has one, which has not begun yet */
    bool is_mdt;      /* it is a metadata target */
    uint32_t looks;   /* for the moment at which that is to go */
    uint64_t aimed;   /* number of its transaction that reaches some only; 0: none yet */
    bool has_cut;
    uint64_t shakes_ns;    /* when another one loses its power; 0: none does, or not yet */
    uint64_t noted[NOTED]; /* directories */
    uint32_t noted_count;
    uint64_t probed;
    uint64_t begins_at;  /* operations submitted by then */
    struct node *gone;   /* NULL: nobody */
    struct target_id id; /* of it */
    bool is_declared;
    bool is_asking;
    uint64_t life; /* of the process that asks */
    struct actor origin;
    struct call call;
    uint64_t explained;
    char failure[200];
};

struct losses *losses_new(struct world *world, uint64_t operations) {
    struct losses *losses = calloc(1, sizeof *losses);

    if (!losses) {
        abort();
    }
    losses->world = world;
    prng_init(&losses->prng, world->options.seed ^ UINT64_C(0x6c6f73736573));
    losses->is_due = world->options.late_ost && world->options.ost_count > 1 &&
                     prng_chance(&losses->prng, 1, CHANCE);
    losses->begins_at = prng_between(&losses->prng, operations / 4, operations * 3 / 4);
    if (!losses->is_due && world->options.late_mdt && world->options.mdt_count > 2) {
        losses->is_mdt = true;
        losses->is_due = true;
    }
    actor_init(&losses->origin, "losses", call_origin_step);
    return losses;
}

void losses_free(struct losses *losses) {
    free(losses);
}

/* A record that says so may be there already, and its answer lost. */
static void answered(struct call *call) {
    struct losses *losses = call->context;
    int r = call->result;

    losses->is_asking = false;
    if (r == 0 || r == -ERR_TARGET_LOST) {
        losses->is_declared = true;
        losses->shakes_ns = losses->is_mdt
                                ? sim_now_ns(losses->world->sim) +
                                      prng_between(&losses->prng, 1, SHAKES_MS) * NS_PER_MS
                                : 0;
    } else if (r != -ERR_IN_USE && r != -ERR_TIMED_OUT && r != -ERR_CLOSED && r != -ERR_IO &&
               r != -ERR_NO_SPACE) {
        snprintf(losses->failure, sizeof losses->failure, "target %" PRIu32 " can't be lost: %s",
                 losses->id.value, err_name(r));
    }
}

static void ask(struct losses *losses) {
    struct node *asker = losses->world->mdts;

    losses->call = (struct call){
        .header = {.opcode = OP_TARGET_LOSE, .log = LOG_MANAGER},
        .request.target_lose = {.target = losses->id.value, .knows_metadata = 1},
        .origin = &losses->origin,
        .done = answered,
        .context = losses,
        .deadline_ns = env_now_ns(asker->life->env) + PATIENCE_S * NS_PER_S,
    };
    losses->is_asking = true;
    node_enter(asker);
    call_start(node_rpc(asker), &losses->call);
    node_leave(asker);
}

/* What a process asked that is gone is answered to nobody; nor are steps that it owed run. */
static void losses_run(void *context) {
    struct losses *losses = context;
    struct node *asker = losses->world->mdts;

    if (losses->is_asking && (!node_is_up(asker) || asker->incarnation != losses->life)) {
        losses->is_asking = false;
    }
    if (node_is_up(asker) && asker->incarnation != losses->life) {
        losses->life = asker->incarnation;
        actor_init(&losses->origin, "losses", call_origin_step);
    }
    if (!losses->is_asking && !losses->is_declared && node_is_up(asker)) {
        ask(losses);
    }
    if (!losses->is_declared && !losses->failure[0]) {
        sim_schedule(losses->world->sim, NULL, prng_between(&losses->prng, 1, PAUSE_MS) * NS_PER_MS,
                     losses_run, losses);
    }
}

/* In the newest map of all metadata targets, and in its pool. */
static bool has_joined(const struct losses *losses, const struct node *node) {
    const struct cluster_map *map = &losses->world->map;

    return node->target_id != 0 && cluster_map_target(map, (struct target_id){node->target_id});
}

/* Looked for for a while only; then for one before a decision is told, for as long. */
static bool is_moment(struct losses *losses, struct node *mdt) {
    if (!node_is_up(mdt) || !node_group(mdt)) {
        return false;
    }
    if (++losses->looks > LOOKS_MAX) {
        return losses->looks > 2 * LOOKS_MAX || losses_decides(mdt);
    }
    if (losses->aimed == 0) {
        losses->aimed = losses_aim(mdt, prng_below(&losses->prng, UINT32_MAX));
        losses->has_cut = losses->aimed != 0;
    }
    return losses_is_hit(mdt, &losses->aimed);
}

bool losses_cut(struct losses *losses) {
    bool cut = losses->has_cut;

    losses->has_cut = false;
    return cut;
}

/* One of those that may have done what the lost one had decided. */
static struct node *shaken(struct losses *losses) {
    struct world *world = losses->world;
    struct node *node = &world->mdts[prng_below(&losses->prng, world->options.mdt_count - 1)];

    losses->shakes_ns = 0;
    return node_is_up(node) && stragglers_are_over(world->stragglers) ? node : NULL;
}

struct node *losses_begin(struct losses *losses, uint64_t submitted) {
    const struct world_options *options = &losses->world->options;
    struct node *node = losses->is_mdt ? &losses->world->mdts[options->mdt_count - 1]
                                       : &losses->world->osts[options->ost_count - 1];

    if (losses->shakes_ns != 0 && sim_now_ns(losses->world->sim) >= losses->shakes_ns) {
        return shaken(losses);
    }
    if (!losses->is_due || submitted < losses->begins_at || !has_joined(losses, node) ||
        (losses->is_mdt && !is_moment(losses, node))) {
        return NULL;
    }
    losses->is_due = false;
    losses->gone = node;
    losses->id.value = node->target_id;
    sim_schedule(losses->world->sim, NULL, prng_between(&losses->prng, 1, 2000) * NS_PER_MS,
                 losses_run, losses);
    return node;
}

bool losses_has(const struct losses *losses, const struct node *node) {
    return losses && losses->gone == node;
}

/* Declared is not enough: the others look by the newest map that a metadata target uses. */
bool losses_are_over(const struct losses *losses) {
    return !losses->gone ||
           (losses->is_declared && cluster_map_is_lost(&losses->world->map, losses->id));
}

static bool chunk_is_lost(const struct losses *losses, const struct layout *layout,
                          uint64_t chunk) {
    const struct cluster_map *map = &losses->world->map;
    struct pool_version pool;
    const struct map_chain *chain = NULL;

    if (layout_is_valid(layout) && cluster_map_pool(map, layout->pool_version, &pool)) {
        chain = cluster_map_chain(map, layout_chain(layout, &pool, chunk));
    }
    return chain && chain->members[0].value == losses->id.value;
}

/* [offset, end) has something of a chunk that is lost. */
static bool is_lost(const struct losses *losses, const struct open_file *file, uint64_t offset,
                    uint64_t end) {
    const struct layout *layout = &file->layout;

    for (uint64_t at = offset; layout->chunk_bytes > 0 && at < end;
         at = (at / layout->chunk_bytes + 1) * layout->chunk_bytes) {
        if (chunk_is_lost(losses, layout, at / layout->chunk_bytes)) {
            return true;
        }
    }
    return false;
}

/* Before a write the bytes of a small file may have to move to its first chunk. */
bool losses_explain(struct losses *losses, const struct shoal_request *request) {
    bool writes = request->operation == SHOAL_WRITE || request->operation == SHOAL_ALLOCATE;
    bool explained =
        losses && losses->gone && !losses->is_mdt && request->result == -EIO && request->file &&
        (writes || request->operation == SHOAL_READ) &&
        (is_lost(losses, request->file->file, request->offset, request->offset + request->size) ||
         (writes && is_lost(losses, request->file->file, 0, 1)));

    if (explained) {
        losses->explained++;
    }
    return explained;
}

struct lost_part losses_known(const struct losses *losses, struct node *client,
                              const struct shoal_request *request) {
    struct shoal_client *shoal = node_client(client);
    const struct cluster_map *map =
        losses && losses->gone && shoal ? router_map(&shoal->router) : NULL;
    struct lost_part part = {.is_known = false};

    if (map && request->file && cluster_map_is_lost(map, losses->id)) {
        const struct open_file *file = request->file->file;

        part.is_known = file->attributes.data_state == DATA_CHUNKED;
        part.generation = file->capability.generation;
    }
    return part;
}

bool losses_check(const struct losses *losses, const struct lost_part *part,
                  const struct shoal_request *request) {
    const struct open_file *file = request->file ? request->file->file : NULL;

    return !part->is_known || request->result <= 0 ||
           file->capability.generation != part->generation ||
           !is_lost(losses, file, request->offset, request->offset + (uint64_t)request->result);
}

void losses_note(struct losses *losses, uint64_t ino) {
    if (losses && losses->is_mdt && losses->noted_count < NOTED &&
        world_mdt_of(losses->world, ino) ==
            &losses->world->mdts[losses->world->options.mdt_count - 1]) {
        losses->noted[losses->noted_count++] = ino;
    }
}

static bool knows(const struct losses *losses, struct node *client) {
    struct shoal_client *shoal = node_client(client);
    const struct cluster_map *map = shoal ? router_map(&shoal->router) : NULL;

    return map && cluster_map_is_lost(map, losses->id);
}

uint64_t losses_probe(const struct losses *losses, struct node *client, uint64_t lot) {
    bool can = losses && losses->gone && losses->is_mdt && losses->noted_count > 0;

    return can && knows(losses, client) ? losses->noted[lot % losses->noted_count] : 0;
}

void losses_probe_answered(struct losses *losses) {
    losses->probed++;
}

bool losses_explain_name(const struct losses *losses, const struct shoal_request *request) {
    return losses && losses->gone && losses->is_mdt && request->result == -EIO &&
           client_failure(request) == -ERR_TARGET_LOST;
}

bool node_is_lost(const struct node *node) {
    return (node->role == NODE_OST || node->role == NODE_MDT) &&
           cluster_map_is_lost(&node->world->map, (struct target_id){node->target_id});
}

bool losses_add_mdt(const struct cluster_map *earlier, const struct cluster_map *later) {
    bool adds = false;

    for (uint32_t i = 0; i < later->target_count; i++) {
        const struct map_target *target = &later->targets[i];

        adds = adds || (target->kind == TARGET_MDT && target->state == TARGET_LOST &&
                        !cluster_map_is_lost(earlier, target->id));
    }
    return adds;
}

const char *losses_failure(const struct losses *losses) {
    return losses->failure[0] ? losses->failure : NULL;
}

void losses_sum(const struct losses *losses, uint64_t counts[TOTAL_COUNT]) {
    bool declared = losses->gone && losses->is_declared;

    counts[TOTAL_TARGETS_LOST] = declared;
    counts[TOTAL_LOST_ANSWERS] = losses->explained;
    counts[TOTAL_MDTS_LOST] = declared && losses->is_mdt;
    counts[TOTAL_LOST_PROBES] = losses->probed;
}
