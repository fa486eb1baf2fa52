/* What passes a control socket (control_socket.h), put together and taken apart without one:
 *
 *     request   u32 bytes, then arguments, each ended by NUL
 *     answer    u32 bytes > 0 and as many bytes of text, repeated; then u32 0, u32 status
 *
 * Little-endian. Whoever receives says how much may come next, and is told what has come.
 *
 * Thread: the caller's.  Memory: a request's text is of the heap. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum {
    CONTROL_FRAME_NUMBER_BYTES = 4,
    CONTROL_FRAME_ARGUMENTS_MAX = 64,
    CONTROL_FRAME_REQUEST_BYTES_MAX = 65536,
};

/* One that is coming in. All zero: nothing of it is there. */
struct control_request {
    uint8_t number[CONTROL_FRAME_NUMBER_BYTES];
    char *text; /* once its size is known; then a NUL lies behind its bytes */
    size_t size;
    size_t got; /* of the number, or of the text */
};

bool control_request_is_complete(const struct control_request *request);
/* Where what comes next belongs: capacity bytes from data on. Not of a complete one. */
struct buffer control_request_room(struct control_request *request);
/* As many have come there, at least one. -ERR_INVALID: no request has such a size;
 * -ERR_NO_MEMORY. Then nothing will come of it. */
MUST_CHECK int control_request_took(struct control_request *request, size_t size);
void control_request_deinit(struct control_request *request);

/* Cuts a text behind which a NUL lies into arguments; those beyond CONTROL_FRAME_ARGUMENTS_MAX are
 * left out. */
size_t control_request_split(char *text, size_t size,
                             char *ret_arguments[CONTROL_FRAME_ARGUMENTS_MAX]);
/* A request as it is sent, for the caller to free. -ERR_INVALID: too many or too long;
 * -ERR_NO_MEMORY. */
MUST_CHECK int control_request_encode(size_t argument_count, const char *const *arguments,
                                      struct buffer *ret_out);

/* One that is coming back. All zero: nothing of it is there. */
struct control_answer {
    enum {
        CONTROL_ANSWER_SIZE,
        CONTROL_ANSWER_TEXT,
        CONTROL_ANSWER_STATUS,
        CONTROL_ANSWER_END
    } next;
    uint32_t left; /* of this piece of text */
    int status;    /* at the end */
};

/* How many bytes must come next, most or fewer, which is CONTROL_FRAME_NUMBER_BYTES or more. 0: it
 * is at its end. */
size_t control_answer_wants(const struct control_answer *answer, size_t most);
/* They have come. True: they are text. */
bool control_answer_took(struct control_answer *answer, struct bytes bytes);
