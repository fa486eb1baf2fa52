/* The model of latency. */
#include "planner/latency.h"
#include <stdio.h>
#include <string.h>

/* Preamble and start 8, header 14, check sequence 4, gap 12. */
#define ETHERNET_BYTES 38
#define FIBRE_METRES_PER_SECOND 2e8

static const char prefix[] = "latency.";
static const char no_network[] = "there is no network on this way";
static const char no_link[] = "the network gives nothing";

/* A way to the data, and what its section says. */
struct way {
    const struct data *data;
    const char *section;
    bool networked;
    struct figure reserved, most, message;
};

static struct figure read_path(const struct data *data, const char *section, const char *key,
                               enum unit unit) {
    char path[2 * DATA_NAME_BYTES];
    double number;

    snprintf(path, sizeof path, "%s.%s", section, key);
    return data_number(data, path, unit, &number) < 0 || number < 0
               ? figure_cannot("the data lack a value that is needed here")
               : figure_of(number);
}

static struct figure read(const struct way *way, const char *key, enum unit unit) {
    return read_path(way->data, way->section, key, unit);
}

double latency_payload(double mtu_bytes, double reserved_bytes, double most_bytes) {
    double left = mtu_bytes - reserved_bytes;

    if (left < 1) {
        return 0;
    }
    return most_bytes > 0 ? fmin(most_bytes, exp2(floor(log2(left)))) : left;
}

static struct figure payload_of(const struct way *way, double mtu) {
    if (!way->networked) {
        return figure_cannot(no_network);
    }
    struct figure payload = FIGURE(latency_payload(mtu, way->reserved.value, way->most.value),
                                   &way->reserved, &way->most);

    return !payload.cannot && payload.value == 0 ? figure_cannot("the MTU leaves no room for data")
                                                 : payload;
}

static void plan_wire(const struct latency_inputs *in, const struct way *way,
                      struct latency_outputs *out) {
    out->headers = way->networked ? read(way, "headers", UNIT_BYTES) : figure_cannot(no_network);
    out->headers = FIGURE(ETHERNET_BYTES + out->headers.value, &out->headers);
    out->payload = payload_of(way, in->mtu);
    /* In a stream the message's header takes room of the data; a packet of RDMA has its own. */
    double packed = in->io_size + (way->most.value > 0 ? 0 : way->message.value);

    out->wire = FIGURE(in->io_size + way->message.value +
                           ceil(packed / out->payload.value) * out->headers.value,
                       &out->payload, &out->headers, &way->message);
    out->header_share = FIGURE(out->headers.value / (out->payload.value + out->headers.value),
                               &out->payload, &out->headers);
}

static struct figure goodput_of(const struct latency_inputs *in, const struct way *way,
                                const struct figure *headers, double mtu) {
    struct figure payload = payload_of(way, mtu);

    return FIGURE(in->link / (1 + headers->value / payload.value), &payload, headers);
}

static void plan_network(const struct latency_inputs *in, const struct way *way,
                         struct latency_outputs *out) {
    double ways = 2 * out->round_trips.value;
    struct figure low = read_path(way->data, "latency_switch", "low", UNIT_SECONDS);
    struct figure high = read_path(way->data, "latency_switch", "high", UNIT_SECONDS);

    out->propagation = FIGURE(ways * in->distance / FIBRE_METRES_PER_SECOND, &out->round_trips);
    out->switch_low = FIGURE(ways * in->hops * low.value, &out->round_trips, &low);
    out->switch_high = FIGURE(ways * in->hops * high.value, &out->round_trips, &high);
    if (!way->networked) {
        out->serialisation_low = out->serialisation_high =
            out->round_trips.cannot ? out->round_trips : figure_of(0);
        return;
    }
    struct figure held = FIGURE(
        out->wire.value + in->hops * fmin(out->wire.value, out->payload.value + out->headers.value),
        &out->wire);

    out->serialisation_low =
        out->wire.cannot ? out->wire : figure_ratio(out->wire.value, in->link, no_link);
    out->serialisation_high = held.cannot ? held : figure_ratio(held.value, in->link, no_link);
}

static const char *medium_section(const struct latency_inputs *in) {
    static const char *const media[] = {"latency_medium.nand", "latency_medium.cached-write",
                                        "latency_medium.memory"};

    return media[in->medium];
}

static void plan_software(const struct latency_inputs *in, const struct way *way,
                          struct latency_outputs *out) {
    const char *medium = medium_section(in);

    out->host_low = read(way, "host_low", UNIT_SECONDS);
    out->host_high = read(way, "host_high", UNIT_SECONDS);
    out->server_low = read(way, "server_low", UNIT_SECONDS);
    out->server_high = read(way, "server_high", UNIT_SECONDS);
    out->medium_low = read_path(way->data, medium, "low", UNIT_SECONDS);
    out->medium_high = read_path(way->data, medium, "high", UNIT_SECONDS);
}

enum { PARTS = 6 };

/* The sum of the parts, and the name of the largest. */
static struct figure add_up(const struct figure *const parts[PARTS], const char **ret_largest) {
    static const char *const names[PARTS] = {"propagation", "switches", "serialisation",
                                             "host",        "server",   "medium"};
    const char *why = figure_first_cannot(PARTS, parts);
    double sum = 0;
    size_t largest = 0;

    if (why) {
        return figure_cannot(why);
    }
    for (size_t i = 0; i < PARTS; i++) {
        sum += parts[i]->value;
        if (parts[i]->value > parts[largest]->value) {
            largest = i;
        }
    }
    *ret_largest = names[largest];
    return figure_of(sum);
}

static void plan_total(struct latency_outputs *out) {
    const struct figure *const low[PARTS] = {&out->propagation,       &out->switch_low,
                                             &out->serialisation_low, &out->host_low,
                                             &out->server_low,        &out->medium_low};
    const struct figure *const high[PARTS] = {&out->propagation,        &out->switch_high,
                                              &out->serialisation_high, &out->host_high,
                                              &out->server_high,        &out->medium_high};
    const char *largest_low = "unknown";
    const char *largest_high = "unknown";

    out->total_low = add_up(low, &largest_low);
    out->total_high = add_up(high, &largest_high);
    snprintf(out->largest.text, WORDS_BYTES, "%s, %s", largest_low, largest_high);
}

static void plan_cpu(const struct latency_inputs *in, const struct way *way,
                     struct latency_outputs *out) {
    struct figure io = read(way, "cpu_io_low", UNIT_SECONDS);
    struct figure byte = read(way, "cpu_byte_low", UNIT_SECONDS_PER_BYTE);

    out->cpu_low = FIGURE(io.value / in->io_size + byte.value, &io, &byte);
    io = read(way, "cpu_io_high", UNIT_SECONDS);
    byte = read(way, "cpu_byte_high", UNIT_SECONDS_PER_BYTE);
    out->cpu_high = FIGURE(io.value / in->io_size + byte.value, &io, &byte);
    out->goodput = goodput_of(in, way, &out->headers, in->mtu);
    out->goodput_1500 = goodput_of(in, way, &out->headers, 1500);
    out->goodput_4200 = goodput_of(in, way, &out->headers, 4200);
    out->goodput_9000 = goodput_of(in, way, &out->headers, 9000);
    out->cores_low = FIGURE(out->goodput.value * out->cpu_low.value, &out->goodput, &out->cpu_low);
    out->cores_high =
        FIGURE(out->goodput.value * out->cpu_high.value, &out->goodput, &out->cpu_high);
}

static void tell_origin(const struct data *data, const char *section, struct plan_words *words) {
    char about[2 * DATA_NAME_BYTES];

    snprintf(about, sizeof about, "about.%s", section);
    const char *source = data_text(data, about, "source");
    const char *url = data_text(data, about, "url");
    snprintf(words->text, WORDS_BYTES, "%s%s%s", source ? source : "the data don't say",
             url ? ", " : "", url ? url : "");
}

bool latency_plan(const struct data *data, const struct latency_inputs *in, size_t row,
                  struct latency_outputs *out) {
    struct way way = {.data = data, .section = data_section(data, prefix, row)};

    if (!way.section) {
        return false;
    }
    snprintf(out->path.text, WORDS_BYTES, "%s", way.section + strlen(prefix));
    tell_origin(data, way.section, &out->origin);
    tell_origin(data, "latency_switch", &out->switch_origin);
    tell_origin(data, medium_section(in), &out->medium_origin);
    out->round_trips = read(&way, "round_trips", UNIT_COUNT);
    way.networked = !out->round_trips.cannot && out->round_trips.value > 0;
    way.reserved = read(&way, "reserved", UNIT_BYTES);
    way.most = read(&way, "packet_most", UNIT_BYTES);
    way.message = read(&way, "message", UNIT_BYTES);
    plan_wire(in, &way, out);
    plan_network(in, &way, out);
    plan_software(in, &way, out);
    plan_total(out);
    plan_cpu(in, &way, out);
    return true;
}

static bool row(const struct data *data, const void *inputs, size_t row, void *ret_outputs) {
    return latency_plan(data, inputs, row, ret_outputs);
}

#define PLAN_INPUTS latency_inputs
#define PLAN_OUTPUTS latency_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#define CHOICE PLAN_CHOICE_ROW
#include "planner/latency.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/latency.def"
};

const struct plan_model plan_latency = {
    .name = "latency",
    .summary = "Where the time of one I/O goes on each way to the data, and what CPU it takes.",
    .example = "--distance 30m --hops 3 --io-size 4KiB --link 200Gb/s --mtu 4200B",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
