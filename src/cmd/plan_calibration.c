/* Benchmarks as costs: the machine is taken to be busy in the best of its runs. */
#include "cmd/plan_calibration.h"
#include "base/err.h"
#include "cmd/plan_files.h"
#include "env/env_process.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct phase {
    const char *name;
    const char *key;
    bool stream; /* of 1 MiB blocks: what counts is the byte */
};

static const struct phase phases[] = {
    {"create", "create", false}, {"stat", "stat", false},     {"open", "open", false},
    {"rename", "rename", false}, {"unlink", "unlink", false}, {"mkdir", "mkdir", false},
    {"rmdir", "rmdir", false},   {"write", "write", true},    {"read", "read", true},
};

/* Small files have rows of the same names; theirs are not of 1 MiB an operation. */
static const struct phase *phase_of(const char *name, double bytes_an_operation) {
    for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
        if (strcmp(phases[i].name, name) == 0 &&
            phases[i].stream == (bytes_an_operation > 0.99 * (double)MIB)) {
            return &phases[i];
        }
    }
    return NULL;
}

static int set_cost(struct data *data, const struct phase *phase, double cost) {
    enum unit unit = phase->stream ? UNIT_SECONDS_PER_BYTE : UNIT_SECONDS;
    char text[UNIT_TEXT_BYTES];

    unit_format_exact(unit, cost, text);
    return data_set(data, "calibration", phase->key, text);
}

static int take_row(const json_t *row, double best[ARRAY_SIZE(phases)]) {
    const char *name = json_string_value(json_object_get(row, "name"));
    double rate = json_number_value(json_object_get(row, "ops_per_s"));
    double bytes = json_number_value(json_object_get(row, "mb_per_s")) * 1e6;

    if (!name || !(rate > 0)) {
        return -ERR_MALFORMED;
    }
    const struct phase *phase = phase_of(name, bytes / rate);
    if (phase) {
        double *place = &best[phase - phases];

        *place = MAX(*place, phase->stream ? bytes : rate);
    }
    return 0;
}

static int take_rows(const json_t *rows, struct data *data) {
    double best[ARRAY_SIZE(phases)] = {0};
    double cores = env_processors();
    char text[UNIT_TEXT_BYTES];
    size_t index;
    json_t *row;
    int r = json_is_array(rows) && json_array_size(rows) > 0 ? 0 : -ERR_MALFORMED;

    json_array_foreach(rows, index, row) {
        r = r < 0 ? r : take_row(row, best);
    }
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(phases); i++) {
        r = best[i] > 0 ? set_cost(data, &phases[i], cores / best[i]) : 0;
    }
    snprintf(text, sizeof text, "this machine, %.0f processors", cores);
    return r < 0 ? r : data_set(data, "about.calibration", "source", text);
}

int plan_calibration_load(const char *path, struct data *data, struct plan_problem *problem) {
    char *text;
    int r = plan_files_read(path, &text, problem);

    if (r < 0) {
        return r;
    }
    json_t *rows = json_loads(text, 0, NULL);
    r = take_rows(rows, data);
    if (r == -ERR_MALFORMED) {
        plan_complain(problem,
                      "%s is not what `shoal bench KIND PATH --json` prints: an array of rows with "
                      "name and ops_per_s",
                      path);
    } else if (r < 0) {
        plan_complain(problem, "%s: %s", path, err_text(r));
    }
    json_decref(rows);
    free(text);
    return r;
}
