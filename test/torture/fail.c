/* See fail.h. */
#include "fail.h"
#include "jobs.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct seed_report *report;
static char where[160];

void fail_report_to(struct seed_report *to) {
    report = to;
}

void fail_say(const char *format, ...) {
    va_list arguments;

    (void)snprintf(report->failure, sizeof report->failure, "%s: ", where);
    size_t used = strlen(report->failure);
    va_start(arguments, format);
    (void)vsnprintf(report->failure + used, sizeof report->failure - used, format, arguments);
    va_end(arguments);
    report->clean = false;
    jobs_end_with(report);
}

void fail_where(const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(where, sizeof where, format, arguments);
    va_end(arguments);
}

static void tell(int number) {
    (void)!write(STDERR_FILENO, where, strlen(where));
    (void)!write(STDERR_FILENO, "\n", 1);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void fail_signals(void) {
    const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        (void)signal(numbers[i], tell);
    }
}
