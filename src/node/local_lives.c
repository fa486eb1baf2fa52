/* The contract is in local_lives.h. */
#include "node/local_lives.h"
#include "host/folder.h"
#include "host/plain_text.h"
#include "host/process.h"
#include "node/local_internal.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_REFUSED = 1 };

static_assert((int)(CONFIG_MDTS_MAX + CONFIG_OSTS_MAX) <= (int)WIRE_LIVES_MAX,
              "each has its place");

/* What wrote it writes one line, without its end. */
static bool line_is_one(struct bytes text) {
    char plain[LOCAL_REFUSED_BYTES_MAX];

    if (text.size == 0 || text.size > sizeof plain) {
        return false;
    }
    uint8_t before = 0;

    memcpy(plain, text.data, text.size);
    plain_text_piece(plain, text.size, false, &before);
    return memcmp(plain, text.data, text.size) == 0;
}

void local_lives_refusal(struct bytes text, char problem[256]) {
    if (line_is_one(text)) {
        snprintf(problem, 256, "%.*s", (int)text.size, (const char *)text.data);
    } else {
        snprintf(problem, 256,
                 LOCAL_REFUSED_NAME " is there and has no line any more: DIR was refused, as "
                                    "another copy of this node serves: start that one");
    }
}

int local_lives_check(struct env *env, char problem[256]) {
    char *line = NULL;
    size_t size = 0;
    int r = folder_file_read(env, LOCAL_REFUSED_NAME, LOCAL_REFUSED_BYTES_MAX, &line, &size);

    if (r == -ERR_NOT_FOUND) {
        return 0;
    }
    local_lives_refusal((struct bytes){(const uint8_t *)line, size}, problem);
    free(line);
    return -ERR_TWO_LIVES;
}

uint64_t local_lives_place(struct env *env) {
    uint64_t place;

    return folder_place(env, &place) == 0 ? place : 0;
}

void local_lives_begin(struct local_cluster *cluster) {
    cluster->registering.loop = env_thread_loop(cluster->env);
}

int local_lives_wait(struct local_cluster *cluster, char problem[256]) {
    int r = 0;

    if (cluster->member) {
        member_tick(cluster->member);
        r = waiting_end(&cluster->registering, cluster->env);
    }
    if (r < 0) {
        snprintf(problem, 256, "%s", cluster->refusal);
    }
    atomic_store(&cluster->serves, r == 0);
    return r;
}

/* Of those that the node serves: index is that of local_targets.h. NULL: not this one. */
static const struct kv *kv_of(const struct local_cluster *cluster, uint32_t index) {
    uint32_t mdt = index - TARGET_GROUP_FIRST;
    uint32_t ost = index - TARGET_OST_FIRST;

    if (index < TARGET_OST_FIRST) {
        return atomic_load(&cluster->mdt_lost[mdt]) ? NULL : group_kv(cluster->groups[mdt]);
    }
    return atomic_load(&cluster->ost_lost[ost]) ? NULL : ost_kv(cluster->osts[ost]);
}

size_t local_lives_tell(void *context, uint8_t *ret_lives) {
    const struct local_cluster *cluster = context;
    size_t bytes = 0;

    for (uint32_t i = local_target_first_data(&cluster->config);
         i < local_target_end(&cluster->config); i = local_target_next(&cluster->config, i)) {
        const struct kv *kv = kv_of(cluster, i);

        if (kv) {
            const struct wire_life told = {.log = kv_log_id(kv).value,
                                           .term = kv_term(kv),
                                           .life_high = kv_life(kv).high,
                                           .life_low = kv_life(kv).low};

            memcpy(ret_lives + bytes, &told, sizeof told);
            bytes += sizeof told;
        }
    }
    return bytes;
}

static void refusal_print(struct local_cluster *cluster, const struct registration *registration) {
    char name[LOCAL_TARGET_NAME_BYTES] = "a target";

    for (uint32_t i = local_target_first_data(&cluster->config);
         i < local_target_end(&cluster->config); i = local_target_next(&cluster->config, i)) {
        const struct kv *kv = kv_of(cluster, i);

        if (kv && kv_log_id(kv).value == registration->log.value) {
            local_target_name(i, name);
        }
    }
    if (registration->verdict == LIVES_RUNS) {
        snprintf(cluster->refusal, sizeof cluster->refusal,
                 "node %" PRIu32 " runs already, elsewhere, as the manager hears: this directory "
                 "is a copy of its directory, and serves nothing; remove it",
                 cluster->config.node);
    } else {
        snprintf(cluster->refusal, sizeof cluster->refusal,
                 "%s of node %" PRIu32 " was served later from another copy of this directory: "
                 "this one is older, and serves nothing; start the other one, or declare what is "
                 "gone lost (`shoal target lost`)",
                 name, cluster->config.node);
    }
}

static void line_say(const struct local_cluster *cluster, const char *line) {
    if (cluster->log) {
        cluster->log(line);
    }
}

/* Whoever calls from now on finds none of its logs. */
static void logs_leave(struct local_cluster *cluster) {
    for (uint32_t i = local_target_first_data(&cluster->config);
         i < local_target_end(&cluster->config); i = local_target_next(&cluster->config, i)) {
        const struct kv *kv = kv_of(cluster, i);

        if (kv) {
            log_table_remove(cluster->logs, kv_log_id(kv));
        }
    }
}

/* One that serves ends as by a kill: each answer that it still gave would be one that the other
 * life knows nothing of. */
static void refused(struct local_cluster *cluster, const struct registration *registration) {
    refusal_print(cluster, registration);
    logs_leave(cluster);
    (void)!folder_file_write(cluster->env, LOCAL_REFUSED_NAME, cluster->refusal,
                             strlen(cluster->refusal));
    if (cluster->registered) {
        line_say(cluster, cluster->refusal);
        process_exit(EXIT_REFUSED);
    }
    waiting_done(&cluster->registering, -ERR_TWO_LIVES);
}

void local_lives_registered(void *context, const struct registration *registration) {
    struct local_cluster *cluster = context;

    if (registration->stage == REGISTRATION_WAITING) {
        line_say(cluster, "the manager has heard this node a moment ago, from elsewhere or before "
                          "a restart of the machine: waiting until it is silent for 5 s");
    } else if (registration->stage == REGISTRATION_REFUSED) {
        refused(cluster, registration);
    } else if (!cluster->registered) {
        cluster->registered = true;
        waiting_done(&cluster->registering, 0);
    }
}
