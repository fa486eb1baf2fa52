/* target lost ID check|ask|yes: whether it can be, what it would cost, or that it be so: the
 * manager is asked, wherever it is. */
#include "cmd/control.h"
#include "cmd/control_words.h"
#include "cmd/verb.h"
#include <inttypes.h>

#define MANAGER_NS (10 * NS_PER_S)

static int lose_failed(struct control_socket_connection *connection, uint32_t id, int r) {
    switch (-r) {
    case ERR_NOT_FOUND:
        control_print(connection, "there is no target %" PRIu32 ": `shoal status` lists them\n",
                      id);
        break;
    case ERR_NOT_SUPPORTED:
        control_print(connection,
                      "target %" PRIu32 " is a metadata target, and the cluster's manager is of a "
                      "version that can declare only storage targets lost\n",
                      id);
        break;
    case ERR_ROOT_TARGET:
        control_print(connection,
                      "target %" PRIu32 " has the root of the file system: without it the cluster "
                      "is gone; put its files back\n",
                      id);
        break;
    case ERR_TARGET_LOST:
        control_print(connection, "target %" PRIu32 " is lost already\n", id);
        break;
    case ERR_LAST_TARGET:
        control_print(connection,
                      "target %" PRIu32 " is the last target of its kind: nothing would be left "
                      "to write to\n",
                      id);
        break;
    case ERR_IN_USE:
        control_print(connection,
                      "target %" PRIu32 " is not lost: its daemon answers, or did a moment ago: "
                      "stop it first, and wait some seconds\n",
                      id);
        break;
    case ERR_TIMED_OUT:
        control_print(connection,
                      "the cluster's manager does not answer, so it may be that target %" PRIu32
                      " is not lost: try again when the first node is up\n",
                      id);
        break;
    case ERR_NO_SPACE:
        control_print(connection,
                      "target %" PRIu32 " is not lost: the cluster's map has no room for another "
                      "pool version, or the file system of the first node's DIR is full\n",
                      id);
        break;
    default:
        control_print(connection, "target %" PRIu32 " is not lost: %s\n", id, err_text(r));
        break;
    }
    return EXIT_FAILED;
}

static void metadata_cost_print(struct control_socket_connection *connection,
                                const struct target_lose_reply *reply) {
    if (reply->is_known) {
        control_print(connection,
                      "It is a metadata target, and had %" PRIu64 " files and directories when it "
                      "was heard last.\n",
                      reply->inode_count);
    } else {
        control_print(connection, "It is a metadata target. How many files and directories it had "
                                  "is not known: it was not\nheard since the manager started.\n");
    }
    control_print(connection,
                  "They are gone, whatever storage targets still have of their data, with all "
                  "that lies below\nthose directories, also on other targets. Names of them that "
                  "are elsewhere stay, answer EIO,\nand can be removed: `shoal fsck` lists them. "
                  "The target cannot come back, whatever its disk\nstill has.\n");
}

static void data_cost_print(struct control_socket_connection *connection,
                            const struct target_lose_reply *reply) {
    if (reply->is_known) {
        control_print(connection,
                      "It had %" PRIu64 " bytes of files (%" PRIu64 " MiB) when it was "
                      "heard last.\n",
                      reply->used_bytes, (reply->used_bytes + MIB - 1) / MIB);
    } else {
        control_print(connection, "How many bytes of files it had is not known: it was not heard "
                                  "since the manager started.\n");
    }
    control_print(connection,
                  "Every file with a part there keeps its name and loses that part: reads and "
                  "writes of it\nanswer EIO from then on, for ever; which files these are is not "
                  "counted before: `shoal fsck`\nnames them afterwards. The target cannot come "
                  "back, whatever its disk still has.\n");
}

/* The question, without its end. */
static void cost_print(struct control_socket_connection *connection, uint32_t id,
                       const struct target_lose_reply *reply) {
    control_print(connection, "Target %" PRIu32 " of node %" PRIu32 " is lost for good by this.\n",
                  id, reply->node);
    if (reply->kind == TARGET_MDT) {
        metadata_cost_print(connection, reply);
    } else {
        data_cost_print(connection, reply);
    }
}

/* What is asked of this node from then on, goes by that map. */
static void lost_print(struct control *control, struct control_socket_connection *connection,
                       uint32_t id, uint64_t map_version) {
    uint64_t end_ns = env_now_ns(local_cluster_env(control->cluster)) + MANAGER_NS;
    int r = local_cluster_follow(control->cluster, map_version, end_ns);

    control_print(connection, "target %" PRIu32 ": lost (map %" PRIu64 ")\n", id, map_version);
    if (r < 0) {
        control_print(connection, "this node does not go by that map yet: %s\n", err_text(r));
    }
}

int control_target(struct control *control, struct control_socket_connection *connection,
                   size_t argument_count, char **arguments) {
    struct env *env = local_cluster_env(control->cluster);
    struct call call = {.header = {.opcode = OP_TARGET_LOSE, .log = LOG_MANAGER},
                        .deadline_ns = env_now_ns(env) + MANAGER_NS};
    struct control_target_words words;

    if (!control_words_target(argument_count, arguments, &words)) {
        control_print(connection, "the daemon does not know this request\n");
        return EXIT_USAGE;
    }
    call.request.target_lose = (struct target_lose_request){
        .target = words.target, .asks_only = words.what != CONTROL_TARGET_DO, .knows_metadata = 1};
    int r = local_cluster_ask(control->cluster, &call);
    if (r < 0) {
        return lose_failed(connection, words.target, r);
    }
    if (words.what == CONTROL_TARGET_ASK) {
        cost_print(connection, words.target, &call.reply.target_lose);
    } else if (words.what == CONTROL_TARGET_DO) {
        lost_print(control, connection, words.target, call.reply.target_lose.map_version);
    }
    return EXIT_OK;
}
