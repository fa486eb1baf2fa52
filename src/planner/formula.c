/* What formulas call, and the functions of their language that are no more than a few lines. */
#include "planner/formula.h"
#include <stdio.h>
#include <string.h>

static void note(struct why *why, int place, const char *reason) {
    if (!why->reason || place < why->place) {
        *why = (struct why){.reason = reason, .place = place};
    }
}

double need(struct why *why, int place, const struct figure *figure) {
    if (figure->cannot) {
        note(why, place, figure->cannot);
        return 0;
    }
    return figure->value;
}

double ratio(struct why *why, int place, double top, double bottom, const char *reason) {
    if (bottom == 0) {
        note(why, place, reason);
        return 0;
    }
    return top / bottom;
}

double cannot(struct why *why, int place, const char *reason) {
    note(why, place, reason);
    return 0;
}

/* In whatever unit it is: a text fits one kind of unit only, or means the same in two; but 96B are
 * bytes and not billions, so plain numbers come last. */
static bool parse_any(const char *text, double *ret_number) {
    for (unsigned unit = UNIT_COUNT + 1; unit < UNIT_COUNT_OF_UNITS; unit++) {
        if (unit_parse((enum unit)unit, text, ret_number) == 0) {
            return true;
        }
    }
    return unit_parse(UNIT_COUNT, text, ret_number) == 0;
}

double from_data(struct why *why, int place, const struct data *data, const char *reason,
                 const char *const pieces[]) {
    char path[2 * DATA_NAME_BYTES] = "";
    double number;

    for (size_t i = 0; pieces[i]; i++) {
        size_t used = strlen(path);

        snprintf(path + used, sizeof path - used, "%s", pieces[i]);
    }
    const char *text = data ? data_find(data, path) : NULL;
    if (!text || !parse_any(text, &number) || number < 0) {
        note(why, place, reason ? reason : "the data lack a value that is needed here");
        return 0;
    }
    return number;
}

struct figure figure_end(struct why *why, double value, const char *too_large) {
    struct figure figure = why->reason ? figure_cannot(why->reason) : figure_of(value);

    if (!why->reason && figure.cannot && too_large) {
        figure.cannot = too_large;
    }
    *why = (struct why){0};
    return figure;
}

bool holds(struct why *why, bool condition) {
    bool whole = !why->reason;

    *why = (struct why){0};
    return whole && condition;
}

/* By the recurrence of Erlang's B, which neither overflows nor cancels. */
double erlang_c(struct why *why, int place, double servers, double load) {
    double blocked = 1;

    (void)why;
    (void)place;
    for (uint32_t k = 1; k <= (uint32_t)servers; k++) {
        blocked = load * blocked / (k + load * blocked);
    }
    double waiting = blocked / (1 - load / servers * (1 - blocked));
    return waiting < 1e-290 ? 0 : waiting;
}

double packet_payload(struct why *why, int place, double mtu_bytes, double reserved_bytes,
                      double most_bytes) {
    double left = mtu_bytes - reserved_bytes;

    if (left < 1) {
        note(why, place, "the MTU leaves no room for data");
        return 0;
    }
    return most_bytes > 0 ? fmin(most_bytes, exp2(floor(log2(left)))) : left;
}
