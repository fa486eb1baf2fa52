/* Files that are read through memory: a page that the disk cannot give is a signal there, not an
 * error. The process then ends with one line that names the file, as nothing can be known of the
 * instruction that met it. */
#pragma once

enum { ENV_FAULT_EXIT_STATUS = 1 };

/* From now on, in the whole process. */
void env_fault_watch(void);
