/* One question, one answer: `shoal plan run`. All models, linked as the data's [run.SECTION] rows
 * say, each where the user has said nothing; and lines about them, the data's [answer] rows.
 *
 * What is asked stands in rows like a scenario's. Rows of section [run] are those of the command:
 * gpus, gpu, system, files, sample_size, samples_per_second.
 *
 * Thread: the caller's.  Memory: the caller's. */
#pragma once
#include "planner/scenario.h"
#include "planner/text.h"

struct answer {
    const struct data *data;
    const struct data *asked; /* what the user has said */
    struct scenario *scenario;
};

/* Settings for scenario_run: what is asked, and links and assumptions for the rest.
 * -ERR_MALFORMED, -ERR_NOT_FOUND, -ERR_INVALID with *problem filled; other errors of data_set. */
MUST_CHECK int answer_settings(const struct data *data, const struct data *asked,
                               struct data *settings, struct plan_problem *problem);
/* Whether anything is asked, beside notes. */
bool answer_asks(const struct data *asked);
/* Whether `run` has an option of that name besides the inputs of the models. */
bool answer_has_option(const char *name);

/* Of the worst verdict. */
enum plan_level answer_level(const struct answer *answer);
/* The verdict in one sentence, its level before it. */
void answer_sentence(const struct answer *answer, struct text *text);
/* At most 25 lines of at most 100 columns. */
void answer_lines(const struct answer *answer, struct text *text);
/* {"level", "verdict", "lines": [{"name", "text"}], "figures": {"model.name": {"value", "text",
 * "assumed"}}}: the figures that the lines name. */
void answer_json(const struct answer *answer, struct text *text);
