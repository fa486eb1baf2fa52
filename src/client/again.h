/* A new session in place of one that was evicted.
 *
 *     evicted --> nothing begins, what is at work ends --> each shard lets its open files go
 *             --> BEGIN -> MAP -> ATTACH --> requests begin again; once a second until it succeeds
 *
 * Nothing of the old session is known to any server by then. So what it had open answers EIO until
 * it is closed, and what is opened from now on is of the new one, also of the same inode.
 *
 * Thread: the session's step, but shard_let_go, a shard's. Memory: none. */
#pragma once
#include <stdbool.h>

struct session;
struct shard;

/* At each tick of a session that runs, or was evicted. */
void again_tick(struct session *session);
/* What a beginning in place of an evicted session came to. */
void again_begun(struct session *session, int result);
/* A shard has let its files go. */
void again_let_go(struct session *session);
/* In the shard's step: its open files are found no more, and the session is told. */
void shard_let_go(struct shard *shard);
