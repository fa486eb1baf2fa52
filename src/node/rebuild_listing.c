/* The contract is in rebuild_listing.h. */
#include "node/rebuild_listing.h"
#include <stdlib.h>

/* By stage. */
static const uint32_t listed[] = {FSCK_SESSIONS, FSCK_ENDED, FSCK_SLOTS};

/* Those that the log has: a storage target has no slots. */
static uint32_t listed_count(const struct rebuild_listing *listing) {
    return ARRAY_SIZE(listed) - (listing->kind != TARGET_MDT);
}

static void stage_begin(struct rebuild_listing *listing, uint32_t stage) {
    listing->stage = stage;
    listing->pages = (struct rebuild_pages){.rebuilt = listing->rebuilt,
                                            .log = listing->life.log,
                                            .kind = listing->kind,
                                            .what = listed[MIN(stage, ARRAY_SIZE(listed) - 1)]};
}

int rebuild_listing_init(struct rebuild_listing *listing, struct rebuilt *rebuilt,
                         const struct map_target *target) {
    *listing = (struct rebuild_listing){
        .rebuilt = rebuilt,
        .kind = (enum target_kind)target->kind,
        .life = {.log = cluster_map_log_of(rebuilt->map, target->id), .node = target->node.value},
        .page = malloc(REBUILD_PAGE_BYTES),
    };
    stage_begin(listing, 0);
    return listing->page ? 0 : -ERR_NO_MEMORY;
}

void rebuild_listing_deinit(struct rebuild_listing *listing) {
    free(TAKE_PTR(listing->page));
}

bool rebuild_listing_next(const struct rebuild_listing *listing, struct call *ret_call) {
    if (listing->stage > listed_count(listing)) {
        return false;
    }
    *ret_call = (struct call){.header = {.opcode = OP_SYNC, .log = listing->life.log}};
    if (listing->stage < listed_count(listing)) {
        ret_call->header.opcode = OP_FSCK_LIST;
        ret_call->request.fsck_list = (struct fsck_list_request){
            .what = listing->pages.what,
            .cursor = {listing->pages.last.bytes, listing->pages.has_last ? KV_KEY_BYTES : 0},
            .bytes_max = REBUILD_PAGE_BYTES};
        ret_call->bulk_in = (struct buffer){.data = listing->page, .capacity = REBUILD_PAGE_BYTES};
    }
    return true;
}

int rebuild_listing_take(struct rebuild_listing *listing, const struct call *call) {
    const struct fsck_list_reply *reply = &call->reply.fsck_list;

    if (call->result < 0) {
        return call->result;
    }
    if (call->header.opcode == OP_SYNC) {
        listing->stage++;
        return rebuilt_life_add(listing->rebuilt, &listing->life);
    }
    listing->life.term = reply->term;
    listing->life.life = (struct log_life){reply->life_high, reply->life_low};
    if (call->bulk_in.size == 0 && !reply->end) {
        return -ERR_MALFORMED;
    }
    int r =
        rebuild_pages_take(&listing->pages, (struct bytes){call->bulk_in.data, call->bulk_in.size});
    if (r == 0 && reply->end) {
        stage_begin(listing, listing->stage + 1);
    }
    return r;
}
