/* The list of sources. */
#include "planner/source.h"

static const struct source sources[SOURCE_COUNT] = {
#define SOURCE(name, text, url) [SOURCE_##name] = {text, url},
#include "planner/sources.def"
};

const struct source *source_get(enum plan_source source) {
    return &sources[source];
}
