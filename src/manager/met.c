/* The contract is in met.h. Who told something new last is first in the list. */
#include "manager/met.h"
#include <string.h>

void manager_met_note(struct manager *manager, struct manager_session *session,
                      const struct session_renew_request *request) {
    if (request->files_user == session->files_user &&
        request->requests_user == session->requests_user) {
        return;
    }
    session->files_user = request->files_user;
    session->requests_user = request->requests_user;
    list_remove(&session->met);
    list_push_front(&manager->sessions.met, &session->met);
}

static void row_fill(struct manager_met_row *row, const struct manager_session *session) {
    size_t size = MIN(session->origin_bytes, sizeof row->origin - 1);

    *row = (struct manager_met_row){.session = session->id,
                                    .files_user = session->files_user,
                                    .requests_user = session->requests_user};
    memcpy(row->origin, session->origin, size);
}

void manager_met_answer(struct manager *manager, struct manager_met *met) {
    const struct list *list = &manager->sessions.met;

    met->count = 0;
    for (struct list_node *node = list_first(list); node && met->count < MANAGER_MET_MAX;
         node = list_next(list, node)) {
        row_fill(&met->rows[met->count++], CONTAINER_OF(node, struct manager_session, met));
    }
    met->done(met);
}

void manager_met_start(struct manager *manager, struct manager_met *met) {
    met->message.kind = MANAGER_MET;
    actor_post(&manager->actor, &met->message);
}
