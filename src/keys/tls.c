/* OpenSSL between two spans of memory; the contract is in tls.h.
 *
 * A BIO of our own reads from the span that tls_open was given and appends to `out`. OpenSSL reads
 * a record's five bytes, then the record, never beyond.
 *
 * External PSK: RFC 8446, 2.2 and 4.2.11; what is to be heeded with it: RFC 9257. Against the
 * Selfie attack, which turns a member's words back to it, a greeting names the node that is meant.
 */
#include "keys/tls.h"
#include "base/err.h"
#include <assert.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORD_MORE_BYTES = 256,      /* of a record, beside its plaintext */
    NAMES_MAX = 4,                /* of keys that a server looks at; a client of ours says one */
    CERTIFICATE_BYTES_MAX = 1024, /* that a client reads before it refuses them */
};

/* RFC 8446, 5.5 allows 2^24.5 full records of AES-GCM by one key: 400 GB, minutes of a link. */
#define RECORDS_PER_KEY (UINT64_C(1) << 23)

struct tls_context {
    SSL_CTX *ssl;
    BIO_METHOD *method;
    const struct key_ring *ring; /* of a server */
    struct key_file file;        /* of a client */
};

struct tls {
    struct tls_context *context;
    SSL *ssl;
    struct bytes in; /* only within tls_open */
    bool proven;
    int error;
    const char *words;
    int refusal;         /* why the name was not taken that a client said last; 0: it was */
    uint32_t name_count; /* that it has said */
    uint64_t records_sealed, records_per_key; /* sealed: by the key of now */
    uint32_t key;                             /* of the client's file */
    struct identity identity;
    size_t out_start, out_end;
    uint8_t staged[TLS_RECORD_BYTES];
    uint8_t out[TLS_OUT_BYTES];
};

/* The two spans. */

static int span_read(BIO *bio, char *data, int size) {
    struct tls *tls = BIO_get_data(bio);
    size_t taken = MIN((size_t)size, tls->in.size);

    BIO_clear_retry_flags(bio);
    if (taken == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(data, tls->in.data, taken);
    tls->in.data += taken;
    tls->in.size -= taken;
    return (int)taken;
}

static size_t out_room(const struct tls *tls) {
    return TLS_OUT_BYTES - (tls->out_end - tls->out_start);
}

static int span_write(BIO *bio, const char *data, int size) {
    struct tls *tls = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (out_room(tls) < (size_t)size) {
        BIO_set_retry_write(bio);
        return -1;
    }
    if (TLS_OUT_BYTES - tls->out_end < (size_t)size) {
        memmove(tls->out, tls->out + tls->out_start, tls->out_end - tls->out_start);
        tls->out_end -= tls->out_start;
        tls->out_start = 0;
    }
    memcpy(tls->out + tls->out_end, data, (size_t)size);
    tls->out_end += (size_t)size;
    return size;
}

static long span_control(BIO *bio, int command, long number, void *pointer) {
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int span_create(BIO *bio) {
    BIO_set_init(bio, 1);
    return 1;
}

/* Keys. */

/* What OpenSSL takes a key as: a session that could be resumed. NULL: no memory. */
static SSL_SESSION *session_of(SSL *ssl, const struct secret *secret) {
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    SSL_SESSION *session = SSL_SESSION_new();

    if (session && (!cipher || !SSL_SESSION_set1_master_key(session, secret->bytes, SECRET_BYTES) ||
                    !SSL_SESSION_set_cipher(session, cipher) ||
                    !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))) {
        SSL_SESSION_free(session);
        session = NULL;
    }
    return session;
}

static int key_of_client(SSL *ssl, const EVP_MD *digest, const unsigned char **ret_name,
                         size_t *ret_size, SSL_SESSION **ret_session) {
    struct tls *tls = SSL_get_app_data(ssl);
    const struct key_file *file = &tls->context->file;
    const struct key_file_key *key = &file->keys[tls->key];
    static _Thread_local char name[PSK_NAME_BYTES_MAX + 1]; /* copied by the caller at once */
    struct secret psk = key->secret;

    (void)digest;
    if (file->identity.kind == IDENTITY_MEMBER) {
        key_derive_psk(&key->secret, &file->identity, &psk);
    }
    *ret_session = session_of(ssl, &psk);
    secret_wipe(&psk, sizeof psk);
    *ret_size = psk_name_print(&file->identity, key->name, name);
    *ret_name = (const unsigned char *)name;
    return *ret_session != NULL;
}

static int key_of_server(SSL *ssl, const unsigned char *name, size_t size,
                         SSL_SESSION **ret_session) {
    struct tls *tls = SSL_get_app_data(ssl);
    struct psk psk;

    *ret_session = NULL;
    if (++tls->name_count > NAMES_MAX) {
        return 0; /* One hello has room for thousands, and each costs a look at our lists. */
    }
    tls->refusal = key_ring_psk(tls->context->ring, (struct bytes){name, size}, &psk);
    if (tls->refusal < 0) {
        return 1; /* Without a key there is nothing else that would let it in. */
    }
    tls->identity = psk.identity;
    *ret_session = session_of(ssl, &psk.secret);
    secret_wipe(&psk, sizeof psk);
    return 1;
}

/* Who has no key may have a certificate; none is looked at. */
static int certificate_refuse(X509_STORE_CTX *store, void *nothing) {
    (void)nothing;
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

/* Contexts. */

/* All that matters is said here, as a machine's openssl.cnf may say otherwise. */
static bool context_set(SSL_CTX *ssl) {
    SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_clear_options(ssl, SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ssl, 0);
    SSL_CTX_set_max_cert_list(ssl, CERTIFICATE_BYTES_MAX);
    SSL_CTX_set_cert_verify_callback(ssl, certificate_refuse, NULL);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) &&
           SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) &&
           SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256") &&
           SSL_CTX_set1_groups_list(ssl, "X25519:P-256") && SSL_CTX_set_num_tickets(ssl, 0) &&
           SSL_CTX_set_max_early_data(ssl, 0) && SSL_CTX_set_recv_max_early_data(ssl, 0);
}

static int context_new(const SSL_METHOD *role, struct tls_context **ret_context) {
    struct tls_context *context = calloc(1, sizeof *context);

    if (!context) {
        return -ERR_NO_MEMORY;
    }
    context->ssl = SSL_CTX_new(role);
    context->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "memory");
    if (!context->ssl || !context->method || !context_set(context->ssl) ||
        !BIO_meth_set_read(context->method, span_read) ||
        !BIO_meth_set_write(context->method, span_write) ||
        !BIO_meth_set_ctrl(context->method, span_control) ||
        !BIO_meth_set_create(context->method, span_create)) {
        ERR_clear_error();
        tls_context_free(context);
        return -ERR_NO_MEMORY;
    }
    *ret_context = context;
    return 0;
}

int tls_context_serve(const struct key_ring *ring, struct tls_context **ret_context) {
    int r = context_new(TLS_server_method(), ret_context);

    if (r == 0) {
        (*ret_context)->ring = ring;
        SSL_CTX_set_psk_find_session_callback((*ret_context)->ssl, key_of_server);
    }
    return r;
}

int tls_context_call(const struct key_file *file, struct tls_context **ret_context) {
    int r = context_new(TLS_client_method(), ret_context);

    if (r == 0) {
        (*ret_context)->file = *file;
        SSL_CTX_set_psk_use_session_callback((*ret_context)->ssl, key_of_client);
        SSL_CTX_set_verify((*ret_context)->ssl, SSL_VERIFY_PEER, NULL);
    }
    return r;
}

void tls_context_free(struct tls_context *context) {
    if (context) {
        SSL_CTX_free(context->ssl);
        BIO_meth_free(context->method);
        key_file_wipe(&context->file);
        free(context);
    }
}

/* Machines. */

static int tls_fail(struct tls *tls, int error, const char *words) {
    tls->error = error;
    tls->words = words;
    return error;
}

/* What OpenSSL says, in our words. Its alerts are what the other side has said. */
static const struct {
    int reason;
    int error;
    const char *words;
} failures[] = {
    {ERR_R_MALLOC_FAILURE, -ERR_NO_MEMORY, "there is no memory for it"},
    {SSL_R_UNSUPPORTED_PROTOCOL, -ERR_MALFORMED, "it does not speak TLS 1.3"},
    {SSL_R_WRONG_VERSION_NUMBER, -ERR_MALFORMED, "it does not speak TLS"},
    {SSL_R_HTTP_REQUEST, -ERR_MALFORMED, "it speaks HTTP"},
    {SSL_R_BINDER_DOES_NOT_VERIFY, -ERR_ACCESS, "it has not the key that it names"},
    {SSL_R_CERTIFICATE_VERIFY_FAILED, -ERR_ACCESS, "it has a certificate and no key"},
    {SSL_R_EXCESSIVE_MESSAGE_SIZE, -ERR_ACCESS, "it has a certificate and no key"},
    {SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, -ERR_ACCESS, "it offers no key"},
    {SSL_R_NO_SHARED_CIPHER, -ERR_ACCESS, "it offers no key"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, -ERR_ACCESS, "the key is not taken there"},
    {SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER, -ERR_ACCESS, "the key is not taken there"},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR, -ERR_ACCESS, "the key is not taken there"},
};

static const char *refusal_words(int refusal) {
    return refusal == -ERR_NOT_FOUND ? "its key is of another cluster, or was taken out of use"
                                     : "it names no key of this kind";
}

static int failure_tell(struct tls *tls, int reason) {
    if (tls->proven) {
        return reason == ERR_R_MALLOC_FAILURE
                   ? tls_fail(tls, -ERR_NO_MEMORY, "there is no memory for it")
                   : tls_fail(tls, -ERR_MALFORMED,
                              "what came was changed, or is none of its records");
    }
    /* Without a key OpenSSL misses a certificate, of which it speaks in several ways. */
    if (tls->refusal < 0) {
        return tls_fail(tls, -ERR_ACCESS, refusal_words(tls->refusal));
    }
    for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
        if (failures[i].reason == reason) {
            return tls_fail(tls, failures[i].error, failures[i].words);
        }
    }
    return tls_fail(tls, -ERR_MALFORMED, "what came is no handshake, or was changed");
}

/* What the last call of OpenSSL, which answered no success, means: 0: it wants more bytes, or room
 * for what it writes. */
static int tls_result(struct tls *tls, int answer) {
    int what = SSL_get_error(tls->ssl, answer);
    unsigned long code = ERR_peek_last_error();

    ERR_clear_error();
    switch (what) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return tls_fail(tls, -ERR_CLOSED, "the other side has ended it");
    default:
        break;
    }
    return failure_tell(tls, ERR_GET_REASON(code));
}

int tls_new(struct tls_context *context, uint32_t attempt, struct tls **ret_tls) {
    struct tls *tls = calloc(1, sizeof *tls);
    BIO *bio = NULL;

    if (tls) {
        tls->context = context;
        tls->records_per_key = RECORDS_PER_KEY;
        tls->ssl = SSL_new(context->ssl);
        bio = BIO_new(context->method);
    }
    if (!tls || !tls->ssl || !bio) {
        ERR_clear_error();
        BIO_free(bio);
        tls_free(tls);
        return -ERR_NO_MEMORY;
    }
    BIO_set_data(bio, tls);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_app_data(tls->ssl, tls);
    if (context->ring) {
        SSL_set_accept_state(tls->ssl);
    } else {
        tls->key = attempt % context->file.key_count;
        tls->identity = context->file.identity;
        SSL_set_connect_state(tls->ssl);
    }
    *ret_tls = tls;
    return 0;
}

void tls_free(struct tls *tls) {
    if (tls) {
        SSL_free(tls->ssl);
        secret_wipe(tls, sizeof *tls);
        free(tls);
    }
}

static int handshake_go_on(struct tls *tls) {
    ERR_clear_error();
    int answer = SSL_do_handshake(tls->ssl);

    if (answer != 1) {
        return tls_result(tls, answer);
    }
    /* One that did not come about by a key would have proven nothing. */
    if (!SSL_session_reused(tls->ssl)) {
        return tls_fail(tls, -ERR_ACCESS, "it came about without a key");
    }
    tls->proven = true;
    return 0;
}

/* 1: something was put into the part, 0: more must come first. */
static int part_open(struct tls *tls, struct buffer *part) {
    size_t opened = 0;

    ERR_clear_error();
    int answer =
        SSL_read_ex(tls->ssl, part->data + part->size, part->capacity - part->size, &opened);

    if (answer != 1) {
        return tls_result(tls, answer);
    }
    part->size += opened;
    return 1;
}

int tls_open(struct tls *tls, struct bytes *in, struct buffer *parts, size_t part_count,
             size_t *ret_opened) {
    size_t at = 0, opened = 0;
    int r = tls->error;

    tls->in = *in;
    if (r == 0 && !tls->proven) {
        r = handshake_go_on(tls);
    }
    while (r >= 0 && tls->proven && at < part_count) {
        size_t before = parts[at].size;

        if (before == parts[at].capacity) {
            at++;
            continue;
        }
        r = part_open(tls, &parts[at]);
        opened += parts[at].size - before;
        /* What follows a record may be plain: who has read this one says so. */
        if (r == 0 || SSL_pending(tls->ssl) == 0) {
            break;
        }
    }
    *in = tls->in;
    tls->in = (struct bytes){0};
    *ret_opened = opened;
    /* What was opened before it failed is good; the next call tells. */
    return r < 0 && opened == 0 ? r : 0;
}

static int record_seal(struct tls *tls, const uint8_t *data, size_t size) {
    size_t written = 0;

    ERR_clear_error();
    if (tls->records_sealed == tls->records_per_key) {
        (void)SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED); /* goes with the record */
        tls->records_sealed = 0;
    }
    tls->records_sealed++;
    int answer = SSL_write_ex(tls->ssl, data, size, &written);

    if (answer != 1) {
        int r = tls_result(tls, answer);

        return r < 0 ? r : tls_fail(tls, -ERR_MALFORMED, "a record did not fit");
    }
    assert(written == size);
    return 0;
}

/* The next record's plaintext: in place where it lies in one part, else put together. */
static struct bytes record_take(struct tls *tls, const struct bytes *parts, size_t part_count,
                                size_t from) {
    size_t staged = 0;

    for (size_t i = 0; i < part_count && staged < TLS_RECORD_BYTES; i++) {
        if (from >= parts[i].size) {
            from -= parts[i].size;
            continue;
        }
        struct bytes rest = {parts[i].data + from, parts[i].size - from};
        from = 0;
        if (staged == 0 && (rest.size >= TLS_RECORD_BYTES || i + 1 == part_count)) {
            return (struct bytes){rest.data, MIN(rest.size, (size_t)TLS_RECORD_BYTES)};
        }
        rest.size = MIN(rest.size, TLS_RECORD_BYTES - staged);
        memcpy(tls->staged + staged, rest.data, rest.size);
        staged += rest.size;
    }
    return (struct bytes){tls->staged, staged};
}

int tls_seal(struct tls *tls, const struct bytes *parts, size_t part_count, size_t *ret_sealed) {
    size_t sealed = 0;
    int r = tls->error == -ERR_CLOSED ? 0 : tls->error;

    while (r == 0 && tls->proven && out_room(tls) >= TLS_RECORD_BYTES + RECORD_MORE_BYTES) {
        struct bytes record = record_take(tls, parts, part_count, sealed);

        if (record.size == 0) {
            break;
        }
        r = record_seal(tls, record.data, record.size);
        sealed += r == 0 ? record.size : 0;
    }
    *ret_sealed = sealed;
    return r;
}

struct bytes tls_pending(const struct tls *tls) {
    return (struct bytes){tls->out + tls->out_start, tls->out_end - tls->out_start};
}

void tls_sent(struct tls *tls, size_t bytes) {
    assert(bytes <= tls->out_end - tls->out_start);
    tls->out_start += bytes;
    if (tls->out_start == tls->out_end) {
        tls->out_start = tls->out_end = 0;
    }
}

bool tls_is_proven(const struct tls *tls) {
    return tls->proven;
}

const struct identity *tls_identity(const struct tls *tls) {
    assert(tls->proven);
    return &tls->identity;
}

int tls_error(const struct tls *tls, const char **ret_words) {
    *ret_words = tls->error ? tls->words : NULL;
    return tls->error;
}

void tls_set_records_per_key(struct tls *tls, uint64_t record_count) {
    tls->records_per_key = record_count;
}
