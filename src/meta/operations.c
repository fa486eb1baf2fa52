/* The table from opcode to operation. */
#include "meta/operations.h"

static const struct operation operations[OPCODE_COUNT] = {
#define O(name, NAME, rows, record_bytes, flags)                                                   \
    [OP_##NAME] = {op_##name, rows, record_bytes, flags},
    OPERATIONS(O)
#undef O
};

const struct operation *operation_of(uint16_t opcode) {
    return opcode < OPCODE_COUNT && operations[opcode].run ? &operations[opcode] : NULL;
}
