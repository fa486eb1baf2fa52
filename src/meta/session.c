/* The table of sessions. */
#include "meta/session.h"
#include "base/err.h"
#include "rpc/call.h"
#include <assert.h>
#include <stdlib.h>

enum { SLAB_SESSIONS = 64 };

struct session_slab {
    struct session_slab *next;
    struct session sessions[SLAB_SESSIONS];
};

int sessions_init(struct sessions *sessions, uint32_t sessions_max) {
    uint32_t bucket_count = 16;

    while (bucket_count < sessions_max) {
        bucket_count *= 2;
    }
    sessions->buckets = calloc(bucket_count, sizeof(struct session *));
    if (!sessions->buckets) {
        return -ERR_NO_MEMORY;
    }
    sessions->max = sessions_max;
    sessions->bucket_mask = bucket_count - 1;
    list_init(&sessions->known);
    list_init(&sessions->evicting);
    return 0;
}

/* Whether one is free. */
static bool free_make(struct sessions *sessions) {
    struct session_slab *slab = sessions->free ? NULL : calloc(1, sizeof *slab);

    if (slab) {
        slab->next = sessions->slabs;
        sessions->slabs = slab;
        for (uint32_t i = SLAB_SESSIONS; i > 0; i--) {
            slab->sessions[i - 1].next = sessions->free;
            sessions->free = &slab->sessions[i - 1];
        }
    }
    return sessions->free != NULL;
}

bool sessions_have_room(struct sessions *sessions) {
    return sessions->count < sessions->max && free_make(sessions);
}

void sessions_deinit(struct sessions *sessions) {
    struct session_slab *slab;

    while ((slab = sessions->slabs)) {
        sessions->slabs = slab->next;
        free(slab);
    }
    free(sessions->buckets);
    *sessions = (struct sessions){0};
}

static struct session **bucket_of(const struct sessions *sessions, struct session_id id) {
    return &sessions->buckets[id.value & sessions->bucket_mask];
}

struct session *sessions_find(const struct sessions *sessions, struct session_id id) {
    struct session *session = *bucket_of(sessions, id);

    while (session && session->id.value != id.value) {
        session = session->next;
    }
    return session;
}

static void evicting_add(struct sessions *sessions, struct session *session) {
    list_push_back(&sessions->evicting, &session->evicting);
    sessions->evicting_count++;
}

struct session *sessions_add(struct sessions *sessions, struct session_id id,
                             const struct session_row *row) {
    if (!free_make(sessions)) {
        return NULL;
    }
    struct session *session = sessions->free;
    sessions->free = session->next;
    struct session **bucket = bucket_of(sessions, id);
    *session = (struct session){
        .next = *bucket,
        .id = id,
        .incarnation = row->incarnation,
        .node_id = row->node,
        .state = row->state,
        .window = row->window,
        .is_unsure = row->state == SESSION_LIVE && sessions->losses != 0,
        .counters = {.session = id, .incarnation = row->incarnation, .node = row->node}};
    *bucket = session;
    list_init(&session->opens);
    list_init(&session->shut);
    list_push_back(&sessions->known, &session->node);
    windows_take(&sessions->windows, row->window);
    sessions->count++;
    sessions->unattached_count++;
    if (row->state == SESSION_EVICTING) {
        evicting_add(sessions, session);
    }
    sessions->unsure_count += session->is_unsure;
    assert(sessions->unattached_count <= sessions->count);
    assert(sessions->evicting_count <= sessions->count);
    return session;
}

void sessions_evict(struct sessions *sessions, struct session *session) {
    assert(session->state == SESSION_LIVE);
    session->state = SESSION_EVICTING;
    evicting_add(sessions, session);
}

void sessions_drop(struct sessions *sessions, struct session *session) {
    struct session **link = bucket_of(sessions, session->id);

    assert(list_is_empty(&session->opens));
    assert(session->attached || sessions->unattached_count > 0);
    assert(session->state != SESSION_EVICTING || sessions->evicting_count > 0);
    assert(!session->is_unsure);
    while (*link != session) {
        link = &(*link)->next;
    }
    *link = session->next;
    list_remove(&session->node);
    if (session->state == SESSION_EVICTING) {
        list_remove(&session->evicting);
        sessions->evicting_count--;
    }
    windows_give_back(&sessions->windows, session->window);
    sessions->count--;
    sessions->unattached_count -= !session->attached;
    session->counters.session.value = 0;
    session->next = sessions->free;
    sessions->free = session;
}

void sessions_sure(struct sessions *sessions, struct session *session) {
    assert(!session->is_unsure || sessions->unsure_count > 0);
    sessions->unsure_count -= session->is_unsure;
    session->is_unsure = false;
}

void session_attached(struct sessions *sessions, struct session *session) {
    assert(session->attached || sessions->unattached_count > 0);
    sessions_sure(sessions, session);
    sessions->unattached_count -= !session->attached;
    session->attached = true;
}

void sessions_counters_get(const struct sessions *sessions, struct session_counters_list *list) {
    for (struct list_node *node = list_first(&sessions->known); node;
         node = list_next(&sessions->known, node)) {
        session_counters_add(list, &CONTAINER_OF(node, struct session, node)->counters);
    }
}

int session_check(const struct session *session, const struct call *call, bool reopening) {
    if (!session) {
        return -ERR_UNKNOWN_SESSION;
    }
    if (session->state != SESSION_LIVE || session->incarnation != call->header.incarnation) {
        return -ERR_FENCED;
    }
    if (session->attached && !call_is_from(call, &session->sender)) {
        return -ERR_UNKNOWN_SESSION;
    }
    return session->attached || reopening ? 0 : -ERR_STALE_TERM;
}

static struct session_failure *place_of(const struct session *session, uint64_t sequence) {
    return (struct session_failure *)&session->failures[sequence % SESSION_FAILURES];
}

int session_failure_find(const struct session *session, uint64_t sequence) {
    const struct session_failure *failure = place_of(session, sequence);

    return failure->sequence == sequence ? failure->result : 0;
}

bool session_failure_keep(struct session *session, uint64_t sequence, int result) {
    struct session_failure *failure = place_of(session, sequence);
    bool taken = failure->sequence != 0 && failure->sequence >= session->floor;

    if (taken && failure->sequence != sequence) {
        return false;
    }
    *failure = (struct session_failure){sequence, result};
    return true;
}
