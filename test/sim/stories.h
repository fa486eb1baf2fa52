/* Short stories with nothing random in them: what one client does, and what happens to the nodes.
 *
 *     story: steps --> world --> trace --> the lines that tell what was asked, sent and stored
 *                                          == golden/NAME.txt, or written there
 *
 * So a reader sees what the system does, and a change of it shows as a change of these files.
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "base/types.h"

/* Plays all stories, prints a line for each that has changed; with write it keeps them instead.
 * The last line counts them. Answers how many have failed. */
unsigned stories_play(const char *directory, bool write);
