/* The daemon's side of the control socket: a table of verbs, each answering text. */
#pragma once
#include "front/fuse/fuse.h"
#include "host/control_socket.h"
#include "node/local_cluster.h"
#include <jansson.h>
#include <stdatomic.h>

/* A mount that is asked of a running cluster, or that one which has joined is started with: the
 * daemon's first thread makes it, as it ends it. From ASKED on it is pending; WAITS: for its
 * cluster, and nobody waits for it. */
enum control_mount_stage {
    MOUNT_NONE,
    MOUNT_MADE,
    MOUNT_FAILED,
    MOUNT_GIVEN_UP, /* by `shoal umount`, while it was waited for */
    MOUNT_ASKED,
    MOUNT_WANTED,
    MOUNT_BEGUN,
    MOUNT_WAITS
};

enum control_unwanted { UNWANTED_NOT, UNWANTED_BY_UMOUNT, UNWANTED_BY_DOWN };

/* Of a mount in this process: CUT, its connection, so that it is there and dead; REFUSED: likewise,
 * as the kernel refused what served it. */
enum control_mount_end { MOUNT_END_NONE, MOUNT_END_CUT, MOUNT_END_REFUSED };

struct control {
    struct local_cluster *cluster;
    struct fuse_mount *_Atomic mount; /* the first thread's; others get and put it. NULL: none */
    atomic_uint mount_users; /* who have got it, or are about to look whether it is there */
    struct env_loop *_Atomic mount_taker; /* to be woken by the last of them */
    const char *directory;
    const char *_Atomic mount_point; /* never freed, as bench reads it at any time */
    atomic_uint mount_stage;         /* enum control_mount_stage */
    atomic_uint mount_unwanted;      /* enum control_unwanted: what is pending is to be given up */
    const char *_Atomic mount_place; /* where it is, or is to be; never freed: anybody reads it */
    _Atomic uint64_t mount_since_ns; /* when that was begun */
    atomic_int mount_result;         /* of the last try in this process: why it waits */
    atomic_uint mount_end;           /* enum control_mount_end */
    const char *mount_wanted;
    char mount_problem[512];
    struct program *mount_program; /* that mounts; this and what follows: the first thread's */
    char *mount_waits;             /* where, at MOUNT_WAITS */
    uint64_t mount_try_ns;         /* not before that */
    bool mount_stopped;            /* it was waited for, by this thread, until `shoal down` came */
    bool mount_gone; /* of one in this process: it was taken away, and nothing is left */
    uint64_t mount_say_ns;
    struct control_socket_server *server;
    atomic_bool stop_wanted;
    atomic_bool checking;  /* a check of the cluster runs */
    atomic_bool scrubbing; /* the scrub does, or is to, which ends by itself */
    atomic_bool stopped;   /* the last sync point is taken: `down` may return */
    int stop_result;
};

/* The mount, which lives until put: NULL when there is none, and then there is nothing to put. It
 * may be gone from its mount point. Any thread; put before waiting for the first one. */
struct fuse_mount *control_mount_get(struct control *control);
void control_mount_put(struct control *control);
/* For the first thread, to stop it: nobody gets it any more, and who had has put it. */
struct fuse_mount *control_mount_take(struct control *control);
MUST_CHECK int control_start(struct control *control, char problem[512]);
void control_stop(struct control *control);
/* What went wrong with a stop, and what to do. */
const char *control_stop_text(int error);

__attribute__((format(printf, 2, 3))) void
control_print(struct control_socket_connection *connection, const char *format, ...);
/* Takes the value; NULL, for want of memory, prints nothing. */
void control_print_json(struct control_socket_connection *connection, json_t *json);
/* Whether one of those behind the verb is this word. */
bool control_has_word(size_t argument_count, char **arguments, const char *word);

/* stats --clients; own: of this node alone. */
int control_clients(struct control *control, struct control_socket_connection *connection,
                    bool as_json, bool own);

/* The handlers: exit statuses. arguments[0] is the verb. */
typedef int control_fn(struct control *control, struct control_socket_connection *connection,
                       size_t argument_count, char **arguments);
control_fn control_here, control_bench, control_fsck, control_status, control_df, control_stats,
    control_sync, control_stat, control_stripe, control_revoke, control_renew, control_target;
