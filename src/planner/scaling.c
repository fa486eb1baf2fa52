/* Words of the scaling model, and its fits. */
#include "planner/scaling.h"
#include "planner/formula.h"
#include "planner/least_squares.h"
#include <stdio.h>

/* Lustre: OBD_MAX_RIF_DEFAULT, OSC_MAX_RIF_MAX, OBD_MAX_RIF_MAX. A client keeps one RPC of an MDC
 * free of changes. */
enum { RPCS_DEFAULT = 8, OSC_RPCS_MAX = 256, MDC_RPCS_MAX = 512 };

/* One of a fit's numbers: bandwidth, contention, coherency or nothing, error. */
static double of_fit(struct why *why, int place, const struct fit *fit, const double numbers[4],
                     int which) {
    return fit->cannot ? cannot(why, place, fit->cannot) : numbers[which];
}

double least_squares_amdahl(struct why *why, int place, const struct points *points, int which) {
    if (points->count == 0) {
        return cannot(why, place, "no points are given");
    }
    struct fit fit = least_squares_fit_amdahl(points);

    return of_fit(why, place, &fit, (double[]){fit.alone, fit.contention, fit.error, 0}, which);
}

double least_squares_usl(struct why *why, int place, const struct points *points, int which) {
    if (points->count == 0) {
        return cannot(why, place, "no points are given");
    }
    struct fit fit = least_squares_fit_usl(points);

    return of_fit(why, place, &fit, (double[]){fit.alone, fit.contention, fit.coherency, fit.error},
                  which);
}

void scaling_words(const struct data *data, const struct scaling_inputs *in,
                   struct scaling_outputs *out) {
    double osc = out->osc_advised.value;
    double mdc = out->mdc_advised.value;

    (void)data;
    (void)in;
    if (osc == (double)RPCS_DEFAULT) {
        snprintf(out->osc.text, WORDS_BYTES,
                 "leave osc.*.max_rpcs_in_flight at its default of %d (1 to %d)", RPCS_DEFAULT,
                 OSC_RPCS_MAX);
    } else {
        snprintf(out->osc.text, WORDS_BYTES, "lctl set_param osc.*.max_rpcs_in_flight=%.0f", osc);
    }
    if (mdc == (double)RPCS_DEFAULT) {
        snprintf(out->mdc.text, WORDS_BYTES,
                 "leave mdc.*.max_rpcs_in_flight at its default of %d (2 to %d) and "
                 "mdc.*.max_mod_rpcs_in_flight, for changes, at %d",
                 RPCS_DEFAULT, MDC_RPCS_MAX, RPCS_DEFAULT - 1);
    } else {
        snprintf(out->mdc.text, WORDS_BYTES,
                 "lctl set_param mdc.*.max_rpcs_in_flight=%.0f; for changes "
                 "mdc.*.max_mod_rpcs_in_flight has to stay below that, and at most what the MDT "
                 "allows a client, by default 8",
                 mdc);
    }
    snprintf(out->gpfs.text, WORDS_BYTES,
             "mmchconfig workerThreads=N, of each node; its default varies with the release (48, "
             "128, 512 are told, none verified: see mmdiag --config); the quoted 32 to 64 for "
             "many clients has no known source");
}
