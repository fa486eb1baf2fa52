/* The contract is in env_command.h. */
#include "env/env_command.h"
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

enum { COMMAND_AT = 48 }; /* of the driver's words in a submission of 128 bytes */

int env_commands_enable(struct env *env) {
    struct env_loop *loop = env_thread_loop(env);

    assert(loop && loop->ring_state == RING_NONE);
    loop->wide = true;
    if (loop_has_ring(loop) && loop->wide) {
        return 0;
    }
    /* EINVAL: it knows rings, and not these. */
    return loop->wide_errno == -EINVAL || loop->wide_errno == -ENOSYS
               ? -ERR_NOT_SUPPORTED
               : err_from_errno(-loop->wide_errno);
}

void env_command_submit(struct env *env, struct env_command *command) {
    struct env_loop *loop = env_thread_loop(env);

    assert(loop && loop->wide && loop->ring_state == RING_READY);
    assert((uintptr_t)command % 16 == 0 && loop->command_count < ENV_COMMANDS_MAX);
    loop->command_count++;
    queue_push(&loop->commands, &command->node);
}

void commands_fill(struct env_loop *loop) {
    while (loop->commands.first) {
        struct io_uring_sqe *sqe = loop_sqe(loop);
        struct queue_node *node;

        if (!sqe) {
            return;
        }
        node = queue_pop(&loop->commands);
        struct env_command *command = CONTAINER_OF(node, struct env_command, node);

        memset(sqe, 0, COMMAND_AT);
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->fd = command->fd;
        sqe->off = command->operation; /* its lower half is cmd_op, the upper is zero */
        sqe->addr = command->address;
        sqe->len = command->size;
        sqe->user_data = (uintptr_t)command | TAG_COMMAND;
        memcpy((uint8_t *)sqe + COMMAND_AT, command->bytes, sizeof command->bytes);
    }
}

unsigned command_complete(struct env_loop *loop, uint64_t user_data, int answer) {
    struct env_command *command = (void *)(uintptr_t)(user_data - TAG_COMMAND);

    assert(loop->command_count > 0);
    loop->command_count--;
    command->done(command, answer);
    return 1;
}
