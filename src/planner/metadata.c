/* Words of the metadata model: where its targets stand. */
#include "planner/metadata.h"
#include <stdio.h>

/* Why the nodes that are dedicated do not carry the load, and how many would. */
static void explain_dedicated(const struct metadata_outputs *out, char *text, size_t size) {
    double used = out->targets_used.value;
    double best = out->dedicated_best.value;
    size_t length;

    if (out->targets_used.cannot) {
        length = (size_t)snprintf(text, size, "no number of dedicated ones follows: %s",
                                  out->targets_used.cannot);
    } else if (out->dedicated_headroom.cannot) {
        length = (size_t)snprintf(text, size, "with %.6g dedicated ones %s", used,
                                  out->dedicated_headroom.cannot);
    } else {
        length = (size_t)snprintf(text, size, "%.6g dedicated ones do not carry this load", used);
    }
    if (!out->dedicated_best_headroom.cannot && out->dedicated_best_headroom.value >= 1) {
        snprintf(text + length, size - length, "; %.6g carry at most %.3g times it", best,
                 out->dedicated_best_headroom.value);
    }
}

void metadata_words(const struct data *data, const struct metadata_inputs *in,
                    struct metadata_outputs *out) {
    struct plan_words *placement = &out->placement;
    char dedicated[UNIT_TEXT_BYTES];
    char colocated[UNIT_TEXT_BYTES];

    (void)data;
    (void)in;
    if (out->colocated_wait.cannot) {
        snprintf(placement->text, WORDS_BYTES, "%s", out->colocated_wait.cannot);
        return;
    }
    unit_format(UNIT_SECONDS, out->colocated_wait.value, colocated);
    if (out->dedicated_wait.cannot || out->dedicated_headroom.cannot ||
        out->dedicated_headroom.value < 1) {
        char why[WORDS_BYTES / 2];

        explain_dedicated(out, why, sizeof why);
        snprintf(placement->text, WORDS_BYTES,
                 "co-located on all nodes: metadata waits %s, at most %.3g times this load; %s",
                 colocated, out->colocated_headroom.value, why);
        return;
    }
    unit_format(UNIT_SECONDS, out->dedicated_wait.value, dedicated);
    snprintf(placement->text, WORDS_BYTES,
             "dedicated: metadata waits %s, at most %.3g times this load; "
             "co-located: %s, at most %.3g times",
             dedicated, out->dedicated_headroom.value, colocated, out->colocated_headroom.value);
}
