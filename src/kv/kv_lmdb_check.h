/* Looks through a base's file before LMDB does, which trusts every byte of it: a page that another
 * program, or the medium, has changed would end the process, or hide rows without a word.
 *
 * Found is any change of what LMDB goes by: of the newer meta page, of pages' heads, of the nodes'
 * places, lengths and keys, of the list of free pages. Each page below the last is used once at the
 * most; keys rise, and lie between those of the page above; rows and pages are as many as the meta
 * page says. Not found is an older page in the place of a newer one that has as many rows.
 *
 * Pure; any thread. */
#pragma once
#include "base/types.h"

/* What base_check_bytes of struct kv_options is where it is 0. */
#define LMDB_CHECK_BYTES_DEFAULT (4 * GIB)

struct lmdb_check_found {
    bool partly;             /* it is larger than what is looked through */
    uint64_t damaged_rows;   /* their checksum is wrong; all else of their page is well */
    uint64_t damaged_row_at; /* the first one, byte */
};

/* The file, as it is mapped. An empty one is well, as LMDB makes one of it. One that is larger than
 * most_bytes is looked at no further than its meta pages, as a start would wait for all of it.
 * -ERR_CORRUPT, with what is wrong at which byte in ret_what; -ERR_NO_MEMORY. */
MUST_CHECK int lmdb_check(struct bytes file, uint64_t most_bytes,
                          struct lmdb_check_found *ret_found, char ret_what[96]);
