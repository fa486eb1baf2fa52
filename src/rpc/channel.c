/* Bytes of a stream, in TLS or not; the contract is in channel.h. */
#include "rpc/channel.h"
#include <stdlib.h>
#include <string.h>

int channel_init(struct channel *channel, struct tls_context *tls, uint32_t attempt) {
    *channel = (struct channel){.plain_in = !tls, .plain_out = !tls};
    if (!tls) {
        channel->identity = IDENTITY_OF_MEMBER;
        return 0;
    }
    channel->raw = malloc(CHANNEL_RAW_BYTES);
    return channel->raw ? tls_new(tls, attempt, &channel->tls) : -ERR_NO_MEMORY;
}

void channel_deinit(struct channel *channel) {
    tls_free(TAKE_PTR(channel->tls));
    free(TAKE_PTR(channel->raw));
}

/* What both have agreed to do without is freed when its last byte has gone and come. */
static void channel_shed(struct channel *channel) {
    if (channel->plain_in && channel->raw_start == channel->raw_end) {
        free(TAKE_PTR(channel->raw));
    }
    if (channel->tls && channel->plain_in && channel->plain_out &&
        tls_pending(channel->tls).size == 0) {
        tls_free(TAKE_PTR(channel->tls));
    }
}

int channel_push(struct channel *channel) {
    struct bytes pending;
    size_t sent;
    int r = 0;

    channel->blocked = false;
    while (r == 0 && channel->tls && (pending = tls_pending(channel->tls)).size > 0) {
        r = env_stream_send(channel->stream, &pending, 1, &sent);
        if (r == 0) {
            tls_sent(channel->tls, sent);
        }
        if (r == -ERR_BUSY || (r == 0 && sent < pending.size)) {
            channel->blocked = true;
            return 0;
        }
    }
    channel_shed(channel);
    return r;
}

static int plain_send(struct channel *channel, const struct bytes *parts, size_t part_count,
                      size_t *ret_sent) {
    size_t offered = 0;
    int r = env_stream_send(channel->stream, parts, part_count, ret_sent);

    for (size_t i = 0; i < part_count; i++) {
        offered += parts[i].size;
    }
    channel->blocked = r < 0 || *ret_sent < offered;
    return r;
}

int channel_send(struct channel *channel, const struct bytes *parts, size_t part_count,
                 size_t *ret_sent) {
    int r = 0;

    *ret_sent = 0;
    if (channel->tls && !channel->plain_out) {
        r = tls_seal(channel->tls, parts, part_count, ret_sent);
        r = r < 0 ? r : channel_push(channel);
        channel->held = !tls_is_proven(channel->tls);
        return r;
    }
    if (channel->tls) {
        r = channel_push(channel);
    }
    return r < 0 || channel->blocked ? r : plain_send(channel, parts, part_count, ret_sent);
}

/* What lies in `raw`, as it is. */
static size_t raw_copy(struct channel *channel, struct buffer *parts, size_t part_count) {
    size_t copied = 0;

    for (size_t i = 0; i < part_count; i++) {
        size_t size = MIN(parts[i].capacity - parts[i].size, channel->raw_end - channel->raw_start);

        memcpy(parts[i].data + parts[i].size, channel->raw + channel->raw_start, size);
        parts[i].size += size;
        channel->raw_start += size;
        copied += size;
    }
    return copied;
}

static int raw_open(struct channel *channel, struct buffer *parts, size_t part_count,
                    size_t *ret_opened) {
    struct bytes in = {channel->raw + channel->raw_start, channel->raw_end - channel->raw_start};
    int r = tls_open(channel->tls, &in, parts, part_count, ret_opened);
    int pushed = channel_push(channel); /* Also an alert, which says why. */

    channel->raw_start = channel->raw_end - in.size;
    if (r == 0 && tls_is_proven(channel->tls)) {
        channel->identity = *tls_identity(channel->tls);
    }
    if (r == -ERR_CLOSED) {
        return -ERR_RESET; /* Of the stream's own end its event tells. */
    }
    return r < 0 ? r : pushed;
}

static int raw_fill(struct channel *channel) {
    struct buffer part = {channel->raw, 0, CHANNEL_RAW_BYTES};
    size_t received;
    int r = env_stream_receive(channel->stream, &part, 1, &received);

    if (r == 0) {
        channel->raw_start = 0;
        channel->raw_end = received;
    }
    return r;
}

int channel_receive(struct channel *channel, struct buffer *parts, size_t part_count,
                    size_t *ret_received) {
    int r = 0;

    *ret_received = 0;
    if (channel->plain_in) {
        if (channel->raw_start < channel->raw_end) {
            *ret_received = raw_copy(channel, parts, part_count);
            return 0;
        }
        channel_shed(channel);
        return env_stream_receive(channel->stream, parts, part_count, ret_received);
    }
    while (r == 0 && *ret_received == 0) {
        r = raw_open(channel, parts, part_count, ret_received);
        if (r == 0 && *ret_received == 0) {
            r = raw_fill(channel);
        }
    }
    return r;
}

bool channel_is_released(const struct channel *channel) {
    return channel->held && tls_is_proven(channel->tls);
}

bool channel_holds_bytes(const struct channel *channel) {
    return channel->raw_start < channel->raw_end;
}

void channel_go_plain(struct channel *channel) {
    channel->plain_in = channel->plain_out = true;
}

const char *channel_failure(const struct channel *channel) {
    const char *words = NULL;

    if (channel->tls) {
        (void)tls_error(channel->tls, &words);
    }
    return words;
}
