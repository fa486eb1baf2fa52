/* Edits of the rows that an engine has, as an input tells them: what a disk may give to a role that
 * starts on them.
 *
 * In the input: u8 count, and of each edit u8 of enum row_edit, then
 *
 *     PATCH    u8 row, u16 offset, u8 size, bytes: its value is another one
 *     REPLACE  u8 row, u16 size, bytes
 *     DELETE   u8 row
 *     PUT      key, u16 size, bytes
 *     RENAME   u8 row, u8 offset, u8 size, bytes: its value under another key as well
 *
 * A row is told by its place among all of them, in the order of their keys.
 *
 * Thread: the engine's owner, outside a step. */
#pragma once
#include "fuzz.h"
#include "kv/kv.h"

struct memory_env;

enum row_edit { ROW_PATCH, ROW_REPLACE, ROW_DELETE, ROW_PUT, ROW_RENAME, ROW_EDIT_COUNT };
enum { ROW_EDITS_MAX = 48 };

/* Each is a sealed record, as far as there is room for it. */
void row_edits_play(struct memory_env *world, struct kv *kv, struct wire_cursor *cursor);
/* Of all rows, their keys and values: it changes with any of them. */
uint32_t row_edits_sum(struct memory_env *world, struct kv *kv);

/* Each row, in the order of keys. */
void row_edits_walk(struct memory_env *world, struct kv *kv,
                    void (*see)(void *context, const struct kv_key *key, struct bytes value),
                    void *context);

/* Seeds, behind a count. */
void row_edit_patch(struct buffer *out, uint8_t row, uint16_t at, struct bytes bytes);
void row_edit_put(struct buffer *out, const struct kv_key *key, struct bytes value);
