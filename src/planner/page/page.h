/* The planner as the page calls it: a request in text, an answer in JSON.
 *
 * A request is a line with its name and then its lines, fields between tabs:
 *     data      section, key, value      rows of the data files            -> {}
 *     describe                                                             -> report_describe
 *     run       section, key, value      settings, as in scenario.h        -> {"models": [...]}
 *     sweep     model, sweep; then settings                                -> report_json, swept
 * or {"problem": "one line"}. Anything may be asked: nonsense is a problem too. */
#pragma once
#include "planner/data.h"
#include "planner/text.h"

struct page {
    struct data data;
};

void page_deinit(struct page *page);
/* Replaces the answer. A failed answer means that memory ran out. */
void page_call(struct page *page, const char *request, struct text *answer);
