/* The model of scaling. */
#include "planner/scaling.h"
#include "planner/least_squares.h"
#include <stdio.h>

/* Lustre: OBD_MAX_RIF_DEFAULT, OSC_MAX_RIF_MAX, OBD_MAX_RIF_MAX. A client keeps one RPC of an MDC
 * free of changes. */
enum { RPCS_DEFAULT = 8, OSC_RPCS_MAX = 256, MDC_RPCS_MAX = 512 };

static void plan_quoted(const struct scaling_inputs *in, struct scaling_outputs *out) {
    double spread = in->serial / fmax(1, in->metadata_targets);
    double linear = in->clients * in->link;
    double quoted =
        (1 - spread) * in->clients * in->link / (1 + (in->clients - 1) * in->contention);

    out->serial_spread = figure_of(spread);
    out->linear = figure_of(linear);
    out->quoted = figure_of(quoted);
    out->quoted_client = figure_of(quoted / in->clients);
    out->quoted_loss = figure_of(1 - quoted / linear);
    out->quoted_limit = figure_ratio((1 - spread) * in->link, in->contention,
                                     "without contention there is no limit");
    out->quoted_gain = figure_ratio(1 - spread, 1 - in->serial, "everything is serial");
}

static struct figure fitted(const struct fit *fit, double value) {
    return fit->cannot ? figure_cannot(fit->cannot) : figure_of(value);
}

static void plan_amdahl(const struct scaling_inputs *in, struct scaling_outputs *out) {
    double n = in->clients;

    if (in->points.count > 0) {
        struct fit fit = least_squares_amdahl(&in->points);

        out->amdahl_alone = fitted(&fit, fit.alone * 1e9);
        out->amdahl_serial = fitted(&fit, fit.contention);
        out->amdahl_error = fitted(&fit, fit.error);
    } else {
        out->amdahl_alone = figure_of(in->link);
        out->amdahl_serial = out->serial_spread;
        out->amdahl_error = figure_cannot("no points are given");
    }
    out->amdahl = FIGURE(out->amdahl_alone.value * n / (1 + out->amdahl_serial.value * (n - 1)),
                         &out->amdahl_alone, &out->amdahl_serial);
    out->amdahl_limit = out->amdahl_alone.cannot
                            ? out->amdahl_alone
                            : figure_ratio(out->amdahl_alone.value, out->amdahl_serial.value,
                                           "nothing is serial, so there is no limit");
    out->amdahl_gain = figure_ratio(in->serial, out->serial_spread.value, "nothing is serial");
}

static double usl_at(const struct scaling_outputs *out, double n) {
    return out->usl_alone.value * n /
           (1 + out->usl_alpha.value * (n - 1) + out->usl_beta.value * n * (n - 1));
}

static void plan_usl(const struct scaling_inputs *in, struct scaling_outputs *out) {
    if (in->points.count > 0) {
        struct fit fit = least_squares_usl(&in->points);

        out->usl_alone = fitted(&fit, fit.alone * 1e9);
        out->usl_alpha = fitted(&fit, fit.contention);
        out->usl_beta = fitted(&fit, fit.coherency);
        out->usl_error = fitted(&fit, fit.error);
    } else {
        out->usl_alone = figure_of(in->link);
        out->usl_alpha = figure_of(in->usl_contention);
        out->usl_beta = figure_of(in->usl_coherency);
        out->usl_error = figure_cannot("no points are given");
    }
    out->usl = FIGURE(usl_at(out, in->clients), &out->usl_alone, &out->usl_alpha, &out->usl_beta);
    if (out->usl_beta.cannot) {
        out->usl_peak_clients = out->usl_beta;
    } else if (out->usl_beta.value == 0) {
        out->usl_peak_clients = figure_cannot("without coherency there is no peak");
    } else {
        double peak = sqrt(fmax(0, 1 - out->usl_alpha.value) / out->usl_beta.value);

        out->usl_peak_clients = figure_of(fmax(1, peak));
    }
    out->usl_peak = FIGURE(usl_at(out, out->usl_peak_clients.value), &out->usl_alone,
                           &out->usl_alpha, &out->usl_beta, &out->usl_peak_clients);
}

static void plan_queue(const struct scaling_inputs *in, struct scaling_outputs *out) {
    double each = in->stripe_count > 0 ? fmin(in->stripe_count, in->targets) : in->targets;
    double streams = in->clients * each;
    double here = streams / in->targets;
    double depth = in->queue_depth > 0 ? in->queue_depth : here * in->rpcs_in_flight;
    double bound = fmin(in->target_bandwidth, depth * in->rpc_size / in->request_time);
    double crowd = 1 + depth / in->server_threads;

    out->streams = figure_of(streams);
    out->streams_per_target = figure_of(here);
    out->depth = figure_of(depth);
    out->queued = figure_of(fmax(0, depth - in->server_threads));
    out->knee = figure_of(in->target_bandwidth * in->request_time / in->rpc_size);
    out->bound = figure_of(bound);
    out->bound_share = figure_of(bound / in->target_bandwidth);
    out->bound_time =
        figure_of(fmax(in->request_time, depth * in->rpc_size / in->target_bandwidth));
    out->quoted_share = figure_of(1 / (crowd * crowd));
}

static void plan_rpcs(const struct scaling_inputs *in, struct scaling_outputs *out) {
    double alone =
        whole_up(in->link * in->request_time / (in->rpc_size * out->streams.value / in->clients));
    double together = whole_up(out->knee.value / out->streams_per_target.value);
    double metadata = whole_up(in->client_operations * in->operation_time);

    out->osc_alone = figure_of(alone);
    out->osc_together = figure_of(together);
    out->osc_quoted = figure_of(16 / log2(in->clients + 1));
    out->osc_advised = figure_of(fmin(OSC_RPCS_MAX, fmax(RPCS_DEFAULT, fmax(alone, together))));
    out->mdc_needed = figure_of(metadata);
    out->mdc_advised = figure_of(fmin(MDC_RPCS_MAX, fmax(RPCS_DEFAULT, metadata)));
}

static void plan_commands(struct scaling_outputs *out) {
    double osc = out->osc_advised.value;
    double mdc = out->mdc_advised.value;

    if (osc == RPCS_DEFAULT) {
        snprintf(out->osc.text, WORDS_BYTES,
                 "leave osc.*.max_rpcs_in_flight at its default of %d (1 to %d)", RPCS_DEFAULT,
                 OSC_RPCS_MAX);
    } else {
        snprintf(out->osc.text, WORDS_BYTES, "lctl set_param osc.*.max_rpcs_in_flight=%.0f", osc);
    }
    if (mdc == RPCS_DEFAULT) {
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

static void plan_verdict(const struct scaling_inputs *in, struct scaling_outputs *out) {
    char *text = out->verdict.text;

    if (out->depth.value < out->knee.value) {
        snprintf(text, WORDS_BYTES,
                 "%.4g requests at a target leave it idle at times: %.0f keep it busy",
                 out->depth.value, whole_up(out->knee.value));
    } else if (out->depth.value > in->server_threads) {
        snprintf(text, WORDS_BYTES,
                 "more requests than a target works on at once: they wait in line, which costs "
                 "time but no bandwidth");
    } else {
        snprintf(text, WORDS_BYTES, "the targets are busy, with room for more requests");
    }
}

void scaling_plan(const struct scaling_inputs *in, struct scaling_outputs *out) {
    plan_quoted(in, out);
    plan_amdahl(in, out);
    plan_usl(in, out);
    plan_queue(in, out);
    plan_rpcs(in, out);
    plan_commands(out);
    plan_verdict(in, out);
}

PLAN_ONE_ROW(scaling_plan(inputs, ret_outputs))

#define PLAN_INPUTS scaling_inputs
#define PLAN_OUTPUTS scaling_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#define POINTS PLAN_POINTS_ROW
#include "planner/scaling.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/scaling.def"
};

const struct plan_model plan_scaling = {
    .name = "scaling",
    .summary = "Throughput of many clients by three laws, queues, RPCs in flight.",
    .example = "--clients 128 --points 1:20,8:140,32:390,128:610",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
