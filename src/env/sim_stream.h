/* Streams of a simulated world, with the faults of real ones: env_stream.h over two queues of bytes
 * a connection, which know each other by address.
 *
 *     send -> segments -> delay, in order -> cut off? nobody there? -> receive -> room again
 *
 * Addresses are names of the world's, not of a machine: who listens last at any port of a host has
 * that host. What send takes, how bytes are cut, when they come and how many a receive finds is
 * drawn from the world's generator.
 *
 *     sim_kill     its kernel ends its streams: each is closed or reset, a delay later
 *     sim_power    silence; who has bytes under way to it gets a reset once it is back
 *     sim_stop     nothing of the process runs; its streams stay, until its buffers are full
 *     a cut        bytes wait and arrive after it, or the sender gives up; a reset is lost
 *
 * Unlike packets no byte is lost, doubled or reordered while the stream lives: that is TCP's work.
 *
 * It counts in the world (sim_count): streams opened, refused, full, accepted late, reset, reset at
 * random, given up, killed, lost with power; segments slow, cut off, to nobody; resets cut off. */
#pragma once
#include "env/env_sim.h"
#include "env/env_stream.h"

/* May be changed at any time. At the start: 10 to 50 us, 64 KiB, segments to 16 KiB, no faults. */
struct sim_stream_faults {
    uint64_t delay_ns_min; /* of a segment */
    uint64_t delay_ns_max;
    uint32_t slow_per_million; /* so many take up to slow_ns longer */
    uint64_t slow_ns;
    uint32_t reset_per_million; /* so many segments end their stream for both sides */
    uint64_t give_up_ns;        /* of bytes that can't come through; 0: never */
    uint32_t buffer_bytes;      /* a direction, of connections from now on */
    uint32_t segment_bytes_max;
};

struct sim_stream_faults *sim_stream_faults(struct sim *sim);
/* What `from` sends does not reach `to` from now on; or does again, also what waits. */
void sim_stream_cut(struct sim_process *from, struct sim_process *to, bool cut);
/* Ends all cuts. */
void sim_stream_heal(struct sim *sim);
/* Streams beyond which connections wait; UINT32_MAX at the start. */
void sim_stream_limit(struct sim_process *process, uint32_t stream_limit);
/* Whom the other ends of its Unix sockets see; 0 and 0 at the start. */
void sim_stream_identity(struct sim_process *process, uint32_t uid, uint32_t gid);
/* Connections of the world that have not ended on both sides. */
size_t sim_stream_count(const struct sim *sim);
