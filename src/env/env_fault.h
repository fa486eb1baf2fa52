/* Files that are read through memory: a page that the disk cannot give is a signal there, not an
 * error. The process then ends with one line that names the file, as nothing can be known of the
 * instruction that met it. */
#pragma once
#include <stdint.h>

enum { ENV_FAULT_EXIT_STATUS = 1 };

/* In a line of /proc/self/maps: the file's path, when it is of a file that is mapped around the
 * address. NULL: it is of none, or is none. Calls nothing but what a handler may. */
const char *env_fault_path(const char *line, uintptr_t address);
/* From now on, in the whole process. */
void env_fault_watch(void);
