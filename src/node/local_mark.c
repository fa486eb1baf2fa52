/* The contract is in local_mark.h. */
#include "node/local_mark.h"
#include "host/folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOOT_ID_BYTES = 16, MARK_BYTES = 2 * BOOT_ID_BYTES + 1, MARK_BYTES_MAX = 4096 };

static void text_of_boot(struct env *env, char ret_text[MARK_BYTES + 1]) {
    uint8_t id[BOOT_ID_BYTES];

    env->ops->boot_id(env, id);
    for (size_t i = 0; i < sizeof id; i++) {
        snprintf(ret_text + 2 * i, 3, "%02x", id[i]);
    }
    memcpy(ret_text + MARK_BYTES - 1, "\n", 2);
}

int local_mark_read(struct env *env, struct local_mark *ret_mark) {
    char boot[MARK_BYTES + 1];
    char *text;
    size_t size;
    int r = folder_file_read(env, LOCAL_MARK_NAME, MARK_BYTES_MAX, &text, &size);

    *ret_mark = (struct local_mark){.unclean = r != -ERR_NOT_FOUND};
    if (r == 0) {
        text_of_boot(env, boot);
        ret_mark->was_served = size > 0;
        ret_mark->rings_left = size == MARK_BYTES && memcmp(text, boot, MARK_BYTES) == 0;
        free(text);
    }
    return r == -ERR_NOT_FOUND || r == -ERR_FILE_TOO_BIG ? 0 : r;
}

int local_mark_serving(struct env *env, const struct local_mark *mark) {
    char boot[MARK_BYTES + 1];

    text_of_boot(env, boot);
    int r = mark->rings_left ? 0 : folder_file_write(env, LOCAL_MARK_NAME, boot, MARK_BYTES);
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
