/* The contract is in control_shares.h. */
#include "cmd/control_shares.h"
#include "cmd/json_text.h"
#include "host/plain_text.h"
#include "meta/group.h"
#include "node/local_directory.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char files_text[] = "open files";
static const char requests_text[] = "requests at work";
static const char opens_text[] = "files open by all mounts";

struct share_met {
    uint32_t uid;
    const char *share;
    const char *at;        /* a mount point, or a target */
    uint64_t session;      /* of a mount of another process; else 0 */
    const char *directory; /* of the daemon whose log has more; NULL: the mount's own log has */
};

typedef void (*share_fn)(void *context, const struct share_met *met);

static void own_each(struct control *control, share_fn each, void *context) {
    static const char *const shares[] = {
        [FUSE_SHARE_FILES] = files_text, [FUSE_SHARE_REQUESTS] = requests_text};
    struct fuse_mount *mount = control_mount_get(control);
    uint32_t uid;

    for (unsigned i = 0; mount && i < ARRAY_SIZE(shares); i++) {
        if (fuse_mount_share_last(mount, (enum fuse_share)i, &uid)) {
            each(context, &(struct share_met){.uid = uid,
                                              .share = shares[i],
                                              .at = "this daemon's mount",
                                              .directory = control->directory});
        }
    }
    if (mount) {
        control_mount_put(control);
    }
}

static void targets_each(struct control *control, share_fn each, void *context) {
    for (uint32_t i = 0; i < local_cluster_mdts(control->cluster); i++) {
        struct group_stats stats = {.operations = NULL};
        char name[16];

        snprintf(name, sizeof name, "mdt%" PRIu32, i);
        local_cluster_group_stats(control->cluster, i, &stats);
        if (stats.opens_met > 0) {
            each(context, &(struct share_met){.uid = (uint32_t)(stats.opens_met - 1),
                                              .share = opens_text,
                                              .at = name,
                                              .directory = control->directory});
        }
    }
}

/* Of the origin that a mount gives its session: "mount", a word, the place (mount_origin.h). */
static const char *place_of(char *origin) {
    char *word = strchr(plain_text(origin, false), ' ');
    char *place = word ? strchr(word + 1, ' ') : NULL;

    return place && place[1] ? place + 1 : origin;
}

static void mounts_each(struct control *control, share_fn each, void *context) {
    struct manager_met *met = calloc(1, sizeof *met);

    if (met && local_cluster_met(control->cluster, met)) {
        for (uint32_t i = 0; i < met->count; i++) {
            struct manager_met_row *row = &met->rows[i];
            struct share_met one = {.session = row->session.value, .at = place_of(row->origin)};

            if (row->files_user > 0) {
                one.uid = (uint32_t)(row->files_user - 1);
                one.share = files_text;
                each(context, &one);
            }
            if (row->requests_user > 0) {
                one.uid = (uint32_t)(row->requests_user - 1);
                one.share = requests_text;
                each(context, &one);
            }
        }
    }
    free(met);
}

static void shares_each(struct control *control, share_fn each, void *context) {
    own_each(control, each, context);
    targets_each(control, each, context);
    mounts_each(control, each, context);
}

static void met_print(void *context, const struct share_met *met) {
    if (met->directory) {
        control_print(context,
                      "           user %" PRIu32 " has met his share of %s at %s: see %s/%s\n",
                      met->uid, met->share, met->at, met->directory, LOCAL_LOG_NAME);
    } else {
        control_print(context,
                      "           user %" PRIu32 " has met his share of %s at the mount %s "
                      "(session %" PRIu64 "): see its log\n",
                      met->uid, met->share, met->at, met->session);
    }
}

void control_shares_print(struct control *control, struct control_socket_connection *connection) {
    shares_each(control, met_print, connection);
}

static void met_json(void *context, const struct share_met *met) {
    json_array_append_new(context, json_pack("{s:I, s:s, s:o?, s:I}", "user", (json_int_t)met->uid,
                                             "share", met->share, "at", json_text(met->at),
                                             "session", (json_int_t)met->session));
}

json_t *control_shares_json(struct control *control) {
    json_t *rows = json_array();

    shares_each(control, met_json, rows);
    return rows;
}
