/* What to say of a session that could not begin. Any thread. */
#pragma once

/* Of an error of enum err, negative; static, no full stop. */
const char *session_text(int error);
/* Why the manager has not answered in time who wanted a session: it is away, or it is here, was
 * rebuilt, and waits itself. */
struct local_cluster;
const char *session_silence_text(const struct local_cluster *cluster);
