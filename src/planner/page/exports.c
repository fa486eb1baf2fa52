/* What WebAssembly exports of the planner. The page writes a request where page_request says, calls
 * page_answer, and reads the text there; both stay until the next call. */
#include "planner/page/page.h"
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(name), visibility("default")))

static struct page page;
static struct text answer;
static char *request;

/* Room for a request of that many bytes and its NUL; NULL when there is none. */
EXPORT("page_request") char *page_request(size_t size_bytes);
/* The answer to the request that stands there; NULL when memory ran out. */
EXPORT("page_answer") const char *page_answer(void);

char *page_request(size_t size_bytes) {
    free(request);
    request = size_bytes < TEXT_BYTES_MAX ? malloc(size_bytes + 1) : NULL;
    if (request) {
        request[size_bytes] = '\0';
    }
    return request;
}

const char *page_answer(void) {
    if (!request) {
        return NULL;
    }
    page_call(&page, request, &answer);
    return answer.failed ? NULL : answer.data;
}
