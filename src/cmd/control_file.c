/* stat and stripe: how one file or directory lies, by its inode number. */
#include "cmd/control.h"
#include "cmd/verb.h"
#include "env/errno_map.h"
#include "layout/layout.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int refuse(struct control_socket_connection *connection, int64_t result) {
    control_print(connection, "%s\n", err_text(err_from_errno((int)-result)));
    return EXIT_FAILED;
}

static bool take_ino(size_t argument_count, char **arguments, size_t index, uint64_t *ret_ino) {
    unsigned long long ino;

    if (index >= argument_count || !verb_parse_count(arguments[index], &ino)) {
        return false;
    }
    *ret_ino = ino;
    return true;
}

static json_t *layout_json(const struct shoal_layout *layout) {
    return json_pack("{s:I, s:i, s:I}", "chunk_bytes", (json_int_t)layout->chunk_bytes,
                     "stripe_count", layout->stripe_count, "pool_version",
                     (json_int_t)layout->pool_version);
}

static void print_layout(struct control_socket_connection *connection,
                         const struct shoal_layout *layout) {
    control_print(connection, "chunk size    %" PRIu32 " KiB\n",
                  layout->chunk_bytes / (uint32_t)KIB);
    if (layout->stripe_count < 0) {
        control_print(connection, "stripe count  all\n");
    } else {
        control_print(connection, "stripe count  %" PRId32 "\n", layout->stripe_count);
    }
    control_print(connection, "pool version  %" PRIu32 "\n", layout->pool_version);
}

int control_stat(struct control *control, struct control_socket_connection *connection,
                 size_t argument_count, char **arguments) {
    struct shoal_client *client = local_cluster_client(control->cluster);
    struct shoal_request request = {.operation = SHOAL_GETATTR};
    struct shoal_request layout = {.operation = SHOAL_LAYOUT_GET};

    if (!take_ino(argument_count, arguments, 1, &request.ino)) {
        return EXIT_USAGE;
    }
    layout.ino = request.ino;
    int64_t r = shoal_run(client, &request);
    r = r < 0 ? r : shoal_run(client, &layout);
    if (r < 0) {
        return refuse(connection, r);
    }
    const struct shoal_attributes *attributes = &request.attributes;
    if (control_has_word(argument_count, arguments, "--json")) {
        control_print_json(
            connection,
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "ino",
                      (json_int_t)attributes->ino, "slot",
                      (json_int_t)(attributes->ino >> INO_COUNTER_BITS), "size",
                      (json_int_t)attributes->size, "mode", (json_int_t)attributes->mode, "nlink",
                      (json_int_t)attributes->nlink, "uid", (json_int_t)attributes->uid, "gid",
                      (json_int_t)attributes->gid, "layout", layout_json(&layout.layout)));
        return EXIT_OK;
    }
    control_print(connection,
                  "inode         %" PRIu64 " (slot %" PRIu64 ")\nsize          %" PRIu64
                  "\nmode          %06o\nlinks         %" PRIu32 "\nowner         %" PRIu32
                  ":%" PRIu32 "\n",
                  attributes->ino, attributes->ino >> INO_COUNTER_BITS, attributes->size,
                  attributes->mode, attributes->nlink, attributes->uid, attributes->gid);
    print_layout(connection, &layout.layout);
    return EXIT_OK;
}

/* COUNT|all|- BYTES|-, into what is there already. */
static bool take_layout(const char *count, const char *bytes, struct shoal_layout *layout) {
    unsigned long long number;

    if (strcmp(count, "all") == 0) {
        layout->stripe_count = -1;
    } else if (strcmp(count, "-") != 0) {
        if (!verb_parse_count(count, &number) || number == 0 || number >= STRIPE_ALL) {
            return false;
        }
        layout->stripe_count = (int32_t)number;
    }
    if (strcmp(bytes, "-") != 0) {
        if (!verb_parse_bytes(bytes, &number) || number < CHUNK_BYTES_MIN ||
            number > CHUNK_BYTES_MAX || number % CHUNK_BYTES_MIN != 0) {
            return false;
        }
        layout->chunk_bytes = (uint32_t)number;
    }
    return true;
}

/* stripe get INO - - | stripe set INO COUNT|all|- BYTES|-, and --json */
int control_stripe(struct control *control, struct control_socket_connection *connection,
                   size_t argument_count, char **arguments) {
    struct shoal_client *client = local_cluster_client(control->cluster);
    struct shoal_request request = {.operation = SHOAL_LAYOUT_GET};
    struct shoal_layout asked = {0};
    bool set = argument_count > 1 && strcmp(arguments[1], "set") == 0;
    bool get = argument_count > 1 && strcmp(arguments[1], "get") == 0;
    size_t count = argument_count - control_has_word(argument_count, arguments, "--json");

    if (!(set || get) || count != 5 || !take_ino(argument_count, arguments, 2, &request.ino) ||
        !take_layout(arguments[3], arguments[4], &asked) ||
        (get && (asked.stripe_count != 0 || asked.chunk_bytes != 0))) {
        control_print(connection, "the daemon does not understand this request for a layout\n");
        return EXIT_USAGE;
    }
    int64_t r = shoal_run(client, &request);
    if (r == 0 && set) {
        request.operation = SHOAL_LAYOUT_SET;
        (void)take_layout(arguments[3], arguments[4], &request.layout);
        r = shoal_run(client, &request);
        if (err_from_errno((int)-r) == -ERR_INVALID) {
            control_print(connection, "what has chunks keeps its layout, links have none: name a "
                                      "directory or a new file\n");
            return EXIT_FAILED;
        }
    }
    if (r < 0) {
        return refuse(connection, r);
    }
    if (control_has_word(argument_count, arguments, "--json")) {
        control_print_json(connection, layout_json(&request.layout));
    } else {
        print_layout(connection, &request.layout);
    }
    return EXIT_OK;
}
