/* Text that `shoal plan` works on: the data files that are shipped within the program
 * (share/shoal/), files of the user, scenarios. INI, read by inih. */
#pragma once
#include "planner/plan.h"

/* A file of the tree as it was when the program was built. */
struct plan_file {
    const char *name; /* "prices.ini", "scenarios/pretrain-32.ini", "page.html" */
    const unsigned char *data;
    size_t size;
};
extern const struct plan_file plan_files[];
extern const size_t plan_file_count;
/* NULL when there is none. */
const struct plan_file *plan_file_find(const char *name);

/* The sections and keys of an INI text; name is for messages. *problem is filled on failure. */
MUST_CHECK int plan_files_parse(const char *text, const char *name, struct data *data,
                                struct plan_problem *problem);
/* What is shipped: every data file. */
MUST_CHECK int plan_files_shipped(struct data *data, struct plan_problem *problem);
/* The user's file at path, at most PLAN_FILE_BYTES_MAX. */
enum { PLAN_FILE_BYTES_MAX = 1024 * 1024 };
MUST_CHECK int plan_files_load(const char *path, struct data *data, struct plan_problem *problem);
/* The user's data file over what is there: sections of rules, latencies and notes may be new, any
 * other row must be one that is there, so that a slip is not taken for a price. */
MUST_CHECK int plan_files_over(const char *path, struct data *data, struct plan_problem *problem);
/* The whole text of the file at path, for the caller to free. */
MUST_CHECK int plan_files_read(const char *path, char **ret_text, struct plan_problem *problem);
