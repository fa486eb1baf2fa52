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

/* A larger file is looked at no further than its meta pages: a start would wait for all of it. */
#define LMDB_CHECK_BYTES_MAX (256 * MIB)

struct lmdb_check_found {
    uint64_t damaged_rows;   /* their checksum is wrong; all else of their page is well */
    uint64_t damaged_row_at; /* the first one, byte */
};

/* The file, as it is mapped. An empty one is well, as LMDB makes one of it. -ERR_CORRUPT, with what
 * is wrong at which byte in ret_what; -ERR_NO_MEMORY. */
MUST_CHECK int lmdb_check(const uint8_t *file, uint64_t size_bytes,
                          struct lmdb_check_found *ret_found, char ret_what[96]);
