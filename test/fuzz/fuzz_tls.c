/* One end of TLS under bytes from a peer that may be anybody: it opens nothing before it is proven,
 * takes off its input no more than was there, and once it has failed it stays so.
 *
 * An input is a byte of flags and then pieces: u8 count, bytes; a count of 0 means a true flight,
 * which a true peer has made of the same keys, if it is this end's turn. */
#include "fuzz.h"
#include "keys/tls.h"

enum { IS_CLIENT = 1, IS_OTHER_KEY = 2, PLAIN_BYTES = 20000, FLIGHT_BYTES_MAX = TLS_OUT_BYTES };

static struct {
    struct key_ring *ring;
    struct tls_context *serve, *call, *stranger;
} it;

static void contexts_make(void) {
    const struct secret ours = {{1, 2, 3}}, other = {{9}};
    struct key_file members, strangers;
    int r;

    key_file_make(&ours, &members);
    key_file_make(&other, &strangers);
    r = key_ring_new(&members, &it.ring);
    assert(r == 0);
    r = tls_context_serve(it.ring, &it.serve);
    assert(r == 0);
    r = tls_context_call(&members, &it.call);
    assert(r == 0);
    r = tls_context_call(&strangers, &it.stranger);
    assert(r == 0);
}

/* Gives it all of the bytes; its result, once it has one. */
static int feed(struct tls *tls, struct bytes bytes) {
    static uint8_t space[PLAIN_BYTES];
    bool was_failed = tls_error(tls, &(const char *){NULL}) < 0;
    size_t opened;
    int r = 0;

    for (;;) {
        struct buffer part = {space, 0, sizeof space};
        struct bytes before = bytes;

        r = tls_open(tls, &bytes, &part, 1, &opened);
        assert(fuzz_is_within(bytes, before) && (r < 0 || opened == part.size));
        assert(!was_failed || r < 0);
        assert(r == 0 || r == -ERR_MALFORMED || r == -ERR_ACCESS || r == -ERR_CLOSED);
        if (r < 0) {
            return r;
        }
        assert(opened == 0 || tls_is_proven(tls));
        if (opened == 0 && bytes.size == before.size) {
            return 0;
        }
    }
}

/* What `from` has for the other goes to `to`, if anybody. */
static void flight(struct tls *from, struct tls *to) {
    uint8_t space[FLIGHT_BYTES_MAX];
    struct bytes pending = tls_pending(from);
    size_t size = pending.size;

    assert(size <= sizeof space);
    memcpy(space, pending.data ? pending.data : space, size);
    tls_sent(from, size);
    if (to && size > 0) {
        (void)feed(to, (struct bytes){space, size});
    }
}

static void run_pieces(struct wire_cursor *cursor, struct tls *end, struct tls *peer) {
    static const uint8_t text[] = "what is said";
    const struct bytes part = {text, sizeof text};
    bool is_forged = false; /* something was not the true peer's */
    size_t sealed;

    while (cursor->size > 0 && !cursor->bad) {
        size_t count = wire_take_number(cursor, 1);

        if (count == 0) {
            flight(end, peer);
            (void)!tls_seal(peer, &part, 1, &sealed);
            flight(peer, end);
        } else {
            const uint8_t *from = wire_take(cursor, count);

            if (from && !tls_is_proven(end)) {
                is_forged = true;
            }
            (void)(from ? feed(end, (struct bytes){from, count}) : 0);
        }
        assert(!is_forged || !tls_is_proven(end));
        if (tls_seal(end, &part, 1, &sealed) == 0) {
            assert(sealed == 0 || tls_is_proven(end));
        }
    }
}

void fuzz_tls(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    uint8_t flags = (uint8_t)wire_take_number(&cursor, 1);
    struct tls *client, *server;
    int r;

    if (!it.ring) {
        contexts_make();
    }
    r = tls_new(flags & IS_OTHER_KEY ? it.stranger : it.call, 0, &client);
    assert(r == 0);
    r = tls_new(it.serve, 0, &server);
    assert(r == 0);
    (void)feed(client, (struct bytes){NULL, 0}); /* begins the handshake */
    if (flags & IS_CLIENT) {
        run_pieces(&cursor, client, server);
    } else {
        run_pieces(&cursor, server, client);
    }
    assert(!(flags & IS_OTHER_KEY) || (!tls_is_proven(client) && !tls_is_proven(server)));
    tls_free(client);
    tls_free(server);
}

void seed_tls(const struct fuzz_seeds *seeds) {
    static const uint8_t whole[] = {0, 0, 0, 0};
    static const uint8_t cut[] = {IS_CLIENT, 0, 5, 23, 3, 3, 0, 1, 0};
    uint8_t hello[1 + 256] = {0};
    struct tls *client;

    if (!it.ring) {
        contexts_make();
    }
    fuzz_seed(seeds, (struct bytes){whole, sizeof whole});
    fuzz_seed(seeds, (struct bytes){cut, sizeof cut});
    int r = tls_new(it.call, 0, &client);
    assert(r == 0);
    (void)feed(client, (struct bytes){NULL, 0});
    struct bytes pending = tls_pending(client);
    size_t size = MIN(pending.size, (size_t)255);
    hello[1] = (uint8_t)size;
    memcpy(hello + 2, pending.data, size);
    fuzz_seed(seeds, (struct bytes){hello, 2 + size});
    tls_free(client);
}
