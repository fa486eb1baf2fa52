/* Checkpoints that coincide: a job writes size / target during a share target / interval of the
 * time, apart from the others. Their sum, by convolution up to JOBS_EXACT of them, else normal.
 *
 * The convolution is on a lattice of LATTICE steps up to the worst case, each job's bandwidth
 * rounded up to it: the result is too high by JOBS_EXACT / LATTICE of the worst case at most. */
#include "planner/mix.h"
#include "planner/formula.h"
#include <stdlib.h>

enum { JOBS_EXACT = 64, LATTICE = 65536 };

#define GIGABYTE 1e9
#define MINUTE 60.0
/* Of the normal distribution: 99 % lie below the mean and so many standard deviations. */
#define NORMAL_99 2.3263478740408408

double jobs_count(struct why *why, int place, const struct points *jobs) {
    (void)why;
    (void)place;
    return jobs->count;
}

double jobs_size(struct why *why, int place, const struct points *jobs) {
    double sum = 0;

    (void)why;
    (void)place;
    for (uint32_t i = 0; i < jobs->count; i++) {
        sum += jobs->x[i] * GIGABYTE;
    }
    return sum;
}

double jobs_mean(struct why *why, int place, const struct points *jobs) {
    double sum = 0;

    (void)why;
    (void)place;
    for (uint32_t i = 0; i < jobs->count; i++) {
        sum += jobs->x[i] * GIGABYTE / (jobs->y[i] * MINUTE);
    }
    return sum;
}

static double busy_share(const struct points *jobs, uint32_t i, double target_s) {
    return fmin(1, target_s / (jobs->y[i] * MINUTE));
}

static double by_normal(const struct points *jobs, double copies, double target_s) {
    double mean = 0;
    double variance = 0;
    double worst = 0;

    for (uint32_t i = 0; i < jobs->count; i++) {
        double bandwidth = jobs->x[i] * GIGABYTE / target_s;
        double share = busy_share(jobs, i, target_s);

        mean += copies * bandwidth * share;
        variance += copies * bandwidth * bandwidth * share * (1 - share);
        worst += copies * bandwidth;
    }
    return fmin(worst, mean + NORMAL_99 * sqrt(variance));
}

/* Adds a job to the distribution. */
static void convolve(double *chance, size_t steps, double share) {
    for (size_t i = LATTICE + JOBS_EXACT + 1; i-- > 0;) {
        chance[i] = chance[i] * (1 - share) + (i >= steps ? chance[i - steps] * share : 0);
    }
}

static double by_convolution(const struct points *jobs, double copies, double target_s,
                             double *chance) {
    double worst = 0;
    double sum = 0;
    size_t at = 0; /* of the lattice */

    for (uint32_t i = 0; i < jobs->count; i++) {
        worst += copies * jobs->x[i] * GIGABYTE / target_s;
    }
    if (!isfinite(worst)) {
        return worst;
    }
    chance[0] = 1;
    for (uint32_t i = 0; i < jobs->count; i++) {
        double steps = whole_up(jobs->x[i] * GIGABYTE / target_s / worst * (double)LATTICE);

        for (uint32_t copy = 0; copy < (uint32_t)copies; copy++) {
            convolve(chance, (size_t)steps, busy_share(jobs, i, target_s));
        }
    }
    for (at = 0; at < LATTICE + JOBS_EXACT; at++) {
        sum += chance[at];
        if (sum >= 0.99) {
            break;
        }
    }
    return fmin(worst, (double)at / (double)LATTICE * worst);
}

double jobs_p99(struct why *why, int place, const struct points *jobs, double copies,
                double target_s) {
    if (jobs->count == 0) {
        return 0;
    }
    if (jobs->count * copies > (double)JOBS_EXACT) {
        return by_normal(jobs, copies, target_s);
    }
    double *chance = calloc(LATTICE + JOBS_EXACT + 1, sizeof *chance);
    if (!chance) {
        return cannot(why, place, "memory ran out");
    }
    double p99 = by_convolution(jobs, copies, target_s, chance);
    free(chance);
    return p99;
}
