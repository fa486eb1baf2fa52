/* Scaling: what N clients get together by three formulas side by side, how deep the queues at the
 * targets are, and how many RPCs a client should keep in flight.
 *
 * Curves. S(N) = (1-f) N B / (1 + (N-1) C) is quoted widely; its f only scales, so more metadata
 * targets raise its limit by almost nothing. Amdahl's law as throughput and Gunther's Universal
 * Scalability Law take their coefficients from the inputs, or from points that were measured; then
 * B is fitted too (least_squares.h).
 *
 * Queues. A target with Q requests at it delivers at most min(Tmax, Q/R0): beyond the knee a deeper
 * queue makes requests wait, but takes no bandwidth away. It is a bound, as no target serves that
 * evenly. The quoted T/(1 + Q/Qmax)^2 has the target fastest when idle, and at a quarter with Qmax
 * requests.
 *
 * RPCs in flight. What one client needs to fill its NIC alone, and all need together to keep the
 * targets busy, by Little's law; never below Lustre's default, as servers bound their own load. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct scaling_inputs {
#include "planner/def_inputs.inc"
#include "planner/scaling.def"
};

struct scaling_outputs {
#include "planner/def_outputs.inc"
#include "planner/scaling.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void scaling_plan(const struct data *data, const struct scaling_inputs *in,
                  struct scaling_outputs *out);
/* The words that are commands. */
void scaling_words(const struct data *data, const struct scaling_inputs *in,
                   struct scaling_outputs *out);
