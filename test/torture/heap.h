/* How many blocks of memory the program has taken and not given back.
 *
 * Thread: any. */
#pragma once
#include "base/types.h"

/* Not those that the C library takes for itself. */
size_t heap_blocks(void);
