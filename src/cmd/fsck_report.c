/* Findings as lines or JSON, and the summary. Each call to write brings whole lines, so that notes
 * may stand between any two. */
#include "cmd/fsck_report.h"
#include "cmd/verb.h"
#include "rpc/transport.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096 };

/* Who does not answer for so long is away. */
#define FSCK_PATIENCE_NS (10 * NS_PER_S)
#define FSCK_ANSWER_NS (60 * NS_PER_S) /* at least */

struct telling {
    const struct fsck_output *output;
    bool some;   /* an element of the list was told */
    bool partly; /* not all was checked */
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

/* Of a list in JSON; takes it. */
static void tell_element(struct telling *telling, json_t *json) {
    char *text = json ? json_dumps(json, JSON_PRESERVE_ORDER) : NULL;

    tell(telling, "   %c%s\n", telling->some ? ',' : ' ', text ? text : "null");
    telling->some = true;
    free(text);
    json_decref(json);
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
    tell_element(telling, json);
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
        tell(telling, telling->partly ? "nothing wrong in what was checked" : "clean");
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
    if (counts->unjudged > 0) {
        tell(telling, "; %" PRIu64 " of what is there could not be judged", counts->unjudged);
    }
    tell(telling, "\n");
}

/* A line, also beside JSON: it is not a part of the answer. */
static void tell_away(struct telling *telling, const struct cluster_map *map,
                      const struct map_target *target, const struct fsck_target *known) {
    const struct map_node *node = cluster_map_node(map, target->node);
    const char *address = node && node->address[0] ? node->address : "no address";
    const char *why =
        call_is_unanswered(known->silence) ? "it does not answer" : err_text(known->silence);

    tell(telling,
         "%ctarget %" PRIu32 " (%s), of node %" PRIu32 ", at %s, was not checked%s: %s; without it "
         "%" PRIu64 " of what is elsewhere could not be judged: see to that node, then check "
         "again\n",
         FSCK_ERROR, target->id.value, target->kind == TARGET_MDT ? "metadata" : "storage",
         target->node.value, address, known->answered ? " to its end" : "", why, known->unjudged);
    if (telling->output->json) {
        tell_element(telling, json_pack("{s:I, s:s, s:I, s:s, s:s, s:b, s:I}", "target",
                                        (json_int_t)target->id.value, "kind",
                                        target->kind == TARGET_MDT ? "mdt" : "ost", "node",
                                        (json_int_t)target->node.value, "address", address, "error",
                                        why, "begun", (int)known->answered, "unjudged",
                                        (json_int_t)known->unjudged));
    }
}

static void tell_all_away(struct telling *telling, const struct cluster_map *map,
                          const struct fsck_target *targets) {
    telling->some = false;
    if (telling->output->json) {
        tell(telling, "  ],\n  \"not_checked\": [\n");
    }
    for (uint32_t i = 0; map && targets && i < map->target_count; i++) {
        if (targets[i].silence < 0) {
            telling->partly = true;
            tell_away(telling, map, &map->targets[i], &targets[i]);
        }
    }
    if (telling->output->unscrubbed) {
        telling->partly = true;
        tell(telling,
             "%cthe scrub after an unclean end waits for a node that is away: chunks without a "
             "file were not judged: see to that node, then check again\n",
             FSCK_ERROR);
    }
}

static void tell_json_summary(const struct telling *telling, const struct fsck_counts *counts,
                              int result) {
    tell(telling,
         "  ],\n  \"files\": %" PRIu64 ",\n  \"directories\": %" PRIu64 ",\n  \"chunks\": %" PRIu64
         ",\n  \"blocks\": %" PRIu64 ",\n  \"problem_count\": %" PRIu64
         ",\n  \"unsettled\": %" PRIu64 ",\n  \"data_behind_end\": %" PRIu64
         ",\n  \"blocks_miscounted\": %" PRIu64 ",\n  \"unjudged\": %" PRIu64
         ",\n  \"with_data\": %s,\n  \"scrubbed\": %s,\n  \"finished\": %s,\n  \"clean\": %s\n}\n",
         counts->files, counts->directories, counts->chunks, counts->blocks, counts->problems,
         counts->unsettled, counts->beyond, counts->miscounted, counts->unjudged,
         telling->output->with_data ? "true" : "false",
         telling->output->unscrubbed ? "false" : "true", result < 0 ? "false" : "true",
         result == 0 && counts->problems == 0 && !telling->partly ? "true" : "false");
}

static void cluster_ask(void *context, struct call *calls, uint32_t count) {
    local_cluster_ask_all(context, calls, count);
}

static void cluster_rest(void *context) {
    local_cluster_rest(context);
}

struct fsck_cluster fsck_cluster_of(struct local_cluster *cluster, struct cluster_map *map) {
    local_cluster_member(cluster, map, NULL);
    return (struct fsck_cluster){.env = local_cluster_env(cluster),
                                 .map = map,
                                 .ask = cluster_ask,
                                 .rest = cluster_rest,
                                 .context = cluster};
}

int fsck_report_run(struct local_cluster *cluster, const struct fsck_output *output) {
    struct cluster_map *map = malloc(sizeof *map);
    struct fsck_target *targets = calloc(MAP_TARGETS_MAX, sizeof *targets);
    struct fsck_cluster checked;
    struct telling telling = {.output = output};
    const struct fsck_report report = {.problem = tell_problem,
                                       .progress = tell_progress,
                                       .stopped = is_stopped,
                                       .context = &telling};
    struct fsck_counts counts = {0};
    int r = map && targets ? 0 : -ERR_NO_MEMORY;

    if (output->json) {
        tell(&telling, "{\n  \"problems\": [\n");
    }
    if (r == 0) {
        checked = fsck_cluster_of(cluster, map);
        checked.targets = targets;
        checked.patience_ns = FSCK_PATIENCE_NS;
        checked.answer_ns =
            MAX(FSCK_ANSWER_NS, local_cluster_config(cluster)->request_timeout_ms * NS_PER_MS);
        checked.unscrubbed = output->unscrubbed;
        r = fsck_run_all(&checked, &report, output->with_data, &counts);
    }
    tell_all_away(&telling, r == -ERR_NO_MEMORY ? NULL : map, targets);
    free(targets);
    free(map);
    if (output->json) {
        tell_json_summary(&telling, &counts, r);
    } else if (r == 0) {
        tell_summary(&telling, &counts);
    }
    if (r < 0) {
        tell(&telling, "%cthe check could not be finished: %s\n", FSCK_ERROR, err_text(r));
    }
    if (r < 0 || counts.problems > 0) {
        return EXIT_FAILED;
    }
    return telling.partly ? EXIT_PARTLY : EXIT_OK;
}
