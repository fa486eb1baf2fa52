/* The daemon's side of the control socket: a table of verbs, each answering text. */
#pragma once
#include "cmd/local_cluster.h"
#include "env/env_control.h"
#include "front/fuse/fuse.h"
#include <jansson.h>
#include <stdatomic.h>

/* A mount that is asked of a running cluster: the daemon's first thread makes it, as it ends it. */
enum control_mount_stage { MOUNT_NONE, MOUNT_WANTED, MOUNT_BEGUN, MOUNT_MADE, MOUNT_FAILED };

struct control {
    struct local_cluster *cluster;
    struct fuse_mount *_Atomic mount; /* NULL: never mounted; it may have been taken away */
    const char *directory;
    const char *_Atomic mount_point; /* never freed, as bench reads it at any time */
    atomic_uint mount_stage;         /* enum control_mount_stage */
    const char *mount_wanted;
    char mount_problem[512];
    struct env_control_server *server;
    atomic_bool stop_wanted;
    atomic_bool checking;  /* a check of the cluster runs, or the scrub */
    atomic_bool scrubbing; /* that is the scrub, which ends by itself */
    atomic_bool stopped;   /* the last sync point is taken: `down` may return */
    int stop_result;
};

bool control_is_mounted(const struct control *control);
MUST_CHECK int control_start(struct control *control, char problem[512]);
void control_stop(struct control *control);
/* What went wrong with a stop, and what to do. */
const char *control_stop_text(int error);

__attribute__((format(printf, 2, 3))) void control_print(struct env_control_connection *connection,
                                                         const char *format, ...);
/* Takes the value; NULL, for want of memory, prints nothing. */
void control_print_json(struct env_control_connection *connection, json_t *json);
/* Whether one of those behind the verb is this word. */
bool control_has_word(size_t argument_count, char **arguments, const char *word);

/* stats --clients. */
int control_clients(struct control *control, struct env_control_connection *connection,
                    bool as_json);

/* The handlers: exit statuses. arguments[0] is the verb. */
typedef int control_fn(struct control *control, struct env_control_connection *connection,
                       size_t argument_count, char **arguments);
control_fn control_bench, control_fsck, control_status, control_df, control_stats, control_sync,
    control_stat, control_stripe;
