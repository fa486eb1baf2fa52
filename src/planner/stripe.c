/* The model of writes to a shared file. */
#include "planner/stripe.h"
#include <stdio.h>

static const char no_link[] = "the network gives nothing";
static const char no_duration[] = "there is nothing to wait for";

#define UNIT_BYTES_OF_STRIPE 65536.0
#define MEBIBYTE 1048576.0
enum { COUNT_LEAST = 4, COUNT_MOST = 64, UNITS_MOST = 64 };

static void plan_chain(const struct stripe_inputs *in, struct stripe_outputs *out) {
    out->lock = figure_of(in->rpc_time + in->ldlm_time + in->grant_time);
    out->chain = figure_of(in->processes * out->lock.value);
    out->chain_slowdown = figure_ratio(out->chain.value + in->write_time, in->write_time,
                                       "the write itself takes no time");
    out->conflict = figure_of(in->processes * (in->rpc_time + in->ldlm_time * in->conflicts));
}

static struct figure gain_of(double duration, const struct figure *collective) {
    return collective->cannot
               ? *collective
               : figure_ratio(duration, collective->value, "collective I/O takes no time");
}

static void plan_collective(const struct stripe_inputs *in, struct stripe_outputs *out) {
    double writers = fmin(in->aggregators, in->processes);

    out->writers = figure_of(writers);
    out->aggregated = figure_of(in->processes * in->write_size / writers);
    out->collective_lock = figure_of(writers * out->lock.value);
    out->exchange_link = figure_ratio(out->aggregated.value, in->link, no_link);
    out->exchange_rounds = figure_ratio(out->aggregated.value, in->link * writers, no_link);
    out->exchange_rounds =
        FIGURE(out->exchange_rounds.value * log2(writers), &out->exchange_rounds);
    out->collective_least =
        FIGURE(out->collective_lock.value + out->exchange_rounds.value, &out->exchange_rounds);
    out->collective_most =
        FIGURE(out->collective_lock.value + out->exchange_link.value, &out->exchange_link);
    out->gain = gain_of(out->chain.value, &out->collective_most);
    out->gain_most = gain_of(out->chain.value, &out->collective_least);
    out->gain_conflict = gain_of(out->conflict.value, &out->collective_most);
}

static void plan_throughput(const struct stripe_inputs *in, struct stripe_outputs *out) {
    out->written = figure_of(in->processes * in->write_size);
    out->write = figure_ratio(out->written.value, in->write_bandwidth, "the storage takes nothing");
    out->write = FIGURE(fmax(in->write_time, out->write.value), &out->write);
    out->single_throughput =
        out->write.cannot
            ? out->write
            : figure_ratio(out->written.value, out->chain.value + out->write.value, no_duration);
    const char *why =
        figure_first_cannot(2, (const struct figure *[]){&out->collective_most, &out->write});
    out->collective_throughput =
        why ? figure_cannot(why)
            : figure_ratio(out->written.value, out->collective_most.value + out->write.value,
                           no_duration);
}

static void plan_alignment(const struct stripe_inputs *in, struct stripe_outputs *out) {
    double end = in->offset + in->length;
    bool head = fmod(in->offset, in->stripe_size) > 0;
    bool tail = fmod(end, in->stripe_size) > 0;
    double pieces =
        in->length > 0 ? ceil(end / in->stripe_size) - floor(in->offset / in->stripe_size) : 0;

    out->pieces = figure_of(pieces);
    out->partial = figure_of(fmin(pieces, head + tail));
    out->extra = figure_of(pieces - ceil(in->length / in->stripe_size));
    out->objects = figure_of(fmin(pieces, in->stripe_count));
    out->pieces_each = figure_ratio(pieces, out->objects.value, "nothing is written");
    out->slowdown = figure_of(1);
    if (in->read_modify_write) {
        out->slowdown = figure_ratio(out->partial.value, pieces, "nothing is written");
        out->slowdown = FIGURE(1 + out->slowdown.value, &out->slowdown);
    }
    out->loss = FIGURE(1 - 1 / out->slowdown.value, &out->slowdown);
}

/* How well a layout suits; the first field that differs decides. */
struct fit {
    double excess; /* less is better, of the others more */
    double size_to_mebibyte;
    double count;
    double size;
};

static bool fit_better(const struct fit *fit, const struct fit *best) {
    if (fit->excess != best->excess) {
        return fit->excess < best->excess;
    }
    if (fit->size_to_mebibyte != best->size_to_mebibyte) {
        return fit->size_to_mebibyte > best->size_to_mebibyte;
    }
    if (fit->count != best->count) {
        return fit->count > best->count;
    }
    return fit->size > best->size;
}

const char *stripe_best(double length_bytes, double target_count,
                        struct stripe_layout *ret_layout) {
    double count_most = fmin(COUNT_MOST, floor(target_count));
    struct fit best = {.excess = HUGE_VAL};

    if (count_most < COUNT_LEAST) {
        return "there are fewer than 4 targets";
    }
    if (length_bytes < COUNT_LEAST * UNIT_BYTES_OF_STRIPE) {
        return "the write is under 256 KiB, too little for 4 stripes of 64 KiB";
    }
    for (int count = COUNT_LEAST; count <= (int)count_most; count++) {
        for (int units = 1; units <= UNITS_MOST; units++) {
            double size = units * UNIT_BYTES_OF_STRIPE;
            double round = size * count;
            struct fit fit = {
                .excess = ceil(length_bytes / round) * round - length_bytes,
                .size_to_mebibyte = fmin(size, MEBIBYTE),
                .count = count,
                .size = size,
            };

            if (fit_better(&fit, &best)) {
                best = fit;
            }
        }
    }
    *ret_layout = (struct stripe_layout){.size_bytes = best.size, .count = best.count};
    return NULL;
}

static void plan_best(const struct stripe_inputs *in, struct stripe_outputs *out) {
    struct stripe_layout layout = {0};
    const char *why = stripe_best(in->length, in->targets, &layout);

    if (why) {
        out->best_size = out->best_count = out->best_rounds = out->best_excess = figure_cannot(why);
        snprintf(out->shoal_command.text, WORDS_BYTES, "nothing fits: %s", why);
        out->lustre_command = out->shoal_command;
        return;
    }
    double round = layout.size_bytes * layout.count;
    bool whole = fmod(layout.size_bytes, MEBIBYTE) == 0;
    double shown = layout.size_bytes / (whole ? MEBIBYTE : 1024);
    char unit = whole ? 'M' : 'K';

    out->best_size = figure_of(layout.size_bytes);
    out->best_count = figure_of(layout.count);
    out->best_rounds = figure_of(ceil(in->length / round));
    out->best_excess = figure_of(out->best_rounds.value * round - in->length);
    snprintf(out->shoal_command.text, WORDS_BYTES,
             "shoal stripe set PATH --count %.0f --size %.0f%c", layout.count, shown, unit);
    snprintf(out->lustre_command.text, WORDS_BYTES, "lfs setstripe -c %.0f -S %.0f%c PATH",
             layout.count, shown, unit);
}

static void plan_words(const struct stripe_inputs *in, struct stripe_outputs *out) {
    char *text = out->alignment.text;

    if (out->pieces.value == 0) {
        snprintf(text, WORDS_BYTES, "nothing is written");
    } else if (out->partial.value == 0) {
        snprintf(text, WORDS_BYTES, "aligned: each piece is a whole stripe");
    } else {
        snprintf(text, WORDS_BYTES, "%.0f of %.0f pieces %s partial: %s", out->partial.value,
                 out->pieces.value, out->partial.value == 1 ? "is" : "are",
                 in->read_modify_write
                     ? "each is read, merged and written"
                     : "smaller requests, and locks shared with the neighbouring write");
    }
}

void stripe_plan(const struct stripe_inputs *in, struct stripe_outputs *out) {
    plan_chain(in, out);
    plan_collective(in, out);
    plan_throughput(in, out);
    plan_alignment(in, out);
    plan_best(in, out);
    plan_words(in, out);
}

PLAN_ONE_ROW(stripe_plan(inputs, ret_outputs))

#define PLAN_INPUTS stripe_inputs
#define PLAN_OUTPUTS stripe_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#define CHOICE PLAN_CHOICE_ROW
#include "planner/stripe.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/stripe.def"
};

const struct plan_model plan_stripe = {
    .name = "stripe",
    .summary = "Many processes write one file: locks, collective I/O, and a layout that fits.",
    .example = "--processes 1024 --write-size 4KiB --aggregators 16 --length 16MiB --targets 32",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
