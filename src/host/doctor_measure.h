/* What settings bring on this machine, measured within about a second, without changing one: a CPU
 * that must not halt is kept awake by a thread of the lowest class meanwhile. Blocking; it keeps
 * two CPUs busy. */
#pragma once
#include "base/types.h"

/* Medians; 0: could not be measured. */
struct doctor_measures {
    uint64_t wake_idle_ns;   /* of a thread on another CPU, which has been idle for 100 us */
    uint64_t wake_asleep_ns; /* likewise, for 5 ms */
    uint64_t wake_awake_ns;  /* likewise, which does not halt */
    uint64_t touch_small_ns; /* 1 MiB of new memory, in pages of 4 KiB */
    uint64_t touch_huge_ns;  /* in huge pages */
    uint64_t flush_ns;       /* 4 KiB are written over and flushed, in the directory */
    char flush_disk[32];     /* which lies on this disk; empty: on none that the kernel names */
};

/* directory: where a file without a name is made; NULL: no disk is measured. */
void doctor_measure(const char *directory, struct doctor_measures *ret_measures);
