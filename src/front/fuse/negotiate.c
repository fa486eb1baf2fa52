/* INIT: what the kernel offers, what we take. */
#include "front/fuse/negotiate.h"
#include "base/types.h"

#define FLAGS_NEEDED (ABI_INIT_BIG_WRITES | ABI_INIT_MAX_PAGES | ABI_INIT_ATOMIC_TRUNCATE)
#define FLAGS_TAKEN                                                                                \
    (FLAGS_NEEDED | ABI_INIT_ASYNC_READ | ABI_INIT_AUTO_INVALIDATE | ABI_INIT_READDIRPLUS |        \
     ABI_INIT_READDIRPLUS_AUTO | ABI_INIT_ASYNC_DIRECT | ABI_INIT_PARALLEL_DIRECTORY |             \
     ABI_INIT_KILL_PRIVILEGES | ABI_INIT_EXTENDED | ABI_INIT_DIRECT_MMAP | ABI_INIT_URING |        \
     ABI_INIT_EXPORT)

enum { INIT_IN_BYTES_MIN = 16, INIT_IN_BYTES_EXTENDED = 20, READAHEAD_BYTES_MAX = 1 << 20 };

int negotiate(const struct negotiate_options *options, const struct abi_init_in *in,
              size_t in_bytes, struct abi_init_out *ret_out, struct features *ret_features) {
    uint32_t page_bytes = MAX(options->page_bytes, (uint32_t)ABI_PAGE_BYTES);
    uint64_t taken;

    if (in_bytes < INIT_IN_BYTES_MIN)
        return -ERR_MALFORMED;
    if (in->major > ABI_MAJOR) {
        *ret_out = (struct abi_init_out){.major = ABI_MAJOR, .minor = ABI_MINOR_MAX};
        return -ERR_CONFLICT;
    }
    if (in->major < ABI_MAJOR || in->minor < ABI_MINOR_MIN)
        return -ERR_NOT_SUPPORTED;

    taken = in->flags;
    if ((taken & ABI_INIT_EXTENDED) && in_bytes >= INIT_IN_BYTES_EXTENDED)
        taken |= (uint64_t)in->flags_high << 32;
    taken &= FLAGS_TAKEN;
    if ((taken & FLAGS_NEEDED) != FLAGS_NEEDED)
        return -ERR_NOT_SUPPORTED;
    if (options->refuse_direct)
        taken &= ~ABI_INIT_DIRECT_MMAP;
    if (!options->take_uring)
        taken &= ~ABI_INIT_URING;

    *ret_out = (struct abi_init_out){
        .major = ABI_MAJOR,
        .minor = MIN(in->minor, (uint32_t)ABI_MINOR_MAX),
        .readahead_bytes_max = MIN(in->readahead_bytes_max, (uint32_t)READAHEAD_BYTES_MAX),
        .flags = (uint32_t)taken,
        .flags_high = (uint32_t)(taken >> 32),
        .background_max = (uint16_t)options->background_max,
        .congestion_threshold = (uint16_t)(options->background_max - options->background_max / 4),
        .write_bytes_max = options->write_bytes_max,
        .time_granularity_ns = 1,
        .pages_max = (uint16_t)MAX(options->write_bytes_max / page_bytes, 1U),
    };
    *ret_features = (struct features){
        .minor = ret_out->minor,
        .write_bytes_max = options->write_bytes_max,
        .direct = taken & ABI_INIT_DIRECT_MMAP,
        .uring = taken & ABI_INIT_URING,
        .parallel_writes = in->minor >= ABI_MINOR_PARALLEL_WRITES,
    };
    return 0;
}
