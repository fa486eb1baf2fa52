/* When a seed that fails is lost: it is played again with all its generators drawn anew from some
 * moment on, by several lots, for several moments.
 *
 *     moments from begin to failure --lots--> how many of them fail --> the piece behind the
 *                 ^                                              last that is not lost
 *                 '---------------- moments of that piece only <--------'
 *
 * Before the piece another way would mostly have been a good one, behind it no way is: what
 * decided lies in between, which is mostly long before anything is noticed. What is drawn of a
 * world before it begins (its nodes, its faults) stays.
 *
 * Thread: one; children play. Memory: the heap. */
#pragma once
#include "base/types.h"

/* Of the first seed of these that fails. Prints what it finds, a line a moment. 0; 1: none does. */
int why(uint64_t first, uint64_t last, uint64_t jobs, const char *bug);
