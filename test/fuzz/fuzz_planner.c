/* What the planner reads: quantities, files of the user, requests of its page. Anything may be
 * asked: nonsense is a problem in words. */
#include "base/err.h"
#include "cmd/plan/plan_files.h"
#include "fuzz.h"
#include "planner/page/page.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { REQUEST_BYTES = 8192 };

/* The first byte is the unit. */
void fuzz_unit(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    enum unit unit = (enum unit)(wire_take_number(&cursor, 1) % UNIT_COUNT_OF_UNITS);
    char text[256], printed[UNIT_TEXT_BYTES];
    double number = -1, again;

    fuzz_string(fuzz_rest(&cursor), text, sizeof text);
    int r = unit_parse(unit, text, &number);
    if (r < 0) {
        assert(r == -ERR_MALFORMED && number == -1);
        return;
    }
    assert(isfinite(number));
    unit_format(unit, number, printed);
    assert(memchr(printed, '\0', sizeof printed));
    unit_format_exact(unit, number, printed);
    r = unit_parse(unit, printed, &again);
    assert(r == 0 && fabs(again - number) <= fabs(number) * 1e-14);
}

void seed_unit(const struct fuzz_seeds *seeds) {
    for (uint8_t unit = 0; unit < UNIT_COUNT_OF_UNITS; unit++) {
        char text[UNIT_TEXT_BYTES + 1] = {(char)unit};

        memcpy(text + 1, unit_example((enum unit)unit), strlen(unit_example((enum unit)unit)) + 1);
        fuzz_seed(seeds, (struct bytes){(const uint8_t *)text, 1 + strlen(text + 1)});
        unit_format_exact((enum unit)unit, 1234567.5, text + 1);
        fuzz_seed(seeds, (struct bytes){(const uint8_t *)text, 1 + strlen(text + 1)});
    }
}

/* What is read stands there, once a key. */
void fuzz_plan_file(struct bytes in) {
    static char text[REQUEST_BYTES];
    struct plan_problem problem = {{0}};
    struct data data = {0};

    fuzz_string(in, text, sizeof text);
    int r = plan_files_parse(text, "it", &data, &problem);
    assert(r == 0 || (problem.text[0] && memchr(problem.text, '\0', sizeof problem.text)));
    assert(data.count <= DATA_ROWS_MAX);
    for (size_t i = 0; i < data.count; i++) {
        const struct data_row *row = &data.rows[i];

        assert(data_text(&data, row->section, row->key) == row->text);
        assert(strlen(row->text) < DATA_TEXT_BYTES);
    }
    data_deinit(&data);
}

void seed_plan_file(const struct fuzz_seeds *seeds) {
    for (size_t i = 0; i < plan_file_count; i++) {
        const char *end = strrchr(plan_files[i].name, '.');

        if (end && strcmp(end, ".ini") == 0 && plan_files[i].size < REQUEST_BYTES) {
            fuzz_seed(seeds, (struct bytes){plan_files[i].data, plan_files[i].size});
        }
    }
}

/* With the data that are shipped; there for good. */
static struct page *page_shipped(void) {
    static struct page page;
    struct plan_problem problem;

    if (page.data.count == 0) {
        int r = plan_files_shipped(&page.data, &problem);

        assert(r == 0);
    }
    return &page;
}

/* The page's text is UTF-8, of which a bad one would come back in the answer as it is. */
static bool is_ascii(const char *text) {
    while (*text && (uint8_t)*text < 0x80) {
        text++;
    }
    return !*text;
}

void fuzz_plan_page(struct bytes in) {
    static char request[REQUEST_BYTES];
    struct page own = {0};
    struct text answer = {0};

    fuzz_string(in, request, sizeof request);
    /* That one changes the page. */
    page_call(strncmp(request, "data\n", 5) == 0 ? &own : page_shipped(), request, &answer);
    assert(!answer.failed);
    if (is_ascii(request)) {
        json_t *json = json_loadb(answer.data, answer.size, 0, NULL);

        assert(json_is_object(json)); /* so there is no inf and no nan in it */
        json_decref(json);
    }
    text_deinit(&answer);
    page_deinit(&own);
}

void seed_plan_page(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "describe\n");
    fuzz_seed_text(seeds, "data\nprices\tx\t1\n");
    fuzz_seed_text(seeds, "run\nrun\tgpus\t64\nrun\tsystem\tshoal\n");
    fuzz_seed_text(seeds, "run\ncheckpoint\ttarget\t60s\ncommon\tparameters\t70B\n");
    fuzz_seed_text(seeds, "sweep\tcheckpoint\twrite_bandwidth=1GB/s..100GB/s:20log\n");
}
