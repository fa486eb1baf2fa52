/* The layout that fits a write, and the commands that set it. */
#include "planner/stripe.h"
#include "planner/formula.h"
#include <stdio.h>

#define UNIT_BYTES_OF_STRIPE 65536.0
#define MEBIBYTE 1048576.0
enum { COUNT_LEAST = 4, COUNT_MOST = 64, UNITS_MOST = 64 };

struct stripe_layout {
    double size_bytes;
    double count;
};

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

static const char *stripe_best(double length_bytes, double target_count,
                               struct stripe_layout *ret_layout) {
    double count_most = fmin((double)COUNT_MOST, floor(target_count));
    struct fit best = {.excess = HUGE_VAL};

    if (count_most < (double)COUNT_LEAST) {
        return "there are fewer than 4 targets";
    }
    if (length_bytes < (double)COUNT_LEAST * UNIT_BYTES_OF_STRIPE) {
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

double stripe_best_size(struct why *why, int place, double length_bytes, double target_count) {
    struct stripe_layout layout = {0};
    const char *reason = stripe_best(length_bytes, target_count, &layout);

    return reason ? cannot(why, place, reason) : layout.size_bytes;
}

double stripe_best_count(struct why *why, int place, double length_bytes, double target_count) {
    struct stripe_layout layout = {0};
    const char *reason = stripe_best(length_bytes, target_count, &layout);

    return reason ? cannot(why, place, reason) : layout.count;
}

void stripe_words(const struct data *data, const struct stripe_inputs *in,
                  struct stripe_outputs *out) {
    double size = out->best_size.value;
    double count = out->best_count.value;

    (void)data;
    (void)in;
    if (out->best_size.cannot) {
        snprintf(out->shoal_command.text, WORDS_BYTES, "nothing fits: %s", out->best_size.cannot);
        out->lustre_command = out->shoal_command;
        return;
    }
    bool whole = fmod(size, MEBIBYTE) == 0;
    double shown = size / (whole ? MEBIBYTE : 1024);
    char unit = whole ? 'M' : 'K';

    snprintf(out->shoal_command.text, WORDS_BYTES,
             "shoal stripe set PATH --count %.0f --size %.0f%c", count, shown, unit);
    snprintf(out->lustre_command.text, WORDS_BYTES, "lfs setstripe -c %.0f -S %.0f%c PATH", count,
             shown, unit);
}
