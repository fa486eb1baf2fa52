/* The planner's page, served or written to a file. */
#include "cmd/plan_serve.h"
#include "base/err.h"
#include "cmd/plan_files.h"
#include "env/env_host.h"
#include "env/env_http.h"
#include "env/env_process.h"
#include <stdio.h>
#include <string.h>

static const struct plan_file *page_find(struct plan_problem *problem) {
    const struct plan_file *page = plan_file_find("page.html");

    if (!page) {
        plan_complain(problem, "this program was built without the page: clang, lld, wasi-libc and "
                               "libjs-chart.js were missing; ./dev build installs them");
    }
    return page;
}

int plan_serve(const char *address, struct plan_problem *problem) {
    const struct plan_file *page = page_find(problem);
    char where[ENV_HTTP_ADDRESS_BYTES];
    struct env_http *http;
    int signal_number;

    if (!page) {
        return -ERR_NOT_SUPPORTED;
    }
    const struct env_http_document document = {"/", "text/html; charset=utf-8", page->data,
                                               page->size};
    env_signals_block();
    int r = env_http_start(address, &document, 1, where, &http);
    if (r == -ERR_INVALID) {
        plan_complain(problem,
                      "--serve takes ADDR:PORT, not \"%.60s\": for example --serve 127.0.0.1:8080",
                      address);
        return r;
    }
    if (r < 0) {
        plan_complain(problem, "%.60s cannot be listened at: %s", address, err_text(r));
        return r;
    }
    printf("http://%s/ (Ctrl-C ends it)\n", where);
    (void)fflush(stdout);
    r = env_signal_wait(UINT64_MAX, &signal_number);
    env_http_stop(http);
    if (r < 0) {
        plan_complain(problem, "waiting for a signal failed: %s", err_text(r));
    }
    return r;
}

int plan_html(const char *path, struct plan_problem *problem) {
    const struct plan_file *page = page_find(problem);
    int fd;

    if (!page) {
        return -ERR_NOT_SUPPORTED;
    }
    if (strcmp(path, "-") == 0) {
        if (fwrite(page->data, 1, page->size, stdout) == page->size && fflush(stdout) == 0) {
            return 0;
        }
        plan_complain(problem, "the page cannot be written");
        return -ERR_IO;
    }
    if (env_host_stat(path) == 0) {
        plan_complain(problem, "%s is there already: remove it, or name another file", path);
        return -ERR_EXISTS;
    }
    int r = env_host_open(path, ENV_HOST_WRITE | ENV_HOST_CREATE, &fd);
    if (r == 0) {
        r = env_host_write(fd, page->data, page->size, 0);
        int closed = env_host_close(fd);

        r = r < 0 ? r : closed;
        if (r < 0 && env_host_unlink(path) < 0) {
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
