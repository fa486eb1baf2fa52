/* The contract is in layouts.h. */
#include "layouts.h"
#include <shoal/shoal.h>

enum { LAYOUTS_EVERY = 8, LAYOUTS_FILES = 4 };

void layouts_init(struct layouts *layouts, uint64_t seed) {
    prng_init(&layouts->prng, seed ^ UINT64_C(0x6c61796f757473));
    layouts->draws = prng_chance(&layouts->prng, 1, 3);
}

bool layouts_is_due(const struct layouts *layouts, uint64_t number) {
    return layouts->draws && number % LAYOUTS_EVERY == 1;
}

uint32_t layouts_file(struct layouts *layouts, uint32_t file_count) {
    return file_count - 1 -
           (uint32_t)prng_below(&layouts->prng, MIN(file_count, (uint32_t)LAYOUTS_FILES));
}

void layouts_ask(struct layouts *layouts, uint64_t ino, struct shoal_request *ret_request) {
    static const int32_t counts[] = {1, 2, -1};

    *ret_request = (struct shoal_request){
        .operation = SHOAL_LAYOUT_SET,
        .ino = ino,
        .layout = {.chunk_bytes = 65536U << prng_below(&layouts->prng, 3),
                   .stripe_count = counts[prng_below(&layouts->prng, ARRAY_SIZE(counts))]}};
}
