/* The order of a check, and how its findings are told. */
#include "check/fsck_away.h"
#include "check/fsck_lost.h"
#include "check/fsck_usage.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FSCK_MEANING_BYTES = 512, FSCK_PATH_BYTES = 1024, FSCK_DEPTH_MAX = 256 };
enum { PROGRESS_ROWS = 256 };

void fsck_problem(struct fsck *fsck, const char *kind, const char *where, const char *format, ...) {
    char meaning[FSCK_MEANING_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(meaning, sizeof meaning, format, arguments);
    va_end(arguments);
    fsck->counts.problems++;
    fsck->report->problem(fsck->report->context, kind, where, meaning);
}

/* Puts "/name" in front of what is in the path's end. */
static int name_prepend(struct fsck *fsck, const struct inode_row *inode, uint64_t ino, char *path,
                        size_t *at) {
    struct kv_key key = key_dentry((struct ino){inode->parent}, inode->parent_name);
    const struct dentry_row *dentry;
    struct bytes value;

    int r = fsck_row_get(fsck, fsck_mdt_of(fsck, inode->parent), FSCK_DENTRIES, &key, &value);
    if (r == 0) {
        r = dentry_row_check(value, &dentry);
    }
    if (r < 0) {
        return r;
    }
    if (dentry->ino != ino || dentry->name_bytes + 1U > *at) {
        return -ERR_NOT_FOUND;
    }
    *at -= dentry->name_bytes;
    memcpy(path + *at, dentry->name, dentry->name_bytes);
    path[--*at] = '/';
    return 0;
}

const char *fsck_where_ino(struct fsck *fsck, uint64_t ino, char where[FSCK_WHERE_BYTES]) {
    char path[FSCK_PATH_BYTES];
    size_t at = sizeof path - 1;
    uint64_t step = ino;
    int r = 0;

    path[at] = '\0';
    for (int i = 0; r == 0 && step != INO_ROOT.value && i < FSCK_DEPTH_MAX; i++) {
        struct inode_row row;

        r = fsck_inode_get(fsck, step, &row);
        if (r == 0) {
            r = name_prepend(fsck, &row, step, path, &at);
        }
        step = r < 0 ? step : row.parent;
    }
    if (r == 0 && step == INO_ROOT.value) {
        snprintf(where, FSCK_WHERE_BYTES, "inode %" PRIu64 " (%s)", ino,
                 path[at] ? path + at : "/");
    } else {
        snprintf(where, FSCK_WHERE_BYTES, "inode %" PRIu64, ino);
    }
    return where;
}

static void stage_begin(struct fsck *fsck, const char *what, uint32_t ost) {
    char place[24] = "the metadata targets";

    if (ost == UINT32_MAX && fsck->cluster->map->group_count == 1) {
        snprintf(place, sizeof place, "mdt0");
    } else if (ost != UINT32_MAX) {
        snprintf(place, sizeof place, "ost%" PRIu32, ost);
    }
    snprintf(fsck->stage, sizeof fsck->stage, "checking %s of %s", what, place);
    fsck->stage_rows = 0;
    fsck->told_at_ns = env_now_ns(fsck->cluster->env);
    fsck->report->progress(fsck->report->context, fsck->stage);
}

void fsck_progress(struct fsck *fsck) {
    char line[128];

    if (++fsck->stage_rows % PROGRESS_ROWS != 0) {
        return;
    }
    uint64_t now_ns = env_now_ns(fsck->cluster->env);
    if (now_ns - fsck->told_at_ns < NS_PER_S) {
        return;
    }
    fsck->told_at_ns = now_ns;
    snprintf(line, sizeof line, "%s: %" PRIu64 " rows, %" PRIu64 " problems so far", fsck->stage,
             fsck->stage_rows, fsck->counts.problems);
    fsck->report->progress(fsck->report->context, line);
}

static int run_ost(struct fsck *fsck, uint32_t ost, bool with_data) {
    stage_begin(fsck, "the index", ost);
    int r = fsck_chunks(fsck, ost);
    if (r == 0) {
        stage_begin(fsck, "blocks in use", ost);
        r = fsck_blocks(fsck, ost);
    }
    if (r == 0 && with_data) {
        stage_begin(fsck, "the data", ost);
        r = fsck_data(fsck, ost);
    }
    return r;
}

static int run_mdt(struct fsck *fsck) {
    stage_begin(fsck, "names", UINT32_MAX);
    int r = fsck_names(fsck);
    if (r == 0) {
        stage_begin(fsck, "small files", UINT32_MAX);
        r = fsck_inline(fsck);
    }
    return r;
}

static int stages_run(struct fsck *fsck, bool with_data) {
    if (fsck->report->stopped(fsck->report->context)) {
        return -ERR_CLOSED;
    }
    int r = fsck_sync(fsck);
    if (r == 0) {
        r = run_mdt(fsck);
    }
    if (r == 0) {
        r = fsck_lost(fsck);
    }
    for (uint32_t i = 0; r == 0 && i < fsck_ost_count(fsck); i++) {
        r = fsck_is_there(fsck, fsck_ost(fsck, i));
        if (r == 0 && !fsck_ost_is_lost(fsck, i)) {
            r = run_ost(fsck, i, with_data);
        }
        r = r == -ERR_AWAY ? 0 : r; /* The others are checked. */
    }
    if (r == 0) {
        stage_begin(fsck, "counts of blocks", UINT32_MAX);
        r = fsck_usages(fsck);
    }
    return r < 0 ? r : fsck_strays(fsck);
}

struct fsck *fsck_new(const struct fsck_cluster *cluster, const struct fsck_report *report) {
    struct fsck *fsck = calloc(1, sizeof *fsck);

    if (!fsck) {
        return NULL;
    }
    fsck->cluster = cluster;
    fsck->report = report;
    fsck->list_memory = malloc(FSCK_LIST_BYTES);
    fsck->strays = calloc(FSCK_SUSPECTS_MAX, sizeof *fsck->strays);
    fsck->usage = fsck_usage_new(FSCK_USAGE_BYTES);
    if (!fsck->list_memory || !fsck->strays || !fsck->usage) {
        fsck_free(fsck);
        return NULL;
    }
    return fsck;
}

void fsck_free(struct fsck *fsck) {
    if (fsck) {
        fsck_usage_free(fsck->usage);
        free(fsck->strays);
        free(fsck->list_memory);
        free(fsck);
    }
}

int fsck_run_all(const struct fsck_cluster *cluster, const struct fsck_report *report,
                 bool with_data, struct fsck_counts *ret_counts) {
    struct fsck *fsck = fsck_new(cluster, report);

    *ret_counts = (struct fsck_counts){0};
    if (!fsck) {
        return -ERR_NO_MEMORY;
    }
    int r = stages_run(fsck, with_data);
    *ret_counts = fsck->counts;
    fsck_free(fsck);
    return r;
}
