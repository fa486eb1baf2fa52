/* Fits laws of scaling to measured points (N, X), all above 0.
 *
 * The Universal Scalability Law X = B N / (1 + a (N-1) + b N (N-1)) is linear in 1/B, a/B and b/B
 * when written for N/X. These are found by linear least squares on N/X, each point weighted by X/N,
 * so that equal shares of error count alike. Where a or b would be negative, which means nothing,
 * it is 0 and the others are fitted again: of the fits that remain, the closest one. Amdahl's law
 * is the same without b.
 *
 * A coefficient whose effect at the largest N is below 1e-9 is 0, and so is an error below that.
 * Thread: any; there is no state. */
#pragma once
#include "planner/figure.h"

struct fit {
    const char *cannot; /* why there is none; the rest is then meaningless */
    double alone;       /* B, in the unit of X */
    double contention;  /* a */
    double coherency;   /* b */
    double error;       /* root of the mean of (fitted X / X - 1)^2 */
};

struct fit least_squares_fit_amdahl(const struct points *points);
struct fit least_squares_fit_usl(const struct points *points);
