/* Reads of /dev/fuse that fail: which of them end the mount. */
#include "unit.h"
#include "front/fuse/channel_dev.h"
#include "fuse_desk.h"
#include <sys/mman.h>
#include <unistd.h>

enum { MEMORY_BYTES = 4 << 20, MESSAGE_BYTES = 100 };

/* Memory that the kernel gets no page for, as at a memory limit: one request fails, and the next
 * ones are served. */
static void a_request_without_memory_fails_alone(void **state) {
    struct desk *desk = desk_new();
    struct fuse_request *request = desk->request;
    uint8_t *buffer = request->buffer;
    uint8_t message[MESSAGE_BYTES] = {0};
    void *none = mmap(NULL, MEMORY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t bytes = 1;
    int pipes[2];

    (void)state;
    assert_ptr_not_equal(none, MAP_FAILED);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(write(pipes[1], message, sizeof(message)), sizeof(message));
    request->buffer = none;
    assert_int_equal(channel_dev_read(pipes[0], request, &bytes), 0);
    assert_int_equal(bytes, 0);
    request->buffer = buffer;
    assert_int_equal(channel_dev_read(pipes[0], request, &bytes), 0);
    assert_int_equal(bytes, sizeof(message));
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    assert_int_equal(channel_dev_read(pipes[0], request, &bytes), -ERR_CLOSED);
    assert_int_equal(munmap(none, MEMORY_BYTES), 0);
    desk_free(desk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_memory_fails_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
