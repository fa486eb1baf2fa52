/* Memory for buffers: mapped at once, had when populated, in huge pages where there are any. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when address space is missing. Costs no memory yet. */
void *channel_memory_map(size_t bytes);
/* False when memory is missing; touching it never faults on a missing page from here on. */
bool channel_memory_populate(void *memory, size_t bytes);
void channel_memory_unmap(void *memory, size_t bytes);
/* Bytes that the machine has in all; 0: not known. */
uint64_t channel_memory_of_machine(void);
