/* A seed that breaks: its report says what broke and where, and the process ends with it; another
 * one goes on behind that seed (jobs.h).
 *
 * Thread: one seed at a time. */
#pragma once
#include "totals.h"

/* Whose failures these are from now on. */
void fail_report_to(struct seed_report *report);
_Noreturn void fail_say(const char *format, ...) PRINTF_LIKE(1, 2);
void fail_where(const char *format, ...) PRINTF_LIKE(1, 2);
/* An assertion of the engine's says where as well, on the error output. */
void fail_signals(void);

#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail_say(__VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (0)
