/* OpenSSL between two spans of memory; the contract is in tls.h.
 *
 * A BIO of our own reads from the span that tls_open was given and appends to `out`. OpenSSL reads
 * a record's five bytes, then the record, never beyond. */
#include "keys/tls.h"
#include "base/err.h"
#include <assert.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_MORE_BYTES = 256 }; /* of a record, beside its plaintext */

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
    uint32_t key; /* of the client's file */
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

static const char *refusal_words(int error) {
    return error == -ERR_NOT_FOUND ? "its key is of another cluster, or was taken out of use"
           : error == -ERR_ACCESS  ? "its key is revoked"
                                   : "it names no key of this kind";
}

static int key_of_server(SSL *ssl, const unsigned char *name, size_t size,
                         SSL_SESSION **ret_session) {
    struct tls *tls = SSL_get_app_data(ssl);
    struct psk psk;
    int r = key_ring_psk(tls->context->ring, (struct bytes){name, size}, &psk);

    *ret_session = NULL;
    if (r < 0) {
        tls->words = refusal_words(r);
        return 1; /* Without a key there is nothing else that would let it in. */
    }
    tls->identity = psk.identity;
    *ret_session = session_of(ssl, &psk.secret);
    secret_wipe(&psk, sizeof psk);
    return 1;
}

/* Contexts. */

static int context_new(const SSL_METHOD *role, struct tls_context **ret_context) {
    struct tls_context *context = calloc(1, sizeof *context);

    if (!context) {
        return -ERR_NO_MEMORY;
    }
    context->ssl = SSL_CTX_new(role);
    context->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "memory");
    if (!context->ssl || !context->method ||
        !SSL_CTX_set_min_proto_version(context->ssl, TLS1_3_VERSION) ||
        !SSL_CTX_set_max_proto_version(context->ssl, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(context->ssl, "TLS_AES_128_GCM_SHA256") ||
        !SSL_CTX_set1_groups_list(context->ssl, "X25519:P-256") ||
        !SSL_CTX_set_num_tickets(context->ssl, 0) ||
        !BIO_meth_set_read(context->method, span_read) ||
        !BIO_meth_set_write(context->method, span_write) ||
        !BIO_meth_set_ctrl(context->method, span_control) ||
        !BIO_meth_set_create(context->method, span_create)) {
        ERR_clear_error();
        tls_context_free(context);
        return -ERR_NO_MEMORY;
    }
    SSL_CTX_set_options(context->ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_NONE, NULL);
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
    tls->words = tls->words ? tls->words : words;
    return error;
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
    if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE) {
        return tls_fail(tls, -ERR_NO_MEMORY, "there is no memory for it");
    }
    if (tls->proven) {
        return tls_fail(tls, -ERR_MALFORMED, "what came was changed, or is none of its records");
    }
    if (tls->context->ring) {
        return tls_fail(tls, -ERR_ACCESS, "it has no key, or not the key that it names");
    }
    /* An alert of the other side, or a proof that is none. */
    return tls_fail(
        tls, ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER ? -ERR_MALFORMED : -ERR_ACCESS,
        "the key is not taken there");
}

int tls_new(struct tls_context *context, uint32_t attempt, struct tls **ret_tls) {
    struct tls *tls = calloc(1, sizeof *tls);
    BIO *bio = NULL;

    if (tls) {
        tls->context = context;
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
        secret_wipe(tls->staged, sizeof tls->staged);
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
        if (r == 0) {
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
        size_t skipped = MIN(from, parts[i].size);
        struct bytes rest = {parts[i].data + skipped, parts[i].size - skipped};

        from -= skipped;
        if (rest.size == 0) {
            continue;
        }
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
    return &tls->identity;
}

int tls_error(const struct tls *tls, const char **ret_words) {
    *ret_words = tls->error ? tls->words : NULL;
    return tls->error;
}
