/* What C that formulas.py makes of a formula calls.
 *
 * A formula is evaluated whole; what it lacks on the way makes its reason. A place is a number, in
 * the order of reading: of several reasons the first in that order stays, whichever C comes upon
 * first. Thread: any.  Memory: the caller's. */
#pragma once
#include "planner/data.h"
#include "planner/figure.h"

struct why {
    const char *reason; /* NULL: nothing is lacking */
    int place;
};

/* The value, or 0 and the figure's reason. */
double need(struct why *why, int place, const struct figure *figure);
/* top / bottom, or 0 and the reason when bottom is 0. */
double ratio(struct why *why, int place, double top, double bottom, const char *reason);
double cannot(struct why *why, int place, const char *reason);
/* A number of the data, its path in pieces up to a NULL. It has to be there and not below 0; the
 * reason may be NULL for the usual one. */
double from_data(struct why *why, int place, const struct data *data, const char *reason,
                 const char *const pieces[]);
/* Ends a formula, and makes *why new. too_large may be NULL. */
struct figure figure_end(struct why *why, double value, const char *too_large);
/* Whether a condition is true of figures that are all there. Makes *why new. */
bool holds(struct why *why, bool condition);

/* Functions of formulas, as docs/concepts/planner.md tells of them. */
double erlang_c(struct why *why, int place, double servers, double load);
double least_squares_amdahl(struct why *why, int place, const struct points *points, int which);
double least_squares_usl(struct why *why, int place, const struct points *points, int which);
double stripe_best_size(struct why *why, int place, double length_bytes, double target_count);
double stripe_best_count(struct why *why, int place, double length_bytes, double target_count);
double packet_payload(struct why *why, int place, double mtu_bytes, double reserved_bytes,
                      double most_bytes);
double layout_spread(struct why *why, int place, double file_count, double stripe_count,
                     double target_count);
double layout_share_on_fullest(struct why *why, int place, double file_count, double stripe_count,
                               double target_count);
double jobs_count(struct why *why, int place, const struct points *jobs);
double jobs_size(struct why *why, int place, const struct points *jobs);
double jobs_mean(struct why *why, int place, const struct points *jobs);
double jobs_p99(struct why *why, int place, const struct points *jobs, double copies,
                double target_s);
