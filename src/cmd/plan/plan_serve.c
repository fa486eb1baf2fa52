/* The planner's page, served or written to a file. */
#include "cmd/plan/plan_serve.h"
#include "base/err.h"
#include "cmd/plan/plan_files.h"
#include "host/http.h"
#include "host/plain_file.h"
#include "host/process.h"
#include "planner/answer.h"
#include "planner/text.h"
#include <stdio.h>
#include <string.h>

/* Where the page has what it is to begin with; it is there once. */
static const char place[] = "id=\"given\">null<";

static const struct plan_file *page_find(struct plan_problem *problem) {
    const struct plan_file *page = plan_file_find("page.html");

    if (!page) {
        plan_complain(problem, "this program was built without the page: clang, lld, wasi-libc and "
                               "libjs-chart.js were missing; ./dev build installs them");
    }
    return page;
}

/* [[section, key, value], ...], where no < may end the element that it stands in. */
static void add_rows(struct text *text, const struct data *rows) {
    text_add(text, "[");
    for (size_t i = 0; i < rows->count; i++) {
        text_add(text, i > 0 ? ", [" : "[");
        text_add_json(text, rows->rows[i].section);
        text_add(text, ", ");
        text_add_json(text, rows->rows[i].key);
        text_add(text, ", ");
        text_add_json(text, rows->rows[i].text);
        text_add(text, "]");
    }
    text_add(text, "]");
}

/* In JSON a < may be escaped, which no HTML parser sees through. */
static void add_escaped(struct text *text, const char *json) {
    for (size_t size; *json; json += size) {
        size = strcspn(json, "<");
        text_add(text, "%.*s", (int)size, json);
        if (json[size] == '<') {
            text_add(text, "\\u003c");
            size++;
        }
    }
}

static int add_given(const struct plan_words_given *words, struct text *given,
                     struct plan_problem *problem) {
    struct data scenario = {0};
    struct data data = {0};
    int r = words->from ? plan_files_load(words->from, &scenario, problem) : 0;

    for (size_t i = 0; r == 0 && i < words->data_file_count; i++) {
        r = plan_files_load(words->data_files[i], &data, problem);
    }
    if (r == 0) {
        text_add(given, "{\"scenario\": ");
        if (words->from) {
            add_rows(given, &scenario);
        } else {
            text_add(given, "null");
        }
        text_add(given, ", \"data\": ");
        add_rows(given, &data);
        text_add(given, "}");
    }
    data_deinit(&scenario);
    data_deinit(&data);
    return r;
}

/* A scenario that the command line refuses is refused here too, before a browser shows it. */
static int check_scenario(const struct plan_words_given *words, struct plan_problem *problem) {
    struct data data = {0};
    struct data asked = {0};
    struct data settings = {0};
    struct scenario scenario;
    int r = plan_files_shipped(&data, problem);

    for (size_t i = 0; r == 0 && i < words->data_file_count; i++) {
        r = plan_files_over(words->data_files[i], &data, problem);
    }
    if (r == 0 && words->from) {
        r = plan_files_load(words->from, &asked, problem);
    }
    if (r == 0) {
        r = answer_settings(&data, &asked, &settings, problem);
    }
    if (r == 0) {
        r = scenario_run(&scenario, &data, &settings, problem);
        if (r == 0) {
            scenario_deinit(&scenario);
        }
    }
    data_deinit(&settings);
    data_deinit(&asked);
    data_deinit(&data);
    return r;
}

/* The page with what it is to begin with. */
static int make_page(const struct plan_words_given *words, struct text *page,
                     struct plan_problem *problem) {
    const struct plan_file *file = page_find(problem);
    struct text given = {0};

    if (!file) {
        return -ERR_NOT_SUPPORTED;
    }
    const char *text = (const char *)file->data;
    const char *at = strstr(text, place);
    if ((!words->from && words->data_file_count == 0) || !at) {
        text_add(page, "%s", text);
        return page->failed ? -ERR_NO_MEMORY : 0;
    }
    at += strlen(place) - strlen("null<");
    int r = check_scenario(words, problem);
    if (r == 0) {
        r = add_given(words, &given, problem);
    }
    if (r == 0) {
        text_add(page, "%.*s", (int)(at - text), text);
        add_escaped(page, given.data);
        text_add(page, "%s", at + strlen("null"));
        r = page->failed || given.failed ? -ERR_NO_MEMORY : 0;
    }
    text_deinit(&given);
    return r;
}

static int explain_start(int r, const char *address, struct plan_problem *problem) {
    static const char example[] = "for example --serve 127.0.0.1:8080";

    if (r == -ERR_INVALID) {
        plan_complain(problem, "--serve takes ADDR:PORT, not \"%.60s\": %s", address, example);
    } else if (r == -ERR_NOT_FOUND) {
        plan_complain(problem,
                      "%.60s cannot be listened at: the address is not of this machine: %s",
                      address, example);
    } else {
        plan_complain(problem, "%.60s cannot be listened at: %s", address, err_text(r));
    }
    return r;
}

static int page_serve(const struct plan_words_given *words, const struct text *page,
                      struct plan_problem *problem) {
    const struct http_document document = {"/", "text/html; charset=utf-8", page->data, page->size};
    char where[HTTP_ADDRESS_BYTES];
    struct http *http;
    int signal_number;

    if (http_is_local(words->serve) == 0 && !words->listen_anywhere) {
        plan_complain(problem,
                      "%.60s cannot be listened at: others could reach it, which --listen-anywhere "
                      "allows: for example --serve 127.0.0.1:8080",
                      words->serve);
        return -ERR_INVALID;
    }
    process_signals_block();
    int r = http_start(words->serve, &document, 1, where, &http);
    if (r < 0) {
        return explain_start(r, words->serve, problem);
    }
    printf("http://%s/ (Ctrl-C ends it)\n", where);
    (void)fflush(stdout);
    r = process_signal_wait(UINT64_MAX, &signal_number);
    http_stop(http);
    if (r < 0) {
        plan_complain(problem, "waiting for a signal failed: %s", err_text(r));
    }
    return r;
}

static int write_page(const char *path, bool force, const struct text *page,
                      struct plan_problem *problem) {
    int fd;

    if (strcmp(path, "-") == 0) {
        if (fwrite(page->data, 1, page->size, stdout) == page->size && fflush(stdout) == 0) {
            return 0;
        }
        plan_complain(problem, "the page cannot be written");
        return -ERR_IO;
    }
    if (!force && plain_file_stat(path) == 0) {
        plan_complain(problem, "%s is there already: --force writes over it, or name another file",
                      path);
        return -ERR_EXISTS;
    }
    int r = plain_file_open(path, PLAIN_FILE_WRITE | PLAIN_FILE_CREATE, &fd);
    if (r == 0) {
        r = plain_file_write(fd, page->data, page->size, 0);
        int closed = plain_file_close(fd);

        if (r == 0) {
            r = closed;
        }
        if (r < 0 && plain_file_unlink(path) < 0) {
            plan_complain(problem, "%s cannot be written, and a part of it stays: %s", path,
                          err_text(r));
            return r;
        }
    }
    if (r < 0) {
        plan_complain(problem, "%s cannot be written: %s", path, err_text(r));
    }
    return r;
}

int plan_page(const struct verb *verb, const struct plan_words_given *words) {
    struct plan_problem problem = {"memory ran out"};
    struct text page = {0};
    int r = make_page(words, &page, &problem);

    if (r == 0) {
        r = words->serve ? page_serve(words, &page, &problem)
                         : write_page(words->html, words->force, &page, &problem);
    }
    text_deinit(&page);
    if (r < 0) {
        (void)verb_fail(verb, "%s", problem.text);
    }
    return r == 0 ? EXIT_OK : r == -ERR_INVALID ? EXIT_USAGE : EXIT_FAILED;
}
