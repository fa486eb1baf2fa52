/* The list of the ended, and sessions_ended. */
#include "meta/ended.h"
#include "base/bug.h"
#include "meta/group_internal.h"
#include "meta/operations.h"
#include <assert.h>

/* Of a run: the context of the list's owner. */
struct taking {
    struct group *group;
    uint64_t number; /* by which all that is named had ended; 0: not told */
    struct transaction transaction;
};

static int taking_begin(void *context, const struct kv_need *need) {
    struct taking *taking = context;
    int r = transaction_begin(&taking->transaction, taking->group, KV_CLASS_CONTROL, need);

    taking->transaction.changed = r == 0;
    return r;
}

static void taking_commit(void *context) {
    (void)transaction_commit(&((struct taking *)context)->transaction);
}

static void taking_abort(void *context) {
    transaction_abort(&((struct taking *)context)->transaction);
}

static struct session *session_of(const void *context, uint64_t session) {
    const struct taking *taking = context;

    return sessions_find(&taking->group->sessions, (struct session_id){session});
}

/* What it had open is not known, or what it had written and closed may have been lost. Also where
 * storage targets refuse it: what lies behind an end becomes part of the file now, where somebody
 * asks, or never. */
static bool is_to_be_fenced(const struct taking *taking) {
    const struct group *group = taking->group;

    return group->fences.over < group->sessions.losses && group->rpc && !BUG(UNFENCED_LOSS);
}

/* Its row stays until what it had open is closed. */
static int session_mark(void *context, uint64_t id) {
    struct taking *taking = context;
    struct transaction *transaction = &taking->transaction;
    const struct session *session = session_of(context, id);
    struct kv_key key = key_owner(ROW_SESSION, id, 0, 0);

    if (!session || session->state == SESSION_EVICTING || BUG(DEAF_MDT)) {
        return 0;
    }
    const struct session_row row = {.format = META_FORMAT,
                                    .state = SESSION_EVICTING,
                                    .window = session->window,
                                    .node = session->node_id,
                                    .epoch = transaction->epoch,
                                    .incarnation = session->incarnation};
    int r = transaction_put(transaction, &key, &row, sizeof row);
    return r == 0 && is_to_be_fenced(taking)
               ? fences_add_stage(transaction, session, taking->number)
               : r;
}

static void session_marked(void *context, uint64_t id) {
    const struct taking *taking = context;
    struct session *session = session_of(context, id);

    if (session && session->state != SESSION_EVICTING && !BUG(DEAF_MDT)) {
        if (is_to_be_fenced(taking)) {
            fences_add(taking->group, session, taking->number);
        }
        sessions_sure(&taking->group->sessions, session);
        session->evict_position = taking->group->ended.list.position;
        sessions_evict(&taking->group->sessions, session);
    }
}

/* Who stays would be found again for ever. */
static bool is_within(const struct session *session, uint64_t from, uint64_t end) {
    return session && session->id.value >= from && session->id.value < end &&
           session->state != SESSION_EVICTING && !BUG(DEAF_MDT);
}

/* By whatever is less: the numbers, or the sessions that there are. */
static int within_find(void *context, uint64_t from, uint64_t end, uint64_t *ret_session) {
    const struct sessions *sessions = &((struct taking *)context)->group->sessions;
    const struct session *found = NULL;

    if (end - from <= sessions->count) {
        for (uint64_t id = from; id < end && !is_within(found, from, end); id++) {
            found = sessions_find(sessions, (struct session_id){id});
        }
    } else {
        for (struct list_node *node = list_first(&sessions->known);
             node && !is_within(found, from, end); node = list_next(&sessions->known, node)) {
            found = CONTAINER_OF(node, struct session, node);
        }
    }
    *ret_session = is_within(found, from, end) ? found->id.value : 0;
    return 0;
}

static const struct ended_owner owner = {
    .row_type = ROW_ENDED,
    .need = {.rows = 2,
             .record_bytes =
                 sizeof(struct session_row) + sizeof(struct fence_row) + 2 * KV_ROW_RECORD_BYTES},
    .begin = taking_begin,
    .commit = taking_commit,
    .abort = taking_abort,
    .end = session_mark,
    .ended = session_marked,
    .within = within_find,
};

void ended_init(struct ended *ended) {
    *ended = (struct ended){0};
    list_init(&ended->calls);
}

int ended_load(struct group *group) {
    return ended_list_load(&group->ended.list, group->kv, &owner);
}

int op_sessions_ended(struct transaction *transaction, struct call *call) {
    (void)call;
    transaction->held = true;
    transaction_effect(transaction, (struct effect){.kind = EFFECT_ENDED});
    return 0;
}

/* The list that it has is on disk with the position, as are the ends of fences: who is told of the
 * number waits for that. */
static void answer(struct group *group, struct call *call, int r) {
    const struct ended_list *list = &group->ended.list;
    uint64_t position = MAX(list->position, group->fences.position);

    if (r < 0) {
        group_answer(group, call, r);
        return;
    }
    call->result = 0;
    call->reply.sessions_ended.number = list->number;
    call->reply.sessions_ended.fence_count = group->fences.count;
    call->server_position = position;
    call->disk_ns = group->now_ns;
    group_sync_want(group, position);
    list_push_back(&group->awaiting_sync, &call->server_node);
}

static int take(struct group *group, const struct call *call) {
    const struct sessions_ended_request *body = &call->request.sessions_ended;
    const struct ended_news news = {.from = body->from,
                                    .number = body->number,
                                    .lowest = body->lowest,
                                    .first = body->first,
                                    .names = body->names};
    struct taking taking = {.group = group, .number = body->newest};
    int r = ended_list_take(&group->ended.list, &group->ended.work, &news, &taking);

    return r == 0 ? fences_pass(group, body->everywhere, body->newest) : r;
}

void ended_step(struct group *group) {
    struct ended *ended = &group->ended;
    uint64_t number = ended->list.number;
    struct list_node *node;

    while ((node = list_first(&ended->calls))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        int r = take(group, call);

        if (r == ENDED_YIELDS) {
            group_again(group);
        }
        if (r > 0 || r == -ERR_PENDING) {
            break;
        }
        list_remove(node);
        ended->work = (struct ended_work){0};
        answer(group, call, r);
    }
    /* Who attaches may have waited for it. */
    group->moved = group->moved || ended->list.number != number;
}
