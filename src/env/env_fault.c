/* The handler of SIGBUS. It looks the address up in the list of the process's mappings, and calls
 * nothing but what a handler may call:
 *
 *     7f12a000-7f12f000 r--s 00000000 08:01 1234      /var/lib/shoal/mdt0/base.mdb */
#include "env/env_fault.h"
#include "base/types.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 4352, PART_BYTES = 512 };

static void say(const char *text) {
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static const char *hex_read(const char *text, uintptr_t *ret_value) {
    *ret_value = 0;
    for (; (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'f'); text++) {
        *ret_value = *ret_value << 4 | (uintptr_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
    }
    return text;
}

const char *env_fault_path(const char *line, uintptr_t address) {
    uintptr_t begin;
    uintptr_t end;
    const char *rest = hex_read(line, &begin);

    (void)hex_read(*rest == '-' ? rest + 1 : rest, &end);
    return address >= begin && address < end ? strchr(line, '/') : NULL;
}

static void bus_error(int signal_number, siginfo_t *info, void *context) {
    static char line[LINE_BYTES_MAX];
    char part[PART_BYTES];
    size_t size = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    (void)context;
    while (fd >= 0 && (got = read(fd, part, sizeof part)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (part[i] != '\n') {
                line[size] = part[i];
                size += size + 1 < sizeof line;
                continue;
            }
            line[size] = '\0';
            size = 0;
            const char *path = env_fault_path(line, (uintptr_t)info->si_addr);
            if (path) {
                say("shoal: ");
                say(path);
                say(" cannot be read: the disk reported an error, or the file was made shorter: "
                    "see to the disk, then start again\n");
                _exit(ENV_FAULT_EXIT_STATUS);
            }
        }
    }
    /* No file's: it comes again, and does what it does without us. */
    (void)signal(signal_number, SIG_DFL);
}

void env_fault_watch(void) {
    struct sigaction action = {.sa_sigaction = bus_error, .sa_flags = SA_SIGINFO};

    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
}
