/* TLS as those use it who have no key, or want to break in: whatever they send, neither end opens
 * that should not, and nothing is read or written beyond its place. Some of them are OpenSSL as
 * anybody would use it. */
#include "base/err.h"
#include "base/prng.h"
#include "tls_pair.h"
#include "unit.h"
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_OVERHEAD = 22 }; /* that a record is longer than its plaintext */

/* A handshake whose ends hear no more than so many bytes, and of which one byte is changed. */
struct meddling {
    size_t server_limit;
    size_t client_limit;
    struct tls_end *changed; /* NULL: nothing is */
    size_t change_at;
};

static void pair_meddle(struct tls_pair *pair, const struct meddling *meddling) {
    struct tls_end *ends[2] = {&pair->client, &pair->server};
    bool change_due = meddling->changed != NULL;
    bool moved = true;

    pair->server.wire_limit = meddling->server_limit;
    pair->client.wire_limit = meddling->client_limit;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < 2; i++) {
            moved |= tls_end_send(ends[i], ends[1 - i]);
            if (change_due && meddling->changed->wire_end > meddling->change_at) {
                meddling->changed->wire[meddling->change_at] ^= 1;
                change_due = false;
            }
            moved |= tls_end_receive(ends[1 - i], TLS_WHOLE, TLS_WHOLE);
            moved |= tls_pending(ends[1 - i]->tls).size > 0;
        }
    }
}

struct handshake_sizes {
    size_t to_server;
    size_t to_client;
};

static struct handshake_sizes handshake_measure(const struct key_file *members,
                                                const struct key_ring *ring) {
    struct tls_pair pair;

    tls_pair_init(&pair, members, ring);
    tls_pair_run(&pair, TLS_WHOLE);
    assert_true(tls_is_proven(pair.server.tls));
    struct handshake_sizes sizes = {pair.server.wire_end, pair.client.wire_end};
    tls_pair_deinit(&pair);
    return sizes;
}

static void test_a_cut_handshake_opens_nothing(void **state) {
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    struct handshake_sizes sizes = handshake_measure(&members, ring);

    (void)state;
    for (size_t i = 0; i < sizes.to_server + sizes.to_client; i++) {
        bool at_server = i < sizes.to_server;
        struct meddling meddling = {
            .server_limit = at_server ? i : SIZE_MAX,
            .client_limit = at_server ? SIZE_MAX : i - sizes.to_server,
        };
        struct tls_pair pair;

        tls_pair_init(&pair, &members, ring);
        pair_meddle(&pair, &meddling);
        assert_false(tls_is_proven(pair.server.tls));
        if (!at_server) {
            assert_false(tls_is_proven(pair.client.tls));
        }
        assert_int_equal(pair.server.result, 0);
        assert_int_equal(pair.client.result, 0);
        tls_pair_deinit(&pair);
    }
    key_ring_free(ring);
}

/* Each byte is under the handshake's hash or a record's tag, but the version of the first record of
 * each side (RFC 8446, 5.1), which means nothing. The other end may have opened before. */
static void test_a_changed_handshake_opens_nothing(void **state) {
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    struct handshake_sizes sizes = handshake_measure(&members, ring);

    (void)state;
    for (size_t i = 0; i < sizes.to_server + sizes.to_client; i++) {
        bool at_server = i < sizes.to_server;
        size_t at = at_server ? i : i - sizes.to_server;
        struct tls_pair pair;

        if (at == 1 || at == 2) {
            continue;
        }
        tls_pair_init(&pair, &members, ring);
        struct meddling meddling = {SIZE_MAX, SIZE_MAX, at_server ? &pair.server : &pair.client,
                                    at};
        pair_meddle(&pair, &meddling);
        assert_false(tls_is_proven(pair.server.tls));
        if (!at_server) {
            assert_false(tls_is_proven(pair.client.tls));
        }
        tls_pair_deinit(&pair);
    }
    key_ring_free(ring);
}

static void test_a_changed_record_ends_the_link(void **state) {
    static const char text[] = "a record of some bytes";
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);

    (void)state;
    for (size_t at = 0; at < sizeof text + RECORD_OVERHEAD; at++) {
        struct tls_pair pair;

        tls_pair_init(&pair, &members, ring);
        tls_pair_run(&pair, TLS_WHOLE);
        pair.client.to_send = (struct bytes){(const uint8_t *)text, sizeof text};
        (void)tls_end_send(&pair.client, &pair.server);
        assert_int_equal(pair.server.wire_end - pair.server.wire_begin,
                         sizeof text + RECORD_OVERHEAD);
        pair.server.wire[pair.server.wire_begin + at] ^= 1;
        tls_pair_run(&pair, TLS_WHOLE);
        assert_int_equal(pair.server.plain_bytes, 0);
        if (pair.server.result == 0) {
            assert_true(at == 3 || at == 4); /* it waits for the end of a longer record */
        } else {
            assert_int_equal(pair.server.result, -ERR_MALFORMED);
            assert_true(pair.server.result < 0);
        }
        tls_pair_deinit(&pair);
    }
    key_ring_free(ring);
}

static void test_a_replayed_record_ends_the_link(void **state) {
    static const char text[] = "once";
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    struct tls_pair pair;

    (void)state;
    tls_pair_init(&pair, &members, ring);
    tls_pair_run(&pair, TLS_WHOLE);
    pair.client.to_send = (struct bytes){(const uint8_t *)text, sizeof text};
    (void)tls_end_send(&pair.client, &pair.server);
    size_t size = pair.server.wire_end - pair.server.wire_begin;
    memcpy(pair.server.wire + pair.server.wire_end, pair.server.wire + pair.server.wire_begin,
           size);
    pair.server.wire_end += size;
    tls_pair_run(&pair, TLS_WHOLE);
    assert_int_equal(pair.server.plain_bytes, sizeof text);
    assert_int_equal(pair.server.result, -ERR_MALFORMED);
    assert_string_equal(tls_end_words(&pair.server),
                        "what came was changed, or is none of its records");
    tls_pair_deinit(&pair);
    key_ring_free(ring);
}

/* An end alone that is given bytes of any kind behind the beginning of good ones. */
static void end_feed_garbage(struct tls_end *end, struct bytes good, struct prng *prng) {
    size_t size = prng_below(prng, 2000);

    for (size_t i = 0; i < size; i++) {
        end->wire[i] = (uint8_t)prng_next(prng);
    }
    memcpy(end->wire, good.data, MIN(size, prng_below(prng, good.size + 1)));
    end->wire_end = size;
    for (int turn = 0; turn < 3000 && end->result == 0; turn++) {
        (void)tls_end_receive(end, 1 + prng_below(prng, 700), 100);
        tls_sent(end->tls, tls_pending(end->tls).size);
        if (end->wire_begin == end->wire_end) {
            break;
        }
    }
    assert_false(tls_is_proven(end->tls));
    assert_int_equal(end->plain_bytes, 0);
}

static void test_any_bytes_open_nothing(void **state) {
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    struct tls_pair model;
    struct prng prng;

    (void)state;
    prng_init(&prng, 11);
    tls_pair_init(&model, &members, ring);
    tls_pair_run(&model, TLS_WHOLE);
    for (int turn = 0; turn < 1500; turn++) {
        struct tls_end *recorded = turn % 2 ? &model.server : &model.client;
        struct bytes good = {recorded->wire, recorded->wire_end};
        struct tls_end end;
        struct tls *tls = NULL;

        assert_int_equal(tls_new(turn % 2 ? model.serving : model.calling, 0, &tls), 0);
        tls_end_init(&end, tls);
        end_feed_garbage(&end, good, &prng);
        tls_end_deinit(&end);
    }
    tls_pair_deinit(&model);
    key_ring_free(ring);
}

static void test_any_bytes_behind_a_handshake_end_the_link(void **state) {
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    struct prng prng;

    (void)state;
    prng_init(&prng, 12);
    for (int turn = 0; turn < 200; turn++) {
        struct tls_pair pair;
        size_t size = 5 + prng_below(&prng, 3000);

        tls_pair_init(&pair, &members, ring);
        tls_pair_run(&pair, TLS_WHOLE);
        for (size_t i = 0; i < size; i++) {
            pair.server.wire[pair.server.wire_end + i] = (uint8_t)prng_next(&prng);
        }
        if (turn % 2) { /* well framed */
            uint8_t *head = pair.server.wire + pair.server.wire_end;

            memcpy(head, "\x17\x03\x03", 3);
            head[3] = (uint8_t)((size - 5) >> 8);
            head[4] = (uint8_t)(size - 5);
        }
        pair.server.wire_end += size;
        tls_pair_run(&pair, 100);
        assert_int_equal(pair.server.plain_bytes, 0);
        assert_true(pair.server.result < 0);
        tls_pair_deinit(&pair);
    }
    key_ring_free(ring);
}

static void test_other_languages_get_a_word(void **state) {
    static const struct {
        const char *bytes;
        const char *problem;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: shoal\r\n\r\n", "it speaks HTTP"},
        {"SSH-2.0-OpenSSH_9.2\r\n", "it does not speak TLS"},
        {"\1\0\0\0\x10\0\0\0 and so on, and so on", "it does not speak TLS"},
    };
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    struct tls_pair pair;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        tls_pair_init(&pair, &members, ring);
        memcpy(pair.server.wire, rows[i].bytes, 22);
        pair.server.wire_end = 22;
        (void)tls_end_receive(&pair.server, TLS_WHOLE, TLS_WHOLE);
        assert_int_equal(pair.server.result, -ERR_MALFORMED);
        assert_string_equal(tls_end_words(&pair.server), rows[i].problem);
        tls_pair_deinit(&pair);
    }
    key_ring_free(ring);
}

/* OpenSSL as others use it, over two memory BIOs. */
struct stranger {
    SSL_CTX *context;
    SSL *ssl;
    const char *name; /* of a PSK that it offers; NULL: none */
};

static int stranger_use_psk(SSL *ssl, const EVP_MD *digest, const unsigned char **ret_name,
                            size_t *ret_name_bytes, SSL_SESSION **ret_session) {
    static const unsigned char cipher_id[2] = {0x13, 0x01};
    static const unsigned char secret[SECRET_BYTES] = {1};
    const struct stranger *stranger = SSL_get_app_data(ssl);
    SSL_SESSION *session = SSL_SESSION_new();

    (void)digest;
    (void)SSL_SESSION_set1_master_key(session, secret, sizeof secret);
    (void)SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, cipher_id));
    (void)SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
    *ret_name = (const unsigned char *)stranger->name;
    *ret_name_bytes = strlen(stranger->name);
    *ret_session = session;
    return 1;
}

static void stranger_init(struct stranger *stranger, bool is_server, int version,
                          const char *name) {
    *stranger = (struct stranger){.name = name};
    stranger->context = SSL_CTX_new(TLS_method());
    assert_non_null(stranger->context);
    assert_int_equal(SSL_CTX_set_max_proto_version(stranger->context, version), 1);
    if (name) {
        SSL_CTX_set_psk_use_session_callback(stranger->context, stranger_use_psk);
    }
    stranger->ssl = SSL_new(stranger->context);
    assert_non_null(stranger->ssl);
    SSL_set_app_data(stranger->ssl, stranger);
    SSL_set_bio(stranger->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (is_server) {
        SSL_set_accept_state(stranger->ssl);
    } else {
        SSL_set_connect_state(stranger->ssl);
    }
}

static void stranger_deinit(struct stranger *stranger) {
    SSL_free(stranger->ssl);
    SSL_CTX_free(stranger->context);
}

/* Lets them talk until nothing moves. */
static void stranger_talk(struct stranger *stranger, struct tls_end *end) {
    for (int turn = 0; turn < 10; turn++) {
        (void)SSL_do_handshake(stranger->ssl);
        int size = BIO_read(SSL_get_wbio(stranger->ssl), end->wire + end->wire_end, 200000);
        end->wire_end += size > 0 ? (size_t)size : 0;
        while (tls_end_receive(end, 50, TLS_WHOLE)) {
        }
        struct bytes pending = tls_pending(end->tls);
        if (pending.size > 0) {
            (void)BIO_write(SSL_get_rbio(stranger->ssl), pending.data, (int)pending.size);
            tls_sent(end->tls, pending.size);
        }
    }
}

static void assert_stranger_refused(int version, const char *name, int result,
                                    const char *problem) {
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    struct stranger stranger;
    struct tls_pair pair;

    tls_pair_init(&pair, &members, ring);
    stranger_init(&stranger, false, version, name);
    stranger_talk(&stranger, &pair.server);
    assert_true(pair.server.result < 0);
    assert_string_equal(tls_end_words(&pair.server), problem);
    assert_int_equal(pair.server.result, result);
    assert_false(SSL_is_init_finished(stranger.ssl));
    stranger_deinit(&stranger);
    tls_pair_deinit(&pair);
    key_ring_free(ring);
}

static void test_strangers_are_refused(void **state) {
    static const char unknown[] = "it names no key of this kind";
    char name[1001];

    (void)state;
    memset(name, 'm', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_stranger_refused(TLS1_2_VERSION, NULL, -ERR_MALFORMED, "it does not speak TLS 1.3");
    assert_stranger_refused(TLS1_3_VERSION, NULL, -ERR_ACCESS, "it offers no key");
    assert_stranger_refused(TLS1_3_VERSION, "Client_identity", -ERR_ACCESS, unknown);
    assert_stranger_refused(TLS1_3_VERSION, "user:bob@0123456789abcdef", -ERR_ACCESS, unknown);
    assert_stranger_refused(TLS1_3_VERSION, name, -ERR_ACCESS, unknown);
    assert_stranger_refused(TLS1_3_VERSION, "member@0123456789abcdef", -ERR_ACCESS,
                            "its key is of another cluster, or was taken out of use");
}

static X509 *certificate_new(EVP_PKEY *key) {
    X509 *certificate = X509_new();

    assert_non_null(certificate);
    (void)X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    (void)X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    (void)X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    return certificate;
}

/* Who has a certificate and no key must not be taken for a server: a client that left certificates
 * to OpenSSL's default would give it all its data. */
static void test_a_server_with_a_certificate_is_refused(void **state) {
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = certificate_new(key);
    struct stranger stranger;
    struct tls_pair pair;

    (void)state;
    tls_pair_init(&pair, &members, ring);
    stranger_init(&stranger, true, TLS1_3_VERSION, NULL);
    assert_int_equal(SSL_use_certificate(stranger.ssl, certificate), 1);
    assert_int_equal(SSL_use_PrivateKey(stranger.ssl, key), 1);
    stranger_talk(&stranger, &pair.client);
    assert_true(pair.client.result < 0);
    assert_int_equal(pair.client.result, -ERR_ACCESS);
    assert_string_equal(tls_end_words(&pair.client), "it has a certificate and no key");
    stranger_deinit(&stranger);
    tls_pair_deinit(&pair);
    key_ring_free(ring);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void test_words_turned_back_to_their_sender_open_nothing(void **state) {
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    struct tls_pair pair;

    (void)state;
    tls_pair_init(&pair, &members, ring);
    (void)tls_end_receive(&pair.client, 0, 0);
    assert_true(tls_end_send(&pair.client, &pair.client));
    (void)tls_end_receive(&pair.client, TLS_WHOLE, TLS_WHOLE);
    assert_true(pair.client.result < 0);
    tls_pair_deinit(&pair);
    key_ring_free(ring);
}

/* An attacker cannot make a link go on under one key beyond what is safe for it. */
static void test_keys_change_under_way(void **state) {
    static const uint64_t records_per_key[] = {1, 2, 7};
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);
    uint8_t *text = malloc(MIB);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < MIB; i++) {
        text[i] = (uint8_t)(i * 13 >> 3);
    }
    for (size_t i = 0; i < ARRAY_SIZE(records_per_key); i++) {
        struct tls_pair pair;
        size_t overhead;

        tls_pair_init(&pair, &members, ring);
        tls_pair_run(&pair, TLS_WHOLE);
        tls_set_records_per_key(pair.client.tls, records_per_key[i]);
        tls_set_records_per_key(pair.server.tls, records_per_key[i]);
        overhead = pair.server.wire_end;
        pair.client.to_send = (struct bytes){text, MIB};
        pair.server.to_send = (struct bytes){text, MIB};
        tls_pair_run(&pair, 1000 + i);
        assert_int_equal(pair.client.plain_bytes, MIB);
        assert_int_equal(pair.server.plain_bytes, MIB);
        assert_memory_equal(pair.client.plain, text, MIB);
        assert_memory_equal(pair.server.plain, text, MIB);
        /* 64 records, and between each so many of them a word that the key changes. */
        overhead = pair.server.wire_end - overhead - MIB - 64 * RECORD_OVERHEAD;
        assert_int_equal(overhead, 63 / records_per_key[i] * 27);
        tls_pair_deinit(&pair);
    }
    free(text);
    key_ring_free(ring);
}

/* What stands behind a record may be plain, or a record that its reader has not asked for. */
static void test_nothing_is_taken_behind_a_record(void **state) {
    static const char text[] = "the last words";
    static const char behind[] = "and this stands behind, in plain";
    const struct key_file members = tls_members(1, 0);
    struct key_ring *ring = tls_ring(&members);

    (void)state;
    for (size_t piece = 1; piece < 2 * sizeof text + RECORD_OVERHEAD + sizeof behind; piece++) {
        struct tls_pair pair;

        tls_pair_init(&pair, &members, ring);
        tls_pair_run(&pair, TLS_WHOLE);
        pair.client.to_send = (struct bytes){(const uint8_t *)text, sizeof text};
        (void)tls_end_send(&pair.client, &pair.server);
        memcpy(pair.server.wire + pair.server.wire_end, behind, sizeof behind);
        pair.server.wire_end += sizeof behind;
        while (pair.server.plain_bytes < sizeof text) {
            assert_true(tls_end_receive(&pair.server, piece, TLS_WHOLE));
        }
        assert_memory_equal(pair.server.plain, text, sizeof text);
        assert_int_equal(pair.server.wire_end - pair.server.wire_begin, sizeof behind);
        assert_memory_equal(pair.server.wire + pair.server.wire_begin, behind, sizeof behind);
        tls_pair_deinit(&pair);
    }
    key_ring_free(ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cut_handshake_opens_nothing),
        cmocka_unit_test(test_a_changed_handshake_opens_nothing),
        cmocka_unit_test(test_a_changed_record_ends_the_link),
        cmocka_unit_test(test_a_replayed_record_ends_the_link),
        cmocka_unit_test(test_any_bytes_open_nothing),
        cmocka_unit_test(test_any_bytes_behind_a_handshake_end_the_link),
        cmocka_unit_test(test_other_languages_get_a_word),
        cmocka_unit_test(test_strangers_are_refused),
        cmocka_unit_test(test_a_server_with_a_certificate_is_refused),
        cmocka_unit_test(test_keys_change_under_way),
        cmocka_unit_test(test_nothing_is_taken_behind_a_record),
        cmocka_unit_test(test_words_turned_back_to_their_sender_open_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
