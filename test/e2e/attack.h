/* One connection to a daemon by a key, whose messages are made by hand: what a peer that means no
 * good may send. Blocking, one thread. Used by attack.c only. */
#pragma once
#include "keys/key_file.h"
#include "rpc/connection.h"
#include "rpc/frame.h"

struct env;
struct address;
struct tls_context;

enum { LINK_BULK_BYTES = 4 << 20 };

struct link {
    struct env *env;
    struct connection *connection;
    struct hello_reply welcome;
    bool is_welcomed, is_over;
    bool has_reply;
    struct call *asked; /* whose reply is awaited */
    uint64_t id;
    uint8_t *bulk; /* that came, of LINK_BULK_BYTES */
    size_t bulk_size;
};

/* Where to, and by which key. */
struct link_target {
    struct env *env;
    const struct address *address;
    struct tls_context *tls;
};

/* Greets so. What the other end says of it; -ERR_RESET where it says nothing. */
MUST_CHECK int link_open(struct link *link, const struct link_target *target,
                         const struct hello_request *hello);
void link_close(struct link *link);
/* The reply's result, in the call as well; -ERR_RESET: the connection has ended, -ERR_TIMED_OUT:
 * nothing came for 5 s. bulk: what follows; may be empty. */
MUST_CHECK int link_ask(struct link *link, struct call *call, struct bytes bulk);
/* A message with any head, of any length; nobody waits for an answer. */
void link_say(struct link *link, struct bytes head, struct bytes bulk);
/* Bytes that came for nobody are taken until the connection ends or so much time is over. */
void link_listen(struct link *link, uint64_t time_ns);

/* Listens at the address until standard input ends, and answers each greeting with that result. The
 * errors of listening. */
MUST_CHECK int links_refuse(const struct link_target *target, int result);
