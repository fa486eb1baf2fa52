/* Error codes: 0 or a negative ERR_ value from err.def, in every fallible function. */
#pragma once
#include "base/types.h"

enum err {
#define ERR(name, number, errno_value, action, text) ERR_##name = number,
#include "base/err.def"
#undef ERR
};

/* What a client does with an error that a server sent. */
enum err_action { ERR_ACTION_FAIL, ERR_ACTION_RETRY, ERR_ACTION_REFRESH, ERR_ACTION_REOPEN };

/* All three take the code as returned (negative) and answer for unknown codes too. */
const char *err_name(int result);
const char *err_text(int result);
enum err_action err_action(int result);
