/* Addresses as text: each has one canonical form, and what is none is refused. */
#include "unit.h"
#include "base/address.h"
#include <stdio.h>
#include <string.h>

struct spelling {
    const char *text;
    const char *canonical;
    enum address_kind kind;
};

static void test_canonical_form(void **state) {
    static const struct spelling spellings[] = {
        {"127.0.0.1:7400", "127.0.0.1:7400", ADDRESS_IPV4},
        {"0.0.0.0:0", "0.0.0.0:0", ADDRESS_IPV4},
        {"255.255.255.255:65535", "255.255.255.255:65535", ADDRESS_IPV4},
        {"[::1]:7400", "[::1]:7400", ADDRESS_IPV6},
        {"[::]:1", "[::]:1", ADDRESS_IPV6},
        {"[2001:DB8:0:0:1:0:0:1]:1", "[2001:db8::1:0:0:1]:1", ADDRESS_IPV6},
        {"[2001:db8:0:1:1:1:1:1]:1", "[2001:db8:0:1:1:1:1:1]:1", ADDRESS_IPV6},
        {"[2001:0db8::0001]:1", "[2001:db8::1]:1", ADDRESS_IPV6},
        {"[1:0:0:2:0:0:0:3]:1", "[1:0:0:2::3]:1", ADDRESS_IPV6},
        {"[1:2:3:4:5:6::]:1", "[1:2:3:4:5:6::]:1", ADDRESS_IPV6},
        {"[1::8]:1", "[1::8]:1", ADDRESS_IPV6},
        {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:1", ADDRESS_IPV6},
        {"[::FFFF:a00:1]:1", "[::ffff:10.0.0.1]:1", ADDRESS_IPV6},
        {"[64:ff9b::1.2.3.4]:1", "[64:ff9b::102:304]:1", ADDRESS_IPV6},
        {"Node-1.Rack_2.example:80", "node-1.rack_2.example:80", ADDRESS_NAME},
        {"localhost:7400", "localhost:7400", ADDRESS_NAME},
        {"unix:7400", "unix:7400", ADDRESS_NAME},
        {"1a:1", "1a:1", ADDRESS_NAME},
        {"unix:/run/shoal/a socket:1", "unix:/run/shoal/a socket:1", ADDRESS_UNIX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
        struct address address;
        struct address again;
        char text[ADDRESS_TEXT_BYTES];

        assert_int_equal(address_parse(spellings[i].text, &address), 0);
        assert_int_equal(address.kind, spellings[i].kind);
        address_format(&address, text);
        assert_string_equal(text, spellings[i].canonical);
        assert_int_equal(address_parse(text, &again), 0);
        assert_true(address_is(&address, &again));
    }
}

static const char *const bad_texts[] = {
    "",
    ":",
    ":7400",
    "7400",
    "localhost",
    "localhost:",
    "localhost:x",
    "localhost:-1",
    "localhost:+1",
    "localhost: 1",
    "localhost:1 ",
    "localhost:01",
    "localhost:65536",
    "localhost:99999999999999999999",
    "127.0.0.1",
    "127.0.0:1",
    "127.0.0.0.1:1",
    "127.0.0.256:1",
    "127.0.0.01:1",
    "127..0.1:1",
    "127.0.0.1.:1",
    ".127.0.0.1:1",
    "::1:7400",
    "::1",
    "[::1]",
    "[::1]:",
    "[]:1",
    "[:]:1",
    "[:::]:1",
    "[1::2::3]:1",
    "[1:2:3:4:5:6:7]:1",
    "[1:2:3:4:5:6:7:8:9]:1",
    "[1:2:3:4:5:6:7::8]:1",
    "[1:2:3:4:5:6:7:]:1",
    "[:1:2:3:4:5:6:7]:1",
    "[12345::]:1",
    "[g::]:1",
    "[::1.2.3]:1",
    "[1.2.3.4::]:1",
    "[1:2:3:4:5:6:7:1.2.3.4]:1",
    "[fe80::1%eth0]:1",
    "[::1:7400",
    "::1]:7400",
    "a b:1",
    "a/b:1",
    "-a:1",
    "a-:1",
    "a..b:1",
    "a.:1",
    ".a:1",
    "a.1:1",
    "a:b:1",
    "n\xc3\xa4me:1",
    "unix:",
    "unix:path/socket",
    "unix:/",
    "unix:/path/",
    "unix:/a\nb",
    "unix:/a\x7f",
    "/path/socket",
};

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad_texts); i++) {
        struct address address = {.port = 1};

        if (address_parse(bad_texts[i], &address) != -ERR_INVALID) {
            fail_msg("\"%s\" was taken", bad_texts[i]);
        }
        assert_int_equal(address.port, 1);
    }
}

/* A text of count letters between two others. */
static int parse_long(const char *before, size_t count, const char *after) {
    struct address address;
    char text[512];
    int size = snprintf(text, sizeof text, "%s", before);

    memset(text + size, 'a', count);
    snprintf(text + (size_t)size + count, sizeof text - (size_t)size - count, "%s", after);
    return address_parse(text, &address);
}

static void test_lengths(void **state) {
    (void)state;
    assert_int_equal(parse_long("", 63, ":1"), 0);
    assert_int_equal(parse_long("", 64, ":1"), -ERR_INVALID);
    assert_int_equal(parse_long("unix:/", 106, ""), 0);
    assert_int_equal(parse_long("unix:/", 107, ""), -ERR_INVALID);

    char name[300] = "";
    struct address address;
    for (size_t i = 0; i < 254; i++) {
        name[i] = i % 50 == 49 ? '.' : 'a';
    }
    name[253] = '\0';
    snprintf(name + 253, 10, ":65535");
    assert_int_equal(address_parse(name, &address), 0);
    char text[ADDRESS_TEXT_BYTES];
    address_format(&address, text);
    assert_string_equal(text, name);
    snprintf(name + 253, 10, "a:65535");
    assert_int_equal(address_parse(name, &address), -ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_form),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
