/* The kill test over several nodes of different roles, mounted by processes of their own:
 *
 *     kill SHOAL --roles ROLE SEED ROUNDS THREADS MOUNT:PROCESS OTHER:PROCESS NAME:DIRECTORY...
 *
 * All daemons run, each one's role and directory is named last, and MOUNT and OTHER are mounts of
 * the cluster, OTHER one that keeps nothing (ttl=0). ROLE is who is killed first in each round, or
 * `all`: each as often as the others.
 *
 *     work ... | kill of one role . started again | work | kill of another . started again | work
 *              at an acknowledgement                     likewise, or at the same one
 *
 * The mount lives on, so no call may fail and none is in flight at the end: all of it is compared
 * by MOUNT and by OTHER. Prints a line a round, and last one for each role,
 *
 *     kills of NAME: COUNT, FELT of them waited for, the longest call N ms
 *
 * where a kill is waited for when a call that was under way took half of the time or more for which
 * the daemon was away; one that was killed again as it started, since then. */
#pragma once

/* The exit status. */
int kill_roles_main(int argc, char **argv);
