/* A computed number, or the reason why there is none. Models never hand out inf or nan. */
#pragma once
#include "base/types.h"
#include "planner/unit.h"
#include <math.h>

struct figure {
    double value;       /* meaningless when cannot is set */
    const char *cannot; /* a constant: "the bandwidth is zero" */
};

/* A result in words: a command to type, the name of the limit that binds. */
#define WORDS_BYTES 560
struct plan_words {
    char text[WORDS_BYTES];
};

/* Points that were measured, of an input like "1:95,8:700". */
enum { POINTS_MAX = 64 };
struct points {
    uint32_t count;
    double x[POINTS_MAX];
    double y[POINTS_MAX];
};

static inline struct figure figure_cannot(const char *why) {
    return (struct figure){.cannot = why};
}

/* Beyond it a number in a smaller unit, of $/GB/month say, could not be told any more. */
#define FIGURE_MOST 1e290

static inline struct figure figure_of(double value) {
    return fabs(value) <= FIGURE_MOST ? (struct figure){.value = value}
                                      : figure_cannot("the number would be too large");
}

/* top / bottom; `why` says what it means that bottom is 0. */
static inline struct figure figure_ratio(double top, double bottom, const char *why) {
    return bottom == 0 ? figure_cannot(why) : figure_of(top / bottom);
}

/* The least whole number that suffices: what rounding has put just above one is that one. Of a
 * formula it is the ceil. */
static inline double whole_up(double value) {
    double near = round(value);

    return fabs(value - near) <= 1e-12 * fabs(near) ? near : ceil(value);
}

/* The first reason among figures that another is made of, or NULL: count pointers follow. */
static inline const char *figure_first_cannot(size_t count, const struct figure *const *figures) {
    for (size_t i = 0; i < count; i++) {
        if (figures[i]->cannot) {
            return figures[i]->cannot;
        }
    }
    return NULL;
}
/* An expression over the values of figures that must all be there:
 *     out->idle = FIGURE(out->stall.value / interval, &out->stall);  */
#define FIGURE(expression, ...)                                                                    \
    __extension__({                                                                                \
        const struct figure *const needed_[] = {__VA_ARGS__};                                      \
        const char *why_ = figure_first_cannot(ARRAY_SIZE(needed_), needed_);                      \
        why_ ? figure_cannot(why_) : figure_of(expression);                                        \
    })
