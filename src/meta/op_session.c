/* session_attach, session_floor, reopen. */
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/open.h"
#include "meta/operations.h"
#include "meta/untouched.h"

/* Attaches that wait for the list of the ended; all others are tried again, so that those leave
 * room for the message that has it. */
enum { ATTACHES_WAITING_MAX = 8 };

/* What its predecessors have sent, and nobody has read yet, would come behind what it does: it
 * waits for a list that names each of them. */
static int predecessors_wait(struct transaction *transaction) {
    const struct list *waiting = &transaction->group->parking.group[MESSAGE_CONTROL];
    uint32_t count = 0;

    for (struct list_node *node = list_first(waiting); node && count < ATTACHES_WAITING_MAX;
         node = list_next(waiting, node)) {
        count++;
    }
    return count < ATTACHES_WAITING_MAX ? transaction_stall(transaction) : -ERR_BUSY;
}

/* A session that is not in memory: new, or ended. A message of an ended one may come late. */
static int attach_new(struct transaction *transaction, const struct session_attach_request *request,
                      uint16_t window) {
    struct group *group = transaction->group;
    struct kv_key key = key_owner(ROW_SESSION, request->session, 0, 0);
    struct session_row row = {.format = META_FORMAT,
                              .state = SESSION_LIVE,
                              .window = window,
                              .node = request->node,
                              .epoch = transaction->epoch,
                              .incarnation = request->incarnation};
    const struct ended_list *list = &group->ended.list;
    bool ended = false;

    int r = ended_list_has(list, request->session, &ended);
    if (r < 0 || ended) {
        return r < 0 ? r : -ERR_FENCED;
    }
    if (list->number == 0 || request->ended > list->number) {
        return predecessors_wait(transaction);
    }
    if (!sessions_have_room(&group->sessions)) {
        return -ERR_BUSY;
    }
    return transaction_put(transaction, &key, &row, sizeof row);
}

int op_session_attach(struct transaction *transaction, struct call *call) {
    const struct session_attach_request *request = &call->request.session_attach;
    struct group *group = transaction->group;
    const struct session *session =
        sessions_find(&group->sessions, (struct session_id){request->session});

    uint16_t window = session ? session->window : windows_offer(&group->sessions.windows);

    if (request->session == 0) {
        return -ERR_INVALID;
    }
    int r = ticket_admit(&group->ticket_signer,
                         (struct ticket_session){request->session, request->incarnation},
                         request->ticket, call->identity);
    if (r < 0) {
        return r;
    }
    if (!session) {
        r = attach_new(transaction, request, window);
    } else if (session->state != SESSION_LIVE || session->incarnation != request->incarnation) {
        r = -ERR_FENCED;
    } else if (!session->attached && call->header.term != 0 && call->header.term != group->term) {
        /* What it presented, it presented to a term that is over. */
        r = -ERR_STALE_TERM;
    }
    if (r == 0 && group->sessions.losses != 0 && (!session || session->is_unsure)) {
        r = fences_known_stage(transaction, (struct session_id){request->session},
                               request->incarnation);
    }
    if (r < 0) {
        return r;
    }
    transaction_effect(transaction,
                       (struct effect){.kind = EFFECT_ATTACH, .ino = {request->session}});
    transaction->after_sync = true;
    call->reply.session_attach = (struct session_attach_reply){
        .term = group->term,
        .recovered_position = kv_survived_position(group->kv, request->known_term),
        .life_high = kv_life(group->kv).high,
        .life_low = kv_life(group->kv).low,
        .window = MAX(window, (uint16_t)WINDOW_LEAST),
    };
    return 0;
}

/* Its floor here has risen when the head was read; now it does in the log. */
int op_session_floor(struct transaction *transaction, struct call *call) {
    const struct session *session = transaction->session;
    const struct kv_outcome floor = {.session = session->id, .floor = session->floor};

    call->reply.session_floor.synced = kv_synced_position(transaction->group->kv);
    return kv_floor_is_due(transaction->group->kv, floor.session, floor.floor)
               ? transaction_outcome(transaction, &floor)
               : 0;
}

/* Whoever had the file open for writing when the log's end was lost may have written behind the end
 * that we know, and others too who had closed it: all of that becomes part of the file now. */
static int unsure_end_ask(struct transaction *transaction, struct ino ino,
                          const struct inode_row *row) {
    struct group *group = transaction->group;

    if (row->data_state != DATA_CHUNKED || row->losses == kv_losses(group->kv) || !group->rpc) {
        return 0;
    }
    if (!settle_has_room(group, ino)) {
        return transaction_stall(transaction);
    }
    transaction_effect(transaction, (struct effect){.kind = EFFECT_SETTLE, .ino = ino});
    return 0;
}

/* Sets how often the session has the inode open, which makes it repeatable. Only before it attaches
 * anew: afterwards opens and closes are counted, and a late copy must not set them back. */
int op_reopen(struct transaction *transaction, struct call *call) {
    const struct reopen_request *request = &call->request.reopen;
    struct opens *opens = &transaction->group->opens;
    uint32_t write_count = MAX(request->write_count, request->open_flags & OPEN_WRITE ? 1U : 0U);
    uint32_t read_count = request->read_count;
    const struct inode_row *row;

    if (request->read_count > OPEN_COUNT_MAX || request->write_count > OPEN_COUNT_MAX ||
        (request->open_flags & ~(uint32_t)OPEN_FLAGS_KNOWN)) {
        return -ERR_INVALID;
    }
    int r = inode_get(transaction, request->ino, &row);
    if (r < 0) {
        return r;
    }
    call->reply.reopen.epoch = row->epoch;
    if (!transaction->session->attached) {
        r = opens_find(opens, request->ino, transaction->session) ? 0 : opens_reserve(opens);
        if (r < 0) {
            return r;
        }
        transaction_effect(transaction, (struct effect){.kind = EFFECT_REOPEN,
                                                        .ino = request->ino,
                                                        .counts = {read_count, write_count},
                                                        .uid = request->who.uid,
                                                        .name = request->name});
        r = write_count > 0 ? open_writer_stage(transaction, request->ino) : 0;
        r = r < 0 || write_count == 0 ? r : unsure_end_ask(transaction, request->ino, row);
    } else {
        r = inode_is_open(transaction, request->ino, OPEN_READ);
    }
    call->reply.reopen.term = transaction->group->term;
    if (r == 0 && mode_is_regular(row->mode)) {
        struct inode_row changed = *row;
        uint32_t flags = (write_count > 0 ? OPEN_WRITE : 0) |
                         (read_count > 0 || request->name != 0 ? OPEN_READ : 0);

        if (untouched_end(&changed)) {
            r = inode_put(transaction, request->ino, &changed);
        }
        capability_fill(transaction, request->ino, &changed,
                        rights_of(transaction, request->ino, flags),
                        &call->reply.reopen.capability);
        call->reply.reopen.layout = inode_layout(&changed);
    }
    return r;
}
