/* Who one is by one's key. The text stands in key files and is what a TLS handshake names:
 *
 *     member                                  a process of the cluster: may do everything
 *     mount:SERIAL[:ro][:squash=root]         a mount; SERIAL is 16 hexadecimal digits, not all 0
 *
 * Each identity has one text: any other, also one of a newer version, is refused.
 * Thread: any.  Memory: the caller's. */
#pragma once
#include "base/types.h"

enum { IDENTITY_BYTES_MAX = 256 };

enum identity_kind { IDENTITY_MEMBER = 1, IDENTITY_MOUNT = 2 };

struct identity {
    uint8_t kind;
    bool read_only;
    bool squash_root;
    uint64_t serial; /* of a mount */
};

#define IDENTITY_OF_MEMBER ((struct identity){.kind = IDENTITY_MEMBER})

/* -ERR_MALFORMED: not an identity that this version knows. */
MUST_CHECK int identity_parse(struct bytes text, struct identity *ret_identity);
/* Ends in a NUL; answers the length without it. */
size_t identity_print(const struct identity *identity, char ret_text[IDENTITY_BYTES_MAX + 1]);
bool identity_is(const struct identity *a, const struct identity *b);
