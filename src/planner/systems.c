/* The rows of the systems model: the systems, as the data files have them. */
#include "planner/systems.h"
#include <stdio.h>
#include <string.h>

static const char prefix[] = "system.";

/* "measured", "vendor", "user" or "derived", of what is known of its bandwidth. */
static const char *kind_of(const struct data *data, const char *section, const char *key) {
    char path[2 * DATA_NAME_BYTES];
    const char *text = data_text(data, section, key);

    snprintf(path, sizeof path, "%s.%s", section, key);
    const char *kind = text && strcmp(text, "unknown") != 0 ? data_about(data, path, "kind") : NULL;
    return kind ? kind : "unknown";
}

static void say(const struct data *data, const char *section, const char *key,
                struct plan_words *words) {
    const char *text = data_text(data, section, key);

    snprintf(words->text, WORDS_BYTES, "%s", text ? text : "unknown");
}

bool systems_begin(const struct data *data, const struct systems_inputs *in, size_t row,
                   struct systems_outputs *out) {
    const char *section = data_section(data, prefix, row);

    (void)in;
    if (!section) {
        return false;
    }
    const char *name = data_text(data, section, "name");
    say(data, section, "best_scale", &out->best_scale);
    say(data, section, "metadata_logic", &out->metadata_logic);
    say(data, section, "small_file_speed", &out->small_file_speed);
    say(data, section, "operation", &out->operation);
    snprintf(out->system.text, WORDS_BYTES, "%s", section + strlen(prefix));
    snprintf(out->title.text, WORDS_BYTES, "%s", name ? name : section + strlen(prefix));
    const char *writing = kind_of(data, section, "write");
    const char *reading = kind_of(data, section, "read");
    bool same = strcmp(writing, reading) == 0;
    snprintf(out->basis.text, WORDS_BYTES, "%s%s%s", writing, same ? "" : ", ",
             same ? "" : reading);
    return true;
}
