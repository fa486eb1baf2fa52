/* Whose the root of a real env is, and all that is in it. Who serves a directory that another user
 * may change does that user's will: names in it may lead to files of the server's own. */
#pragma once
#include "base/err.h"
#include "env/env.h"

struct folder_stranger {
    char path[256]; /* the first that was found, below the root; "": the root itself; cut */
    uint32_t uid;   /* whose it is */
    bool is_theirs; /* another user's; else others may write to it */
};

/* 0 where all is the caller's and nobody else may write to it. -ERR_NOT_PERMITTED, and who may.
 * Links and devices of the caller's count as good, what lost+found holds as nothing. */
MUST_CHECK int folder_owner_check(struct env *env, struct folder_stranger *ret_stranger);
