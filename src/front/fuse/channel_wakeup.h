/* What it costs here to wake a thread on another CPU that is idle. */
#pragma once
#include "base/types.h"
#include "env/env.h"

/* There and back, nanoseconds, between two CPUs that the calling thread may use: the median of some
 * rounds, which take a millisecond where it costs much. 0: there are no two, one round took over
 * 2 ms as others compute there, or no thread or descriptor is to be had. The caller's CPUs are as
 * before. env: for the time. */
uint64_t wakeup_measure_ns(struct env *env);
