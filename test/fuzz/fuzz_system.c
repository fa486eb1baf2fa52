/* Lines of /proc and /sys. Texts lie in memory of just their size. */
#include "env/env_fault.h"
#include "env/env_groups.h"
#include "env/env_signals.h"
#include "front/fuse/channel_aside.h"
#include "front/fuse/channel_uring.h"
#include "fuzz.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUPS_MAX = 4, FIELDS_MAX = 64, UNTOUCHED = -77 };

static char *text_new(struct bytes in) {
    char *text = malloc(in.size + 1);

    assert(text);
    fuzz_string(in, text, in.size + 1);
    return text;
}

/* However many there are, no more are written than there is room for. */
void fuzz_process_groups(struct bytes in) {
    uint32_t groups[GROUPS_MAX + 1];
    char *line = text_new(in);
    size_t count = SIZE_MAX;

    memset(groups, 0xa5, sizeof groups);
    if (env_groups_parse(line, GROUPS_MAX, groups, &count)) {
        assert(strncmp(line, "Groups:", 7) == 0 && count <= in.size);
    } else {
        assert(count == SIZE_MAX && groups[0] == 0xa5a5a5a5);
    }
    assert(groups[GROUPS_MAX] == 0xa5a5a5a5);
    free(line);
}

void seed_process_groups(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "Groups:\t4 24 27 4294967295 1000 1001 \n");
    fuzz_seed_text(seeds, "Groups:\t\n");
}

/* A line at a time. A set that is printed reads as the same. */
void fuzz_process_signals(struct bytes in) {
    struct env_signals signals = {0}, same = {0};
    char *text = text_new(in);
    char line[64];

    for (char *at = text, *end; at; at = end) {
        end = strchr(at, '\n');
        if (end) {
            *end++ = '\0';
        }
        env_signals_parse(at, &signals);
    }
    const struct {
        const char *name;
        uint64_t set;
    } sets[] = {{"SigPnd", signals.own},
                {"ShdPnd", signals.shared},
                {"SigBlk", signals.blocked},
                {"SigIgn", signals.ignored}};
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        snprintf(line, sizeof line, "%s:\t%016" PRIx64, sets[i].name, sets[i].set);
        env_signals_parse(line, &same);
    }
    assert(memcmp(&same, &signals, sizeof same) == 0);
    assert(!env_signals_wait(&signals) || signals.own != 0 || signals.shared != 0);
    free(text);
}

void seed_process_signals(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "Name:\tshoald\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000004000\n"
                          "SigBlk:\t0000000000004000\nSigIgn:\t0000000000001000\n");
}

/* u64 the address, the line: the path lies in it. */
void fuzz_mapping_line(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    uint64_t address = wire_take_number(&cursor, 8);
    char *line = text_new(fuzz_rest(&cursor));
    const char *path = env_fault_path(line, (uintptr_t)address);

    assert(!path || (path > line && path < line + strlen(line) && *path == '/'));
    free(line);
}

void seed_mapping_line(const struct fuzz_seeds *seeds) {
    static const char line[] =
        "7f12a000-7f12f000 r--s 00000000 08:01 1234      /var/lib/shoal/mdt0/base.mdb";
    uint8_t space[sizeof line + 8];
    struct buffer out = {space, 0, sizeof space};

    wire_give_number(&out, 0x7f12b123, 8);
    wire_give(&out, line, sizeof line - 1);
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

/* u8 the field, the text. */
void fuzz_thread_stat(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    unsigned field = (unsigned)wire_take_number(&cursor, 1) % FIELDS_MAX;
    char *text = text_new(fuzz_rest(&cursor));
    int number = UNTOUCHED;
    char first = aside_stat_field(text, field, &number);
    const char *name_end = strrchr(text, ')');

    assert(first == 0 || (name_end && strchr(name_end, first)));
    assert(name_end || number == UNTOUCHED);
    free(text);
}

void seed_thread_stat(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "\x24"
                          "17 (a) b) R 1 17 17 0 -1 4194304 0 0 0 0 1 2 3 4 20 0 1 0 99 1000 5 "
                          "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 17 3 0 0 0");
}

/* It says of every CPU below the answer that there may be one. */
void fuzz_cpu_list(struct bytes in) {
    char *list = text_new(in);
    unsigned count = channel_uring_cpus(list);

    assert(count <= UINT16_MAX && (count == 0 || strchr(list, '0')));
    free(list);
}

void seed_cpu_list(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "0-63\n");
    fuzz_seed_text(seeds, "0,1-3,4-127");
}
