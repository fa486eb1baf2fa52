/* Verbs over all nodes: each daemon tells of its own targets what another one asks it.
 *
 *     shoal status --> control socket, or a link --> control_status of one daemon
 *                                                       | node_tell "status --own", to all at once
 *                                                       +--> the others' control_status
 *
 * Thread: any of the control socket's. Memory: what the nodes answer, until free. */
#pragma once
#include "cmd/control.h"

/* Of another node: a text, or why there is none. */
struct node_answer {
    uint32_t node;
    char address[ADDRESS_TEXT_BYTES];
    int result; /* 0, or why it has not answered */
    char *text; /* ended by NUL */
};

struct node_answers {
    uint32_t count;
    struct node_answer *nodes;
};

/* Asks all other members that the map has (map_lost.h), with 3 s for all: a verb's words.
 * -ERR_NO_MEMORY. A node that is alone has no others. */
MUST_CHECK int control_nodes_ask(struct control *control, const char *const *words,
                                 size_t word_count, struct node_answers *ret_answers);
void control_nodes_free(struct node_answers *answers);
/* Who has not answered. */
uint32_t control_nodes_away(const struct node_answers *answers);
/* A line for each of these, with its name; mark stands in front. */
void control_nodes_name_away(struct control_socket_connection *connection,
                             const struct node_answers *answers, const char *mark);
/* As JSON: [{"id", "address", "error"}]. */
json_t *control_nodes_away_json(const struct node_answers *answers);

/* Behind what this node tells of itself: each other's text under its name, or its JSON in "others"
 * of json, which is taken. EXIT_OK, or EXIT_PARTLY where one has not answered. */
int control_nodes_print(struct control *control, struct control_socket_connection *connection,
                        const char *verb, const char *word);
int control_nodes_print_json(struct control *control, struct control_socket_connection *connection,
                             json_t *json, const char *const *words, size_t word_count);

/* One other's row of "others": {"id", "address", "error", "answer"}. What is no JSON is no answer:
 * its result becomes -ERR_MALFORMED. */
json_t *control_nodes_answer_json(struct node_answer *node);

/* Lets others ask this node, from the start of its control socket to the end. */
void control_nodes_serve(struct control *control);
void control_nodes_refuse(struct control *control);
