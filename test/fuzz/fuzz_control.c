/* Both ends of the control socket, by their bytes. What comes in pieces is what comes at once; a
 * request that is taken is one that a verb could have sent, but for arguments beyond the most. */
#include "fuzz.h"
#include "host/control_frame.h"
#include <stdlib.h>

enum { TEXT_PART_BYTES = 64, STREAM_BYTES_MAX = CONTROL_FRAME_REQUEST_BYTES_MAX + 64 };

/* Gives it the stream, pieces of step bytes at most (0: of any size): 0 or its error. What was
 * not taken is left. */
static int request_feed(struct control_request *request, struct bytes *stream, size_t step) {
    int r = 0;

    while (r == 0 && stream->size > 0 && !control_request_is_complete(request)) {
        struct buffer room = control_request_room(request);
        size_t size = MIN(room.capacity, stream->size);

        assert(room.capacity > 0 && room.capacity <= CONTROL_FRAME_REQUEST_BYTES_MAX);
        size = step > 0 ? MIN(size, step) : size;
        memcpy(room.data, stream->data, size);
        *stream = (struct bytes){stream->data + size, stream->size - size};
        r = control_request_took(request, size);
    }
    return r;
}

/* Each lies within the text and ends in it, or at the NUL behind; one begins where the one before
 * has ended. */
static size_t arguments_check(const struct control_request *request, char **arguments) {
    size_t count = control_request_split(request->text, request->size, arguments);
    const char *at = request->text;

    assert(count > 0 && count <= CONTROL_FRAME_ARGUMENTS_MAX);
    assert(request->text[request->size] == '\0');
    for (size_t i = 0; i < count; i++) {
        assert(arguments[i] == at && at < request->text + request->size);
        at += strlen(at) + 1;
    }
    assert(count == CONTROL_FRAME_ARGUMENTS_MAX || at >= request->text + request->size);
    return count;
}

/* Sent anew it is the same. */
static void request_repeat(char **arguments, size_t count) {
    char *again[CONTROL_FRAME_ARGUMENTS_MAX];
    struct control_request request = {.text = NULL};
    struct buffer out;

    int r = control_request_encode(count, (const char *const *)arguments, &out);
    if (r < 0) {
        /* The NUL behind the last one was not of the request, and is one byte too many. */
        assert(r == -ERR_INVALID);
        return;
    }
    struct bytes stream = {out.data, out.size};
    r = request_feed(&request, &stream, 0);
    assert(r == 0 && stream.size == 0 && control_request_is_complete(&request));
    assert(arguments_check(&request, again) == count);
    for (size_t i = 0; i < count; i++) {
        assert(strcmp(arguments[i], again[i]) == 0);
    }
    control_request_deinit(&request);
    free(out.data);
}

/* The first byte is the size of the pieces. */
void fuzz_control_request(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    size_t step = wire_take_number(&cursor, 1);
    struct control_request request = {.text = NULL}, whole = {.text = NULL};
    struct bytes stream = fuzz_rest(&cursor), same = stream;
    char *arguments[CONTROL_FRAME_ARGUMENTS_MAX];

    int r = request_feed(&request, &stream, step);
    int at_once = request_feed(&whole, &same, 0);
    assert(r == at_once && (r == 0 || r == -ERR_INVALID || r == -ERR_NO_MEMORY));
    assert(stream.size == same.size && request.size == whole.size);
    assert(r == 0 || !request.text);
    assert(!request.text == !whole.text && request.got == whole.got);
    assert(!request.text || memcmp(request.text, whole.text, request.size + 1) == 0);
    if (control_request_is_complete(&request)) {
        size_t count = arguments_check(&request, arguments);

        request_repeat(arguments, count);
    } else {
        assert(r < 0 || stream.size == 0);
    }
    control_request_deinit(&request);
    control_request_deinit(&whole);
}

static void seed_words(const struct fuzz_seeds *seeds, uint8_t step, size_t count,
                       const char *const *words) {
    static uint8_t seed[1024];
    struct buffer out;
    int r = control_request_encode(count, words, &out);

    assert(r == 0 && out.size < sizeof seed);
    seed[0] = step;
    memcpy(seed + 1, out.data, out.size);
    fuzz_seed(seeds, (struct bytes){seed, 1 + out.size});
    free(out.data);
}

void seed_control_request(const struct fuzz_seeds *seeds) {
    static const char *const status[] = {"status", "--own", "--json"};
    static const char *const stripe[] = {"stripe", "set", "", "4194304", "-1"};
    const char *many[CONTROL_FRAME_ARGUMENTS_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
        many[i] = i % 3 ? "x" : "";
    }
    seed_words(seeds, 0, ARRAY_SIZE(status), status);
    seed_words(seeds, 1, ARRAY_SIZE(stripe), stripe);
    seed_words(seeds, 7, ARRAY_SIZE(many), many);
}

/* What a verb makes of the stream: text, and the status at its end. */
struct heard {
    uint8_t text[STREAM_BYTES_MAX];
    size_t text_bytes;
    struct control_answer answer;
};

static void answer_feed(struct heard *heard, struct bytes stream, size_t most) {
    size_t size;

    heard->text_bytes = 0;
    heard->answer = (struct control_answer){.left = 0};
    while ((size = control_answer_wants(&heard->answer, most)) > 0 && size <= stream.size) {
        assert(size <= most);
        if (control_answer_took(&heard->answer, (struct bytes){stream.data, size})) {
            memcpy(heard->text + heard->text_bytes, stream.data, size);
            heard->text_bytes += size;
        }
        stream = (struct bytes){stream.data + size, stream.size - size};
    }
    assert(heard->text_bytes <= sizeof heard->text);
}

/* Said again, in one piece, it is the same. */
static void answer_repeat(const struct heard *heard) {
    static uint8_t space[STREAM_BYTES_MAX + 3 * CONTROL_FRAME_NUMBER_BYTES];
    static struct heard again;
    struct buffer out = {space, 0, sizeof space};

    if (heard->text_bytes > 0) {
        wire_give_number(&out, heard->text_bytes, 4);
        wire_give(&out, heard->text, heard->text_bytes);
    }
    wire_give_number(&out, 0, 4);
    wire_give_number(&out, (uint32_t)heard->answer.status, 4);
    answer_feed(&again, (struct bytes){space, out.size}, sizeof again.text);
    assert(again.answer.next == CONTROL_ANSWER_END && again.answer.status == heard->answer.status);
    assert(again.text_bytes == heard->text_bytes);
    assert(memcmp(again.text, heard->text, heard->text_bytes) == 0);
}

/* The first byte says in how large parts a text is taken: no matter, where it is whole. */
void fuzz_control_answer(struct bytes in) {
    static struct heard heard, wide;
    struct wire_cursor cursor = fuzz_cursor(in);
    size_t most = CONTROL_FRAME_NUMBER_BYTES + wire_take_number(&cursor, 1) % TEXT_PART_BYTES;
    struct bytes stream = fuzz_rest(&cursor);

    if (stream.size > STREAM_BYTES_MAX) {
        return;
    }
    answer_feed(&heard, stream, most);
    answer_feed(&wide, stream, sizeof wide.text);
    bool is_whole = heard.answer.next == CONTROL_ANSWER_END;
    assert(is_whole == (wide.answer.next == CONTROL_ANSWER_END));
    if (is_whole) {
        assert(heard.answer.status == wide.answer.status && heard.text_bytes == wide.text_bytes);
        assert(memcmp(heard.text, wide.text, heard.text_bytes) == 0);
        answer_repeat(&heard);
    } else {
        assert(wide.text_bytes <= heard.text_bytes);
    }
}

void seed_control_answer(const struct fuzz_seeds *seeds) {
    static const char text[] = "mdt0       mdt      up                -            -\n";
    uint8_t space[256];

    for (uint32_t pieces = 0; pieces < 3; pieces++) {
        struct buffer out = {space, 0, sizeof space};

        wire_give_number(&out, 3 * pieces, 1);
        for (uint32_t i = 0; i < pieces; i++) {
            wire_give_number(&out, sizeof text - 1, 4);
            wire_give(&out, text, sizeof text - 1);
        }
        wire_give_number(&out, 0, 4);
        wire_give_number(&out, pieces, 4);
        fuzz_seed(seeds, (struct bytes){space, out.size});
    }
}
