/* The rows of the latency model: the ways to the data, as the data files have them. */
#include "planner/latency.h"
#include <stdio.h>
#include <string.h>

static const char prefix[] = "latency.";

static void tell_origin(const struct data *data, const char *section, struct plan_words *words) {
    char about[3 * DATA_NAME_BYTES];

    snprintf(about, sizeof about, "about.%s", section);
    const char *source = data_text(data, about, "source");
    const char *url = data_text(data, about, "url");
    snprintf(words->text, WORDS_BYTES, "%s%s%s", source ? source : "the data don't say",
             url ? ", " : "", url ? url : "");
}

bool latency_way(const struct data *data, const struct latency_inputs *in, size_t row,
                 struct latency_outputs *out) {
    const char *section = data_section(data, prefix, row);
    char medium[DATA_NAME_BYTES];
    char medium_section[2 * DATA_NAME_BYTES];

    if (!section) {
        return false;
    }
    snprintf(out->path.text, WORDS_BYTES, "%s", section + strlen(prefix));
    tell_origin(data, section, &out->origin);
    tell_origin(data, "latency_switch", &out->switch_origin);
    plan_choice_name(&plan_latency, "medium", in->medium, medium);
    snprintf(medium_section, sizeof medium_section, "latency_medium.%s", medium);
    tell_origin(data, medium_section, &out->medium_origin);
    return true;
}
