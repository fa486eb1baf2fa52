/* Tickets; the picture is in ticket.h. */
#include "keys/ticket.h"
#include "base/endian.h"
#include "base/err.h"

enum { AT_NUMBER = 8, AT_IDENTITY_BYTES = 12, SIGNED_HEAD_BYTES = 16 };

struct signed_bytes {
    uint8_t data[SIGNED_HEAD_BYTES + IDENTITY_BYTES_MAX];
    size_t size;
};

void ticket_signer_init(struct signer *signer, const struct key_ring *ring) {
    /* How old its number is doesn't matter: what ends is the session, not its ticket. */
    signer_init(signer, ring, "session", SIGNER_ANY_AGE);
}

static void signed_fill(struct ticket_session session, struct bytes identity,
                        struct signed_bytes *ret_bytes) {
    store_le64(ret_bytes->data, session.session);
    store_le64(ret_bytes->data + 8, session.incarnation);
    memcpy(ret_bytes->data + SIGNED_HEAD_BYTES, identity.data, identity.size);
    ret_bytes->size = SIGNED_HEAD_BYTES + identity.size;
}

size_t ticket_make(struct signer *signer, struct ticket_session session,
                   const struct identity *identity, uint8_t ret_ticket[TICKET_BYTES_MAX]) {
    char text[IDENTITY_BYTES_MAX + 1];
    size_t size = identity_print(identity, text);
    struct key_use use = signer_use(signer);
    struct signed_bytes bytes;

    signed_fill(session, (struct bytes){(const uint8_t *)text, size}, &bytes);
    signer_sign(signer, use, (struct bytes){bytes.data, bytes.size},
                ret_ticket + TICKET_HEAD_BYTES + size);
    store_le64(ret_ticket, use.name.value);
    store_le32(ret_ticket + AT_NUMBER, use.number);
    store_le16(ret_ticket + AT_IDENTITY_BYTES, (uint16_t)size);
    memcpy(ret_ticket + TICKET_HEAD_BYTES, text, size);
    return TICKET_HEAD_BYTES + size + TAG_BYTES;
}

static struct key_use use_of(struct bytes ticket) {
    return (struct key_use){{load_le64(ticket.data)}, load_le32(ticket.data + AT_NUMBER)};
}

int ticket_check(struct signer *signer, struct ticket_session session, struct bytes ticket,
                 struct identity *ret_identity) {
    struct identity identity;
    struct signed_bytes bytes;

    if (ticket.size < TICKET_HEAD_BYTES + TAG_BYTES || ticket.size > TICKET_BYTES_MAX ||
        load_le16(ticket.data + AT_IDENTITY_BYTES) != ticket.size - TICKET_HEAD_BYTES - TAG_BYTES) {
        return -ERR_BAD_TICKET;
    }
    const struct bytes text = {ticket.data + TICKET_HEAD_BYTES,
                               ticket.size - TICKET_HEAD_BYTES - TAG_BYTES};
    const struct bytes tag = {text.data + text.size, TAG_BYTES};
    signed_fill(session, text, &bytes);
    if (signer_check(signer, use_of(ticket), (struct bytes){bytes.data, bytes.size}, tag) < 0 ||
        identity_parse(text, &identity) < 0) {
        return -ERR_BAD_TICKET;
    }
    *ret_identity = identity;
    return 0;
}

bool ticket_is_newest(const struct signer *signer, struct bytes ticket) {
    struct key_use use = use_of(ticket);
    struct key_use newest = signer_use(signer);

    return use.name.value == newest.name.value && use.number == newest.number;
}

int ticket_admit(struct signer *signer, struct ticket_session session, struct bytes ticket,
                 const struct identity *proven) {
    const struct identity member = IDENTITY_OF_MEMBER;
    struct identity identity;

    if (!signer_has_keys(signer)) {
        return 0;
    }
    int r = ticket_check(signer, session, ticket, &identity);
    return r == 0 && !identity_is(&identity, proven ? proven : &member) ? -ERR_BAD_TICKET : r;
}
