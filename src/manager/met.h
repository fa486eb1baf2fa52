/* Mounts whose sessions have told of a user who met his share of what a mount may have: as the last
 * renewal had it, in memory only, until the session ends. For the files of the manager. */
#pragma once
#include "manager/manager_internal.h"

/* A renewal of the session. */
void manager_met_note(struct manager *manager, struct manager_session *session,
                      const struct session_renew_request *request);
/* Fills it in and gives it back. */
void manager_met_answer(struct manager *manager, struct manager_met *met);
