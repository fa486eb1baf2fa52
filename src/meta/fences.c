/* F rows, and what follows from them. */
#include "meta/fences.h"
#include "base/bug.h"
#include "base/endian.h"
#include "meta/group_internal.h"
#include <assert.h>
#include <stdlib.h>

enum { FENCES_A_STEP = 64 };

int fences_init(struct fences *fences) {
    *fences = (struct fences){.place_next = 1};
    list_init(&fences->list);
    list_init(&fences->told);
    fences->files = calloc(FENCES_FILES, sizeof *fences->files);
    return fences->files ? 0 : -ERR_NO_MEMORY;
}

void fences_deinit(struct fences *fences) {
    struct list_node *node;

    while (fences->files &&
           ((node = list_pop_front(&fences->list)) || (node = list_pop_front(&fences->told)))) {
        free(CONTAINER_OF(node, struct fence, node));
    }
    free(fences->spare);
    free(fences->files);
    *fences = (struct fences){0};
}

static struct kv_key row_key(struct session_id session) {
    return key_owner(ROW_FENCE, session.value, 0, 0);
}

static int spare_get(struct fences *fences) {
    fences->spare = fences->spare ? fences->spare : calloc(1, sizeof *fences->spare);
    return fences->spare ? 0 : -ERR_NO_MEMORY;
}

static bool is_everywhere(const struct fences *fences, const struct fence *fence) {
    return fence->number != 0 && fence->number <= fences->everywhere;
}

static void fence_add(struct fences *fences, const struct fence *what) {
    struct fence *fence = fences->spare;

    assert(fence);
    fences->spare = NULL;
    *fence = *what;
    fence->place = fences->place_next++;
    list_push_back(is_everywhere(fences, fence) ? &fences->told : &fences->list, &fence->node);
    fences->count++;
}

int fences_load(struct group *group, const struct kv_key *key, struct bytes value) {
    struct session_id id = {kv_key_split(key).id};
    struct session *session = sessions_find(&group->sessions, id);
    const struct fence_row *row;

    int r = fence_row_check(value, &row);
    if (r < 0) {
        return r;
    }
    if (row->state == FENCE_KNOWN && session) {
        if (row->losses == group->sessions.losses) {
            sessions_sure(&group->sessions, session);
        }
        return 0;
    }
    /* One that is known, and has no session, ended while an older version served the group. */
    r = spare_get(&group->fences);
    if (r == 0) {
        fence_add(
            &group->fences,
            &(struct fence){.session = id, .incarnation = row->incarnation, .number = row->number});
    }
    if (r == 0 && session) {
        session->is_fenced = true;
    }
    return r;
}

int fences_over_load(struct group *group, const struct kv_key *key, struct bytes value) {
    struct fences *fences = &group->fences;
    const struct over_row *row;
    int r = over_row_check(value, &row);

    (void)key;
    if (r == 0) {
        fences->over = row->losses < group->sessions.losses ? row->losses : group->sessions.losses;
        fences->over_staged = fences->over;
        fences->everywhere = row->everywhere;
    }
    return r;
}

int fences_known_stage(struct transaction *transaction, struct session_id session,
                       uint64_t incarnation) {
    struct kv_key key = row_key(session);
    struct fence_row row = {.format = META_FORMAT,
                            .state = FENCE_KNOWN,
                            .losses = transaction->group->sessions.losses,
                            .epoch = transaction->epoch,
                            .incarnation = incarnation};

    return transaction_put(transaction, &key, &row, sizeof row);
}

int fences_add_stage(struct transaction *transaction, const struct session *session,
                     uint64_t number) {
    struct kv_key key = row_key(session->id);
    struct fence_row row = {.format = META_FORMAT,
                            .state = FENCE_SET,
                            .losses = transaction->group->sessions.losses,
                            .epoch = transaction->epoch,
                            .incarnation = session->incarnation,
                            .number = number};
    int r = spare_get(&transaction->group->fences);

    return r < 0 ? r : transaction_put(transaction, &key, &row, sizeof row);
}

void fences_add(struct group *group, struct session *session, uint64_t number) {
    session->is_fenced = true;
    fence_add(&group->fences, &(struct fence){.session = session->id,
                                              .incarnation = session->incarnation,
                                              .number = number});
    group->counters.totals.fences++;
}

int fences_end_stage(struct transaction *transaction, const struct session *session) {
    struct kv_key key = row_key(session->id);

    /* Before the first loss nobody has a row. */
    return session->is_fenced || transaction->group->sessions.losses == 0
               ? 0
               : transaction_delete(transaction, &key);
}

static int fence_drop(struct group *group, struct fence *fence) {
    const struct kv_need need = {.rows = 1, .record_bytes = KV_ROW_RECORD_BYTES};
    struct kv_key key = row_key(fence->session);
    struct transaction transaction;

    int r = transaction_begin(&transaction, group, KV_CLASS_CONTROL, &need);
    if (r < 0) {
        return r;
    }
    r = transaction_delete(&transaction, &key);
    if (r < 0) {
        transaction_abort(&transaction);
        return r;
    }
    group->fences.position = transaction_commit(&transaction);
    list_remove(&fence->node);
    group->fences.count--;
    free(fence);
    return 0;
}

static int over_put(struct group *group, uint16_t losses, uint64_t everywhere) {
    const struct kv_need need = {.rows = 1,
                                 .value_bytes = sizeof(struct over_row),
                                 .record_bytes = sizeof(struct over_row) + KV_ROW_RECORD_BYTES};
    const struct kv_key key = key_owner(ROW_OVER, 0, 0, 0);
    struct fences *fences = &group->fences;
    struct transaction transaction;

    int r = transaction_begin(&transaction, group, KV_CLASS_CONTROL, &need);
    if (r < 0) {
        return r;
    }
    struct over_row row = {.format = META_FORMAT,
                           .losses = losses,
                           .epoch = transaction.epoch,
                           .everywhere = everywhere};
    r = transaction_put(&transaction, &key, &row, sizeof row);
    if (r < 0) {
        transaction_abort(&transaction);
        return r;
    }
    fences->position = transaction_commit(&transaction);
    fences->over_position = fences->position;
    fences->over_staged = losses;
    fences->everywhere = everywhere;
    return 0;
}

/* From its last unsure session on: there is none that comes later. */
static bool is_ending(const struct group *group) {
    bool any = group->sessions.unsure_count > 0 || !list_is_empty(&group->fences.list);

    return group->rpc && group->fences.over_staged < group->sessions.losses &&
           (!any || BUG(EARLY_OVER));
}

/* One is enough to hold files, so that there are not more and more while somebody is unsure. */
static bool told_may_go(const struct group *group) {
    const struct list *told = &group->fences.told;
    const struct list_node *first = list_first(told);

    return first && (group->fences.over == group->sessions.losses || list_next(told, first));
}

/* The row that says that the loss is over, and once it is on disk what waited for that. */
static int loss_end(struct group *group) {
    struct fences *fences = &group->fences;
    int dropped = 0;
    int r = is_ending(group) ? over_put(group, group->sessions.losses, fences->everywhere) : 0;

    if (r == 0 && fences->over < fences->over_staged) {
        if (fences->over_position > kv_synced_position(group->kv)) {
            group_sync_want(group, fences->over_position);
            return -ERR_PENDING;
        }
        fences->over = fences->over_staged;
        group->counters.totals.losses_over++;
    }
    while (r == 0 && told_may_go(group)) {
        if (dropped++ == FENCES_A_STEP) {
            return ENDED_YIELDS;
        }
        r = fence_drop(group, CONTAINER_OF(list_first(&fences->told), struct fence, node));
        group->moved = true;
    }
    return r;
}

void fences_step(struct group *group) {
    const struct fences *fences = &group->fences;

    if ((fences->over < group->sessions.losses || fences->count > 0) &&
        loss_end(group) == ENDED_YIELDS) {
        group_again(group);
    }
}

int fences_pass(struct group *group, uint64_t everywhere, uint64_t newest) {
    struct fences *fences = &group->fences;
    struct list_node *next;
    int r = 0;

    if (fences->count > 0 && everywhere > fences->everywhere) {
        r = over_put(group, fences->over_staged, everywhere);
    }
    for (struct list_node *node = list_first(&fences->list); r == 0 && node; node = next) {
        struct fence *fence = CONTAINER_OF(node, struct fence, node);

        next = list_next(&fences->list, node);
        fence->number = fence->number ? fence->number : newest;
        if (is_everywhere(fences, fence)) {
            list_remove(node);
            list_push_back(&fences->told, node);
        }
    }
    return r < 0 ? r : loss_end(group);
}

bool fences_are_over(const struct fences *fences, const struct inode_row *row) {
    return row->losses < fences->over;
}

bool fences_any_from(const struct fences *fences, uint64_t place) {
    const struct list_node *last = fences->list.head.previous;

    return !list_is_empty(&fences->list) && CONTAINER_OF(last, struct fence, node)->place >= place;
}

uint32_t fences_take(const struct fences *fences, uint64_t *place, uint32_t most,
                     uint8_t ret_bytes[]) {
    uint64_t from = *place;
    uint32_t count = 0;

    for (struct list_node *node = list_first(&fences->list); node && count < most;
         node = list_next(&fences->list, node)) {
        const struct fence *fence = CONTAINER_OF(node, struct fence, node);

        if (fence->place >= from) {
            store_le64(ret_bytes + (size_t)WIRE_FENCE_BYTES * count, fence->session.value);
            store_le64(ret_bytes + (size_t)WIRE_FENCE_BYTES * count + 8, fence->incarnation);
            *place = fence->place + 1;
            count++;
        }
    }
    return count;
}

static struct fences_file *file_of(const struct fences *fences, struct ino ino) {
    uint64_t hash = ino.value * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    return &fences->files[hash % FENCES_FILES];
}

void fences_file_asked(struct fences *fences, struct ino ino) {
    *file_of(fences, ino) = (struct fences_file){ino.value, fences->place_next};
}

bool fences_file_is_asked(const struct fences *fences, struct ino ino) {
    const struct fences_file *file = file_of(fences, ino);

    return file->ino == ino.value && file->place == fences->place_next;
}

bool fences_hold(const struct group *group, struct ino ino, const struct inode_row *row) {
    return group->fences.count > 0 && row->data_state == DATA_CHUNKED &&
           row->losses != kv_losses(group->kv) && !fences_are_over(&group->fences, row) &&
           group->rpc && !fences_file_is_asked(&group->fences, ino);
}
