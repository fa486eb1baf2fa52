/* Numbers that shall agree to a relative tolerance; cmocka's own compares floats. */
#pragma once
#include <math.h>

#define assert_near(got, wanted, tolerance)                                                        \
    do {                                                                                           \
        double got_ = (got);                                                                       \
        double wanted_ = (wanted);                                                                 \
        if (!(fabs(got_ - wanted_) <= (tolerance) * fmax(fabs(wanted_), 1e-300))) {                \
            fail_msg("%s is %.17g, not %.17g", #got, got_, wanted_);                               \
        }                                                                                          \
    } while (0)
