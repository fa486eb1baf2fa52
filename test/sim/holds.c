/* Tables of opens, compared with the files of clients. */
#include "holds.h"
#include "client/client_internal.h"
#include "life.h"
#include <inttypes.h>

struct look {
    struct world *world;
    const struct node *mdt;
    bool rows; /* of writers; else what is counted */
    bool good;
    char *failure; /* 600 bytes */
};

static struct shoal_client *client_of(struct world *world, uint64_t session) {
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct node *node = &world->clients[i];
        struct shoal_client *client = node_is_up(node) ? node_client(node) : NULL;

        if (client && !client_is_fenced(client) && client_session(client).value == session) {
            return client;
        }
    }
    return NULL;
}

static bool is_held(struct shoal_client *client, const struct held *held, bool rows) {
    const struct open_file *file = shard_find(client_shard(client, held->ino), held->ino);
    uint32_t writers = file ? file->writer_count : 0;
    uint32_t named = file ? file->named_count : 0;
    uint32_t readers = file ? file->reader_count - named : 0;

    if (rows) {
        return !held->has_row || writers > 0;
    }
    return held->write_count <= writers && held->read_count <= readers &&
           (!held->named || named > 0);
}

static void held_look(void *context, const struct held *held) {
    struct look *look = context;
    struct shoal_client *client = client_of(look->world, held->session);

    if (!look->good || !client || is_held(client, held, look->rows)) {
        return;
    }
    look->good = false;
    (void)snprintf(look->failure, 600,
                   "%s has inode %" PRIx64 " open for session %" PRIu64 ", %" PRIu32
                   " times to write, %" PRIu32 " to read%s%s, which its client has not",
                   sim_process_name(look->mdt->process), held->ino.value, held->session,
                   held->write_count, held->read_count, held->named ? ", by name" : "",
                   held->has_row ? ", with a writer's row" : "");
}

static bool all_is_held(struct look *look) {
    look->good = true;
    for (uint32_t i = 0; i < look->world->options.mdt_count; i++) {
        look->mdt = &look->world->mdts[i];
        if (node_is_up(look->mdt) && look->mdt->life->group) {
            holds_of_group(look->mdt->life->group, held_look, look);
        }
    }
    return look->good;
}

static bool rows_are_held(void *context) {
    return all_is_held(context);
}

/* No client that has its session has anything left to be told again. */
static bool all_is_told(void *context) {
    struct world *world = context;

    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct node *node = &world->clients[i];
        const struct shoal_client *client = node_is_up(node) ? node_client(node) : NULL;

        if (client && !client_is_fenced(client) && client_late_closes(client) > 0) {
            return false;
        }
    }
    return true;
}

void holds_check(struct world *world, uint32_t within_s, char failure[600]) {
    struct look look = {.world = world, .failure = failure};
    uint64_t end = sim_now_ns(world->sim) + within_s * NS_PER_S;

    if (sim_run_until(world->sim, end, all_is_told, world) != SIM_DONE) {
        (void)snprintf(failure, 600,
                       "a client has an open or close to tell again after %" PRIu32 " s", within_s);
        return;
    }
    if (!all_is_held(&look)) {
        return;
    }
    look.rows = true;
    if (sim_run_until(world->sim, end, rows_are_held, &look) == SIM_DONE) {
        failure[0] = '\0'; /* of looks before */
    }
}
