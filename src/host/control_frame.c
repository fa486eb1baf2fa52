/* The contract is in control_frame.h. */
#include "host/control_frame.h"
#include "base/endian.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool control_request_is_complete(const struct control_request *request) {
    return request->text && request->got == request->size;
}

struct buffer control_request_room(struct control_request *request) {
    assert(!control_request_is_complete(request));
    if (!request->text) {
        return (struct buffer){.data = request->number + request->got,
                               .capacity = sizeof request->number - request->got};
    }
    return (struct buffer){.data = (uint8_t *)request->text + request->got,
                           .capacity = request->size - request->got};
}

int control_request_took(struct control_request *request, size_t size) {
    assert(size > 0 && size <= control_request_room(request).capacity);
    request->got += size;
    if (request->text || request->got < sizeof request->number) {
        return 0;
    }
    size_t text_bytes = load_le32(request->number);
    if (text_bytes == 0 || text_bytes > CONTROL_FRAME_REQUEST_BYTES_MAX) {
        request->got = 0;
        return -ERR_INVALID;
    }
    request->text = calloc(1, text_bytes + 1);
    request->size = text_bytes;
    request->got = 0;
    return request->text ? 0 : -ERR_NO_MEMORY;
}

void control_request_deinit(struct control_request *request) {
    free(request->text);
    *request = (struct control_request){.text = NULL};
}

size_t control_request_split(char *text, size_t size,
                             char *ret_arguments[CONTROL_FRAME_ARGUMENTS_MAX]) {
    size_t count = 0;

    for (size_t at = 0; at < size && count < CONTROL_FRAME_ARGUMENTS_MAX;) {
        ret_arguments[count++] = text + at;
        at += strlen(text + at) + 1;
    }
    return count;
}

int control_request_encode(size_t argument_count, const char *const *arguments,
                           struct buffer *ret_out) {
    struct buffer out = {.size = CONTROL_FRAME_NUMBER_BYTES};
    size_t size = 0;

    for (size_t i = 0; i < argument_count; i++) {
        size += strlen(arguments[i]) + 1;
    }
    if (argument_count > CONTROL_FRAME_ARGUMENTS_MAX || size > CONTROL_FRAME_REQUEST_BYTES_MAX) {
        return -ERR_INVALID;
    }
    out.capacity = out.size + size;
    out.data = malloc(out.capacity);
    if (!out.data) {
        return -ERR_NO_MEMORY;
    }
    store_le32(out.data, (uint32_t)size);
    for (size_t i = 0; i < argument_count; i++) {
        size_t length = strlen(arguments[i]) + 1;

        memcpy(out.data + out.size, arguments[i], length);
        out.size += length;
    }
    *ret_out = out;
    return 0;
}

size_t control_answer_wants(const struct control_answer *answer, size_t most) {
    assert(most >= CONTROL_FRAME_NUMBER_BYTES);
    switch (answer->next) {
    case CONTROL_ANSWER_TEXT:
        return MIN((size_t)answer->left, most);
    case CONTROL_ANSWER_END:
        return 0;
    default:
        return CONTROL_FRAME_NUMBER_BYTES;
    }
}

bool control_answer_took(struct control_answer *answer, struct bytes bytes) {
    assert(bytes.size > 0 && answer->next != CONTROL_ANSWER_END);
    if (answer->next == CONTROL_ANSWER_TEXT) {
        assert(bytes.size <= answer->left);
        answer->left -= (uint32_t)bytes.size;
        answer->next = answer->left > 0 ? CONTROL_ANSWER_TEXT : CONTROL_ANSWER_SIZE;
        return true;
    }
    assert(bytes.size == CONTROL_FRAME_NUMBER_BYTES);
    uint32_t number = load_le32(bytes.data);
    if (answer->next == CONTROL_ANSWER_STATUS) {
        answer->status = (int)number;
        answer->next = CONTROL_ANSWER_END;
    } else {
        answer->left = number;
        answer->next = number > 0 ? CONTROL_ANSWER_TEXT : CONTROL_ANSWER_STATUS;
    }
    return false;
}
