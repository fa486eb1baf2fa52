/* What is signed of a capability: all fields but the signature, in the order of the struct,
 * little-endian and without gaps. The signature is the first 16 bytes of the tag. */
#pragma once
#include "wire/wire_types.h"

enum { CAPABILITY_SIGNED_BYTES = 72, CAPABILITY_SIGNATURE_BYTES = 16 };

void capability_signed_bytes(const struct capability *capability,
                             uint8_t ret_bytes[CAPABILITY_SIGNED_BYTES]);
