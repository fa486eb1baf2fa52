/* An outside whose streams give the bytes that an input says, cut as it says, and swallow what they
 * are sent. It has a clock besides, which only the input moves, and random numbers that are none.
 *
 * Streams: of byte_streams_add, as if accepted by whoever listens, or of a connect. Each stays
 * until byte_streams_end, also when its user has closed it, so that nobody can use it after that
 * without being seen.
 *
 * Thread: one.  Memory: of its own, from begin to end. */
#pragma once
#include "env/env_stream.h"
#include "rpc/connection.h"
#include "wire/wire_cursor.h"

enum { BYTE_STREAMS_MAX = 16, SAID_HEAD_BYTES_MAX = 1024 };

struct byte_stream {
    struct env_stream stream;
    bool used, closed, opened, ended;
    struct bytes in;   /* not received yet */
    uint32_t sent_crc; /* of all that was offered: each byte must be there to be read */
};

struct byte_streams {
    struct env env;
    uint64_t now_ns;
    uint32_t take_bytes; /* that a send takes at most; 0: all */
    struct env_listener listener;
    struct env_listen_options listen; /* accepted NULL: nobody listens */
    struct address address;           /* of the other ends */
    struct byte_stream streams[BYTE_STREAMS_MAX];
    uint32_t count;
};

void byte_streams_begin(struct byte_streams *streams);
/* All must be closed. */
void byte_streams_end(const struct byte_streams *streams);
/* NULL when there are enough, or nobody listens. */
struct byte_stream *byte_streams_add(struct byte_streams *streams);
/* What comes next; nothing is left of what came before, or it is lost. Does nothing to a stream
 * that is closed. */
void byte_stream_give(struct byte_stream *stream, struct bytes bytes);
/* The other side ends it, for this reason. */
void byte_stream_finish(struct byte_stream *stream, int reason);
/* There is room to send again. */
void byte_stream_room(struct byte_stream *stream);

/* What an input has the other side say; the stream may be NULL, and then nobody hears it. say:
 * u8 count, bytes, as they are. say_message: u8 kind, u16 size of the head, u8 size of the bulk,
 * head, bulk, as a message whose prefix and checksum are right. script: appends the latter. */
void byte_stream_say(struct byte_stream *stream, struct wire_cursor *cursor);
void byte_stream_say_message(struct byte_stream *stream, struct wire_cursor *cursor);
void byte_stream_script(struct buffer *out, enum connection_kind kind, const struct buffer *head,
                        size_t bulk_bytes);
