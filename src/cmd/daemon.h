/* The daemon of one machine: a local cluster, its mount, its control socket, until it is told to
 * stop. Runs in the calling process. */
#pragma once
#include "base/types.h"
#include "host/background.h"

/* One file for each daemon of this machine, named by its process id: its directory. */
#define DAEMON_REGISTRY "/run/shoal"

struct daemon_options {
    const char *directory;         /* absolute */
    const char *mount_point;       /* absolute, or NULL */
    uint32_t roles;                /* enum config_role; 0: the default */
    uint32_t ost_count;            /* likewise */
    uint32_t mdt_count;            /* likewise */
    uint64_t data_bytes_max;       /* 0: the default */
    const char *listen;            /* ADDRESS:PORT; NULL: as shoal.conf says */
    const char *key_path;          /* absolute; likewise */
    const char *advertise;         /* ADDRESS:PORT; likewise */
    const char *join;              /* addresses of a cluster, commas between; likewise */
    bool accept_loss;              /* go on without what a damaged ring, or log's end, held */
    bool rebuild_manager;          /* its log is lost: from what the others know */
    const char *without;           /* then: numbers of nodes, commas between; or NULL */
    struct background *background; /* reported to once it serves; NULL: in the foreground */
};

/* A line of its log. */
__attribute__((format(printf, 1, 2))) void daemon_log(const char *format, ...);
/* Whether a start would be refused; changes nothing. problem gets one line. *ret_mount_point, for
 * the caller to free, is where the mount will be: NULL when there is none. */
MUST_CHECK int daemon_check(const struct daemon_options *options, char **ret_mount_point,
                            char problem[512]);
/* Its part about the mount, of a daemon that runs already. */
MUST_CHECK int daemon_check_mount(const struct daemon_options *options, char **ret_mount_point,
                                  char problem[512]);
/* After that: what somebody should know of directory and mount point, a line each. */
void daemon_notes(const struct daemon_options *options, char *text, size_t size);
/* Answers an exit status when the daemon has stopped. */
int daemon_run(const struct daemon_options *options);
