/* Askers: whose turn it is, and what becomes of them. */
#include "lists.h"
#include "rpc/transport.h"
#include "totals.h"
#include "workload_internal.h"
#include "stragglers.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NO_SPACE_PAUSE_NS (2 * NS_PER_S)
#define AWAY_PAUSE_NS (500 * NS_PER_MS)
#define OVER_LOOK_NS (10 * NS_PER_MS)

struct workload *workload_new(struct world *world, const struct workload_options *options) {
    struct workload *workload = calloc(1, sizeof *workload);

    if (!workload) {
        abort();
    }
    workload->world = world;
    workload->options = *options;
    workload->contents = contents_new(WORLD_CALL_BYTES);
    interrupts_init(&workload->interrupts, world, options->operations);
    layouts_init(&workload->layouts, world->options.seed);
    workload->trees = trees_new(world->options.mdt_count > 1, options->moves);
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct asker *asker = &workload->askers[i];

        asker->workload = workload;
        asker->node = &world->clients[i];
        for (uint32_t k = 0; k < options->depth; k++) {
            asker->questions[k].asker = asker;
            asker->questions[k].buffer = malloc(options->size_max);
            if (!asker->questions[k].buffer) {
                abort();
            }
        }
    }
    return workload;
}

void workload_free(struct workload *workload) {
    for (uint32_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
        for (uint32_t k = 0; k < DEPTH_MAX; k++) {
            free(workload->askers[i].questions[k].buffer);
        }
    }
    trees_free(workload->trees);
    contents_free(workload->contents);
    free(workload);
}

void workload_fail(struct workload *workload, const struct question *question, const char *text) {
    if (!workload->failure[0]) {
        snprintf(workload->failure, sizeof workload->failure,
                 "%s, operation %d, result %" PRId64 " at %.3f ms: %s",
                 sim_process_name(question->asker->node->process), question->request.operation,
                 question->request.result, (double)sim_now_ns(workload->world->sim) / 1e6, text);
    }
}

static void ask(void *context);

static void ask_later(struct question *question, uint64_t delay_ns) {
    struct asker *asker = question->asker;

    sim_schedule(asker->workload->world->sim, asker->node->process, delay_ns, ask, question);
}

static void answered(struct shoal_request *request);

static void tell(const struct question *question, const char *what) {
    const struct workload *workload = question->asker->workload;
    const struct shoal_request *request = &question->request;

    if (workload->options.tell) {
        fprintf(workload->options.tell,
                "%12.6f ms %-10s %s %td: op %d ino %" PRIx64 " write %" PRIu64 " offset %" PRIu64
                " size %zu set-size %" PRIu64 " flags %x name %.20s -> %" PRId64 "\n",
                (double)sim_now_ns(workload->world->sim) / 1e6,
                sim_process_name(question->asker->node->process), what,
                question - question->asker->questions, request->operation,
                question->handle && question->handle->ino ? question->handle->ino : request->ino,
                question->write ? question->write->number : 0, request->offset, request->size,
                request->attributes.size, request->flags, request->name ? request->name : "-",
                request->result);
    }
}

static int interrupted(struct shoal_request *request) {
    return interrupt_ask(&((struct question *)request->context)->interrupt);
}

static void submit(struct question *question) {
    struct asker *asker = question->asker;

    question->open = true;
    question->begin = contents_now(asker->workload->contents);
    question->pool_floor = pools_floor(asker->workload->world);
    question->lost = losses_known(asker->workload->options.losses, asker->node, &question->request);
    question->tree_begin = trees_now(asker->workload->trees);
    question->asked_ns = sim_now_ns(asker->workload->world->sim);
    question->parent = parents_floor(&asker->workload->parents, asker->node->index,
                                     question->asked_ns, question->request.age_max_ns);
    question->request.done = answered;
    question->request.context = question;
    question->request.interrupted = interrupted;
    interrupts_draw(&asker->workload->interrupts, &question->interrupt, &question->request);
    asker->busy++;
    asker->workload->counters.submitted++;
    tell(question, "asks");
    if (question->handle) {
        question->handle->busy++;
    }
    shoal_submit(node_client(asker->node), &question->request);
}

static bool may_ask(const struct asker *asker) {
    struct shoal_client *client = node_client(asker->node);

    return client && !client_is_fenced(client);
}

static void review(struct question *question) {
    struct workload *workload = question->asker->workload;

    question->about = ABOUT_TREE;
    if (may_ask(question->asker) && !workload->failure[0] &&
        trees_review(workload->trees, &workload->review_at, question->asker->node->index,
                     &question->tree, &question->request)) {
        submit(question);
    } else {
        workload->reviewer = NULL;
    }
}

static void ask(void *context) {
    struct question *question = context;
    struct asker *asker = question->asker;
    struct workload *workload = asker->workload;

    if (question->open) {
        return; /* Who reviews has been woken twice. */
    }
    question->handle = NULL;
    question->content = NULL;
    question->write = NULL;
    question->looking = false;
    if (question == workload->reviewer) {
        review(question);
        return;
    }
    const struct stragglers *stragglers = workload->world->stragglers;
    if (workload_is_done(workload) || !may_ask(asker) ||
        (stragglers && stragglers_has(stragglers, asker->node))) {
        return;
    }
    for (int i = 0; i < 50; i++) {
        question->about = ABOUT_DATA;
        if (question_draw(question)) {
            submit(question);
            return;
        }
    }
    ask_later(question, NS_PER_MS);
}

/* Nobody loses against others for ever. */
static void move_check(const struct question *question) {
    struct workload *workload = question->asker->workload;
    uint64_t since_ns = MAX(question->asked_ns, workload->calm_ns);

    if (workload->calm_ns > 0 && question->request.operation == SHOAL_RENAME &&
        sim_now_ns(workload->world->sim) - since_ns > RULE_MOVE_S * NS_PER_S) {
        workload_fail(workload, question, "it took too long for a calm time");
    }
}

static void answered(struct shoal_request *request) {
    struct question *question = request->context;
    struct asker *asker = question->asker;
    struct workload *workload = asker->workload;

    question->open = false;
    asker->busy--;
    tell(question, "hears");
    sim_trace(workload->world->sim, "answer", request->operation, (uint64_t)request->result);
    if (!interrupts_answered(&workload->interrupts, &question->interrupt, request)) {
        workload_fail(workload, question, "nobody has interrupted it, or it goes on");
    }
    question_take(question);
    parents_note(&workload->parents, asker->node->index, request, question->asked_ns,
                 sim_now_ns(workload->world->sim));
    move_check(question);
    if (question->handle) {
        question->handle->busy--;
    }
    /* Who is told that there is no room, or that somebody is away, does not ask again at once. */
    ask_later(question, workload_draw(workload, request->result == -ENOSPC ? NO_SPACE_PAUSE_NS
                                                : call_is_unanswered(client_failure(request))
                                                    ? AWAY_PAUSE_NS
                                                    : workload->options.think_ns));
}

/* Closes that stayed with a client, and are taken. */
static void late_look(struct workload *workload) {
    for (uint32_t i = 0; i < workload->world->options.client_count; i++) {
        struct asker *asker = &workload->askers[i];
        const struct shoal_client *client = node_client(asker->node);

        /* Those of one that was evicted end with its session. */
        if (asker->late && asker->incarnation == asker->node->incarnation && may_ask(asker) &&
            client_late_closes(client) == 0) {
            asker->late = false;
            contents_late_taken(workload->contents, i);
        }
    }
}

bool workload_is_settled(const struct workload *workload) {
    bool late = false;

    for (uint32_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
        late = late || workload->askers[i].late;
    }
    return !late;
}

/* A metadata target that can't hear the manager goes on with what a client had asked that is gone,
 * though others serve the next one of that node. */
static void over_look(struct workload *workload) {
    uint64_t now_ns = sim_now_ns(workload->world->sim);

    if (now_ns - workload->over_looked_ns < OVER_LOOK_NS) {
        return;
    }
    workload->over_looked_ns = now_ns;
    for (uint32_t i = 0; i < workload->world->options.client_count; i++) {
        struct asker *asker = &workload->askers[i];

        if (asker->over.value != 0 && lists_all_name(workload->world, asker->over)) {
            asker->over.value = 0;
            trees_session_over(workload->trees, i, asker->over_at);
        }
    }
}

void workload_look(struct workload *workload) {
    late_look(workload);
    over_look(workload);
    for (uint32_t i = 0; i < workload->world->options.client_count; i++) {
        struct asker *asker = &workload->askers[i];

        if (asker->incarnation == asker->node->incarnation || !node_client(asker->node)) {
            continue;
        }
        asker->incarnation = asker->node->incarnation;
        asker->told = 0;
        asker->late = false;
        asker->late_count = 0;
        contents_session_over(workload->contents, i);
        asker->over = asker->session;
        asker->over_at = trees_now(workload->trees);
        asker->session = client_session(node_client(asker->node));
        for (uint32_t k = 0; k < workload->options.depth; k++) {
            ask_later(&asker->questions[k], workload_draw(workload, workload->options.think_ns));
        }
    }
}

void workload_client_gone(struct workload *workload, struct node *node) {
    struct asker *asker = &workload->askers[node->index];

    for (uint32_t k = 0; k < workload->options.depth; k++) {
        question_lose(&asker->questions[k]);
        asker->questions[k].visit = NULL;
        asker->questions[k].promised = NULL;
        asker->questions[k].back = NULL;
        asker->questions[k].grown = NULL;
    }
    asker->busy = 0;
    asker->late = false; /* What it kept ends with its session; another one may not begin. */
    memset(asker->handles, 0, sizeof asker->handles);
}

void workload_power(struct workload *workload, const struct node *node) {
    contents_power(workload->contents, !node);
    if (node && node->role == NODE_MDT) {
        trees_power(workload->trees);
    }
    for (uint32_t i = 0; i < workload->file_count; i++) {
        if (!workload->files[i].durable && workload->files[i].doubted == 0) {
            workload->files[i].doubted = contents_now(workload->contents);
        }
    }
}

uint64_t workload_cut(struct workload *workload) {
    return interrupts_cut(&workload->interrupts, workload->counters.submitted);
}

const char *workload_failure(const struct workload *workload) {
    return workload->failure[0] ? workload->failure : NULL;
}

const struct workload_counters *workload_counters_get(const struct workload *workload) {
    return &workload->counters;
}

void workload_sum(const struct workload *workload, uint64_t *counts) {
    const struct trees_counters *names = trees_counters_get(workload->trees);

    counts[TOTAL_OPERATIONS] = workload->counters.submitted;
    counts[TOTAL_SUCCEEDED] = workload->counters.succeeded;
    counts[TOTAL_REFUSED] = workload->counters.failed;
    counts[TOTAL_LOST] = workload->counters.lost;
    counts[TOTAL_NAMELESS] = workload->counters.nameless;
    counts[TOTAL_NAMED] = workload->counters.named;
    counts[TOTAL_INTERRUPTS] = workload->interrupts.met;
    counts[TOTAL_GIVEN_BACK] = workload->interrupts.given_back;
    counts[TOTAL_RENAMES] = names->renames;
    counts[TOTAL_REPLACED] = names->replaced;
    counts[TOTAL_EXCHANGED] = names->exchanged;
    counts[TOTAL_RENAMES_REFUSED] = names->refused;
    counts[TOTAL_PARENTS_KNOWN] = workload->parents.known;
    counts[TOTAL_LAYOUTS] = workload->layouts.set;
    counts[TOTAL_LAYOUTS_OPEN] = workload->layouts.open;
}

/* What was given up because a server was away tells little: as many more are asked, up to twice as
 * many in all. */
bool workload_is_done(const struct workload *workload) {
    const struct workload_counters *counters = &workload->counters;
    uint64_t operations = workload->options.operations;

    if (workload->calm_goal > 0) {
        return counters->submitted >= workload->calm_goal || workload->failure[0];
    }
    return counters->submitted >= operations + MIN(counters->lost, operations) ||
           workload->failure[0];
}

void workload_go_on(struct workload *workload, uint64_t operations) {
    workload->calm_ns = sim_now_ns(workload->world->sim);
    workload->calm_goal = workload->counters.submitted + operations;
    for (uint32_t i = 0; i < workload->world->options.client_count; i++) {
        struct asker *asker = &workload->askers[i];

        for (uint32_t k = 0; k < workload->options.depth && may_ask(asker); k++) {
            ask_later(&asker->questions[k], workload_draw(workload, workload->options.think_ns));
        }
    }
}

/* NULL: no client has a session. */
static const struct asker *asker_ready(const struct workload *workload) {
    for (uint32_t i = 0; i < workload->world->options.client_count; i++) {
        const struct asker *asker = &workload->askers[i];

        if (may_ask(asker) && asker->incarnation == asker->node->incarnation) {
            return asker;
        }
    }
    return NULL;
}

bool workload_is_ready(const struct workload *workload) {
    return asker_ready(workload);
}

bool workload_review(struct workload *workload) {
    const struct asker *asker = asker_ready(workload);

    if (asker) {
        workload->reviewer = &workload->askers[asker->node->index].questions[0];
        ask_later(workload->reviewer, workload->options.think_ns);
    }
    return asker;
}

static void removed(struct shoal_request *request);

static void remove_next(void *context) {
    struct workload *workload = context;
    const struct asker *asker = workload->remover;

    if (workload->remove_at == workload->file_count || !may_ask(asker)) {
        workload->remover = NULL;
        return;
    }
    const char *name = workload->files[workload->remove_at++].name;
    workload->removal = (struct shoal_request){.operation = SHOAL_UNLINK,
                                               .ino = SHOAL_INO_ROOT,
                                               .name = name,
                                               .name_bytes = strlen(name),
                                               .done = removed,
                                               .context = workload};
    shoal_submit(node_client(asker->node), &workload->removal);
}

static void removed(struct shoal_request *request) {
    struct workload *workload = request->context;

    if (request->result < 0 && request->result != -ENOENT && request->result != -ENOSPC) {
        snprintf(workload->failure, sizeof workload->failure, "the removal of %s answers %" PRId64,
                 request->name, request->result);
    }
    sim_schedule(workload->world->sim, workload->remover->node->process, NS_PER_US, remove_next,
                 workload);
}

bool workload_remove(struct workload *workload) {
    workload->remover = asker_ready(workload);
    if (workload->remover) {
        sim_schedule(workload->world->sim, workload->remover->node->process, NS_PER_US, remove_next,
                     workload);
    }
    return workload->remover;
}

static void measured(struct shoal_request *request);

static void measure_next(void *context) {
    struct workload *workload = context;
    const struct asker *asker = workload->measurer;

    if (workload->measure_at == workload->file_count || !may_ask(asker) || workload->failure[0]) {
        workload->measurer = NULL;
        return;
    }
    workload->measure = (struct shoal_request){.operation = SHOAL_GETATTR,
                                               .ino = workload->files[workload->measure_at++].ino,
                                               .done = measured,
                                               .context = workload};
    contents_look_begin(contents_file(workload->contents, workload->measure.ino),
                        asker->node->index, &workload->measure_look);
    /* Of what only this client knew a close that nobody answered may have told nothing. */
    workload->measure_look.known = 0;
    shoal_submit(node_client(asker->node), &workload->measure);
}

static void measured(struct shoal_request *request) {
    struct workload *workload = request->context;
    const struct asker *asker = workload->measurer;
    struct content_file *content = contents_file(workload->contents, request->ino);
    bool gone = request->result == -ESTALE && workload->files[workload->measure_at - 1].doubted > 0;

    if (request->result == 0) {
        (void)contents_size_end(content, asker->node->index, &workload->measure_look,
                                request->attributes.size, workload->failure);
    } else {
        contents_look_drop(content, &workload->measure_look);
    }
    if (request->result < 0 && !gone && may_ask(asker)) {
        snprintf(workload->failure, sizeof workload->failure,
                 "the size of %" PRIx64 " answers %" PRId64, request->ino, request->result);
    }
    sim_schedule(workload->world->sim, asker->node->process, NS_PER_US, measure_next, workload);
}

bool workload_measure(struct workload *workload) {
    workload->measurer = asker_ready(workload);
    if (workload->measurer) {
        sim_schedule(workload->world->sim, workload->measurer->node->process, NS_PER_US,
                     measure_next, workload);
    }
    return workload->measurer;
}

bool workload_is_idle(const struct workload *workload) {
    if (workload->reviewer || workload->remover || workload->measurer) {
        return false;
    }
    for (uint32_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
        if (workload->askers[i].busy > 0) {
            return false;
        }
    }
    return true;
}
