/* What libFuzzer calls (https://llvm.org/docs/LibFuzzer.html): fuzz NAME [OPTION...] [CORPUS...].
 * Its names and types are libFuzzer's. */
#include "fuzz.h"
#include <stdio.h>
#include <stdlib.h>

FOREIGN_SIGNATURE int LLVMFuzzerInitialize(int *count, char ***words);
FOREIGN_SIGNATURE int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_target *target;

/* Takes the name off the words, which are libFuzzer's from then on. */
FOREIGN_SIGNATURE int LLVMFuzzerInitialize(int *count, char ***words) {
    target = *count > 1 ? fuzz_target_find((*words)[1]) : NULL;
    if (!target) {
        fprintf(stderr, "fuzz: names are those of test/fuzz/targets.def\n");
        exit(2);
    }
    (*words)[1] = (*words)[0];
    (*words)++;
    (*count)--;
    return 0;
}

FOREIGN_SIGNATURE int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    target->run((struct bytes){data, size});
    return 0;
}
