/* The one place where error codes and errno meet. Pure, any thread. */
#pragma once
#include "base/err.h"

/* The negative ERR code of a positive errno of the system; -ERR_IO for one without a row. */
int err_from_errno(int errno_value);

/* The positive errno of a negative ERR code; 0 for success, EIO for an unknown code. */
int err_to_errno(int result);
