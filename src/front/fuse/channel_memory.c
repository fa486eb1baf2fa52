/* Memory for buffers: mapped at once, had when populated, in huge pages where there are any. */
#include "front/fuse/channel_memory.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

void *channel_memory_map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

bool channel_memory_populate(void *memory, size_t bytes) {
    volatile unsigned char *page = memory;

    if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;
    for (size_t i = 0; i < bytes; i += 4096)
        page[i] = 0;
    return true;
}

void channel_memory_unmap(void *memory, size_t bytes) {
    (void)munmap(memory, bytes);
}

uint64_t channel_memory_of_machine(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);

    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}
