/* Keys: hashes by their RFCs, identities, files, what a ring derives, tags and who takes them. */
#include "base/endian.h"
#include "base/err.h"
#include "base/prng.h"
#include "keys/key_ring.h"
#include "keys/ticket.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

static struct bytes bytes_of(const char *text) {
    return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static void assert_hex(const uint8_t *bytes, size_t size, const char *want) {
    char text[2 * TAG_BYTES + 1];

    assert_true(size <= TAG_BYTES);
    for (size_t i = 0; i < size; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    assert_string_equal(text, want);
}

/* A hash that is only nearly HMAC agrees with itself and with nobody else. */
static void test_hmac_by_rfc_4231(void **state) {
    uint8_t fill[131];
    struct {
        uint8_t byte;
        size_t key_bytes; /* 0: the key is "Jefe" */
        const char *message;
        const char *want;
    } rows[] = {
        {0x0b, 20, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {0, 0, "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct hmac_key key;
        uint8_t tag[TAG_BYTES];

        memset(fill, rows[i].byte, sizeof fill);
        hmac_key_init(&key, rows[i].key_bytes ? (struct bytes){fill, rows[i].key_bytes}
                                              : bytes_of("Jefe"));
        hmac_sha256(&key, bytes_of(rows[i].message), tag);
        assert_hex(tag, sizeof tag, rows[i].want);
        hmac_key_deinit(&key);
    }
}

static void test_hkdf_by_rfc_5869(void **state) {
    uint8_t secret[22];
    uint8_t salt[13];
    uint8_t info[10];
    struct secret key;
    struct secret out;

    (void)state;
    memset(secret, 0x0b, sizeof secret);
    for (size_t i = 0; i < sizeof salt; i++) {
        salt[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < sizeof info; i++) {
        info[i] = (uint8_t)(0xf0 + i);
    }
    hkdf_extract((struct bytes){salt, sizeof salt}, (struct bytes){secret, sizeof secret}, &key);
    assert_hex(key.bytes, sizeof key.bytes,
               "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
    hkdf_expand(&key, (struct bytes){info, sizeof info}, &out);
    assert_hex(out.bytes, sizeof out.bytes,
               "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
    hkdf_extract((struct bytes){salt, 0}, (struct bytes){secret, sizeof secret}, &key);
    hkdf_expand(&key, (struct bytes){info, 0}, &out);
    assert_hex(out.bytes, sizeof out.bytes,
               "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
}

static void test_wipe_leaves_nothing(void **state) {
    struct secret secret;
    const struct secret nothing = {{0}};

    (void)state;
    memset(&secret, 7, sizeof secret);
    secret_wipe(&secret, sizeof secret);
    assert_memory_equal(&secret, &nothing, sizeof secret);
}

/* Two texts of one identity would be two keys, and a mount that nobody can revoke. */
static void test_identities_have_one_text(void **state) {
    static const char *const good[] = {
        "member", "mount:0123456789abcdef", "mount:ffffffffffffffff:ro",
        "mount:0000000000000001:squash=root", "mount:0123456789abcdef:ro:squash=root"};
    static const char *const bad[] = {"",
                                      "members",
                                      "Member",
                                      "mount",
                                      "mount:",
                                      "mount:1",
                                      "mount:0000000000000000",
                                      "mount:0123456789ABCDEF",
                                      "mount:0123456789abcdef:",
                                      "mount:0123456789abcdef:rw",
                                      "mount:0123456789abcdef:squash=root:ro",
                                      "mount:0123456789abcdef:ro:ro",
                                      "mount:0123456789abcdef0",
                                      "user:0123456789abcdef",
                                      "member:ro",
                                      "member "};
    char text[IDENTITY_BYTES_MAX + 1];
    struct identity identity;
    struct identity first;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(identity_parse(bytes_of(good[i]), &identity), 0);
        assert_int_equal(identity_print(&identity, text), strlen(good[i]));
        assert_string_equal(text, good[i]);
        first = i == 0 ? identity : first;
        assert_int_equal(identity_is(&identity, &first), i == 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(identity_parse(bytes_of(bad[i]), &identity), -ERR_MALFORMED);
    }
    memset(text, 'a', IDENTITY_BYTES_MAX);
    memcpy(text, "member", 6);
    assert_int_equal(
        identity_parse((struct bytes){(const uint8_t *)text, IDENTITY_BYTES_MAX}, &identity),
        -ERR_MALFORMED);
}

static struct secret secret_numbered(uint8_t number) {
    struct secret secret;

    for (size_t i = 0; i < sizeof secret.bytes; i++) {
        secret.bytes[i] = (uint8_t)(number + 3 * i);
    }
    return secret;
}

static struct key_file file_numbered(uint8_t number) {
    const struct secret secret = secret_numbered(number);
    struct key_file file;

    key_file_make(&secret, &file);
    return file;
}

static struct key_file file_of_two(void) {
    char problem[KEY_PROBLEM_BYTES];
    struct key_file file = file_numbered(1);
    const struct key_file newer = file_numbered(2);

    assert_int_equal(key_file_add(&file, &newer, problem), 0);
    return file;
}

static void assert_same_file(const struct key_file *a, const struct key_file *b) {
    assert_true(identity_is(&a->identity, &b->identity));
    assert_int_equal(a->key_count, b->key_count);
    for (uint32_t i = 0; i < a->key_count; i++) {
        assert_int_equal(a->keys[i].name.value, b->keys[i].name.value);
        assert_memory_equal(&a->keys[i].secret, &b->keys[i].secret, sizeof a->keys[i].secret);
    }
}

static const struct identity laptop = {
    .kind = IDENTITY_MOUNT, .read_only = true, .squash_root = true, .serial = 0x0123456789abcdef};

static void test_files_read_as_they_were_printed(void **state) {
    char problem[KEY_PROBLEM_BYTES];
    struct key_file files[3] = {file_numbered(1), file_of_two()};
    char text[KEY_FILE_BYTES_MAX];

    (void)state;
    key_file_derive(&files[1], &laptop, &files[2]);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct key_file got;
        size_t size = key_file_print(&files[i], text);

        assert_int_equal(key_file_parse((struct bytes){(uint8_t *)text, size}, &got, problem), 0);
        assert_same_file(&got, &files[i]);
    }
    assert_non_null(strstr(text, "identity mount:0123456789abcdef:ro:squash=root\n"));
}

/* A file that was cut or touched would else open a cluster to the wrong ones, or to none. */
static void test_no_damaged_file_is_read(void **state) {
    const struct key_file file = file_of_two();
    char text[KEY_FILE_BYTES_MAX];
    char problem[KEY_PROBLEM_BYTES];
    struct key_file got;
    size_t size = key_file_print(&file, text);
    struct bytes all = {(uint8_t *)text, size};

    (void)state;
    for (size_t cut = 0; cut + 1 < size; cut++) {
        assert_true(key_file_parse((struct bytes){all.data, cut}, &got, problem) < 0);
        assert_int_equal(memchr(problem, '\0', sizeof problem) != NULL, 1);
    }
    for (size_t i = 0; i < size; i++) {
        text[i] ^= 1;
        assert_true(key_file_parse(all, &got, problem) < 0 || i == size - 1);
        text[i] ^= 1;
    }
    assert_int_equal(key_file_parse(all, &got, problem), 0);
}

static void test_bad_files_have_a_line(void **state) {
    static const struct {
        const char *text;
        int result;
        const char *problem;
    } rows[] = {
        {"", -ERR_MALFORMED, "line 0: it is empty"},
        {"# only words\n\n", -ERR_MALFORMED, "line 2: it is empty"},
        {"-----BEGIN PRIVATE KEY-----\n", -ERR_MALFORMED,
         "line 1: this is not a key file of Shoal"},
        {"shoal-key 2\n", -ERR_NEWER_FORMAT, "line 1: a newer version of Shoal has written it"},
        {"shoal-key 0\n", -ERR_MALFORMED, "line 1: there is no such version"},
        {"shoal-key one\n", -ERR_MALFORMED, "line 1: the version is not a number"},
        {"shoal-key 1\nidentity root\n", -ERR_MALFORMED,
         "line 2: the identity is not one that is known"},
        {"shoal-key 1\nidentity member\nidentity member\n", -ERR_MALFORMED,
         "line 3: there is a second identity"},
        {"shoal-key 1\nkey \n", -ERR_MALFORMED, "line 2: a key stands before the identity"},
        {"shoal-key 1\nidentity member\nkey 0\n", -ERR_MALFORMED,
         "line 3: a key is a name of 16 and a secret of 64 hexadecimal digits"},
        {"shoal-key 1\nidentity member\nlock 0\n", -ERR_MALFORMED,
         "line 3: the line is not understood"},
        {"shoal-key 1\nidentity member\n", -ERR_MALFORMED, "line 2: its end is missing"},
        {"shoal-key 1\nidentity member\ncheck 0000000000000000\n", -ERR_CORRUPT,
         "line 3: the check does not fit what stands above it"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char problem[KEY_PROBLEM_BYTES];
        struct key_file file;

        assert_int_equal(key_file_parse(bytes_of(rows[i].text), &file, problem), rows[i].result);
        assert_string_equal(problem, rows[i].problem);
    }
}

static void test_any_bytes_are_no_file(void **state) {
    char text[KEY_FILE_BYTES_MAX + 1];
    const struct key_file file = file_of_two();
    size_t size = key_file_print(&file, text);
    struct prng prng;

    (void)state;
    prng_init(&prng, 5);
    for (int turn = 0; turn < 2000; turn++) {
        char problem[KEY_PROBLEM_BYTES];
        uint8_t bytes[KEY_FILE_BYTES_MAX + 1];
        struct key_file got;
        size_t count = prng_below(&prng, sizeof bytes + 1);

        for (size_t i = 0; i < count; i++) {
            bytes[i] = (uint8_t)prng_next(&prng);
        }
        memcpy(bytes, text, MIN(count, prng_below(&prng, size)));
        assert_true(key_file_parse((struct bytes){bytes, count}, &got, problem) < 0);
    }
}

static void test_a_third_key_waits_for_the_first_to_go(void **state) {
    char problem[KEY_PROBLEM_BYTES];
    struct key_file file = file_of_two();
    const struct key_file third = file_numbered(3);
    struct key_file mount;
    struct key_file one = file_numbered(1);
    const struct key_file before = file;

    (void)state;
    assert_int_equal(file.keys[0].name.value, file_numbered(2).keys[0].name.value);
    assert_int_equal(key_file_add(&file, &third, problem), -ERR_INVALID);
    assert_same_file(&file, &before);
    assert_int_equal(key_file_add(&one, &before, problem), -ERR_INVALID);
    assert_int_equal(key_file_add(&one, &one, problem), -ERR_INVALID);
    assert_string_equal(problem, "it has this key already");
    key_file_derive(&one, &laptop, &mount);
    assert_int_equal(key_file_add(&one, &mount, problem), -ERR_INVALID);
}

static struct key_ring *ring_of(const struct key_file *file) {
    struct key_ring *ring;

    assert_int_equal(key_ring_new(file, &ring), 0);
    return ring;
}

/* The server derives what the file of a mount holds, by either key, and nothing for others. */
static void test_a_ring_proves_what_a_file_holds(void **state) {
    const struct key_file members = file_of_two();
    struct key_ring *ring = ring_of(&members);
    struct key_file mount;
    char name[PSK_NAME_BYTES_MAX + 1];
    struct psk psk;

    (void)state;
    key_file_derive(&members, &laptop, &mount);
    assert_int_equal(mount.key_count, 2);
    for (uint32_t i = 0; i < mount.key_count; i++) {
        size_t size = psk_name_print(&mount.identity, mount.keys[i].name, name);

        assert_int_equal(key_ring_psk(ring, (struct bytes){(uint8_t *)name, size}, &psk), 0);
        assert_true(identity_is(&psk.identity, &laptop));
        assert_memory_equal(&psk.secret, &mount.keys[i].secret, sizeof psk.secret);
        name[6]++;
        assert_true(key_ring_psk(ring, (struct bytes){(uint8_t *)name, size}, &psk) < 0 ||
                    memcmp(&psk.secret, &mount.keys[i].secret, sizeof psk.secret) != 0);
    }
    assert_int_equal(key_ring_psk(ring, bytes_of("member@0000000000000000"), &psk), -ERR_NOT_FOUND);
    assert_int_equal(key_ring_psk(ring, bytes_of("member@"), &psk), -ERR_NOT_FOUND);
    assert_int_equal(key_ring_psk(ring, bytes_of("member"), &psk), -ERR_MALFORMED);
    assert_int_equal(key_ring_psk(ring, (struct bytes){NULL, 0}, &psk), -ERR_MALFORMED);
    assert_int_equal(key_ring_new(&mount, &ring), -ERR_INVALID);
    key_ring_free(ring);
    key_ring_free(NULL);
}

/* The proof stands, so that whoever has given it can be told that the key is revoked. */
static void test_a_revoked_mount_is_known(void **state) {
    const struct key_file members = file_numbered(1);
    struct key_ring *ring = ring_of(&members);
    struct identity other = laptop;
    char name[PSK_NAME_BYTES_MAX + 1];
    struct psk psk;

    (void)state;
    assert_int_equal(key_ring_revoke(ring, laptop.serial), 0);
    assert_int_equal(key_ring_revoke(ring, laptop.serial), 0);
    assert_int_equal(key_ring_revoke(ring, 0), -ERR_INVALID);
    assert_int_equal(key_ring_revoked_count(ring), 1);
    (void)psk_name_print(&laptop, members.keys[0].name, name);
    assert_int_equal(key_ring_psk(ring, bytes_of(name), &psk), 0);
    assert_true(key_ring_is_revoked(ring, psk.identity.serial));
    other.serial++;
    (void)psk_name_print(&other, members.keys[0].name, name);
    assert_int_equal(key_ring_psk(ring, bytes_of(name), &psk), 0);
    assert_false(key_ring_is_revoked(ring, psk.identity.serial));
    for (uint64_t serial = 1; serial < KEY_REVOKED_MAX; serial++) {
        assert_int_equal(key_ring_revoke(ring, serial), 0);
    }
    assert_int_equal(key_ring_revoke(ring, KEY_REVOKED_MAX), -ERR_TOO_MANY_REVOKED);
    assert_true(key_ring_is_revoked(ring, KEY_REVOKED_MAX - 1));
    key_ring_free(ring);
}

struct pair {
    struct key_ring *rings[2]; /* of who signs and who checks */
    struct signer maker;
    struct signer checker;
};

static void pair_init(struct pair *pair, const struct key_file *maker,
                      const struct key_file *checker) {
    pair->rings[0] = ring_of(maker);
    pair->rings[1] = ring_of(checker);
    signer_init(&pair->maker, pair->rings[0], "test", 1);
    signer_init(&pair->checker, pair->rings[1], "test", 1);
}

static void pair_deinit(struct pair *pair) {
    signer_deinit(&pair->maker);
    signer_deinit(&pair->checker);
    key_ring_free(pair->rings[0]);
    key_ring_free(pair->rings[1]);
}

struct tagged {
    struct key_use use;
    uint8_t tag[TAG_BYTES];
};

static struct tagged sign(struct pair *pair, const char *message) {
    struct tagged tagged;

    tagged.use = signer_use(&pair->maker);
    signer_sign(&pair->maker, tagged.use, bytes_of(message), tagged.tag);
    return tagged;
}

static int check(struct pair *pair, const char *message, const struct tagged *tagged) {
    return signer_check(&pair->checker, tagged->use, bytes_of(message),
                        (struct bytes){tagged->tag, 16});
}

static void test_a_tag_is_of_its_message_key_and_purpose(void **state) {
    const struct key_file file = file_numbered(1);
    const struct key_file stranger = file_numbered(9);
    struct pair pair;

    (void)state;
    pair_init(&pair, &file, &file);
    struct tagged tagged = sign(&pair, "all is well");
    assert_int_equal(check(&pair, "all is well", &tagged), 0);
    assert_int_equal(check(&pair, "all is Well", &tagged), -ERR_ACCESS);
    for (size_t bit = 0; bit < 128; bit++) {
        tagged.tag[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_int_equal(check(&pair, "all is well", &tagged), -ERR_ACCESS);
        tagged.tag[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    assert_int_equal(signer_check(&pair.checker, tagged.use, bytes_of("all is well"),
                                  (struct bytes){tagged.tag, 15}),
                     -ERR_ACCESS);
    pair.checker.purpose = "other";
    pair.checker.kept[0].use.number = pair.checker.kept[1].use.number = 0;
    assert_int_equal(check(&pair, "all is well", &tagged), -ERR_ACCESS);
    pair_deinit(&pair);
    pair_init(&pair, &stranger, &file);
    tagged = sign(&pair, "all is well");
    assert_int_equal(check(&pair, "all is well", &tagged), -ERR_ACCESS);
    tagged.use.name = key_ring_signing(pair.rings[1]);
    assert_int_equal(check(&pair, "all is well", &tagged), -ERR_ACCESS);
    pair_deinit(&pair);
}

/* While a number goes round, what the old one signed is good, and nothing older. */
static void test_numbers_n_and_one_below_are_good(void **state) {
    const struct key_file file = file_numbered(1);
    struct tagged tagged[6];
    struct pair pair;

    (void)state;
    pair_init(&pair, &file, &file);
    for (uint32_t n = 1; n < ARRAY_SIZE(tagged); n++) {
        key_ring_number_set(pair.rings[0], n);
        tagged[n] = sign(&pair, "m");
        assert_int_equal(tagged[n].use.number, n);
    }
    for (uint32_t n = 1; n < ARRAY_SIZE(tagged); n++) {
        key_ring_number_set(pair.rings[1], n);
        key_ring_number_set(pair.rings[1], 1); /* It only rises. */
        for (uint32_t i = 1; i < ARRAY_SIZE(tagged); i++) {
            assert_int_equal(check(&pair, "m", &tagged[i]), i + 1 >= n ? 0 : -ERR_ACCESS);
        }
    }
    tagged[5].use.number = 0;
    assert_int_equal(check(&pair, "m", &tagged[5]), -ERR_ACCESS);
    pair_deinit(&pair);
}

/* Rotation: whoever has both keys takes tags of either; who has none of them takes none. */
static void test_either_key_of_a_file_is_good(void **state) {
    const struct key_file both = file_of_two();
    const struct key_file old = file_numbered(1);
    const struct key_file new = file_numbered(2);
    struct tagged tagged;
    struct pair pair;

    (void)state;
    for (int i = 0; i < 2; i++) {
        pair_init(&pair, i ? &old : &new, &both);
        tagged = sign(&pair, "m");
        assert_int_equal(check(&pair, "m", &tagged), 0);
        pair_deinit(&pair);
    }
    /* Where nobody says what all have, by the older one; else by what is said, if it is here. */
    for (int i = 0; i < 3; i++) {
        const struct key_name said[] = {{0}, old.keys[0].name, new.keys[0].name};

        pair_init(&pair, &both, &old);
        (void)key_ring_sign_by(pair.rings[0], said[i]);
        tagged = sign(&pair, "m");
        assert_int_equal(check(&pair, "m", &tagged), i == 2 ? -ERR_ACCESS : 0);
        pair_deinit(&pair);
        pair_init(&pair, &both, &new);
        (void)key_ring_sign_by(pair.rings[0], said[i]);
        tagged = sign(&pair, "m");
        assert_int_equal(check(&pair, "m", &tagged), i == 2 ? 0 : -ERR_ACCESS);
        pair_deinit(&pair);
    }
    pair_init(&pair, &new, &both);
    (void)key_ring_sign_by(pair.rings[0], old.keys[0].name);
    tagged = sign(&pair, "m");
    assert_int_equal(check(&pair, "m", &tagged), 0);
    pair_deinit(&pair);
}

static const struct ticket_session session = {42, 4711};

static int check_ticket(struct signer *signer, struct bytes ticket) {
    struct identity identity;

    return ticket_check(signer, session, ticket, &identity);
}

static void test_a_ticket_is_of_one_session_and_identity(void **state) {
    const struct ticket_session others[] = {{43, 4711}, {42, 4712}, {0, 0}};
    const struct key_file file = file_numbered(1);
    struct key_ring *ring = ring_of(&file);
    uint8_t ticket[TICKET_BYTES_MAX];
    struct identity identity;
    struct signer signer;

    (void)state;
    ticket_signer_init(&signer, ring);
    struct bytes bytes = {ticket, ticket_make(&signer, session, &laptop, ticket)};
    assert_int_equal(ticket_check(&signer, session, bytes, &identity), 0);
    assert_true(identity_is(&identity, &laptop));
    assert_int_equal(ticket_admit(&signer, session, bytes, &laptop), 0);
    assert_int_equal(ticket_admit(&signer, session, bytes, NULL), -ERR_BAD_TICKET);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        assert_int_equal(ticket_check(&signer, others[i], bytes, &identity), -ERR_BAD_TICKET);
    }
    for (size_t i = 0; i < 8 * bytes.size; i++) {
        ticket[i / 8] ^= (uint8_t)(1U << i % 8);
        assert_int_equal(check_ticket(&signer, bytes), -ERR_BAD_TICKET);
        ticket[i / 8] ^= (uint8_t)(1U << i % 8);
    }
    for (size_t cut = 0; cut < bytes.size; cut++) {
        assert_int_equal(check_ticket(&signer, (struct bytes){ticket, cut}), -ERR_BAD_TICKET);
    }
    signer_deinit(&signer);
    signer_init(&signer, NULL, "session", 0);
    assert_int_equal(ticket_admit(&signer, session, (struct bytes){NULL, 0}, NULL), 0);
    key_ring_free(ring);
}

/* A ticket outlives many numbers; with its members' key it ends. */
static void test_a_ticket_ends_with_its_members_key(void **state) {
    const struct key_file files[] = {file_numbered(1), file_of_two(), file_numbered(2)};
    const int good[] = {0, 0, -ERR_BAD_TICKET};
    const bool newest[] = {true, true, false}; /* by a newer key when all are said to have it */
    uint8_t ticket[TICKET_BYTES_MAX];
    struct bytes bytes = {ticket, 0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct key_ring *ring = ring_of(&files[i]);
        struct signer signer;

        ticket_signer_init(&signer, ring);
        if (i == 0) {
            bytes.size = ticket_make(&signer, session, &laptop, ticket);
        }
        assert_int_equal(check_ticket(&signer, bytes), good[i]);
        assert_int_equal(ticket_is_newest(&signer, bytes), newest[i]);
        key_ring_number_set(ring, 100);
        assert_int_equal(check_ticket(&signer, bytes), good[i]);
        assert_false(ticket_is_newest(&signer, bytes));
        signer_deinit(&signer);
        key_ring_free(ring);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hmac_by_rfc_4231),
        cmocka_unit_test(test_hkdf_by_rfc_5869),
        cmocka_unit_test(test_wipe_leaves_nothing),
        cmocka_unit_test(test_identities_have_one_text),
        cmocka_unit_test(test_files_read_as_they_were_printed),
        cmocka_unit_test(test_no_damaged_file_is_read),
        cmocka_unit_test(test_bad_files_have_a_line),
        cmocka_unit_test(test_any_bytes_are_no_file),
        cmocka_unit_test(test_a_third_key_waits_for_the_first_to_go),
        cmocka_unit_test(test_a_ring_proves_what_a_file_holds),
        cmocka_unit_test(test_a_revoked_mount_is_known),
        cmocka_unit_test(test_a_tag_is_of_its_message_key_and_purpose),
        cmocka_unit_test(test_numbers_n_and_one_below_are_good),
        cmocka_unit_test(test_either_key_of_a_file_is_good),
        cmocka_unit_test(test_a_ticket_is_of_one_session_and_identity),
        cmocka_unit_test(test_a_ticket_ends_with_its_members_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
