/* The contract is in member.h. */
#include "member/member.h"
#include "env/env.h"
#include "maps/map_follower.h"
#include "rpc/actor.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum member_message { MEMBER_TICK = 1, MEMBER_READY, MEMBER_QUESTION, MEMBER_STOP };

#define ANSWER_NS (5 * NS_PER_S)
#define SAY_NS (60 * NS_PER_S)

struct member {
    struct actor actor; /* first */
    struct member_options options;
    char address[ADDRESS_TEXT_BYTES];
    struct cluster_map *map;  /* in use; version 0: none */
    struct cluster_map *next; /* fetched, and not taken yet; NULL: none */
    struct member_state state;
    bool ready;
    bool asking;
    uint64_t asked_ns; /* 0: never */
    uint64_t away_ns;  /* since when nobody answers; 0: it does */
    uint64_t said_ns;  /* that nobody does */
    int said;          /* refusal that was said last */
    uint64_t version;  /* newest that was heard of */
    struct map_follower maps;
    struct call join_call;
    uint8_t spaces[WIRE_SPACES_BYTES_MAX]; /* of join_call */
    uint8_t lives[WIRE_LIVES_BYTES_MAX];   /* likewise */
    struct message tick, ready_message, stop;
    atomic_bool tick_posted;
    struct message *waiting; /* questions, that wait for a map */
    bool stopping;
    void (*stop_done)(void *context, int result);
    void *stop_context;
};

static uint64_t now_of(const struct member *member) {
    return env_now_ns(member->options.env);
}

static void say(const struct member *member, const char *line) {
    if (member->options.hooks.log) {
        member->options.hooks.log(member->options.hooks.context, line);
    }
}

static bool finds_manager(const struct member *member) {
    return member->options.finds_manager && member->map->version == 0;
}

/* One that has opcode, done and context: of the manager, or of whoever can be reached; for
 * ANSWER_NS, unless it has a deadline. */
static void member_call_start(void *context, struct call *call) {
    struct member *member = context;

    call->header.log = finds_manager(member) ? LOG_MEMBER : LOG_MANAGER;
    call->origin = &member->actor;
    call->deadline_ns = call->deadline_ns != 0 ? call->deadline_ns : now_of(member) + ANSWER_NS;
    call_start(member->options.rpc, call);
}

static void question_answer(struct member *member, struct member_question *question) {
    question->state = member->state;
    if (question->map && member->map->version > 0) {
        cluster_map_copy(question->map, member->map);
    }
    question->done(question);
}

static void question_take(struct member *member, struct member_question *question) {
    if (member->map->version >= question->version || now_of(member) >= question->end_ns ||
        member->stopping) {
        question_answer(member, question);
    } else {
        question->message.next = member->waiting;
        member->waiting = &question->message;
    }
}

static void questions_look(struct member *member) {
    struct message *first = TAKE_PTR(member->waiting);

    while (first) {
        struct message *message = first;

        first = message->next;
        question_take(member, CONTAINER_OF(message, struct member_question, message));
    }
}

/* The map in use is replaced at once, or the next one is kept for another try. */
static void map_offer(struct member *member) {
    const struct member_hooks *hooks = &member->options.hooks;
    int r = 0;

    if (!member->next) {
        return;
    }
    if (hooks->map_takes) {
        hooks->map_takes(hooks->context, member->next);
    }
    r = hooks->map ? hooks->map(hooks->context, member->next) : 0;
    member->state.map_problem = MIN(r, 0);
    member->state.map_newer = r < 0 ? member->next->version : 0;
    if (r < 0) {
        return;
    }
    free(member->map);
    member->map = TAKE_PTR(member->next);
    member->state.map_version = member->map->version;
    questions_look(member);
}

static const struct cluster_map *map_known(void *context) {
    return ((struct member *)context)->map;
}

static struct cluster_map *map_make(void *context) {
    (void)context;
    return malloc(sizeof(struct cluster_map));
}

/* It is dropped where it is not newer. */
static int map_take(void *context, struct cluster_map *next, int result) {
    struct member *member = context;

    if (result < 0 || next->version <= member->map->version) {
        free(next);
        return result;
    }
    free(member->next);
    member->next = next;
    return 0;
}

static void map_fetched(void *context, int result) {
    struct member *member = context;
    char line[160];

    if (result == -ERR_CORRUPT || result == -ERR_MALFORMED || result == -ERR_NEWER_FORMAT ||
        result == -ERR_OLDER_FORMAT) {
        snprintf(line, sizeof line, "the manager's cluster map cannot be read: %s",
                 err_text(result));
        say(member, line);
    }
    map_offer(member);
}

/* There is this version: an answer says so. */
static void version_hear(void *context, uint64_t version) {
    struct member *member = context;

    member->version = MAX(member->version, version);
    if (member->version > member->map->version) {
        map_follower_fetch(&member->maps);
    }
}

static const struct map_follower_hooks map_hooks = {.start = member_call_start,
                                                    .known = map_known,
                                                    .make = map_make,
                                                    .take = map_take,
                                                    .fetched = map_fetched,
                                                    .watched = version_hear};

static void map_watch(struct member *member) {
    uint64_t by_key = member->options.key[0] ^ member->options.key[1];

    if (member->map->version > 0 && member->state.registration.stage != REGISTRATION_REFUSED) {
        map_follower_watch(&member->maps, member->options.who ? member->options.who : by_key);
    }
}

static void answer_say(struct member *member, int result) {
    char line[200];

    if (result == member->said) {
        return;
    }
    member->said = result;
    if (result == -ERR_OTHER_CLUSTER) {
        say(member, "the manager does not know this node: it was made by another cluster");
    } else if (result < 0) {
        snprintf(line, sizeof line, "the manager refuses this node: %s", err_text(result));
        say(member, line);
    }
}

static bool is_silence(int result) {
    return result == -ERR_TIMED_OUT || result == -ERR_CLOSED || result == -ERR_STALE_MAP ||
           result == -ERR_UNREACHABLE || result == -ERR_INTERRUPTED || result == -ERR_AWAY;
}

static void registered_tell(struct member *member) {
    const struct member_hooks *hooks = &member->options.hooks;

    if (hooks->registered) {
        hooks->registered(hooks->context, &member->state.registration);
    }
}

/* False: nothing of the answer is for this process but that its lives are not registered. */
static bool lives_answered(struct member *member, const struct call *call) {
    struct registration *registration = &member->state.registration;
    bool has_changed = false;

    if (call->request.node_join.lives.size > 0) {
        has_changed = call->result < 0 ? registration_error(registration)
                                       : registration_answer(registration, &call->reply.node_join,
                                                             now_of(member));
    }
    if (has_changed) {
        registered_tell(member);
    }
    return registration->verdict <= LIVES_REGISTERED;
}

static void join_answered(struct call *call) {
    struct member *member = call->context;
    const struct node_join_reply *reply = &call->reply.node_join;
    uint64_t now_ns = now_of(member);

    member->asking = false;
    member->state.result = call->result;
    if (is_silence(call->result)) {
        return;
    }
    answer_say(member, call->result);
    if (member->away_ns != 0 && member->said_ns != 0) {
        say(member, "the manager answers again");
    }
    member->away_ns = member->said_ns = 0;
    member->state.heard_ns = now_ns;
    if (!lives_answered(member, call) || call->result < 0) {
        return;
    }
    member->state.node.value = reply->node;
    member->state.first_target = reply->first_target;
    member->state.mdt_count = reply->mdt_count;
    member->state.told = call->request.node_join.ready;
    version_hear(member, reply->map_version);
}

static void lives_put(struct member *member, struct node_join_request *request) {
    const struct member_hooks *hooks = &member->options.hooks;

    if (hooks->lives) {
        request->lives = (struct bytes){member->lives, hooks->lives(hooks->context, member->lives)};
        request->lives_row_bytes = sizeof(struct wire_life);
        request->place = member->options.place;
        request->asked = member->state.registration.asked;
    }
}

static void join_ask(struct member *member, uint64_t now_ns) {
    const struct member_hooks *hooks = &member->options.hooks;

    member->asking = true;
    member->asked_ns = now_ns;
    member->join_call =
        (struct call){.header.opcode = OP_NODE_JOIN,
                      .done = join_answered,
                      .context = member,
                      .request.node_join = {.key_high = member->options.key[0],
                                            .key_low = member->options.key[1],
                                            .target_count = member->options.target_count,
                                            .mdt_count = member->options.mdt_count,
                                            .map_version = member->map->version,
                                            .ready = member->ready}};
    if (member->ready) {
        member->join_call.request.node_join.address =
            (struct bytes){(const uint8_t *)member->address, strlen(member->address)};
    }
    if (member->ready && hooks->spaces) {
        member->join_call.request.node_join.spaces =
            (struct bytes){member->spaces, hooks->spaces(hooks->context, member->spaces)};
        member->join_call.request.node_join.spaces_row_bytes = sizeof(struct wire_space);
    }
    lives_put(member, &member->join_call.request.node_join);
    if (hooks->keys) {
        uint64_t names[2] = {0};

        hooks->keys(hooks->context, names);
        member->join_call.request.node_join.members_key = names[0];
        member->join_call.request.node_join.members_key_older = names[1];
    }
    if (hooks->key_number) {
        member->join_call.request.node_join.capability_number = hooks->key_number(hooks->context);
    }
    member_call_start(member, &member->join_call);
}

/* Once a minute, of a manager that has been away for as long as one answer may take. */
static void silence_say(struct member *member, uint64_t now_ns) {
    char line[160];

    if (member->state.result == 0 || !is_silence(member->state.result)) {
        return;
    }
    if (member->away_ns == 0) {
        member->away_ns = now_ns;
    }
    if (member->said_ns != 0 && now_ns - member->said_ns < SAY_NS) {
        return;
    }
    member->said_ns = now_ns;
    snprintf(line, sizeof line,
             "the manager does not answer: what is known is served, nothing new is heard of");
    say(member, line);
}

/* From its first tick on. */
static void lives_tick(struct member *member, uint64_t now_ns) {
    struct registration *registration = &member->state.registration;

    if (!member->options.hooks.lives) {
        return;
    }
    if (registration->heard_ns == 0) {
        registration_begin(registration, now_ns);
    }
    if (registration_tick(registration, now_ns)) {
        registered_tell(member);
    }
}

/* Who may not serve yet asks each tick, who may never asks no more. */
static bool is_due(const struct member *member, uint64_t now_ns) {
    enum registration_stage stage = member->state.registration.stage;

    if (stage == REGISTRATION_REFUSED) {
        return false;
    }
    return member->asked_ns == 0 || stage == REGISTRATION_WAITING ||
           now_ns - member->asked_ns >= member->options.ask_ns;
}

static void member_ticked(struct member *member) {
    uint64_t now_ns = now_of(member);

    atomic_store(&member->tick_posted, false);
    rpc_tick(member->options.rpc);
    if (member->stopping) {
        return;
    }
    questions_look(member);
    silence_say(member, now_ns);
    lives_tick(member, now_ns);
    if (!member->asking && is_due(member, now_ns)) {
        map_offer(member);
        if (finds_manager(member)) {
            map_follower_fetch(&member->maps);
        } else {
            join_ask(member, now_ns);
        }
    }
    map_watch(member);
}

static void map_tell(struct member *member, struct call *call) {
    const struct cluster_map *map = member->map;
    int r = 0;

    call->reply.map_get.version = map->version;
    call->bulk_in.size = 0;
    if (call->request.map_get.known_version < map->version) {
        r = call->bulk_in.capacity < cluster_map_size(map) ? -ERR_TOO_SMALL : 0;
    }
    if (r == 0 && call->request.map_get.known_version < map->version) {
        cluster_map_encode(map, &call->bulk_in);
    }
    call_reply(call, r);
}

static void call_take(struct member *member, struct call *call) {
    if (member->stopping) {
        call_reply(call, -ERR_CLOSED);
    } else if (call->header.opcode == OP_MAP_GET) {
        map_tell(member, call);
    } else if (call->header.opcode == OP_NODE_TELL && member->options.hooks.tell) {
        member->options.hooks.tell(member->options.hooks.context, call);
    } else {
        call_reply(call, -ERR_NOT_SUPPORTED);
    }
}

static void member_message(struct member *member, struct message *message) {
    switch (message->kind) {
    case CALL_DONE_KIND:
        call_done_message(message);
        break;
    case CALL_MESSAGE_KIND:
        call_take(member, CONTAINER_OF(message, struct call, message));
        break;
    case MEMBER_TICK:
        member_ticked(member);
        break;
    case MEMBER_READY:
        member->ready = true;
        member->asked_ns = 0; /* It is told with the next tick. */
        break;
    case MEMBER_QUESTION:
        question_take(member, CONTAINER_OF(message, struct member_question, message));
        break;
    case MEMBER_STOP:
        member->stopping = true;
        questions_look(member);
        if (member->asking) {
            call_cancel(&member->join_call);
        }
        map_follower_stop(&member->maps);
        break;
    default:
        assert(false);
    }
}

static void member_step(struct actor *actor, struct message *first) {
    struct member *member = CONTAINER_OF(actor, struct member, actor);

    while (first) {
        struct message *message = first;

        first = message->next;
        member_message(member, message);
    }
    if (member->stopping && member->stop_done && !member->asking &&
        !map_follower_is_busy(&member->maps)) {
        void (*done)(void *context, int result) = TAKE_PTR(member->stop_done);

        done(member->stop_context, 0);
    }
}

int member_new(const struct member_options *options, struct member **ret_member) {
    struct member *member;

    if (strlen(options->address) >= ADDRESS_TEXT_BYTES) {
        return -ERR_INVALID;
    }
    member = calloc(1, sizeof *member);
    if (!member) {
        return -ERR_NO_MEMORY;
    }
    member->options = *options;
    member->options.ask_ns = options->ask_ns ? options->ask_ns : NS_PER_S;
    memcpy(member->address, options->address, strlen(options->address) + 1);
    member->tick.kind = MEMBER_TICK;
    member->ready_message.kind = MEMBER_READY;
    member->stop.kind = MEMBER_STOP;
    actor_init(&member->actor, "member", member_step);
    member->map = calloc(1, sizeof *member->map);
    int r = map_follower_init(&member->maps, options->env, &map_hooks, member);
    if (r < 0 || !member->map) {
        member_free(member);
        return -ERR_NO_MEMORY;
    }
    if (options->map) {
        cluster_map_copy(member->map, options->map);
        member->state.map_version = options->map->version;
    }
    *ret_member = member;
    return 0;
}

struct actor *member_actor(struct member *member) {
    return &member->actor;
}

void member_free(struct member *member) {
    if (member) {
        free(member->map);
        free(member->next);
        map_follower_deinit(&member->maps);
        free(member);
    }
}

void member_tick(struct member *member) {
    if (!atomic_exchange(&member->tick_posted, true)) {
        actor_post(&member->actor, &member->tick);
    }
}

void member_ready(struct member *member) {
    actor_post(&member->actor, &member->ready_message);
}

void member_ask(struct member *member, struct member_question *question) {
    question->message.kind = MEMBER_QUESTION;
    question->message.message_class = MESSAGE_CONTROL;
    actor_post(&member->actor, &question->message);
}

void member_stop_start(struct member *member, void (*done)(void *context, int result),
                       void *context) {
    member->stop_done = done;
    member->stop_context = context;
    actor_post(&member->actor, &member->stop);
}
