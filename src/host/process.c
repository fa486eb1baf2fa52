/* Processes and signals: kill, sigtimedwait. */
#include "host/process.h"
#include "env/errno_map.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static sigset_t stop_signals(void) {
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    return signals;
}

void process_signals_block(void) {
    sigset_t signals = stop_signals();
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

int process_signal_wait(uint64_t timeout_ns, int *ret_signal) {
    sigset_t signals = stop_signals();
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / NS_PER_S),
        .tv_nsec = (long)(timeout_ns % NS_PER_S),
    };
    int signal_number;

    /* A handler of another signal, or being stopped and continued, starts the time anew. */
    do {
        signal_number = sigtimedwait(&signals, NULL, timeout_ns == UINT64_MAX ? NULL : &timeout);
    } while (signal_number < 0 && errno == EINTR);
    if (signal_number < 0) {
        return errno == EAGAIN ? -ERR_TIMED_OUT : err_from_errno(errno);
    }
    *ret_signal = signal_number;
    return 0;
}

const char *process_variable(const char *name) {
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

int process_own_id(void) {
    return getpid();
}

uint32_t process_own_user(void) {
    return geteuid();
}

void process_end_with_parent(bool ends) {
    (void)prctl(PR_SET_PDEATHSIG, ends ? SIGKILL : 0, 0, 0, 0);
}

int process_signal(int process_id, int signal_number) {
    if (process_id <= 0) {
        return -ERR_INVALID;
    }
    if (kill(process_id, signal_number) == 0) {
        return 0;
    }
    return errno == ESRCH ? -ERR_NOT_FOUND : err_from_errno(errno);
}

void process_exit(int status) {
    _exit(status);
}
