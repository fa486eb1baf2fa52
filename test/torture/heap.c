/* The program's allocations, counted: the linker leads them here (--wrap). */
#include "heap.h"
#include <stdatomic.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *old);

static atomic_size_t blocks;

static void *counted(void *block) {
    blocks += block != NULL;
    return block;
}

void *__wrap_malloc(size_t size) {
    return counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size) {
    void *block = __real_realloc(old, size);

    return old ? block : counted(block);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return counted(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *old) {
    blocks -= old != NULL;
    __real_free(old);
}

size_t heap_blocks(void) {
    return blocks;
}
