/* The lives of a node's logs at its manager: before they are registered, or the manager is known to
 * be away, nobody is served; one that is refused serves nobody any more. What refused it stays in
 * DIR, as its terms rise with each start: one of them would be good in the end.
 *
 * Thread: the opener's, which waits; the hooks are the member's. Memory: the cluster's. */
#pragma once
#include "member/member.h"
#include "node/config.h"

struct local_cluster;

/* In DIR: why it was refused for good, in one line. */
#define LOCAL_REFUSED_NAME "refused"

enum { LOCAL_REFUSED_BYTES_MAX = 256 };
/* The line that the file's text is, or that it is none; one that is cut ends in problem[254]. */
void local_lives_refusal(struct bytes text, char problem[256]);
/* -ERR_TWO_LIVES, with its line in problem, of a directory that was refused before. */
MUST_CHECK int local_lives_check(struct env *env, char problem[256]);
/* Before the member is ticked for the first time. */
void local_lives_begin(struct local_cluster *cluster);
/* Waits for what becomes of them. -ERR_TWO_LIVES, with a line in problem, when they are refused. */
MUST_CHECK int local_lives_wait(struct local_cluster *cluster, char problem[256]);

/* Two of the member's hooks, and an option of its: the cluster is the context. */
size_t local_lives_tell(void *context, uint8_t *ret_lives);
void local_lives_registered(void *context, const struct registration *registration);
uint64_t local_lives_place(struct env *env);
