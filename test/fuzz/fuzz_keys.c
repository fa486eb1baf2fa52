/* Texts and tags that prove who one is. Each identity, and each key file but for its comments, has
 * one text, so what is read prints as it came. What is refused leaves its output alone. */
#include "fuzz.h"
#include "keys/ticket.h"
#include <stdlib.h>

enum { UNTOUCHED = 0xa5, CHECK_DIGITS = 16 };

static const struct ticket_session session = {0x1122334455667788, 42};

/* A members' file of one key, the same each time. */
static struct key_file members_make(void) {
    struct secret secret;
    struct key_file file;

    for (size_t i = 0; i < sizeof secret.bytes; i++) {
        secret.bytes[i] = (uint8_t)(3 * i + 1);
    }
    key_file_make(&secret, &file);
    return file;
}

/* With one revoked serial; there for good. */
static struct key_ring *ring_get(void) {
    static struct key_ring *ring;

    if (!ring) {
        const struct key_file members = members_make();
        int r = key_ring_new(&members, &ring);

        assert(r == 0);
        r = key_ring_revoke(ring, 7);
        assert(r == 0);
    }
    return ring;
}

static void check_untouched(const void *output, size_t size) {
    for (size_t i = 0; i < size; i++) {
        assert(((const uint8_t *)output)[i] == UNTOUCHED);
    }
}

void fuzz_identity(struct bytes in) {
    char text[IDENTITY_BYTES_MAX + 1];
    struct identity identity;

    memset(&identity, UNTOUCHED, sizeof identity);
    if (identity_parse(in, &identity) < 0) {
        check_untouched(&identity, sizeof identity);
        return;
    }
    size_t size = identity_print(&identity, text);
    assert(text[size] == '\0' && fuzz_is_same((struct bytes){(const uint8_t *)text, size}, in));
}

void seed_identity(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "member");
    fuzz_seed_text(seeds, "mount:00000000000000ff");
    fuzz_seed_text(seeds, "mount:0123456789abcdef:ro:squash=root");
}

/* Puts the last check of a key file right. */
static void check_repair(uint8_t *text, size_t size) {
    static const char word[] = "check ";
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[TAG_BYTES];

    for (size_t at = size; at-- > 0;) {
        if (size - at >= strlen(word) + CHECK_DIGITS && memcmp(text + at, word, 6) == 0) {
            sha256((struct bytes){text, at}, digest);
            for (size_t i = 0; i < CHECK_DIGITS; i++) {
                text[at + strlen(word) + i] =
                    (uint8_t)digits[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
            }
            return;
        }
    }
}

/* The first byte says whether the check is put right. */
void fuzz_key_file(struct bytes in) {
    static uint8_t text[FUZZ_INPUT_BYTES_MAX];
    struct wire_cursor cursor = fuzz_cursor(in);
    bool repairs = wire_take_number(&cursor, 1) & 1;
    char problem[KEY_PROBLEM_BYTES];
    char printed[KEY_FILE_BYTES_MAX];
    struct key_file file, again;

    if (cursor.size > 0) {
        memcpy(text, cursor.data, cursor.size);
    }
    if (repairs) {
        check_repair(text, cursor.size);
    }
    memset(&file, UNTOUCHED, sizeof file);
    memset(problem, UNTOUCHED, sizeof problem);
    int r = key_file_parse((struct bytes){text, cursor.size}, &file, problem);
    if (r < 0) {
        assert(r == -ERR_MALFORMED || r == -ERR_CORRUPT || r == -ERR_NEWER_FORMAT);
        assert(problem[0] && memchr(problem, '\0', sizeof problem));
        check_untouched(&file, sizeof file);
        return;
    }
    assert(file.key_count > 0 && file.key_count <= KEY_FILE_KEYS_MAX);
    size_t size = key_file_print(&file, printed);
    r = key_file_parse((struct bytes){(const uint8_t *)printed, size}, &again, problem);
    assert(r == 0 && again.key_count == file.key_count);
    assert(identity_is(&again.identity, &file.identity));
    for (uint32_t i = 0; i < file.key_count; i++) {
        assert(again.keys[i].name.value == file.keys[i].name.value);
        assert(tag_is(&again.keys[i].secret, &file.keys[i].secret, SECRET_BYTES));
    }
}

static void seed_file(const struct fuzz_seeds *seeds, const struct key_file *file) {
    char text[1 + KEY_FILE_BYTES_MAX] = {1};
    size_t size = key_file_print(file, text + 1);

    fuzz_seed(seeds, (struct bytes){(const uint8_t *)text, size + 1});
}

void seed_key_file(const struct fuzz_seeds *seeds) {
    const struct key_file members = members_make();
    const struct identity mount = {.kind = IDENTITY_MOUNT, .serial = 5, .read_only = true};
    struct secret secret = members.keys[0].secret;
    struct key_file newer, derived;
    struct key_file both = members;
    char problem[KEY_PROBLEM_BYTES];

    secret.bytes[0]++;
    key_file_make(&secret, &newer);
    int r = key_file_add(&both, &newer, problem);
    assert(r == 0);
    key_file_derive(&both, &mount, &derived);
    seed_file(seeds, &members);
    seed_file(seeds, &both);
    seed_file(seeds, &derived);
}

void fuzz_key_ring(struct bytes in) {
    char name[PSK_NAME_BYTES_MAX + 1];
    const struct key_ring *ring = ring_get();
    struct psk psk;

    memset(&psk, UNTOUCHED, sizeof psk);
    int r = key_ring_psk(ring, in, &psk);
    if (r < 0) {
        assert(r == -ERR_MALFORMED || r == -ERR_NOT_FOUND);
        check_untouched(&psk, sizeof psk);
        return;
    }
    size_t size = psk_name_print(&psk.identity, key_ring_signing(ring), name);
    assert(fuzz_is_same((struct bytes){(const uint8_t *)name, size}, in));
}

void seed_key_ring(const struct fuzz_seeds *seeds) {
    const struct identity identities[] = {{.kind = IDENTITY_MEMBER},
                                          {.kind = IDENTITY_MOUNT, .serial = 7},
                                          {.kind = IDENTITY_MOUNT, .serial = 8}};
    char name[PSK_NAME_BYTES_MAX + 1];

    for (size_t i = 0; i < ARRAY_SIZE(identities); i++) {
        size_t size = psk_name_print(&identities[i], key_ring_signing(ring_get()), name);

        fuzz_seed(seeds, (struct bytes){(const uint8_t *)name, size});
    }
}

/* The first byte says whether the tag is put right, as far as the ring has the key. */
static void tag_repair(struct signer *signer, struct bytes ticket, uint8_t *tag) {
    uint8_t message[16 + TICKET_BYTES_MAX];
    size_t identity_bytes = ticket.size - TICKET_HEAD_BYTES - TAG_BYTES;
    const struct key_use use = {{load_le64(ticket.data)}, load_le32(ticket.data + 8)};

    store_le64(message, session.session);
    store_le64(message + 8, session.incarnation);
    memcpy(message + 16, ticket.data + TICKET_HEAD_BYTES, identity_bytes);
    if (signer_takes(signer, use)) {
        signer_sign(signer, signer_use(signer), (struct bytes){message, 16 + identity_bytes}, tag);
    }
}

void fuzz_ticket(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    bool repairs = wire_take_number(&cursor, 1) & 1;
    uint8_t copy[TICKET_BYTES_MAX];
    struct bytes ticket = fuzz_rest(&cursor);
    struct identity identity;
    struct signer signer;

    ticket_signer_init(&signer, ring_get());
    if (repairs && ticket.size >= TICKET_HEAD_BYTES + TAG_BYTES && ticket.size <= sizeof copy) {
        memcpy(copy, ticket.data, ticket.size);
        tag_repair(&signer, ticket, copy + ticket.size - TAG_BYTES);
        ticket.data = copy;
    }
    memset(&identity, UNTOUCHED, sizeof identity);
    if (ticket_check(&signer, session, ticket, &identity) < 0) {
        check_untouched(&identity, sizeof identity);
    } else {
        /* Nobody has the tag without the key, so it was put right, or is a seed's. */
        const struct ticket_session other = {session.session, session.incarnation + 1};

        assert(ticket_admit(&signer, session, ticket, &identity) == 0);
        assert(ticket_check(&signer, other, ticket, &identity) == -ERR_BAD_TICKET);
        (void)ticket_is_newest(&signer, ticket);
    }
    signer_deinit(&signer);
}

void seed_ticket(const struct fuzz_seeds *seeds) {
    const struct identity mount = {.kind = IDENTITY_MOUNT, .serial = 5, .squash_root = true};
    uint8_t ticket[1 + TICKET_BYTES_MAX] = {1};
    struct signer signer;

    ticket_signer_init(&signer, ring_get());
    size_t size = ticket_make(&signer, session, &IDENTITY_OF_MEMBER, ticket + 1);
    fuzz_seed(seeds, (struct bytes){ticket, size + 1});
    size = ticket_make(&signer, session, &mount, ticket + 1);
    fuzz_seed(seeds, (struct bytes){ticket, size + 1});
    signer_deinit(&signer);
}
