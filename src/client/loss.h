/* Losses: what servers had acknowledged to this client, and a power failure took back.
 *
 * fsync must not answer success for it (errseq_t of Linux is the model): each open file handle is
 * told of a loss once, by -ERR_IO; one that is opened after a loss is told of it unless somebody
 * was before. A flush tells of it too, but that does not count as told. A sync of everything, and
 * an fsync of the root, tell of any loss of this client. */
#pragma once
#include "client/file.h"
#include "client/ledger.h"

/* Takes from an answered call what it changed, and by which record. */
void loss_note(struct ledger *ledger, const struct call *call);

/* The chains on which the file may have chunks are those of its first so many chunks. */
uint32_t loss_chunk_count(const struct open_file *file);
/* Our map does not name the pool version of the file's chunks: what holds them can't be told. */
bool loss_is_unnamed(const struct open_file *file);
/* The server that holds the chunk; NULL when the map does not tell. */
struct peer *loss_chunk_peer(const struct open_file *file, uint64_t chunk);

/* 0, or -ERR_IO when something of the handle's file was lost, of which it was not told yet. In the
 * file's shard. tells: it has been told by this. */
MUST_CHECK int loss_check(struct shoal_file *handle, bool tells);
/* The same of all that this client has changed anywhere; told by this, through the request's
 * handle if it has one. */
MUST_CHECK int loss_tell_all(struct operation *operation);
