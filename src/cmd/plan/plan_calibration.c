/* Benchmarks as costs. */
#include "cmd/plan/plan_calibration.h"
#include "base/err.h"
#include "cmd/plan/plan_files.h"
#include "host/machine.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Phases of names and attributes; their rows move no bytes. */
static const char *const names[] = {"create", "stat", "open", "rename", "unlink", "mkdir", "rmdir"};

/* Whole files or blocks, of which there may be several sizes. */
struct sized {
    double bytes; /* of one operation */
    double rate;
};
enum { SIZES_MAX = 16 };

struct transfer {
    const char *name;
    struct sized sizes[SIZES_MAX];
    size_t count;
};

struct costs {
    double cores;
    double rates[ARRAY_SIZE(names)]; /* the best */
    struct transfer read, write;
};

static void take_transfer(struct transfer *transfer, double bytes, double rate) {
    for (size_t i = 0; i < transfer->count; i++) {
        if (fabs(transfer->sizes[i].bytes - bytes) < 0.01 * bytes) {
            transfer->sizes[i].rate = MAX(transfer->sizes[i].rate, rate);
            return;
        }
    }
    if (transfer->count < SIZES_MAX) {
        transfer->sizes[transfer->count++] = (struct sized){bytes, rate};
    }
}

static int take_row(const json_t *row, struct costs *costs) {
    const char *name = json_string_value(json_object_get(row, "name"));
    double rate = json_number_value(json_object_get(row, "ops_per_s"));
    double bytes = json_number_value(json_object_get(row, "mb_per_s")) * 1e6;

    if (!name || !(rate > 0)) {
        return -ERR_MALFORMED;
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            costs->rates[i] = MAX(costs->rates[i], rate);
        }
    }
    if (bytes > 0 && strcmp(name, "read") == 0) {
        take_transfer(&costs->read, bytes / rate, rate);
    } else if (bytes > 0 && strcmp(name, "write") == 0) {
        take_transfer(&costs->write, bytes / rate, rate);
    }
    return 0;
}

static int set_cost(struct data *data, const char *key, enum unit unit, double cost) {
    char about[2 * DATA_NAME_BYTES];
    char text[UNIT_TEXT_BYTES];

    unit_format_exact(unit, cost, text);
    int r = data_set(data, "calibration", key, text);
    snprintf(about, sizeof about, "about.calibration.%s", key);
    snprintf(text, sizeof text, "this machine, %u processors", machine_processors());
    return r < 0 ? r : data_set(data, about, "source", text);
}

/* The line through files of two sizes. */
static int set_line(struct data *data, const char *name, const struct sized ends[2], double cores) {
    char key[DATA_NAME_BYTES];
    double least = cores / ends[0].rate;
    double most = cores / ends[1].rate;
    double slope = fmax(0, (most - least) / (ends[1].bytes - ends[0].bytes));

    snprintf(key, sizeof key, "small_%s_byte", name);
    int r = set_cost(data, key, UNIT_SECONDS_PER_BYTE, slope);
    if (r < 0) {
        return r;
    }
    snprintf(key, sizeof key, "small_%s_file", name);
    return set_cost(data, key, UNIT_SECONDS, fmax(0, least - slope * ends[0].bytes));
}

/* Blocks of 1 MiB are the stream's, smaller ones whole files. */
static int set_transfer(struct data *data, const struct transfer *transfer, double cores) {
    struct sized ends[2] = {{.bytes = INFINITY}, {.bytes = 0}};
    int r = 0;

    for (size_t i = 0; r == 0 && i < transfer->count; i++) {
        const struct sized *sized = &transfer->sizes[i];

        if (sized->bytes > 0.99 * (double)MIB) {
            r = set_cost(data, transfer->name, UNIT_SECONDS_PER_BYTE,
                         cores / (sized->bytes * sized->rate));
            continue;
        }
        ends[0] = sized->bytes < ends[0].bytes ? *sized : ends[0];
        ends[1] = sized->bytes > ends[1].bytes ? *sized : ends[1];
    }
    return r == 0 && ends[0].bytes < ends[1].bytes ? set_line(data, transfer->name, ends, cores)
                                                   : r;
}

static int set_costs(struct data *data, const struct costs *costs) {
    int r = 0;

    data->file++;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
        r = costs->rates[i] > 0
                ? set_cost(data, names[i], UNIT_SECONDS, costs->cores / costs->rates[i])
                : 0;
    }
    if (r == 0) {
        r = set_transfer(data, &costs->read, costs->cores);
    }
    return r < 0 ? r : set_transfer(data, &costs->write, costs->cores);
}

static int load_one(const char *path, struct costs *costs, struct plan_problem *problem) {
    char *text;
    size_t index;
    json_t *row;
    int r = plan_files_read(path, &text, problem);

    if (r < 0) {
        return r;
    }
    json_t *rows = json_loads(text, 0, NULL);
    r = json_is_array(rows) && json_array_size(rows) > 0 ? 0 : -ERR_MALFORMED;
    json_array_foreach(rows, index, row) {
        if (r == 0) {
            r = take_row(row, costs);
        }
    }
    if (r < 0) {
        plan_complain(problem,
                      "%s is not what `shoal bench KIND PATH --json` prints: an array of rows with "
                      "name and ops_per_s",
                      path);
    }
    json_decref(rows);
    free(text);
    return r;
}

int plan_calibration_load(const char *const *paths, size_t path_count, struct data *data,
                          struct plan_problem *problem) {
    struct costs costs = {
        .cores = machine_processors(), .read.name = "read", .write.name = "write"};
    int r = 0;

    for (size_t i = 0; r == 0 && i < path_count; i++) {
        r = load_one(paths[i], &costs, problem);
    }
    if (r < 0 || path_count == 0) {
        return r;
    }
    r = set_costs(data, &costs);
    if (r < 0) {
        plan_complain(problem, "the calibration cannot be kept: %s", err_text(r));
    }
    return r;
}
