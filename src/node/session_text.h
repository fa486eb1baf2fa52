/* What to say of a session that could not begin. Any thread. */
#pragma once

/* Of an error of enum err, negative; static, no full stop. */
const char *session_text(int error);
