/* revoke SERIAL: asks the manager, wherever it is, and tells what that has come to. */
#include "cmd/control.h"
#include "cmd/control_words.h"
#include "cmd/verb.h"
#include <inttypes.h>

#define MANAGER_NS (10 * NS_PER_S)

static int revoke_failed(struct control_socket_connection *connection, const char *serial, int r) {
    if (r == -ERR_TOO_MANY_REVOKED) {
        control_print(
            connection,
            "the key %s is not revoked: %d are, as many as a cluster can name; make a new "
            "members' key (`shoal key add`), which leaves all older ones behind\n",
            serial, MAP_REVOKED_MAX);
    } else if (r == -ERR_TIMED_OUT) {
        control_print(connection,
                      "the cluster's manager does not answer, so it may be that the key %s is not "
                      "revoked: try again when the first node is up\n",
                      serial);
    } else {
        control_print(connection, "the key %s is not revoked: %s\n", serial, err_text(r));
    }
    return EXIT_FAILED;
}

int control_revoke(struct control *control, struct control_socket_connection *connection,
                   size_t argument_count, char **arguments) {
    struct env *env = local_cluster_env(control->cluster);
    struct call call = {.header = {.opcode = OP_KEY_REVOKE, .log = LOG_MANAGER},
                        .deadline_ns = env_now_ns(env) + MANAGER_NS};

    if (!control_words_revoke(argument_count, arguments, &call.request.key_revoke.serial)) {
        control_print(connection, "a serial is missing\n");
        return EXIT_USAGE;
    }
    if (!local_cluster_config(control->cluster)->key_path[0]) {
        control_print(connection,
                      "%s has no key, so nobody comes by one: there is nothing to revoke\n",
                      control->directory);
        return EXIT_FAILED;
    }
    int r = local_cluster_ask(control->cluster, &call);
    if (r < 0) {
        return revoke_failed(connection, arguments[1], r);
    }
    control_print(connection, "%s: revoked (map %" PRIu64 "), sessions that end: %" PRIu32 "\n",
                  arguments[1], call.reply.key_revoke.map_version, call.reply.key_revoke.sessions);
    return EXIT_OK;
}
