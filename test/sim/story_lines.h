/* What is kept of a story's trace: what was asked and answered, messages, writes and flushes, and
 * what befell nodes. Without times, which nothing depends on. */
#pragma once
#include "base/types.h"

/* Of a trace that ends in a zero. is_brief: without signs of life, and without copies of a message
 * behind its second one. The caller frees the answer. */
char *story_lines(char *trace, bool is_brief);
