/* One list of rows of a log, page by page, for the manager that is rebuilt from them. What is in a
 * page comes over a network: it is taken as far as a log can have said it.
 *
 * Thread: one.  Memory: none of its own. */
#pragma once
#include "kv/kv_key.h"
#include "manager/rebuilt.h"

struct rebuild_pages {
    struct rebuilt *rebuilt;
    struct log_id log;     /* whose rows they are */
    enum target_kind kind; /* of its target: the two kinds frame rows differently */
    uint32_t what;         /* FSCK_SESSIONS, FSCK_ENDED, or of a metadata target FSCK_SLOTS */
    struct kv_key last;    /* of the rows so far: the cursor of the next page */
    bool has_last;
};

/* All rows of a page. -ERR_MALFORMED: it is none of this list, or does not go on behind the last
 * row; -ERR_CORRUPT: of a row that no log can have, or whose checksum is wrong there;
 * -ERR_NEWER_FORMAT; -ERR_NO_MEMORY. */
MUST_CHECK int rebuild_pages_take(struct rebuild_pages *pages, struct bytes page);
