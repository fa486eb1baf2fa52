/* Filling in the line for a person. */
#pragma once
#include "front/fuse/fuse.h"

/* Sets the text and answers result, so that a refusal is one statement. */
int problem_set(struct fuse_problem *problem, int result, const char *format, ...)
    PRINTF_LIKE(3, 4);
