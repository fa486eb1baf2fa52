/* Settling: telling the group the size and the time of writes that only this client knows. */
#pragma once
#include "client/file.h"

/* Of a handle's flags: those that servers know, and those of them that its close names. */
enum {
    OPEN_FLAGS_OF_SERVERS = OPEN_READ | OPEN_WRITE | OPEN_TRUNCATE | OPEN_DIRECTORY | OPEN_EXECUTE,
    OPEN_FLAGS_THAT_STAY = OPEN_FLAGS_OF_SERVERS & ~OPEN_TRUNCATE
};

/* Fills a settle of the file; handle_flags are those of a handle that goes, 0: none. Answers the
 * file's count of writes, for settle_done. */
uint64_t settle_fill(struct open_file *file, struct call *call, uint32_t handle_flags);
/* Likewise, of a handle that goes; of one that was opened by name the close alone. */
uint64_t settle_fill_close(struct open_file *file, struct call *call,
                           const struct shoal_file *handle);
/* Takes the answer of the call. Each that was filled ends with this or with settle_failed. */
void settle_done(struct open_file *file, const struct call *call, uint64_t write_count);
/* It has ended with an error; or with an answer of a term that is over, or of an earlier copy. */
void settle_failed(struct open_file *file, const struct call *call);
/* The same of an operation's own file and call. */
void operation_settle(struct operation *operation);
/* False: the answer was of a term that is over, so it is told anew; comes back likewise. */
bool operation_settled(struct operation *operation);
