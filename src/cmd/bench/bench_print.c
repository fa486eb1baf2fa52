/* Rows of a benchmark as a table or as JSON. */
#include "cmd/bench/bench.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static double per_second(uint64_t amount, uint64_t elapsed_ns) {
    return elapsed_ns ? (double)amount * (double)NS_PER_S / (double)elapsed_ns : 0;
}

static double microseconds(const struct bench_row *row, uint32_t per_mille) {
    return (double)histogram_percentile(&row->latency_ns, per_mille) / (double)NS_PER_US;
}

static void print_json(struct bench_print *print, const struct bench_row *row) {
    json_t *json =
        json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "name", row->name, "threads",
                  (json_int_t)row->threads, "ops", (json_int_t)row->operations, "ops_per_s",
                  per_second(row->operations, row->elapsed_ns), "mb_per_s",
                  per_second(row->bytes, row->elapsed_ns) / 1e6, "p50_us", microseconds(row, 500),
                  "p99_us", microseconds(row, 990), "p999_us", microseconds(row, 999));
    char *text =
        json ? json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;

    print->out(print->context, print->count == 0 ? "[\n" : ",\n");
    print->out(print->context, text ? text : "null");
    free(text);
    json_decref(json);
}

void bench_print_row(struct bench_print *print, const struct bench_row *row) {
    char line[256];

    if (print->json) {
        print_json(print, row);
    } else {
        if (print->count == 0) {
            snprintf(line, sizeof line, "%-10s %7s %9s %10s %9s %9s %9s %9s\n", "name", "threads",
                     "ops", "ops/s", "MB/s", "p50 us", "p99 us", "p99.9 us");
            print->out(print->context, line);
        }
        snprintf(line, sizeof line,
                 "%-10s %7" PRIu32 " %9" PRIu64 " %10.0f %9.1f %9.1f %9.1f %9.1f\n", row->name,
                 row->threads, row->operations, per_second(row->operations, row->elapsed_ns),
                 per_second(row->bytes, row->elapsed_ns) / 1e6, microseconds(row, 500),
                 microseconds(row, 990), microseconds(row, 999));
        print->out(print->context, line);
    }
    print->count++;
}

void bench_print_end(struct bench_print *print) {
    if (print->json) {
        print->out(print->context, print->count == 0 ? "[]\n" : "\n]\n");
    }
}
