/* The contract is in sums.h. */
#include "sums.h"
#include "accords.h"
#include "stragglers.h"

/* Counters that the world keeps by name. */
static void sum_world(const struct sim *sim, uint64_t counts[TOTAL_COUNT]) {
    static const struct {
        enum total total;
        const char *name;
    } rows[] = {
        {TOTAL_DROPPED, "packets dropped"},
        {TOTAL_DELAYED, "packets slow"},
        {TOTAL_DOUBLED, "packets doubled"},
        {TOTAL_REORDERED, "packets overtaken"},
        {TOTAL_CUT_OFF, "packets cut off"},
        {TOTAL_KILLS, "kills"},
        {TOTAL_POWERS, "power failures"},
        {TOTAL_WRITES_CUT, "writes cut"},
        {TOTAL_BLOCKS_LOST, "blocks lost"},
        {TOTAL_BLOCKS_TORN, "blocks torn"},
        {TOTAL_DISKS_SLOW, "slow operations"},
        {TOTAL_DISKS_FULL, "disks full"},
        {TOTAL_NAMES_FULL, "metadata disks full"},
        {TOTAL_BITS_FLIPPED, "bits flipped"},
        {TOTAL_CLOCKS, "clocks skewed"},
        {TOTAL_RESET, "streams reset at random"},
        {TOTAL_PEERS_GONE, "streams killed"},
        {TOTAL_PEERS_DARK, "streams lost with power"},
        {TOTAL_STREAMS_GIVEN_UP, "streams given up"},
        {TOTAL_STOPS, "stops"},
        {TOTAL_REFUSED_CONNECTIONS, "streams refused"},
        {TOTAL_SEGMENTS_SLOW, "segments slow"},
        {TOTAL_SEGMENTS_CUT, "segments cut off"},
        {TOTAL_ACCEPTS, "streams accepted late"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        counts[rows[i].total] = sim_counter(sim, rows[i].name);
    }
}

static void sum_logs(const struct world *world, uint64_t counts[TOTAL_COUNT]) {
    const struct kv_counters *kv = &world->kv_sum;

    counts[TOTAL_PENDING] = kv->pending_reads;
    counts[TOTAL_DUPLICATES] = kv->duplicates_refused;
    counts[TOTAL_WRITE_COPIES] = world->ost_sum.copies;
    counts[TOTAL_PUNCHES] = world->ost_sum.punches;
    counts[TOTAL_PROMISES] = world->ost_sum.promises;
    counts[TOTAL_CHECKPOINTS] = kv->checkpoints;
    counts[TOTAL_CHECKPOINTS_CUT] = world->checkpoints_cut;
    counts[TOTAL_FULLS] = world->fulls;
    counts[TOTAL_FULLS_KILLED] = world->fulls_killed;
    counts[TOTAL_LAPS] = world->laps;
    counts[TOTAL_DATA_LAPS] = world->data_laps;
    counts[TOTAL_OTHER_LAPS] = world->laps_of_others;
    counts[TOTAL_REPLAYS] = world->replays;
    counts[TOTAL_REPLAYS_CUT] = world->replays_cut;
    counts[TOTAL_RECORDS_REPLAYED] = kv->replayed_records;
    counts[TOTAL_STALLS] = kv->stalls;
    counts[TOTAL_OUTCOMES_REFUSED] = kv->outcomes_refused;
}

static void sum_links(const struct world_links *links, uint64_t counts[TOTAL_COUNT]) {
    counts[TOTAL_CONNECTED] = links->connected;
    counts[TOTAL_BROKEN] = links->broken;
    counts[TOTAL_SILENT] = links->silent;
    counts[TOTAL_GIVEN_UP] = links->given_up;
    counts[TOTAL_AGAIN] = links->again;
    counts[TOTAL_BUSY] = links->busy;
    counts[TOTAL_LATE] = links->late;
    counts[TOTAL_LANES_REPLACED] = links->replaced;
    counts[TOTAL_OLD_LANES] = links->old_lanes;
    counts[TOTAL_ANSWERS_DROPPED] = links->answers_dropped;
    counts[TOTAL_LET_GO] = links->let_go;
}

static void sum_crossings(const struct group_totals *totals, uint64_t counts[TOTAL_COUNT]) {
    counts[TOTAL_CROSSINGS] = totals->crossings;
    counts[TOTAL_CROSSINGS_AGAIN] = totals->crossings_again;
    counts[TOTAL_CROSSINGS_BUSY] = totals->crossings_busy;
    counts[TOTAL_OLD_MAPS] = totals->old_maps;
    counts[TOTAL_PROMISES_KEPT] = totals->promises_kept;
    counts[TOTAL_PROMISES_GONE] = totals->promises_gone;
    counts[TOTAL_PROMISES_FOUND] = totals->promises_found;
    counts[TOTAL_DECISIONS_FOUND] = totals->decisions_found;
    counts[TOTAL_PROMISES_LOST_KEPT] = totals->promises_lost_kept;
    counts[TOTAL_PROMISES_LOST_GONE] = totals->promises_lost_gone;
    counts[TOTAL_SHARES_LOST] = totals->shares_lost;
    counts[TOTAL_TURNS_ASKED] = totals->turns_asked;
    counts[TOTAL_TURNS_GIVEN] = totals->turns_given;
    counts[TOTAL_TURNS_RUN_OUT] = totals->turns_run_out;
}

static void sum_cuts(const struct cuts *cuts, uint64_t counts[TOTAL_COUNT]) {
    counts[TOTAL_CUT_LOOKS] = cuts->looks;
    counts[TOTAL_CUT_PREPARES] = cuts->prepares;
    counts[TOTAL_CUT_DECISIONS] = cuts->decisions;
    counts[TOTAL_CUT_COMMITS] = cuts->commits;
    counts[TOTAL_CUT_PROMISES] = cuts->promises;
    counts[TOTAL_CUT_MARKS] = cuts->marks;
}

static void sum_stragglers(const struct world *world, uint64_t counts[TOTAL_COUNT]) {
    counts[TOTAL_STRAGGLERS] = stragglers_count(world->stragglers);
    counts[TOTAL_STRAGGLERS_TOLD] = stragglers_told(world->stragglers);
    counts[TOTAL_STRAGGLERS_REFUSED] = stragglers_refused(world->stragglers);
    counts[TOTAL_FENCES] = world->group_sum.fences;
    counts[TOTAL_WRITERS_LEFT] = world->group_sum.writers_left;
    counts[TOTAL_CHUNKS_BACK] = world->group_sum.chunks_given_back;
    counts[TOTAL_CHUNKS_KEPT] = world->group_sum.chunks_kept;
    counts[TOTAL_FENCING_SETTLES] = world->group_sum.fencing_settles;
    counts[TOTAL_LOSSES_OVER] = world->group_sum.losses_over;
    counts[TOTAL_ENDS_OVER] = world->group_sum.ends_over;
}

static void sum_clients(const struct world *world, uint64_t counts[TOTAL_COUNT]) {
    counts[TOTAL_WINDOW_WAITS] = world->client_sum.window_waits;
    counts[TOTAL_LATE_OPENS] = world->client_sum.late_opens;
    counts[TOTAL_LATE_CLOSES] = world->client_sum.late_closes;
    counts[TOTAL_LATE_AWAY] = world->client_sum.late_away;
    counts[TOTAL_RETURNS] = world->client_sum.returns;
}

void sums_of_world(const struct world *world, uint64_t counts[TOTAL_COUNT]) {
    sum_world(world->sim, counts);
    sum_logs(world, counts);
    sum_links(&world->link_sum, counts);
    sum_crossings(&world->group_sum, counts);
    sum_cuts(&world->cuts, counts);
    sum_stragglers(world, counts);
    sum_clients(world, counts);
    counts[TOTAL_MAPS_UNKEPT] = world->maps_unkept;
    counts[TOTAL_ACCORDS] = accords_count(world);
    counts[TOTAL_KILLS] -= world->own_kills;
}
