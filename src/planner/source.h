/* Where formulas and figures come from: name, text, address. Listed once, in sources.def. */
#pragma once
#include "base/types.h"

enum plan_source {
#define SOURCE(name, text, url) SOURCE_##name,
#include "planner/sources.def"
    SOURCE_COUNT
};

struct source {
    const char *text;
    const char *url; /* "" when there is none */
};

const struct source *source_get(enum plan_source source);
