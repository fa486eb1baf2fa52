/* Addresses as text. A text is cut into [at, end) pieces; each parser takes a whole piece. */
#include "base/address.h"
#include <stdio.h>
#include <string.h>

enum { IPV4_BYTES = 4, IPV6_BYTES = 16, IPV6_GROUPS = 8, NO_GAP = IPV6_BYTES + 1 };

static const char unix_prefix[] = "unix:";

/* A number without sign, spaces or leading zeros; -1 when it is none or above the limit. */
static long number_parse(const char *at, const char *end, long value_max) {
    long value = 0;

    if (at == end || (*at == '0' && end - at > 1)) {
        return -1;
    }
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') {
            return -1;
        }
        value = 10 * value + (*at - '0');
        if (value > value_max) {
            return -1;
        }
    }
    return value;
}

static const char *piece_end(const char *at, const char *end, char separator) {
    const char *found = memchr(at, separator, (size_t)(end - at));

    return found ? found : end;
}

static int ipv4_parse(const char *at, const char *end, uint8_t *ret_ip) {
    for (unsigned i = 0; i < IPV4_BYTES; i++) {
        const char *stop = piece_end(at, end, '.');
        long value = number_parse(at, stop, 255);

        if (value < 0 || (stop == end) != (i == IPV4_BYTES - 1)) {
            return -ERR_INVALID;
        }
        ret_ip[i] = (uint8_t)value;
        at = stop == end ? end : stop + 1;
    }
    return 0;
}

static int hex_value(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    digit |= 'a' ^ 'A';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static int group_parse(const char *at, const char *end, uint8_t *ret_group) {
    unsigned value = 0;

    if (at == end || end - at > 4) {
        return -ERR_INVALID;
    }
    for (; at < end; at++) {
        int digit = hex_value(*at);

        if (digit < 0) {
            return -ERR_INVALID;
        }
        value = value << 4 | (unsigned)digit;
    }
    ret_group[0] = (uint8_t)(value >> 8);
    ret_group[1] = (uint8_t)value;
    return 0;
}

/* What is read of an IPv6 number from left to right. */
struct ipv6_reading {
    uint8_t ip[IPV6_BYTES];
    size_t filled;
    size_t gap; /* where :: stands, NO_GAP without */
};

/* One group, or four bytes with dots at the end. */
static int ipv6_take(struct ipv6_reading *reading, const char *at, const char *stop, bool last) {
    bool dotted = piece_end(at, stop, '.') != stop;
    size_t size = dotted ? IPV4_BYTES : 2;
    uint8_t *to = reading->ip + reading->filled;

    if ((dotted && !last) || reading->filled + size > IPV6_BYTES) {
        return -ERR_INVALID;
    }
    reading->filled += size;
    return dotted ? ipv4_parse(at, stop, to) : group_parse(at, stop, to);
}

static int ipv6_finish(struct ipv6_reading *reading, uint8_t *ret_ip) {
    size_t missing = IPV6_BYTES - reading->filled;

    if ((reading->gap == NO_GAP) != (missing == 0)) {
        return -ERR_INVALID;
    }
    if (missing > 0) {
        uint8_t *gap = reading->ip + reading->gap;

        memmove(gap + missing, gap, reading->filled - reading->gap);
        memset(gap, 0, missing);
    }
    memcpy(ret_ip, reading->ip, IPV6_BYTES);
    return 0;
}

static int ipv6_parse(const char *at, const char *end, uint8_t *ret_ip) {
    struct ipv6_reading reading = {.gap = NO_GAP};

    if (end - at >= 2 && at[0] == ':' && at[1] == ':') {
        reading.gap = 0;
        at += 2;
    }
    while (at < end) {
        const char *stop = piece_end(at, end, ':');
        int r = ipv6_take(&reading, at, stop, stop == end);

        if (r) {
            return r;
        }
        at = stop == end ? end : stop + 1;
        if (at < end && *at == ':') {
            if (reading.gap != NO_GAP) {
                return -ERR_INVALID;
            }
            reading.gap = reading.filled;
            at++;
        } else if (at == end && stop != end) {
            return -ERR_INVALID;
        }
    }
    return ipv6_finish(&reading, ret_ip);
}

static bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

static bool is_name_letter(char letter) {
    char lower = (char)(letter | ('a' ^ 'A'));

    return is_digit(letter) || (lower >= 'a' && lower <= 'z') || letter == '-' || letter == '_';
}

/* Labels between dots; the last has a letter, else it would be a number that is wrong. */
static int name_parse(const char *at, const char *end, char *ret_name) {
    bool has_letter = false;

    if (end - at > ADDRESS_NAME_BYTES_MAX) {
        return -ERR_INVALID;
    }
    for (;;) {
        const char *stop = piece_end(at, end, '.');

        if (at == stop || stop - at > ADDRESS_LABEL_BYTES_MAX || *at == '-' || stop[-1] == '-') {
            return -ERR_INVALID;
        }
        has_letter = false;
        for (; at < stop; at++) {
            if (!is_name_letter(*at)) {
                return -ERR_INVALID;
            }
            has_letter = has_letter || !is_digit(*at);
            *ret_name++ = *at >= 'A' && *at <= 'Z' ? (char)(*at | ('a' ^ 'A')) : *at;
        }
        if (stop == end) {
            break;
        }
        *ret_name++ = '.';
        at = stop + 1;
    }
    *ret_name = '\0';
    return has_letter ? 0 : -ERR_INVALID;
}

static int path_parse(const char *path, char *ret_name) {
    size_t size = strlen(path);

    if (path[0] != '/' || size > ADDRESS_PATH_BYTES_MAX || path[size - 1] == '/') {
        return -ERR_INVALID;
    }
    for (size_t i = 0; i < size; i++) {
        if ((uint8_t)path[i] < ' ' || path[i] == 0x7f) {
            return -ERR_INVALID;
        }
    }
    memcpy(ret_name, path, size + 1);
    return 0;
}

static bool looks_like_ipv4(const char *at, const char *end) {
    while (at < end && (is_digit(*at) || *at == '.')) {
        at++;
    }
    return at == end;
}

static int host_parse(const char *at, const char *end, struct address *address) {
    if (end - at > 2 && *at == '[' && end[-1] == ']') {
        address->kind = ADDRESS_IPV6;
        return ipv6_parse(at + 1, end - 1, address->ip);
    }
    if (looks_like_ipv4(at, end)) {
        address->kind = ADDRESS_IPV4;
        return ipv4_parse(at, end, address->ip);
    }
    address->kind = ADDRESS_NAME;
    return name_parse(at, end, address->name);
}

int address_parse(const char *text, struct address *ret_address) {
    struct address address = {0};
    const char *colon = strrchr(text, ':');
    int r;

    if (strncmp(text, unix_prefix, sizeof unix_prefix - 1) == 0 &&
        strchr(text + sizeof unix_prefix - 1, '/')) {
        address.kind = ADDRESS_UNIX;
        r = path_parse(text + sizeof unix_prefix - 1, address.name);
    } else if (!colon) {
        r = -ERR_INVALID;
    } else {
        long port = number_parse(colon + 1, colon + strlen(colon), UINT16_MAX);

        address.port = (uint16_t)port;
        r = port < 0 ? -ERR_INVALID : host_parse(text, colon, &address);
    }
    if (r == 0) {
        *ret_address = address;
    }
    return r;
}

static unsigned group_at(const uint8_t *ip, size_t group) {
    return (unsigned)ip[2 * group] << 8 | ip[2 * group + 1];
}

/* The first of the longest runs of zero groups, if it has two or more. */
static size_t zeros_find(const uint8_t *ip, size_t *ret_count) {
    size_t best = 0;
    size_t best_count = 1;

    for (size_t at = 0; at < IPV6_GROUPS;) {
        size_t end = at;

        while (end < IPV6_GROUPS && group_at(ip, end) == 0) {
            end++;
        }
        if (end - at > best_count) {
            best = at;
            best_count = end - at;
        }
        at = end + 1;
    }
    *ret_count = best_count > 1 ? best_count : 0;
    return best;
}

static void ipv6_format(const uint8_t *ip, char *ret_text, size_t size) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    size_t zero_count;
    size_t zeros = zeros_find(ip, &zero_count);
    size_t used = 0;

    if (memcmp(ip, mapped, sizeof mapped) == 0) {
        snprintf(ret_text, size, "::ffff:%u.%u.%u.%u", ip[12], ip[13], ip[14], ip[15]);
        return;
    }
    ret_text[0] = '\0';
    for (size_t group = 0; group < IPV6_GROUPS;) {
        if (zero_count > 0 && group == zeros) {
            used += (size_t)snprintf(ret_text + used, size - used, "::");
            group += zero_count;
        } else {
            bool first = group == 0 || (zero_count > 0 && group == zeros + zero_count);

            used += (size_t)snprintf(ret_text + used, size - used, "%s%x", first ? "" : ":",
                                     group_at(ip, group));
            group++;
        }
    }
}

void address_format(const struct address *address, char ret_text[ADDRESS_TEXT_BYTES]) {
    const uint8_t *ip = address->ip;
    char number[64];

    switch (address->kind) {
    case ADDRESS_IPV4:
        snprintf(ret_text, ADDRESS_TEXT_BYTES, "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3],
                 address->port);
        break;
    case ADDRESS_IPV6:
        ipv6_format(ip, number, sizeof number);
        snprintf(ret_text, ADDRESS_TEXT_BYTES, "[%s]:%u", number, address->port);
        break;
    case ADDRESS_NAME:
        snprintf(ret_text, ADDRESS_TEXT_BYTES, "%.253s:%u", address->name, address->port);
        break;
    case ADDRESS_UNIX:
        snprintf(ret_text, ADDRESS_TEXT_BYTES, "%s%.107s", unix_prefix, address->name);
        break;
    }
}

bool address_is(const struct address *a, const struct address *b) {
    return a->kind == b->kind && a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0 &&
           strcmp(a->name, b->name) == 0;
}

bool address_is_near(const struct address *address) {
    static const uint8_t loopback[IPV6_BYTES] = {[IPV6_BYTES - 1] = 1};

    switch (address->kind) {
    case ADDRESS_UNIX:
        return true;
    case ADDRESS_IPV4:
        return address->ip[0] == 127;
    case ADDRESS_IPV6:
        return memcmp(address->ip, loopback, sizeof loopback) == 0;
    default:
        return false;
    }
}
