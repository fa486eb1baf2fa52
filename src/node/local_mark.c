/* The contract is in local_mark.h. */
#include "node/local_mark.h"
#include "host/folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_BYTES_MAX = 4096 };

void local_mark_print(const uint8_t boot_id[LOCAL_MARK_BOOT_BYTES],
                      char ret_text[LOCAL_MARK_BYTES + 1]) {
    for (size_t i = 0; i < LOCAL_MARK_BOOT_BYTES; i++) {
        snprintf(ret_text + 2 * i, 3, "%02x", boot_id[i]);
    }
    memcpy(ret_text + LOCAL_MARK_BYTES - 1, "\n", 2);
}

void local_mark_parse(const uint8_t boot_id[LOCAL_MARK_BOOT_BYTES], struct bytes text,
                      struct local_mark *ret_mark) {
    char boot[LOCAL_MARK_BYTES + 1];

    local_mark_print(boot_id, boot);
    *ret_mark = (struct local_mark){.unclean = true,
                                    .was_served = text.size > 0,
                                    .rings_left = text.size == LOCAL_MARK_BYTES &&
                                                  memcmp(text.data, boot, LOCAL_MARK_BYTES) == 0};
}

int local_mark_read(struct env *env, struct local_mark *ret_mark) {
    uint8_t boot_id[LOCAL_MARK_BOOT_BYTES];
    char *text;
    size_t size;
    int r = folder_file_read(env, LOCAL_MARK_NAME, MARK_BYTES_MAX, &text, &size);

    *ret_mark = (struct local_mark){.unclean = r != -ERR_NOT_FOUND};
    if (r == 0) {
        env->ops->boot_id(env, boot_id);
        local_mark_parse(boot_id, (struct bytes){(const uint8_t *)text, size}, ret_mark);
        free(text);
    }
    return r == -ERR_NOT_FOUND || r == -ERR_FILE_TOO_BIG ? 0 : r;
}

int local_mark_serving(struct env *env, const struct local_mark *mark) {
    uint8_t boot_id[LOCAL_MARK_BOOT_BYTES];
    char boot[LOCAL_MARK_BYTES + 1];

    env->ops->boot_id(env, boot_id);
    local_mark_print(boot_id, boot);
    int r = mark->rings_left ? 0 : folder_file_write(env, LOCAL_MARK_NAME, boot, LOCAL_MARK_BYTES);
    if (r == -ERR_NO_SPACE && !mark->unclean) {
        r = folder_file_write(env, LOCAL_MARK_NAME, "", 0);
    }
    return mark->unclean ? 0 : r;
}

void local_mark_stopping(struct env *env) {
    (void)!folder_file_write(env, LOCAL_MARK_NAME, "", 0);
}

void local_mark_end(struct env *env, const struct local_mark *mark) {
    if (!mark->unclean) {
        (void)!env->ops->file_remove(env, LOCAL_MARK_NAME);
    }
}
