/* The contract and the picture are in sim_aways.h. */
#include "rpc/sim_aways.h"
#include "base/bug.h"
#include "base/endian.h"
#include "env/env.h"
#include <assert.h>
#include <stdlib.h>

enum { QUESTION_BYTES = 4 };

struct server {
    struct list_node node;
    struct log_id log;
    uint32_t awaited_count;
    uint64_t heard_ns; /* or since when it should have been; what is awaited counts from there */
    uint64_t away_since_ns; /* 0: it is not known to be */
};

struct sim_aways {
    struct sim_port *port;
    struct env *env;
    uint64_t silent_ns;
    struct list servers; /* a few, that never go */
};

struct sim_aways *sim_aways_new(struct sim_port *port, struct env *env, uint64_t silent_ns) {
    struct sim_aways *aways = calloc(1, sizeof *aways);

    if (!aways) {
        abort();
    }
    *aways = (struct sim_aways){.port = port, .env = env, .silent_ns = silent_ns};
    list_init(&aways->servers);
    return aways;
}

void sim_aways_free(struct sim_aways *aways) {
    struct list_node *node;

    while (aways && (node = list_pop_front(&aways->servers)) != NULL) {
        free(CONTAINER_OF(node, struct server, node));
    }
    free(aways);
}

/* NULL: nothing was ever asked of it. */
static struct server *server_find(const struct sim_aways *aways, struct log_id log) {
    for (struct list_node *node = list_first(&aways->servers); node;
         node = list_next(&aways->servers, node)) {
        struct server *server = CONTAINER_OF(node, struct server, node);

        if (server->log.value == log.value) {
            return server;
        }
    }
    return NULL;
}

static struct server *server_get(struct sim_aways *aways, struct log_id log) {
    struct server *server = server_find(aways, log);

    if (!server) {
        server = calloc(1, sizeof *server);
        if (!server) {
            abort();
        }
        server->log = log;
        list_push_back(&aways->servers, &server->node);
    }
    return server;
}

void sim_aways_await(struct sim_aways *aways, struct log_id log) {
    struct server *server = server_get(aways, log);

    if (server->awaited_count++ == 0 && server->away_since_ns == 0) {
        server->heard_ns = env_now_ns(aways->env);
    }
}

void sim_aways_over(struct sim_aways *aways, struct log_id log) {
    struct server *server = server_find(aways, log);

    assert(server && server->awaited_count > 0);
    server->awaited_count--;
}

void sim_aways_heard(struct sim_aways *aways, uint64_t address) {
    struct server *server = server_find(aways, (struct log_id){address});

    if (server) {
        server->heard_ns = env_now_ns(aways->env);
        server->away_since_ns = 0;
    }
}

bool sim_aways_has(const struct sim_aways *aways, struct log_id log) {
    const struct server *server = log.value != 0 ? server_find(aways, log) : NULL;
    bool any = false;

    for (struct list_node *node = list_first(&aways->servers); log.value == 0 && node;
         node = list_next(&aways->servers, node)) {
        any = any || CONTAINER_OF(node, struct server, node)->away_since_ns > 0;
    }
    return any || (server && server->away_since_ns > 0);
}

bool sim_aways_waited(const struct sim_aways *aways, const struct call *call) {
    const struct server *server = server_find(aways, call->header.log);
    uint64_t since_ns = server ? server->away_since_ns : 0;
    uint64_t end_ns = BUG(NEW_PATIENCE) ? call->deadline_ns : since_ns + call->patience_ns;

    return call->patience_ns > 0 && since_ns > 0 && env_now_ns(aways->env) >= end_ns;
}

static void server_tick(struct sim_aways *aways, struct server *server, uint64_t now_ns) {
    uint64_t silence_ns = now_ns - server->heard_ns;
    bool is_away = server->away_since_ns > 0;

    if (!is_away && (server->awaited_count == 0 || silence_ns < aways->silent_ns)) {
        return;
    }
    sim_aways_answer(aways->port, server->log.value);
    if (!is_away && silence_ns >= 2 * aways->silent_ns) {
        server->away_since_ns = server->heard_ns;
    }
}

/* Whoever asked before it went away waits as long from then on. */
static void call_extend(const struct sim_aways *aways, struct call *call) {
    const struct server *server = server_find(aways, call->header.log);
    uint64_t since_ns = server ? server->away_since_ns : 0;

    if (since_ns > 0 && call->patience_ns > 0 && call->deadline_ns > 0 && !call->is_extended) {
        call->is_extended = true;
        call->deadline_ns = MAX(call->deadline_ns, since_ns + call->patience_ns);
    }
}

void sim_aways_tick(struct sim_aways *aways, const struct awaited *awaited) {
    uint64_t now_ns = env_now_ns(aways->env);
    struct call *call;

    for (struct list_node *node = list_first(&aways->servers); node;
         node = list_next(&aways->servers, node)) {
        server_tick(aways, CONTAINER_OF(node, struct server, node), now_ns);
    }
    for (uint32_t at = 0; (call = awaited_next(awaited, &at)) != NULL;) {
        call_extend(aways, call);
    }
}

bool sim_aways_is_question(const struct sim_packet *packet) {
    return packet->size == QUESTION_BYTES && load_le32(packet->data) == 0;
}

void sim_aways_answer(struct sim_port *port, uint64_t to) {
    struct sim_packet *packet = sim_packet_new(QUESTION_BYTES);

    store_le32(packet->data, 0);
    sim_net_send(port, to, packet);
}
