/* The planner's page over HTTP, and as a file. */
#pragma once
#include "cmd/plan/plan_words.h"

/* --serve ADDR:PORT, localhost:PORT, [ADDR]:PORT, or PORT alone, which is on 127.0.0.1; port 0: any
 * that is free. Prints the address, serves until SIGINT, SIGTERM or SIGHUP. --html writes the page
 * to a new file, or to standard output for "-". With --from and --data the page begins with them.
 * An exit status. */
int plan_page(const struct verb *verb, const struct plan_words_given *words);
