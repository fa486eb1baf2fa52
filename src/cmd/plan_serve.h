/* The planner's page over HTTP, and as a file. */
#pragma once
#include "planner/plan.h"

/* ADDR:PORT, [ADDR]:PORT, or PORT alone, which is on 127.0.0.1; port 0: any that is free. Prints
 * the address, serves until SIGINT, SIGTERM or SIGHUP. Answers 0, or a negative code with *problem
 * filled. */
MUST_CHECK int plan_serve(const char *address, struct plan_problem *problem);
/* Writes the page to a new file, or to standard output for "-". */
MUST_CHECK int plan_html(const char *path, struct plan_problem *problem);
