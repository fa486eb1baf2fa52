/* Findings as lines or JSON, and the summary. Each call to write brings whole lines, so that notes
 * may stand between any two. */
#include "cmd/fsck_report.h"
#include "cmd/verb.h"
#include "env/errno_map.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096 };

struct telling {
    const struct fsck_output *output;
    bool some; /* a problem was told */
};

PRINTF_LIKE(2, 3)
static void tell(const struct telling *telling, const char *format, ...) {
    char text[LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size > 0) {
        telling->output->write(telling->output->context, text, MIN((size_t)size, sizeof text - 1));
    }
}

/* Names may hold any bytes: one finding stays one line, and JSON stays UTF-8. */
static void make_printable(char *text, bool ascii) {
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        if (*at < ' ' || *at == 127 || (ascii && *at > 127)) {
            *at = '?';
        }
    }
}

static void tell_problem(void *context, const char *kind, const char *where, const char *meaning) {
    struct telling *telling = context;
    char place[LINE_BYTES / 2];

    snprintf(place, sizeof place, "%s", where);
    make_printable(place, false);
    if (!telling->output->json) {
        tell(telling, "%s: %s: %s\n", kind, place, meaning);
        return;
    }
    json_t *json = json_pack("{s:s, s:s, s:s}", "kind", kind, "where", place, "meaning", meaning);
    if (!json) {
        make_printable(place, true);
        json = json_pack("{s:s, s:s, s:s}", "kind", kind, "where", place, "meaning", meaning);
    }
    char *text = json ? json_dumps(json, JSON_PRESERVE_ORDER) : NULL;
    tell(telling, "   %c%s\n", telling->some ? ',' : ' ', text ? text : "null");
    telling->some = true;
    free(text);
    json_decref(json);
}

static void tell_progress(void *context, const char *line) {
    tell(context, "%c%s\n", FSCK_NOTE, line);
}

static bool is_stopped(void *context) {
    const struct telling *telling = context;

    return telling->output->stopped(telling->output->context);
}

static void tell_summary(const struct telling *telling, const struct fsck_counts *counts) {
    tell(telling,
         "%" PRIu64 " files, %" PRIu64 " directories, %" PRIu64 " chunks, %" PRIu64 " blocks%s: ",
         counts->files, counts->directories, counts->chunks, counts->blocks,
         telling->output->with_data ? "" : " (not their data)");
    if (counts->problems == 0) {
        tell(telling, "clean");
    } else {
        tell(telling, "%" PRIu64 " problem%s", counts->problems, counts->problems == 1 ? "" : "s");
    }
    if (counts->beyond > 0) {
        tell(telling, "; %" PRIu64 " file%s data behind the end, as a power loss may leave",
             counts->beyond, counts->beyond == 1 ? " has" : "s have");
    }
    if (counts->miscounted > 0) {
        tell(telling,
             "; %" PRIu64
             " file%s other blocks than there are, as a power loss or damage may leave",
             counts->miscounted, counts->miscounted == 1 ? " counts" : "s count");
    }
    if (counts->unsettled > 0) {
        tell(telling, "; %" PRIu64 " changed at each look and %s not judged: check again",
             counts->unsettled, counts->unsettled == 1 ? "was" : "were");
    }
    tell(telling, "\n");
}

static void tell_json_summary(const struct telling *telling, const struct fsck_counts *counts,
                              int result) {
    tell(telling,
         "  ],\n  \"files\": %" PRIu64 ",\n  \"directories\": %" PRIu64 ",\n  \"chunks\": %" PRIu64
         ",\n  \"blocks\": %" PRIu64 ",\n  \"problem_count\": %" PRIu64
         ",\n  \"unsettled\": %" PRIu64 ",\n  \"data_behind_end\": %" PRIu64
         ",\n  \"blocks_miscounted\": %" PRIu64
         ",\n  \"with_data\": %s,\n  \"finished\": %s,\n  \"clean\": %s\n}\n",
         counts->files, counts->directories, counts->chunks, counts->blocks, counts->problems,
         counts->unsettled, counts->beyond, counts->miscounted,
         telling->output->with_data ? "true" : "false", result < 0 ? "false" : "true",
         result == 0 && counts->problems == 0 ? "true" : "false");
}

/* One that tells of a loss of this client's own has done its work; the next one tells of none. */
static int cluster_sync(void *context) {
    struct shoal_request sync = {.operation = SHOAL_SYNC};
    int64_t r = shoal_run(local_cluster_client(context), &sync);

    if (r == 0 || err_from_errno((int)-r) != -ERR_IO) {
        return r < 0 ? -ERR_IO : 0;
    }
    sync = (struct shoal_request){.operation = SHOAL_SYNC};
    return (int)shoal_run(local_cluster_client(context), &sync) < 0 ? -ERR_IO : 0;
}

static int cluster_ask(void *context, struct call *call) {
    return local_cluster_ask(context, call);
}

static void cluster_rest(void *context) {
    local_cluster_rest(context);
}

struct fsck_cluster fsck_cluster_of(struct local_cluster *cluster, struct cluster_map *map) {
    local_cluster_member(cluster, map, NULL);
    return (struct fsck_cluster){.env = local_cluster_env(cluster),
                                 .map = map,
                                 .sync = cluster_sync,
                                 .ask = cluster_ask,
                                 .rest = cluster_rest,
                                 .context = cluster};
}

int fsck_report_run(struct local_cluster *cluster, const struct fsck_output *output) {
    struct cluster_map *map = malloc(sizeof *map);
    struct fsck_cluster checked;
    struct telling telling = {.output = output};
    const struct fsck_report report = {.problem = tell_problem,
                                       .progress = tell_progress,
                                       .stopped = is_stopped,
                                       .context = &telling};
    struct fsck_counts counts = {0};
    int r = map ? 0 : -ERR_NO_MEMORY;

    if (output->json) {
        tell(&telling, "{\n  \"problems\": [\n");
    }
    if (r == 0) {
        checked = fsck_cluster_of(cluster, map);
        r = fsck_run_all(&checked, &report, output->with_data, &counts);
    }
    free(map);
    if (output->json) {
        tell_json_summary(&telling, &counts, r);
    } else if (r == 0) {
        tell_summary(&telling, &counts);
    }
    if (r < 0) {
        tell(&telling, "%cthe check could not be finished: %s\n", FSCK_ERROR, err_text(r));
    }
    return r == 0 && counts.problems == 0 ? EXIT_OK : EXIT_FAILED;
}
