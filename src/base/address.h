/* Addresses that a process listens at or connects to, as people write them.
 *
 *     127.0.0.1:7400    [::1]:7400    name:7400    unix:/path/socket
 *
 * One address has one canonical text: numbers without leading zeros, IPv6 as in RFC 5952, names in
 * lower case. A number that a machine has on several networks (fe80::1%eth0) can't be written. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum {
    ADDRESS_NAME_BYTES_MAX = 253,
    ADDRESS_LABEL_BYTES_MAX = 63, /* between two dots of a name */
    ADDRESS_PATH_BYTES_MAX = 107, /* what Linux has room for */
    ADDRESS_TEXT_BYTES = 264,     /* of the canonical text with its NUL, at most */
};

enum address_kind { ADDRESS_IPV4, ADDRESS_IPV6, ADDRESS_NAME, ADDRESS_UNIX };

struct address {
    enum address_kind kind;
    uint16_t port;  /* 0 for UNIX */
    uint8_t ip[16]; /* as on the wire; IPV4 has the first four */
    char name[256]; /* of NAME the name, of UNIX the path; else empty */
};

/* -ERR_INVALID for any other text: a port that is missing or above 65535, a name with other
 * letters than a-z 0-9 - _ and dots, a number that is none, a path that does not begin with a slash
 * or ends with one, that has a control character or is too long. */
MUST_CHECK int address_parse(const char *text, struct address *ret_address);
/* The canonical text, which parses to the same address. */
void address_format(const struct address *address, char ret_text[ADDRESS_TEXT_BYTES]);
bool address_is(const struct address *a, const struct address *b);
/* What is said there does not leave the machine: a Unix socket, or a number of loopback. */
bool address_is_near(const struct address *address);
