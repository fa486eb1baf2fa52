/* Daemons that the kill test kills and starts again.
 *
 * Thread: the main one, but for kill_give_up and kill_now_ms. */
#pragma once
#include "base/types.h"
#include <sys/types.h>

enum { KILL_START_MS_MAX = 400 };

struct kill_daemon {
    const char *shoal;
    const char *directory;
    const char *mount; /* that it serves itself; NULL: none */
    pid_t process;     /* 0: none */
};

/* Says what broke, in one line, and ends with status 1. */
_Noreturn void kill_give_up(const char *what);
/* kill_give_up kills this one (0: nobody), as threads may wait for what it answers. */
void kill_take_along(const pid_t *process);

/* The process that runs at the directory, by its lock; 0: none ever did. */
pid_t kill_daemon_holder(const struct kill_daemon *daemon);
/* Waits for the end of one that was killed. */
void kill_daemon_wait(const struct kill_daemon *daemon);
/* Answers how long it took. */
uint64_t kill_daemon_start(struct kill_daemon *daemon);
/* Starts it and kills it so long after, KILL_START_MS_MAX at most: in its start, or soon behind. */
void kill_daemon_start_and_kill(const struct kill_daemon *daemon, uint64_t after_ms);
/* shoal down */
void kill_daemon_stop(const struct kill_daemon *daemon);

uint64_t kill_now_ms(void);
