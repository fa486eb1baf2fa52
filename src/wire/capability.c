/* A new field of struct capability belongs here too, else anyone could change it. */
#include "wire/capability.h"
#include "base/endian.h"
#include <assert.h>

static_assert(sizeof(struct capability) == 96, "each field is signed");

void capability_signed_bytes(const struct capability *capability,
                             uint8_t ret_bytes[CAPABILITY_SIGNED_BYTES]) {
    store_le64(ret_bytes, capability->ino.value);
    store_le32(ret_bytes + 8, capability->generation);
    store_le32(ret_bytes + 12, capability->rights);
    store_le64(ret_bytes + 16, capability->max_offset);
    store_le32(ret_bytes + 24, capability->truncate_seq);
    store_le64(ret_bytes + 28, capability->truncate_size);
    store_le64(ret_bytes + 36, capability->session);
    store_le64(ret_bytes + 44, capability->session_incarnation);
    store_le64(ret_bytes + 52, capability->map_version);
    store_le32(ret_bytes + 60, capability->key_number);
    store_le64(ret_bytes + 64, capability->key_name);
}
