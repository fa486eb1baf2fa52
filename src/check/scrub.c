/* The rounds, and the orders to delete. */
#include "check/scrub.h"
#include "check/fsck_away.h"
#include "check/fsck_lost.h"
#include "check/fsck_slots.h"
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
        *call =
            (struct call){.header.opcode = OP_CHUNK_DELETE,
                          .request.chunk_delete = {stray->id.ino, stray->id.generation, resume}};
        int r = fsck_ask(fsck, fsck_ost(fsck, stray->ost));
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
    /* No inode comes with a number that was there before, and no generation after another. */
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

/* Whether power loss took all that was known of it. The rows say which numbers, not of which slots:
 * those were opened, or it has drawn none there. */
static int lost_find(struct fsck *fsck, const struct fsck_chunk *id, bool *ret_lost) {
    struct fsck_list list;
    struct fsck_slot slot;
    struct fsck_row found;
    int r = fsck_slot_get(fsck, id->ino.value, &slot);

    *ret_lost = false;
    if (r < 0 || !slot.is_opened) {
        return r;
    }
    fsck_list_begin(&list, fsck, fsck_mdt_of(fsck, id->ino.value), FSCK_LOST);
    while ((r = fsck_list_next(&list, &found)) == 0) {
        const struct lost_row *row;

        if (lost_row_check(found.value, &row) == 0) {
            *ret_lost |= lost_row_has(row, id->ino, id->generation);
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int nobodys_one(struct scrub *scrub, struct fsck *fsck, const struct fsck_stray *stray) {
    bool lost;
    int r = lost_find(fsck, &stray->id, &lost);

    if (r < 0 || lost) {
        return r < 0 ? r : stray_remove(scrub, fsck, stray);
    }
    if (scrub->kept_count++ < SCRUB_NAMED_MAX && scrub->round == 0) {
        scrub->kept(scrub->context, stray->id.ino.value, stray->ost);
    }
    return 0;
}

static int round_one(struct scrub *scrub, struct fsck *fsck, const struct fsck_stray *stray) {
    enum stray_kind kind;
    int r = stray_kind_get(fsck, stray, &kind);

    if (r == 0 && kind == STRAY_NOBODYS) {
        r = nobodys_one(scrub, fsck, stray);
    } else if (r == 0 && kind == STRAY_OTHER_GENERATION) {
        r = stray_remove(scrub, fsck, stray);
    }
    return r;
}

/* More strays than a list holds come with the next round. */
static int round_all(struct scrub *scrub, struct fsck *fsck) {
    uint64_t removed_before;
    int r = 0;

    do {
        removed_before = scrub->removed;
        fsck->stray_count = 0;
        scrub->kept_count = 0;
        for (uint32_t i = 0; r == 0 && i < fsck_ost_count(fsck); i++) {
            r = fsck_ost_is_lost(fsck, i) ? 0 : fsck_chunks(fsck, i);
        }
        for (uint32_t i = 0; r == 0 && i < fsck->stray_count; i++) {
            r = round_one(scrub, fsck, &fsck->strays[i]);
        }
        scrub->round++;
    } while (r == 0 && scrub->removed > removed_before);
    return r;
}

int scrub_run(struct scrub *scrub) {
    const struct fsck_report report = report_of(scrub);
    struct fsck *fsck = fsck_new(scrub->cluster, &report);
    int r = fsck ? round_all(scrub, fsck) : -ERR_NO_MEMORY;

    fsck_free(fsck);
    return r;
}
