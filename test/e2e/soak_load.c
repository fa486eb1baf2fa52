/* Works on a mount, as it is told, and compares.
 *
 *     soak_load KIND DIRECTORY STATE SEED BYTES
 *     soak_load probe FILE STATE
 *
 * Kinds: direct64k, direct1m (equal O_DIRECT writes), sync4k (each with an fsync), mixed (writes of
 * any size, cuts, fsyncs), names (create, rename, unlink, chmod), many (as many files as BYTES has
 * pages, made and removed). Commands on standard input, each answered by a line:
 *
 *     check   compares all: "checked", or "full" when a look was ENOSPC
 *     go      works until there is no daemon: "dead"; or until the next command
 *     hold    ends with the step at hand: "held"
 *
 * "FAILED ..." is what was found. probe: touch, chmod, write and fsync, each until it is no longer
 * ENOSPC. */
#include "soak_load.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RETRY_MS = 20 };

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static struct load_call *newest_call(struct load *load) {
    return &load->state->journal[(load->state->calls - 1) % LOAD_JOURNAL_CALLS];
}

void load_begin(struct load *load, uint64_t offset, uint64_t length, const char *format, ...) {
    va_list arguments;

    load->state->calls++;
    struct load_call *call = newest_call(load);
    *call = (struct load_call){.began_ns = now_ns(), .offset = offset, .length = length};
    va_start(arguments, format);
    vsnprintf(call->what, sizeof call->what, format, arguments);
    va_end(arguments);
    load->state->began_ns = call->began_ns;
}

void load_may_fail(struct load *load, int error) {
    load->ignored_error = error;
}

int64_t load_end(struct load *load, int64_t result) {
    struct load_call *call = newest_call(load);
    int error = result < 0 ? errno : 0;
    int ignored = load->ignored_error;

    call->ended_ns = now_ns();
    call->result = result < 0 ? -error : result;
    load->state->began_ns = 0;
    load->ignored_error = 0;
    if (result >= 0) {
        return result;
    }
    if (error == ENOTCONN || error == ECONNABORTED) {
        return LOAD_DEAD;
    }
    if (error == ENOSPC) {
        load->state->refused++;
        return LOAD_FULL;
    }
    if (error == ignored) {
        return LOAD_WRONG;
    }
    return load_complain(load, "%s at %llu, %llu bytes: %s", call->what,
                         (unsigned long long)call->offset, (unsigned long long)call->length,
                         strerror(error));
}

void load_acknowledge(struct load *load) {
    load->state->acknowledged++;
}

int load_complain(struct load *load, const char *format, ...) {
    va_list arguments;

    if (load->problem[0] == 0) {
        va_start(arguments, format);
        vsnprintf(load->problem, sizeof load->problem, format, arguments);
        va_end(arguments);
    }
    return LOAD_WRONG;
}

void load_fill(uint8_t *bytes, size_t length, uint64_t number) {
    for (size_t at = 0; at < length; at += sizeof number) {
        uint64_t word = (number + at) * UINT64_C(0x9e3779b97f4a7c15);

        word = at == 0 ? number : word ^ word >> 29;
        memcpy(bytes + at, &word, length - at < sizeof word ? length - at : sizeof word);
    }
}

static bool is_told(int wait_ms) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&input, 1, wait_ms) != 0;
}

static void answer(const struct load *load, int result, const char *good) {
    if (result == LOAD_WRONG) {
        printf("FAILED %s: %s\n", load->directory, load->problem);
    } else {
        puts(result == LOAD_DEAD ? "dead" : good);
    }
    fflush(stdout);
}

/* Answers unless a command ends it. */
static void work_on(struct load *load, const struct load_work *work) {
    int result = 0;

    while (result != LOAD_DEAD && result != LOAD_WRONG) {
        if (is_told(result == LOAD_FULL ? RETRY_MS : 0)) {
            return;
        }
        result = work->step(work->context);
        result = load->problem[0] != 0 ? LOAD_WRONG : result;
    }
    answer(load, result, "");
}

static void obey(struct load *load, const struct load_work *work) {
    char line[16];

    /* Unbuffered, so that is_told sees what is not read yet. */
    setvbuf(stdin, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "check\n") == 0) {
            uint64_t acknowledged = load->state->acknowledged;
            int result = work->check(work->context);

            result = load->problem[0] != 0 ? LOAD_WRONG : result;
            if (result == 0) {
                load->state->checked = acknowledged;
            }
            answer(load, result, result == LOAD_FULL ? "full" : "checked");
        } else if (strcmp(line, "go\n") == 0) {
            work_on(load, work);
        } else {
            answer(load, 0, "held");
        }
    }
}

enum probe_step { PROBE_TOUCH, PROBE_CHMOD, PROBE_WRITE, PROBE_FSYNC, PROBE_STEPS };

static int64_t probe_step(struct load *load, enum probe_step step, int fd, const uint8_t *bytes) {
    static const char *const names[] = {"touch", "chmod", "write", "fsync"};

    load_begin(load, 0, 0, "probe: %s", names[step]);
    switch (step) {
    case PROBE_TOUCH:
        return load_end(load, futimens(fd, NULL));
    case PROBE_CHMOD:
        return load_end(load, fchmod(fd, 0640));
    case PROBE_WRITE:
        return load_end(load, pwrite(fd, bytes, 4096, 0));
    default:
        return load_end(load, fsync(fd));
    }
}

static int probe(struct load *load) {
    static uint8_t bytes[4096];
    int64_t result = LOAD_FULL;
    int fd;

    while (result == LOAD_FULL) {
        load_begin(load, 0, 0, "probe: create");
        result = load_end(load, open(load->directory, O_CREAT | O_RDWR, 0600));
        is_told(result == LOAD_FULL ? RETRY_MS : 0);
    }
    fd = (int)result;
    for (enum probe_step step = 0; result >= 0 && step < PROBE_STEPS; step++) {
        do {
            result = probe_step(load, step, fd, bytes);
            is_told(result == LOAD_FULL ? RETRY_MS : 0);
        } while (result == LOAD_FULL);
    }
    if (fd >= 0) {
        close(fd);
    }
    answer(load, result < 0 ? (int)result : 0, "done");
    return 0;
}

static struct load_state *map_state(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(struct load_state)) == 0) {
        at = mmap(NULL, sizeof(struct load_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    return at == MAP_FAILED ? NULL : at;
}

int main(int count, char **words) {
    struct load load = {0};

    if (count != 4 && count != 6) {
        fprintf(stderr, "soak_load KIND DIRECTORY STATE SEED BYTES\n");
        return 2;
    }
    umask(0);
    load.directory = words[2];
    load.state = map_state(words[3]);
    if (!load.state) {
        perror(words[3]);
        return 1;
    }
    if (count == 4) {
        return probe(&load);
    }
    prng_init(&load.prng, strtoull(words[4], NULL, 10));
    uint64_t bytes = strtoull(words[5], NULL, 10);
    struct load_work work = data_load(&load, words[1], bytes);
    if (!work.context) {
        work = names_load(&load, words[1], bytes);
    }
    if (!work.context) {
        fprintf(stderr, "soak_load: no kind %s, or no memory\n", words[1]);
        return 2;
    }
    obey(&load, &work);
    return 0;
}
