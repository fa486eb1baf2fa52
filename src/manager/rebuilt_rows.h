/* The first rows of a manager that was rebuilt, for the files of the manager. */
#pragma once
#include "manager/manager_internal.h"

/* At the load, in front of all reads: what options.rebuilt says, each row once, the map last.
 * -ERR_PENDING: there is no room for more of them now; call again. */
MUST_CHECK int manager_rebuilt_write(struct manager *manager);
