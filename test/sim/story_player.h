/* Plays stories.
 *
 *     steps --> world --> trace --> the lines that tell what was asked, sent and stored
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "story.h"

/* The lines, which the caller frees. problem says what was otherwise than the story has it; empty:
 * nothing. */
char *story_tell(const struct story *story, char problem[STORY_PROBLEM_BYTES]);
