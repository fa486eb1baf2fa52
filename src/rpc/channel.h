/* The bytes of one connection: those of a stream as they are, or in TLS, or first in TLS and then
 * as they are.
 *
 *     PLAIN                         no keys: within a machine, where the kernel says who it is
 *     TLS --channel_go_plain--> PLAIN once both have proven themselves, where links stay within a
 *                               machine or the cluster's owner wants it so
 *
 * Thread: the stream's. Memory: with TLS that of a machine (keys/tls.h) and CHANNEL_RAW_BYTES,
 * until it goes plain. */
#pragma once
#include "env/env_stream.h"
#include "keys/tls.h"

enum { CHANNEL_RAW_BYTES = 64 << 10 };

struct channel {
    struct env_stream *stream;
    struct tls *tls; /* NULL: all is as it is */
    uint8_t *raw;    /* bytes of the stream that TLS has not taken yet */
    size_t raw_start, raw_end;
    bool plain_in, plain_out; /* from here on */
    struct identity identity; /* that the other end has proven; a member's without TLS */
    bool blocked;             /* the stream took less than it was given: WRITABLE follows */
    bool held;                /* what was to be sent waits for the other side's proof */
};

/* Takes no stream yet. tls: NULL for none; attempt as tls_new's. -ERR_NO_MEMORY. */
MUST_CHECK int channel_init(struct channel *channel, struct tls_context *tls, uint32_t attempt);
/* The stream, if there is one, has been closed. */
void channel_deinit(struct channel *channel);

/* As env_stream_receive; goes on with a handshake. Besides -ERR_BUSY and -ERR_CLOSED, of which the
 * stream tells, the errors of tls_open: the channel is done for, and no event says so. */
MUST_CHECK int channel_receive(struct channel *channel, struct buffer *parts, size_t part_count,
                               size_t *ret_received);
/* As env_stream_send; nothing is taken before the other side has proven itself. */
MUST_CHECK int channel_send(struct channel *channel, const struct bytes *parts, size_t part_count,
                            size_t *ret_sent);
/* Gives the stream what TLS still has for it. */
MUST_CHECK int channel_push(struct channel *channel);
/* What waited for the other side's proof may be sent now, and nothing else tells so. */
bool channel_is_released(const struct channel *channel);
/* Whether bytes lie here of which the stream does not tell. */
bool channel_holds_bytes(const struct channel *channel);
/* What was received so far was in TLS, and what was sent: nothing is from here on. */
void channel_go_plain(struct channel *channel);
/* Why TLS has failed, for people; NULL: it has not. */
const char *channel_failure(const struct channel *channel);
