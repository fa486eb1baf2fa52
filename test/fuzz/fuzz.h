/* Decoders under bytes that nobody has thought of.
 *
 *     targets.def -> fuzz_NAME   takes any bytes; asserts what must hold whatever they are
 *                    seed_NAME   gives bytes that real encoders have made, to begin with
 *
 * An input of fuzz_NAME often begins with a few bytes that choose (an opcode, a length, whether a
 * checksum is put right), which a wire_cursor takes; the rest is what is decoded. Nothing that a
 * fuzz_NAME does may depend on the inputs before.
 *
 * Two programs call them: engine.c under libFuzzer, for as long as one likes, and corpus.c, which
 * plays seeds, a fixed number of changes of them and found/NAME/WHAT.hex, as a unit test.
 *
 * Thread: one.  Memory: inputs lie in memory of just their size, so that a sanitizer sees each byte
 * that is read beyond. */
#pragma once
#include "base/endian.h"
#include "base/err.h"
#include "wire/wire_cursor.h"
#include <assert.h>

enum { FUZZ_INPUT_BYTES_MAX = 65536 };

/* Where seeds go. */
struct fuzz_seeds {
    void (*take)(void *context, struct bytes seed);
    void *context;
};

#define FUZZ(name, what)                                                                           \
    void fuzz_##name(struct bytes in);                                                             \
    void seed_##name(const struct fuzz_seeds *seeds);
#include "targets.def"
#undef FUZZ

struct fuzz_target {
    const char *name;
    const char *what;
    void (*run)(struct bytes in);
    void (*seed)(const struct fuzz_seeds *seeds);
};

extern const struct fuzz_target fuzz_targets[];
extern const size_t fuzz_target_count;
/* NULL when there is none. */
const struct fuzz_target *fuzz_target_find(const char *name);

static inline void fuzz_seed(const struct fuzz_seeds *seeds, struct bytes seed) {
    seeds->take(seeds->context, seed);
}
static inline void fuzz_seed_text(const struct fuzz_seeds *seeds, const char *text) {
    fuzz_seed(seeds, (struct bytes){(const uint8_t *)text, strlen(text)});
}
static inline struct wire_cursor fuzz_cursor(struct bytes in) {
    return (struct wire_cursor){in.data, in.size, false};
}
/* What the cursor has not taken. */
static inline struct bytes fuzz_rest(const struct wire_cursor *cursor) {
    return (struct bytes){cursor->data, cursor->size};
}
static inline bool fuzz_is_same(struct bytes a, struct bytes b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
/* Whether part lies within whole; an empty one may be anywhere. */
static inline bool fuzz_is_within(struct bytes part, struct bytes whole) {
    return part.size == 0 || (part.data >= whole.data && part.size <= whole.size &&
                              (size_t)(part.data - whole.data) <= whole.size - part.size);
}
/* The bytes as a string, cut to the space and at a NUL. */
static inline void fuzz_string(struct bytes in, char *text, size_t size) {
    size_t length = MIN(in.size, size - 1);

    if (length > 0) {
        memcpy(text, in.data, length);
    }
    text[length] = '\0';
}
