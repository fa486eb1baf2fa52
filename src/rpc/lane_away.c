/* The contract is in lane_away.h. */
#include "rpc/lane_away.h"
#include "rpc/lane_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool peer_is_away(struct lane_peer *peer, struct lane_away *ret_row) {
    const struct lane_addresses *addresses = atomic_load(&peer->addresses);
    uint64_t since_ns = atomic_load(&peer->away_since_ns);

    if (since_ns == 0) {
        return false;
    }
    ret_row->node = atomic_load(&peer->node);
    ret_row->since_ns = since_ns;
    ret_row->wait_count = atomic_load(&peer->wait_count);
    memcpy(ret_row->name, peer->name, sizeof ret_row->name);
    ret_row->address[0] = '\0';
    if (addresses->addresses[0].kind != ADDRESS_UNIX) {
        address_format(&addresses->addresses[0], ret_row->address);
    }
    return true;
}

uint32_t lanes_away(struct lanes *lanes, struct lane_away *ret_rows, uint32_t capacity) {
    uint32_t peer_count = atomic_load_explicit(&lanes->peer_count, memory_order_acquire);
    uint32_t count = 0;

    for (uint32_t i = 0; i < peer_count && count < capacity; i++) {
        count += peer_is_away(&lanes->peers[i], &ret_rows[count]);
    }
    return count;
}

static void away_say(struct lanes *lanes, const struct lane_away *row, uint64_t now_ns) {
    char line[LANE_NAME_BYTES + ADDRESS_TEXT_BYTES + 128];
    /* Who was named by it has no other name. */
    bool has_both = row->address[0] && strcmp(row->name, row->address) != 0;

    snprintf(line, sizeof line,
             "%s%s%s%s has not answered for %" PRIu64 " s, and %" PRIu32 " call%s for it",
             row->name, has_both ? ", at " : "", has_both ? row->address : "", has_both ? "," : "",
             (now_ns - row->since_ns) / NS_PER_S, row->wait_count,
             row->wait_count == 1 ? " waits" : "s wait");
    lanes->options.log(lanes->options.context, line);
}

void lanes_away_say(struct lanes *lanes, uint64_t now_ns) {
    uint32_t peer_count = atomic_load_explicit(&lanes->peer_count, memory_order_acquire);
    struct lane_away row;

    if (!lanes->options.log || !lanes_anybody_away(lanes)) {
        return;
    }
    for (uint32_t i = 0; i < peer_count; i++) {
        struct lane_peer *peer = &lanes->peers[i];

        if (peer_is_away(peer, &row) && row.wait_count > 0 &&
            now_ns >= row.since_ns + LANE_AWAY_SAID_NS &&
            atomic_exchange(&peer->said_since_ns, row.since_ns) != row.since_ns) {
            away_say(lanes, &row, now_ns);
        }
    }
}
