/* `shoal plan run`: one question, one answer. */
#pragma once
#include "cmd/plan/plan_words.h"

/* What run exits with when something is short, or worse. */
enum { EXIT_SHORT = 3 };

int plan_run(const struct verb *verb, const struct plan_words_given *words,
             const struct data *data);
