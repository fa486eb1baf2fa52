/* Both passes, and the orders to delete. */
#include "cmd/scrub.h"
#include <string.h>

static void ignore_problem(void *context, const char *kind, const char *where,
                           const char *meaning) {
    (void)context;
    (void)kind;
    (void)where;
    (void)meaning;
}

static void ignore_progress(void *context, const char *line) {
    (void)context;
    (void)line;
}

static struct fsck_report report_of(const struct scrub *scrub) {
    return (struct fsck_report){.problem = ignore_problem,
                                .progress = ignore_progress,
                                .stopped = scrub->stopped,
                                .context = scrub->context};
}

static int chunks_delete(struct fsck *fsck, const struct fsck_stray *stray) {
    struct call *call = &fsck->call;
    uint64_t resume = 0;
    bool end = false;

    while (!end) {
        if (fsck->report->stopped(fsck->report->context)) {
            return -ERR_CLOSED;
        }
        *call =
            (struct call){.header = {.opcode = OP_CHUNK_DELETE, .target = fsck_ost(stray->ost)},
                          .request.chunk_delete = {stray->id.ino, stray->id.generation, resume}};
        int r = local_cluster_ask(fsck->cluster, call);
        if (r < 0) {
            return r;
        }
        resume = call->reply.chunk_delete.resume_chunk;
        end = call->reply.chunk_delete.end;
    }
    return 0;
}

enum stray_kind { STRAY_NONE, STRAY_NOBODYS, STRAY_OTHER_GENERATION };

static int stray_kind_get(struct fsck *fsck, const struct fsck_stray *stray,
                          enum stray_kind *ret_kind) {
    struct inode_row inode;
    const char *reason;
    int r = fsck_stray_look(fsck, stray, &reason);

    *ret_kind = STRAY_NONE;
    if (r < 0 || !reason) {
        return r;
    }
    r = fsck_inode_get(fsck, stray->id.ino.value, &inode);
    if (r == -ERR_NOT_FOUND) {
        *ret_kind = STRAY_NOBODYS;
    } else if (r == 0 && (inode.data_state != DATA_CHUNKED ||
                          inode.chunk_generation != stray->id.generation)) {
        *ret_kind = STRAY_OTHER_GENERATION;
    }
    return r == -ERR_NOT_FOUND || r == -ERR_CORRUPT ? 0 : r;
}

static int stray_remove(struct scrub *scrub, struct fsck *fsck, const struct fsck_stray *stray) {
    int r = chunks_delete(fsck, stray);

    scrub->removed += r == 0;
    return r;
}

/* Whether the inode can have been made by records that power loss took. */
static int lost_find(struct fsck *fsck, struct ino ino, bool *ret_lost) {
    uint64_t counter = ino.value & ((UINT64_C(1) << INO_COUNTER_BITS) - 1);
    struct fsck_list list;
    struct fsck_row found;
    int r;

    *ret_lost = false;
    fsck_list_begin(&list, fsck, fsck_mdt(), FSCK_LOST);
    while ((r = fsck_list_next(&list, &found)) == 0) {
        const struct lost_row *row;

        if (lost_row_check(found.value, &row) == 0) {
            *ret_lost |= counter >= row->counter_from && counter < row->counter_to;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int nobodys_one(struct scrub *scrub, struct fsck *fsck, const struct fsck_stray *stray) {
    bool lost;
    int r = lost_find(fsck, stray->id.ino, &lost);

    if (r < 0 || lost) {
        return r < 0 ? r : stray_remove(scrub, fsck, stray);
    }
    if (scrub->kept_count++ < SCRUB_NAMED_MAX && scrub->round == 0) {
        scrub->kept(scrub->context, stray->id.ino.value, stray->ost);
    }
    return 0;
}

static int first_one(struct scrub *scrub, struct fsck *fsck, const struct fsck_stray *stray) {
    enum stray_kind kind;
    int r = stray_kind_get(fsck, stray, &kind);

    if (r == 0 && kind == STRAY_NOBODYS) {
        r = nobodys_one(scrub, fsck, stray);
    } else if (r == 0 && kind == STRAY_OTHER_GENERATION && scrub->later_count < SCRUB_LATER_MAX) {
        scrub->later[scrub->later_count++] = *stray;
    }
    return r;
}

/* A file's generations are told one at a time, so those it had before come with the next round. */
static int first_all(struct scrub *scrub, struct fsck *fsck) {
    uint64_t removed_before;
    int r = 0;

    do {
        removed_before = scrub->removed;
        fsck->stray_count = 0;
        scrub->later_count = 0;
        scrub->kept_count = 0;
        for (uint32_t i = 0; r == 0 && i < local_cluster_config(fsck->cluster)->ost_count; i++) {
            r = fsck_chunks(fsck, i);
        }
        for (uint32_t i = 0; r == 0 && i < fsck->stray_count; i++) {
            r = first_one(scrub, fsck, &fsck->strays[i]);
        }
        scrub->round++;
    } while (r == 0 && scrub->removed > removed_before);
    return r;
}

int scrub_first(struct scrub *scrub) {
    const struct fsck_report report = report_of(scrub);
    struct fsck *fsck = fsck_new(scrub->cluster, &report);
    int r = fsck ? first_all(scrub, fsck) : -ERR_NO_MEMORY;

    fsck_free(fsck);
    return r;
}

int scrub_second(struct scrub *scrub) {
    const struct fsck_report report = report_of(scrub);
    struct fsck *fsck = fsck_new(scrub->cluster, &report);
    int r = fsck ? 0 : -ERR_NO_MEMORY;

    for (uint32_t i = 0; r == 0 && i < scrub->later_count; i++) {
        enum stray_kind kind;

        r = stray_kind_get(fsck, &scrub->later[i], &kind);
        if (r == 0 && kind != STRAY_NONE) {
            r = stray_remove(scrub, fsck, &scrub->later[i]);
        }
    }
    fsck_free(fsck);
    return r;
}
