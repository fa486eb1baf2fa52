/* The contract is in cluster_question.h. */
#include "node/cluster_question.h"
#include "node/caller.h"
#include "rpc/call.h"
#include "rpc/call_origin.h"
#include <stdio.h>
#include <string.h>

#define FIRST_NS (10 * NS_PER_S)

struct asking {
    struct caller caller;
    struct actor origin;
    struct call call;
    bool done;
};

static void note_done(struct call *call) {
    struct asking *asking = call->context;

    asking->done = true;
}

/* Waits for what the call has been filled with. */
static int ask(struct asking *asking, uint64_t patience_ns) {
    struct caller *caller = &asking->caller;
    struct call *call = &asking->call;
    int refusal = 0;

    call->header.log = LOG_MEMBER;
    call->origin = &asking->origin;
    call->done = note_done;
    call->context = asking;
    call->deadline_ns = patience_ns > 0 ? env_now_ns(caller->env) + patience_ns : 0;
    asking->done = false;
    call_start(caller->rpc, call);
    caller_run(caller);
    while (!asking->done && refusal == 0) {
        caller_turn(caller);
        refusal = links_refusal(caller->links);
    }
    if (!asking->done) {
        call_cancel(call);
        while (!asking->done) {
            caller_turn(caller);
        }
        return refusal;
    }
    return call->result;
}

/* First whether anybody is there: its answer is at once, that of the words may take long. */
static int ask_both(struct asking *asking, const struct cluster_question *question,
                    int *ret_status) {
    asking->call =
        (struct call){.header.opcode = OP_MAP_GET, .request.map_get.known_version = UINT64_MAX};
    int r = ask(asking, FIRST_NS);

    if (r < 0) {
        return r;
    }
    asking->call = (struct call){.header.opcode = OP_NODE_TELL,
                                 .request.node_tell.words = question->words,
                                 .bulk_in = *question->ret_answer};
    r = ask(asking, question->patience_ns);
    if (r == 0) {
        question->ret_answer->size = asking->call.bulk_in.size;
        *ret_status = (int)asking->call.reply.node_tell.status;
    }
    return r;
}

static void say_failure(const struct cluster_question *question, const struct asking *asking, int r,
                        char problem[512]) {
    const char *said = asking->caller.said;

    if (problem[0]) {
        return;
    }
    if (r == -ERR_TIMED_OUT) {
        snprintf(problem, 512, "nobody answers at %.100s%s%.200s", question->addresses,
                 said[0] ? ": " : "", said);
    } else if (r == -ERR_ACCESS) {
        snprintf(problem, 512, "%.100s refuses the key in %.256s: it is of another cluster",
                 question->addresses, question->key_path);
    } else if (r == -ERR_MALFORMED) {
        snprintf(problem, 512,
                 "what answers at %.100s is no Shoal: name the address and port of a node's "
                 "--listen",
                 question->addresses);
    } else {
        snprintf(problem, 512, "%.100s cannot be asked: %s", question->addresses, err_text(r));
    }
}

int cluster_ask(const struct cluster_question *question, int *ret_status, char problem[512]) {
    const struct env_linux_options env_options = {.root = "/"};
    struct caller_options options = {
        .addresses = question->addresses, .key_path = question->key_path, .connect_ns = NS_PER_S};
    struct asking asking = {.done = false};
    int r = env_linux_new(&env_options, &options.env);

    problem[0] = '\0';
    if (r < 0) {
        return r;
    }
    r = env_thread_enter(options.env);
    if (r == 0) {
        actor_init(&asking.origin, "question", call_origin_step);
        r = caller_open(&asking.caller, &options, problem);
        r = r < 0 ? r : ask_both(&asking, question, ret_status);
        caller_leave(&asking.caller);
        caller_close(&asking.caller);
        env_thread_leave(options.env);
    }
    if (r < 0) {
        say_failure(question, &asking, r, problem);
    }
    env_linux_free(options.env);
    return r;
}
