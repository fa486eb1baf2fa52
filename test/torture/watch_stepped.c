/* Stores as the processor makes them.
 *
 *     store -> SIGSEGV: opens the page, asks for a trap behind the next instruction
 *           -> the instruction runs
 *           -> SIGTRAP: what differs from what the trace knows was stored; closes the page
 *
 * A store over the end of a page faults twice before it runs. A repeated instruction is trapped
 * behind each time and faults anew. What stores what is there already leaves no event: no crash can
 * tell. A page of a data area is only opened, until the next event has compared it.
 *
 * Both signals come from the instruction at hand, which is never inside of the allocator or of
 * stdio: these do not store into regions. So the handlers may use what any function may. */
#include "watch.h"
#include "fail.h"
#include "kv/log_format.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

const size_t watch_touched_bytes = BLOCK_BYTES; /* a page */

bool machine_is_stepped(void) {
    return true;
}

#if defined(__x86_64__)

enum {
    PAGES_MAX = 2,        /* that one instruction stores to */
    STORE_BYTES_MAX = 64, /* by one instruction */
    TRAP_FLAG = 1 << 8,   /* of the flags: traps behind the next instruction */
};

static struct machine *watched;
static uint64_t pages[PAGES_MAX]; /* open for the instruction at hand, by their place */
static size_t page_count;
static struct sigaction fault_before;

bool machine_is_possible(void) {
    return true;
}

static void page_protect(const struct machine *machine, uint64_t place, int protection) {
    uint8_t *page = (uint8_t *)(uintptr_t)machine->readable + place;

    if (mprotect(page, BLOCK_BYTES, protection) != 0) {
        abort();
    }
}

void watch_untouch(struct machine *machine, uint64_t place) {
    page_protect(machine, place, PROT_READ);
}

/* As the header in the region says; it comes before all else that is stored there. */
static bool is_of_data_area(const struct machine *machine, uint64_t place) {
    uint64_t at = place - offsetof(struct arena, regions);
    uint64_t offset = at % MACHINE_REGION_BYTES_MAX;
    const struct ring_header *header =
        (const void *)machine->arena->regions[at / MACHINE_REGION_BYTES_MAX];

    return offset >= BLOCK_BYTES && header->magic == LOG_RING_MAGIC &&
           offset - BLOCK_BYTES >= header->record_bytes;
}

/* Another fault than one of ours is that of who asked before us, when it comes again. */
static void on_fault(int number, siginfo_t *info, void *context) {
    const uint8_t *first = (const uint8_t *)watched->readable->regions;
    const uint8_t *at = info->si_addr;
    ucontext_t *interrupted = context;
    int kept_errno = errno;

    if (at < first || at >= first + sizeof watched->readable->regions || page_count == PAGES_MAX) {
        (void)sigaction(number, &fault_before, NULL);
        return;
    }
    uint64_t place = (uint64_t)(at - (const uint8_t *)watched->readable);
    uint64_t page = place / BLOCK_BYTES * BLOCK_BYTES;
    if (is_of_data_area(watched, page)) {
        machine_touch(watched, page);
    } else {
        pages[page_count++] = page;
        interrupted->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    }
    page_protect(watched, page, PROT_READ | PROT_WRITE);
    errno = kept_errno;
}

/* The bytes of a page that are no longer what the trace knows. */
static void page_compare(uint64_t page, uint64_t *first, uint64_t *end) {
    const uint8_t *now = (const uint8_t *)watched->arena + page;
    const uint8_t *known = machine_known(watched, page);
    size_t from = 0, to = BLOCK_BYTES;

    if (memcmp(now, known, BLOCK_BYTES) == 0) {
        return;
    }
    while (now[from] == known[from]) {
        from++;
    }
    while (now[to - 1] == known[to - 1]) {
        to--;
    }
    *first = MIN(*first, page + from);
    *end = MAX(*end, page + to);
}

static void on_trap(int number, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    uint64_t first = UINT64_MAX, end = 0;
    int kept_errno = errno;

    (void)number;
    (void)info;
    for (size_t i = 0; i < page_count; i++) {
        page_compare(pages[i], &first, &end);
        page_protect(watched, pages[i], PROT_READ);
    }
    page_count = 0;
    interrupted->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    if (end > 0) {
        MUST(end - first <= STORE_BYTES_MAX, "one instruction has stored %llu bytes",
             (unsigned long long)(end - first));
        machine_stored(watched, first, (size_t)(end - first));
    }
    errno = kept_errno;
}

void watch_begin(struct machine *machine) {
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

    watched = machine;
    page_count = 0;
    if (sigaction(SIGSEGV, &fault, &fault_before) != 0 || sigaction(SIGTRAP, &trap, NULL) != 0) {
        abort();
    }
}

void watch_end(void) {
    (void)sigaction(SIGSEGV, &fault_before, NULL);
    (void)signal(SIGTRAP, SIG_DFL);
    watched = NULL;
}

#else

bool machine_is_possible(void) {
    return false;
}

void watch_begin(struct machine *machine) {
    (void)machine;
}

void watch_end(void) {
}

void watch_untouch(struct machine *machine, uint64_t place) {
    (void)machine;
    (void)place;
}

#endif
