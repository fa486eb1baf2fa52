/* Commands to drivers by the ring of a thread (IORING_OP_URING_CMD of io_uring_enter(2)): a driver
 * keeps one for as long as it likes, and answers by its end.
 *
 * They count neither as pending nor against what the ring takes of I/O.
 *
 * Thread: the one that has enabled them. Memory: the caller's, from submit until done is called. */
#pragma once
#include "base/types.h"
#include "base/err.h"
#include "base/list.h"
#include "env/env.h"

enum { ENV_COMMAND_BYTES = 80, ENV_COMMANDS_MAX = 512 };

struct env_command {
    struct queue_node node; /* of the loop; first, and the whole aligned to 16 */
    int fd;
    uint32_t operation; /* of the driver */
    uint64_t address;   /* what else it looks at */
    uint32_t size;
    uint8_t bytes[ENV_COMMAND_BYTES]; /* the driver's words; it sees all of them */
    /* result: the driver's, negative for an errno. Within a wait or poll of the thread. */
    void (*done)(struct env_command *command, int result);
};

/* Right after env_thread_enter: this thread's ring takes commands. -ERR_NOT_SUPPORTED where
 * io_uring is missing, or what commands need of it (Linux 5.19), other errors where it is refused:
 * the thread has none then, or one that takes only I/O. */
MUST_CHECK int env_commands_enable(struct env *env);
/* Goes to the kernel with the next flush, poll or wait. At most ENV_COMMANDS_MAX may be out. */
void env_command_submit(struct env *env, struct env_command *command);
