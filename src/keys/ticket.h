/* Tickets: what the manager gives to a session, so that a target lets it attach and asks nobody.
 *
 *     ticket: u64 name of the members' key | u32 number | u16 bytes of identity | identity | tag
 *
 * little-endian; the tag is the HMAC-SHA256 of session (u64), incarnation (u64) and the identity's
 * text, by the key "session" of that name and number. A ticket is good over connections that have
 * proven that identity, and as long as the members' key is there: the end of a session is no matter
 * of its ticket.
 *
 * Thread: the signer's.  Memory: the caller's. */
#pragma once
#include "keys/signer.h"

enum {
    TICKET_HEAD_BYTES = 14,
    TICKET_BYTES_MAX = TICKET_HEAD_BYTES + IDENTITY_BYTES_MAX + TAG_BYTES,
};
/* Of those who give tickets and those who check them; ring as for signer_init. */
void ticket_signer_init(struct signer *signer, const struct key_ring *ring);

struct ticket_session {
    uint64_t session;
    uint64_t incarnation;
};

/* Answers its length. */
size_t ticket_make(struct signer *signer, struct ticket_session session,
                   const struct identity *identity, uint8_t ret_ticket[TICKET_BYTES_MAX]);
/* -ERR_BAD_TICKET: none, another session's, or by no key that is here. Any bytes may be given. */
MUST_CHECK int ticket_check(struct signer *signer, struct ticket_session session,
                            struct bytes ticket, struct identity *ret_identity);
/* Whether one that was checked is by the key that signs now. */
bool ticket_is_newest(const struct signer *signer, struct bytes ticket);
/* Whether the session may attach over a connection that has proven this identity; NULL: a member's.
 * 0 without keys; -ERR_BAD_TICKET also for the good ticket of another identity. */
MUST_CHECK int ticket_admit(struct signer *signer, struct ticket_session session,
                            struct bytes ticket, const struct identity *proven);
