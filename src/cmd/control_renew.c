/* renew: asks the manager, wherever it is, that capabilities be signed by the next number. */
#include "cmd/control.h"
#include "cmd/verb.h"
#include <inttypes.h>

#define MANAGER_NS (10 * NS_PER_S)

static int renew_failed(struct control_socket_connection *connection,
                        const struct key_renew_reply *reply, int r) {
    switch (-r) {
    case ERR_NOT_TOLD:
        control_print(connection,
                      "nothing is renewed: node %" PRIu32 " has not told that it signs by number "
                      "%" PRIu32 " yet: it is away, or of an older version; `shoal status` tells "
                      "which nodes answer\n",
                      reply->node, reply->number);
        break;
    case ERR_NOT_SUPPORTED:
        control_print(connection, "nothing is renewed: the cluster's manager is of an older "
                                  "version, which can't: update the first node\n");
        break;
    case ERR_TIMED_OUT:
        control_print(connection,
                      "the cluster's manager does not answer, so it may be that nothing "
                      "is renewed: try again when the first node is up\n");
        break;
    default:
        control_print(connection, "nothing is renewed: %s\n", err_text(r));
        break;
    }
    return EXIT_FAILED;
}

int control_renew(struct control *control, struct control_socket_connection *connection,
                  size_t argument_count, char **arguments) {
    struct env *env = local_cluster_env(control->cluster);
    struct call call = {.header = {.opcode = OP_KEY_RENEW, .log = LOG_MANAGER},
                        .deadline_ns = env_now_ns(env) + MANAGER_NS};

    (void)arguments;
    if (argument_count != 1) {
        control_print(connection, "renew takes nothing more\n");
        return EXIT_USAGE;
    }
    if (!local_cluster_config(control->cluster)->key_path[0]) {
        control_print(connection,
                      "%s has no key, so capabilities are signed by none: there is nothing to "
                      "renew\n",
                      control->directory);
        return EXIT_FAILED;
    }
    int r = local_cluster_ask(control->cluster, &call);
    if (r < 0) {
        return renew_failed(connection, &call.reply.key_renew, r);
    }
    control_print(connection,
                  "renewed: capabilities are signed by number %" PRIu32 " (map %" PRIu64 ")\n",
                  call.reply.key_renew.number, call.reply.key_renew.map_version);
    return EXIT_OK;
}
