/* The contract is in control_nodes.h. */
#include "cmd/control_nodes.h"
#include "cmd/json_text.h"
#include "cmd/verb.h"
#include "layout/map_lost.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_BYTES_MAX = 1024, TEXT_BYTES_MAX = 512 << 10, ANSWER_DEPTH_MAX = 64 };
#define NODE_NS (3 * NS_PER_S)

/* Asking. */

/* Each ended by NUL. */
static int words_join(const char *const *words, size_t word_count, struct buffer *out) {
    for (size_t i = 0; i < word_count; i++) {
        size_t size = strlen(words[i]) + 1;

        if (size > out->capacity - out->size) {
            return -ERR_TOO_SMALL;
        }
        memcpy(out->data + out->size, words[i], size);
        out->size += size;
    }
    return 0;
}

/* A node whose targets are all lost, or that never came back with any, has nothing to tell. */
static void nodes_fill(const struct cluster_map *map, uint32_t self, struct node_answers *answers) {
    for (uint32_t i = 0; i < map->node_count; i++) {
        struct node_answer *node = &answers->nodes[answers->count];

        if (map->nodes[i].id.value != self && cluster_map_node_is_member(map, &map->nodes[i])) {
            node->node = map->nodes[i].id.value;
            memcpy(node->address, map->nodes[i].address, sizeof node->address);
            answers->count++;
        }
    }
}

static int nodes_know(struct control *control, struct node_answers *answers) {
    struct cluster_map *map = malloc(sizeof *map);

    if (map) {
        local_cluster_member(control->cluster, map, NULL);
        answers->nodes = calloc(MAX(map->node_count, 1U), sizeof *answers->nodes);
    }
    if (answers->nodes) {
        nodes_fill(map, local_cluster_config(control->cluster)->node, answers);
    }
    free(map);
    return answers->nodes ? 0 : -ERR_NO_MEMORY;
}

static int calls_fill(struct control *control, struct bytes words,
                      const struct node_answers *answers, struct call *calls) {
    uint64_t end_ns = env_now_ns(local_cluster_env(control->cluster)) + NODE_NS;

    for (uint32_t i = 0; i < answers->count; i++) {
        struct node_answer *node = &answers->nodes[i];

        node->text = malloc(TEXT_BYTES_MAX + 1);
        if (!node->text) {
            return -ERR_NO_MEMORY;
        }
        calls[i] = (struct call){
            .header = {.opcode = OP_NODE_TELL, .log = log_of_node((struct node_id){node->node})},
            .request.node_tell.words = words,
            .bulk_in = {.data = (uint8_t *)node->text, .capacity = TEXT_BYTES_MAX},
            .deadline_ns = end_ns};
    }
    return 0;
}

static void answers_take(struct node_answers *answers, const struct call *calls) {
    for (uint32_t i = 0; i < answers->count; i++) {
        struct node_answer *node = &answers->nodes[i];

        node->result = calls[i].result;
        if (node->result == 0 && calls[i].reply.node_tell.status != EXIT_OK) {
            node->result = -ERR_IO;
        }
        node->text[calls[i].result == 0 ? calls[i].bulk_in.size : 0] = '\0';
    }
}

int control_nodes_ask(struct control *control, const char *const *words, size_t word_count,
                      struct node_answers *ret_answers) {
    uint8_t text[WORDS_BYTES_MAX];
    struct buffer out = {.data = text, .capacity = sizeof text};
    struct node_answers answers = {0};
    struct call *calls = NULL;
    int r = words_join(words, word_count, &out);

    if (r == 0) {
        r = nodes_know(control, &answers);
    }
    if (r == 0) {
        calls = calloc(MAX(answers.count, 1U), sizeof *calls);
        r = calls ? calls_fill(control, (struct bytes){text, out.size}, &answers, calls)
                  : -ERR_NO_MEMORY;
    }
    if (r == 0) {
        local_cluster_ask_all(control->cluster, calls, answers.count);
        answers_take(&answers, calls);
        *ret_answers = answers;
    } else {
        control_nodes_free(&answers);
    }
    free(calls);
    return r;
}

void control_nodes_free(struct node_answers *answers) {
    for (uint32_t i = 0; i < answers->count; i++) {
        free(answers->nodes[i].text);
    }
    free(answers->nodes);
    *answers = (struct node_answers){0};
}

/* Showing. */

uint32_t control_nodes_away(const struct node_answers *answers) {
    uint32_t away = 0;

    for (uint32_t i = 0; i < answers->count; i++) {
        away += answers->nodes[i].result < 0;
    }
    return away;
}

static void name_away(struct control_socket_connection *connection, const struct node_answer *node,
                      const char *mark) {
    control_print(connection, "%snode %" PRIu32 ", at %s, does not answer: %s\n", mark, node->node,
                  node->address[0] ? node->address : "no address", err_text(node->result));
}

void control_nodes_name_away(struct control_socket_connection *connection,
                             const struct node_answers *answers, const char *mark) {
    for (uint32_t i = 0; i < answers->count; i++) {
        if (answers->nodes[i].result < 0) {
            name_away(connection, &answers->nodes[i], mark);
        }
    }
}

static json_t *away_json(const struct node_answer *node) {
    return json_pack("{s:I, s:o?, s:s}", "id", (json_int_t)node->node, "address",
                     json_text(node->address), "error", err_text(node->result));
}

json_t *control_nodes_away_json(const struct node_answers *answers) {
    json_t *away = json_array();

    for (uint32_t i = 0; i < answers->count; i++) {
        if (answers->nodes[i].result < 0) {
            json_array_append_new(away, away_json(&answers->nodes[i]));
        }
    }
    return away;
}

int control_nodes_print(struct control *control, struct control_socket_connection *connection,
                        const char *verb, const char *word) {
    const char *const words[] = {verb, "--own", word};
    struct node_answers answers;

    if (control_nodes_ask(control, words, word ? 3 : 2, &answers) < 0) {
        control_print(connection, "memory could not be had\n");
        return EXIT_FAILED;
    }
    for (uint32_t i = 0; i < answers.count; i++) {
        const struct node_answer *node = &answers.nodes[i];

        control_print(connection, "\n");
        if (node->result < 0) {
            name_away(connection, node, "");
        } else {
            control_print(connection, "node %" PRIu32 ", at %s:\n", node->node, node->address);
            control_socket_write(connection, node->text, strlen(node->text));
        }
    }
    int status = control_nodes_away(&answers) > 0 ? EXIT_PARTLY : EXIT_OK;
    control_nodes_free(&answers);
    return status;
}

/* Whether it nests deeper than any answer of ours. */
static bool is_deep(json_t *json, unsigned depth_max) {
    const char *key;
    json_t *part;
    size_t index;
    bool deep = depth_max == 0;

    if (!deep && json_is_array(json)) {
        json_array_foreach(json, index, part) {
            deep = deep || is_deep(part, depth_max - 1);
        }
    }
    if (!deep && json_is_object(json)) {
        json_object_foreach(json, key, part) {
            deep = deep || is_deep(part, depth_max - 1);
        }
    }
    return deep;
}

json_t *control_nodes_answer_json(struct node_answer *node) {
    json_t *answer = node->result == 0 ? json_loads(node->text, 0, NULL) : NULL;

    if (node->result == 0 && (!answer || is_deep(answer, ANSWER_DEPTH_MAX))) {
        node->result = -ERR_MALFORMED;
        json_decref(answer);
        answer = NULL;
    }
    return json_pack("{s:I, s:o?, s:s?, s:o?}", "id", (json_int_t)node->node, "address",
                     json_text(node->address), "error",
                     node->result < 0 ? err_text(node->result) : NULL, "answer", answer);
}

int control_nodes_print_json(struct control *control, struct control_socket_connection *connection,
                             json_t *json, const char *const *words, size_t word_count) {
    struct node_answers answers = {0};
    json_t *others = json_array();
    int r = control_nodes_ask(control, words, word_count, &answers);

    for (uint32_t i = 0; i < answers.count; i++) {
        json_array_append_new(others, control_nodes_answer_json(&answers.nodes[i]));
    }
    json_object_set_new(json, "others", others);
    control_print_json(connection, json);
    int status = control_nodes_away(&answers) > 0 ? EXIT_PARTLY : EXIT_OK;
    control_nodes_free(&answers);
    return r < 0 ? EXIT_FAILED : status;
}

/* Answering. */

struct told {
    struct control_socket_question question;
    struct call *call;
    bool cut; /* the asker has no room for all of it */
};

/* What others may ask; the rest is for who is on the machine. */
static bool is_tellable(const char *words, size_t size) {
    static const char *const verbs[] = {"status", "stats",  "df",    "sync",  "fsck",
                                        "here",   "revoke", "renew", "target"};

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        size_t length = strlen(verbs[i]) + 1;

        if (size >= length && memcmp(words, verbs[i], length) == 0) {
            return words[size - 1] == '\0';
        }
    }
    return false;
}

static void told_write(struct control_socket_question *question, const char *text, size_t size) {
    struct told *told = CONTAINER_OF(question, struct told, question);
    struct buffer *out = &told->call->bulk_in;

    told->cut = told->cut || size > out->capacity - out->size;
    if (!told->cut && size > 0) {
        memcpy(out->data + out->size, text, size);
        out->size += size;
    }
}

static void told_done(struct control_socket_question *question, int status) {
    struct told *told = CONTAINER_OF(question, struct told, question);
    struct call *call = told->call;
    int r = told->cut ? -ERR_TOO_SMALL : 0;

    call->reply.node_tell.status = (uint32_t)status;
    free(question->request);
    free(told);
    call_reply(call, r);
}

static void tell(void *context, struct call *call) {
    struct control *control = context;
    struct bytes words = call->request.node_tell.words;
    struct told *told = calloc(1, sizeof *told);
    char *request = calloc(1, words.size + 1);

    call->bulk_in.size = 0;
    if (!told || !request || words.size == 0 ||
        !is_tellable((const char *)words.data, words.size)) {
        int r = told && request ? -ERR_NOT_SUPPORTED : -ERR_NO_MEMORY;

        free(told);
        free(request);
        call_reply(call, r);
        return;
    }
    memcpy(request, words.data, words.size);
    *told = (struct told){.question = {.request = request,
                                       .request_bytes = words.size,
                                       .write = told_write,
                                       .done = told_done},
                          .call = call};
    control_socket_ask(control->server, &told->question);
}

void control_nodes_serve(struct control *control) {
    local_cluster_on_tell(control->cluster, tell, control);
}

void control_nodes_refuse(struct control *control) {
    local_cluster_on_tell(control->cluster, NULL, NULL);
    control_socket_refuse_questions(control->server);
}
