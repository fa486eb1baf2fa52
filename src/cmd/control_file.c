/* stat and stripe: how one file or directory lies, by its inode number. */
#include "cmd/control.h"
#include "cmd/control_words.h"
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

    if (!control_words_stat(argument_count, arguments, &request.ino)) {
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

/* What is said goes into what is there already. */
static void layout_take(const struct control_stripe_words *words, struct shoal_layout *layout) {
    layout->stripe_count = words->stripe_count != 0 ? words->stripe_count : layout->stripe_count;
    layout->chunk_bytes = words->chunk_bytes != 0 ? words->chunk_bytes : layout->chunk_bytes;
}

int control_stripe(struct control *control, struct control_socket_connection *connection,
                   size_t argument_count, char **arguments) {
    struct shoal_client *client = local_cluster_client(control->cluster);
    struct shoal_request request = {.operation = SHOAL_LAYOUT_GET};
    struct control_stripe_words words;

    if (!control_words_stripe(argument_count, arguments, &words)) {
        control_print(connection, "the daemon does not understand this request for a layout\n");
        return EXIT_USAGE;
    }
    request.ino = words.ino;
    int64_t r = shoal_run(client, &request);
    if (r == 0 && words.sets) {
        request.operation = SHOAL_LAYOUT_SET;
        layout_take(&words, &request.layout);
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
