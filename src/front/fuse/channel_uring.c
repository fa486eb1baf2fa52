/* The contract is in channel_uring.h. */
#include "front/fuse/channel_uring.h"
#include "env/env_command.h"
#include "front/fuse/channel_thread_internal.h"
#include "front/fuse/ops.h"
#include "front/fuse/problem.h"
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    ENTRIES_FIRST = 4,        /* of a queue whose CPU is in use */
    ENTRIES_SPARE = 2,        /* fewer that wait at the kernel: one more */
    ENTRIES_SPARE_MIXED = 32, /* where users take turns: what finds none is not seen for long */
    COMMAND_REGISTER = 1,
    COMMAND_COMMIT_AND_FETCH = 2,
    BODY_BYTES_MAX = 128,  /* a request's fixed body */
    LENT_BYTES_MAX = 4096, /* above all that opens a file */
    LENT_PART = 3,         /* of the requests, one in so many is for what is lent */
    PIN_AGAIN_NS = 1000000000,
};
#define REFUSED_NS (10 * NS_PER_S) /* for so long a commit is tried again, */
#define AGAIN_NS (10 * NS_PER_MS)  /* each such time */

/* As the kernel lays them out (fuse_uring_req_header, fuse_uring_cmd_req). */
struct abi_uring_header {
    uint8_t head[128]; /* abi_in_header, then abi_out_header */
    uint8_t body[BODY_BYTES_MAX];
    uint64_t flags, commit_id;
    uint32_t payload_bytes, padding;
    uint64_t reserved;
};
struct abi_uring_command {
    uint64_t flags, commit_id;
    uint16_t queue;
    uint8_t padding[6];
};

static_assert(sizeof(struct abi_uring_header) == 288, "the kernel's");
static_assert(sizeof(struct abi_uring_command) <= ENV_COMMAND_BYTES, "fits");
static_assert(BUFFER_URING_AT + sizeof(struct abi_uring_header) <=
                  BUFFER_HEAD_BYTES - sizeof(struct abi_in_header) - BODY_BYTES_MAX,
              "between the reply and the request");

struct uring_queue;

struct uring_entry {
    alignas(16) struct env_command command; /* its node is also of arrived */
    struct uring_queue *queue;
    struct uring_entry *next; /* of the outbox */
    struct fuse_request *request;
    struct iovec parts[2];
    uint64_t commit_id;
    uint64_t refused_ns; /* since when its commit is refused; 0: it is not */
};

struct uring_thread {
    struct channel_thread *thread; /* NULL: it does not serve yet */
    struct env_loop *loop;
    struct queue arrived;
    _Atomic(struct uring_entry *) outbox; /* ended elsewhere */
    struct uring_entry *refused;          /* to be committed again */
    uint64_t again_ns;                    /* then */
    int cpu;
    uint64_t pinned_ns;
    bool over; /* the mount is gone */
};

struct uring_queue {
    struct channel_uring *uring;
    struct uring_thread *thread;
    uint16_t number; /* its CPU's */
    uint32_t entry_count;
    uint32_t lost_count;    /* of them: the kernel takes them no more */
    uint32_t waiting_count; /* of them: at the kernel */
    struct uring_entry **entries;
};

struct channel_uring {
    struct front *front;
    struct channel_dev *dev;
    uint32_t queue_entries_max;
    uint32_t entries_max; /* of all queues together */
    _Atomic uint32_t entry_count;
    unsigned queue_count;
    unsigned thread_count;
    struct uring_queue *queues;
    struct uring_thread *threads;
};

static struct uring_entry *entry_of(const struct fuse_request *request) {
    return request->entry;
}

static struct abi_uring_header *entry_header(const struct uring_entry *entry) {
    return (void *)(entry->request->buffer + BUFFER_URING_AT);
}

/* Entries. */

static void entry_done(struct env_command *command, int result);

static int entry_new(struct uring_queue *queue, struct uring_entry **ret_entry) {
    struct front *front = queue->uring->front;
    struct uring_entry *entry = aligned_alloc(alignof(struct uring_entry), sizeof(*entry));
    struct fuse_request *request = entry ? request_pool_take(&front->requests) : NULL;

    if (!request) {
        free(entry);
        return -ERR_NO_MEMORY;
    }
    *entry = (struct uring_entry){.queue = queue, .request = request};
    entry->command.fd = queue->uring->dev->descriptor;
    entry->command.done = entry_done;
    request->entry = entry;
    queue->entries[queue->entry_count++] = entry;
    atomic_fetch_add(&queue->uring->entry_count, 1);
    *ret_entry = entry;
    return 0;
}

static void entry_send(struct uring_entry *entry, uint32_t operation) {
    const struct abi_uring_command command = {.commit_id = entry->commit_id,
                                              .queue = entry->queue->number};
    struct front *front = entry->queue->uring->front;

    entry->command.operation = operation;
    memset(entry->command.bytes, 0, sizeof(entry->command.bytes));
    memcpy(entry->command.bytes, &command, sizeof(command));
    entry->queue->waiting_count++;
    env_command_submit(front->env, &entry->command);
}

static void entry_register(struct uring_entry *entry) {
    const struct front *front = entry->queue->uring->front;

    entry->parts[0] = (struct iovec){entry_header(entry), sizeof(struct abi_uring_header)};
    entry->parts[1] =
        (struct iovec){request_payload(entry->request), front->features.write_bytes_max};
    entry->command.address = (uintptr_t)entry->parts;
    entry->command.size = ARRAY_SIZE(entry->parts);
    entry->commit_id = 0;
    entry_send(entry, COMMAND_REGISTER);
}

/* Its reply lies where the kernel looks for it. */
static void entry_commit(struct uring_entry *entry) {
    if (!entry->queue->thread->over)
        entry_send(entry, COMMAND_COMMIT_AND_FETCH);
}

static void entries_commit(struct uring_entry *entry) {
    while (entry) {
        struct uring_entry *next = entry->next;

        entry_commit(entry);
        entry = next;
    }
}

/* From any thread, to the one that may commit it. */
static void entry_give(struct uring_entry *entry) {
    struct uring_thread *thread = entry->queue->thread;
    struct uring_entry *first;

    if (env_thread_loop(entry->queue->uring->front->env) == thread->loop) {
        entry_commit(entry);
        return;
    }
    first = atomic_load_explicit(&thread->outbox, memory_order_relaxed);
    do {
        entry->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&thread->outbox, &first, entry,
                                                    memory_order_release, memory_order_relaxed));
    if (!first)
        env_loop_wake(thread->loop);
}

/* What a commit that the kernel has refused leaves behind: */
enum refusal {
    REFUSAL_ENDED, /* the kernel has ended the request, and the entry begins anew */
    REFUSAL_EARLY, /* nobody has looked at it yet: once more */
    REFUSAL_FINAL, /* the program waits, and no other way leads to its request */
};

static enum refusal refusal_of(int result) {
    switch (result) {
    case -EIO:
    case -ENOENT:
        return REFUSAL_ENDED;
    case -ENOMEM:
    case -EAGAIN:
    case -EINTR:
        return REFUSAL_EARLY;
    default:
        return REFUSAL_FINAL;
    }
}

/* A queue without any entry, and a request without an answer, would keep programs for ever: so the
 * mount ends (channel_thread.c), and they get an error. */
static void entry_lost(struct uring_entry *entry, int result, bool is_last) {
    struct uring_queue *queue = entry->queue;

    queue->lost_count++;
    if (is_last || queue->lost_count == queue->entry_count) {
        queue->thread->over = true;
        atomic_store(&queue->uring->dev->failure, result);
    }
}

static bool entry_tries_again(struct uring_entry *entry) {
    uint64_t now_ns = env_now_ns(entry->queue->uring->front->env);

    if (entry->refused_ns == 0)
        entry->refused_ns = now_ns;
    return now_ns - entry->refused_ns < REFUSED_NS;
}

static void entry_keep(struct uring_entry *entry) {
    struct uring_thread *thread = entry->queue->thread;

    if (!thread->refused)
        thread->again_ns = env_now_ns(entry->queue->uring->front->env) + AGAIN_NS;
    entry->next = thread->refused;
    thread->refused = entry;
}

static void refused_commit(struct uring_thread *thread, struct env *env) {
    if (thread->refused && env_now_ns(env) >= thread->again_ns)
        entries_commit(TAKE_PTR(thread->refused));
}

/* The kernel has ended the command without a request: for good, as it lets go of the mount; or it
 * does not take what we said of one; or it has no memory for one more entry. */
static void entry_refused(struct uring_entry *entry, int result) {
    bool is_commit = entry->command.operation == COMMAND_COMMIT_AND_FETCH;

    if (result == -ENOTCONN || result == -ECONNABORTED || result == -ECANCELED ||
        !channel_dev_connected(entry->queue->uring->dev))
        entry->queue->thread->over = true;
    else if (is_commit && refusal_of(result) == REFUSAL_ENDED)
        entry_register(entry);
    else if (is_commit && refusal_of(result) == REFUSAL_EARLY && entry_tries_again(entry))
        entry_keep(entry);
    else
        entry_lost(entry, result, is_commit);
}

static void entry_done(struct env_command *command, int result) {
    struct uring_entry *entry = CONTAINER_OF(command, struct uring_entry, command);

    assert(entry->queue->waiting_count > 0);
    entry->queue->waiting_count--;
    if (result < 0) {
        entry_refused(entry, result);
        return;
    }
    entry->refused_ns = 0;
    queue_push(&entry->queue->thread->arrived, &command->node);
}

/* Before the last one is gone: one that is registered then doesn't pick up what waits already. */
static void queue_grow(struct uring_queue *queue) {
    bool is_mixed = fair_is_mixed(&queue->uring->front->fair);
    struct uring_entry *entry;

    while (queue->waiting_count < (uint32_t)(is_mixed ? ENTRIES_SPARE_MIXED : ENTRIES_SPARE) &&
           queue->entry_count < queue->uring->queue_entries_max &&
           atomic_load(&queue->uring->entry_count) < queue->uring->entries_max &&
           entry_new(queue, &entry) == 0)
        entry_register(entry);
}

/* Requests. */

/* For the kernel to find, where it has its entry's memory. */
static void reply_lay(const struct uring_entry *entry, const struct fuse_request *request) {
    struct abi_uring_header *header = entry_header(entry);
    const struct abi_out_header *out = request_reply(request);

    memcpy(header->head, out, sizeof(*out));
    if (request->body_bytes > 0)
        memcpy(request_payload(entry->request), out + 1, request->body_bytes);
    header->payload_bytes = request->body_bytes + (uint32_t)request->data_bytes;
}

void channel_uring_reply(struct fuse_request *request) {
    struct uring_entry *carrier = TAKE_PTR(request->carrier);

    assert(request->data_bytes == 0 ||
           (!carrier && request->body_bytes == 0 && request->data == request_payload(request)));
    reply_lay(carrier ? carrier : entry_of(request), request);
    if (carrier)
        entry_give(carrier);
}

/* Lays header and fixed body right before the payload, where the device would put them. False: it
 * is not what a kernel sends. */
static bool request_gather(struct fuse_request *request, const struct abi_uring_header *header,
                           struct abi_in_header *in) {
    size_t rest_bytes = in->bytes - sizeof(*in);
    size_t body_bytes = rest_bytes - header->payload_bytes;

    if (in->bytes < sizeof(*in) || header->payload_bytes > rest_bytes ||
        header->payload_bytes > request->front->features.write_bytes_max ||
        body_bytes > BODY_BYTES_MAX || body_bytes % sizeof(uint64_t) != 0)
        return false;
    request->head_bytes = (uint32_t)(sizeof(*in) + body_bytes);
    memcpy((uint8_t *)request_head(request), in, sizeof(*in));
    memcpy((uint8_t *)request_head(request) + sizeof(*in), header->body, body_bytes);
    return true;
}

/* What opens a file goes on behind its answer, where its program is killed while a server is away:
 * so it has memory of its own, and the entry only carries it. NULL: there is none, or it opens
 * nothing. */
static struct fuse_request *request_lend(struct uring_entry *entry,
                                         const struct abi_in_header *in) {
    struct fuse_request *lent = NULL;

    if (in->bytes > LENT_BYTES_MAX)
        return NULL;
    if (in->opcode == OPCODE_OPEN || in->opcode == OPCODE_OPENDIR || in->opcode == OPCODE_CREATE ||
        in->opcode == OPCODE_TMPFILE)
        lent = request_pool_take(&entry->queue->uring->front->requests);
    if (lent) {
        memcpy(request_head(lent), request_head(entry->request), in->bytes);
        lent->descriptor = -1;
        lent->carrier = entry;
    }
    return lent;
}

/* What is answered if nothing else is. */
static void reply_default(struct uring_entry *entry, uint64_t unique) {
    struct fuse_request *request = entry->request;

    request->body_bytes = 0;
    request->data_bytes = 0;
    *request_reply(request) = (struct abi_out_header){
        .bytes = sizeof(struct abi_out_header), .error = -EIO, .unique = unique};
    reply_lay(entry, request);
}

/* at_once: the thread has not slept since the one before. */
static void entry_run(struct uring_entry *entry, bool at_once) {
    struct fuse_request *request = entry->request;
    struct fuse_request *lent = NULL;
    const struct abi_uring_header *header = entry_header(entry);
    struct abi_in_header in;
    struct channel_thread *serving = entry->queue->thread->thread;
    bool is_good;

    memcpy(&in, header->head, sizeof(in));
    entry->commit_id = header->commit_id;
    is_good = request_gather(request, header, &in);
    reply_default(entry, in.unique);
    queue_grow(entry->queue);
    if (is_good && (lent = request_lend(entry, &in)))
        request = lent;
    request->thread_index = serving->index;
    aside_took(&serving->aside, in.pid, is_good && fuse_request_is_short(request, in.bytes),
               at_once);
    if (is_good && channel_thread_put_turn(serving, request, in.bytes, at_once))
        return;
    if (is_good && !fuse_request_run(request, in.bytes))
        return;
    if (lent)
        fuse_request_put(serving->all->front, lent);
    else
        entry_commit(entry);
}

void channel_uring_ended(struct fuse_request *request) {
    entry_give(entry_of(request));
}

static bool outbox_commit(struct uring_thread *thread) {
    struct uring_entry *first =
        atomic_exchange_explicit(&thread->outbox, NULL, memory_order_acquire);

    entries_commit(first);
    return first != NULL;
}

/* Threads. */

/* A CPU that was taken offline has moved its thread elsewhere; it may be back. */
static void thread_pin(struct uring_thread *thread, uint64_t now_ns) {
    cpu_set_t cpus;

    if (thread->pinned_ns != 0 &&
        (sched_getcpu() == thread->cpu || now_ns - thread->pinned_ns < PIN_AGAIN_NS))
        return;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)thread->cpu, &cpus);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
    thread->pinned_ns = now_ns;
}

static void queues_register(struct channel_uring *uring, struct uring_thread *thread) {
    for (unsigned i = 0; i < uring->queue_count; i++) {
        struct uring_queue *queue = &uring->queues[i];

        for (uint32_t k = 0; queue->thread == thread && k < queue->entry_count; k++)
            entry_register(queue->entries[k]);
    }
}

/* For how long to sleep: until what was refused is tried again. */
static uint64_t refused_wait_ns(const struct uring_thread *thread, struct env *env) {
    uint64_t now_ns = thread->refused ? env_now_ns(env) : 0;

    return thread->refused ? thread->again_ns - MIN(thread->again_ns, now_ns) : UINT64_MAX;
}

void channel_uring_serve(struct channel_uring *uring, struct channel_thread *serving) {
    struct uring_thread *thread = &uring->threads[serving->index];
    struct env *env = uring->front->env;
    bool at_once = false;

    /* It was for reading the device. */
    fuse_request_put(uring->front, TAKE_PTR(serving->request));
    thread->thread = serving;
    thread->loop = env_thread_loop(env);
    thread_pin(thread, env_now_ns(env));
    queues_register(uring, thread);
    while (!thread->over && !readers_are_closed(&serving->all->readers)) {
        struct queue_node *node = queue_pop(&thread->arrived);

        if (node) {
            entry_run(CONTAINER_OF(node, struct uring_entry, command.node), at_once);
            at_once = true;
            continue;
        }
        channel_thread_run_idle(serving);
        refused_commit(thread, env);
        if (outbox_commit(thread) || thread->arrived.first)
            continue;
        if (fair_wait(&uring->front->fair)) {
            aside_leave(&serving->aside);
            /* Commits go to the kernel, and what has come is seen, before each turn. */
            (void)env_loop_poll(env);
            if (!thread->arrived.first)
                channel_thread_serve_turn(serving, -1);
            continue;
        }
        at_once = false;
        if (atomic_exchange(&serving->lists_ahead, false)) {
            (void)env_loop_poll(env); /* Replies go first. */
            if (ahead_run(uring->front, serving->index))
                atomic_store(&serving->lists_ahead, true); /* More may be wanted. */
            continue;
        }
        (void)env_loop_wait(env, -1, refused_wait_ns(thread, env));
        thread_pin(thread, env_now_ns(env));
    }
}

/* Queues. */

#define ENABLE_PATH "/sys/module/fuse/parameters/enable_uring"

bool channel_uring_offer(bool offers) {
    FILE *file = fopen(ENABLE_PATH, "r+e");
    bool is_good = file && fputc(offers ? 'Y' : 'N', file) != EOF && fflush(file) == 0;

    if (file)
        (void)fclose(file);
    return is_good && channel_uring_offered() == offers;
}

bool channel_uring_is_known(void) {
    return access(ENABLE_PATH, F_OK) == 0;
}

/* EOF: it can't be read. */
static int setting_read(void) {
    FILE *file = fopen(ENABLE_PATH, "re");
    int answer = file ? fgetc(file) : EOF;

    if (file)
        (void)fclose(file);
    return answer;
}

bool channel_uring_offered(void) {
    return setting_read() == 'Y';
}

bool channel_uring_is_off(void) {
    return setting_read() == 'N';
}

unsigned channel_uring_cpus(const char *list) {
    unsigned count = 0;
    unsigned first;
    unsigned last;
    int bytes;

    do {
        bytes = 0;
        if (sscanf(list, "%u%n-%u%n", &first, &bytes, &last, &bytes) < 2)
            last = first;
        if (bytes == 0 || first != count || last < first || last >= UINT16_MAX)
            return 0;
        count = last + 1;
        list += bytes;
    } while (*list++ == ',');
    return count;
}

static unsigned cpus_possible(void) {
    FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
    char list[4096];
    bool is_read;

    if (!file)
        return 0;
    is_read = fgets(list, sizeof(list), file) != NULL;
    (void)fclose(file);
    return is_read ? channel_uring_cpus(list) : 0;
}

static int queue_init(struct channel_uring *uring, struct uring_queue *queue, bool used) {
    struct uring_entry *entry;
    int r = 0;

    queue->entries = calloc(uring->queue_entries_max, sizeof(struct uring_entry *));
    if (!queue->entries)
        return -ERR_NO_MEMORY;
    for (uint32_t i = 0; i < (used ? ENTRIES_FIRST : 1) && r == 0; i++)
        r = entry_new(queue, &entry);
    return r;
}

static int queues_init(struct channel_uring *uring, const cpu_set_t *allowed) {
    unsigned threads = 0;
    int r = 0;

    for (unsigned i = 0; i < uring->queue_count && r == 0; i++) {
        struct uring_queue *queue = &uring->queues[i];
        bool used = i < CPU_SETSIZE && CPU_ISSET(i, allowed);

        queue->uring = uring;
        queue->number = (uint16_t)i;
        queue->thread = &uring->threads[used ? threads : 0];
        if (used)
            uring->threads[threads++].cpu = (int)i;
        r = queue_init(uring, queue, used);
    }
    return r;
}

/* Entries of each queue, so that what threads have at their start, and INIT, find requests, too,
 * and the first thread's ring takes those of all queues that have no thread of their own. Before
 * any request is taken: its memory is had by that, and is not given back. */
static int queues_size(struct channel_uring *uring, struct fuse_problem *problem) {
    uint32_t requests = uring->front->requests.free.capacity;
    uint32_t others;
    uint32_t wanted;

    if (uring->queue_count < uring->thread_count)
        return problem_set(
            problem, -ERR_NOT_SUPPORTED,
            "no FUSE over io_uring: /sys/devices/system/cpu/possible does not number "
            "this machine's CPUs without a gap");
    others = uring->queue_count - uring->thread_count;
    if (ENV_COMMANDS_MAX / (others + 1) < ENTRIES_FIRST)
        return problem_set(problem, -ERR_NOT_SUPPORTED,
                           "no FUSE over io_uring: the machine may have %u CPUs more than this "
                           "process may use, at most %u",
                           others, (unsigned)ENV_COMMANDS_MAX / ENTRIES_FIRST - 1);
    wanted = uring->thread_count * ENTRIES_FIRST + others + uring->front->thread_count + 1;
    if (requests < wanted)
        return problem_set(problem, -ERR_NOT_SUPPORTED,
                           "no FUSE over io_uring: of this mount's %u requests %u are needed for "
                           "it: set mount_requests_max",
                           requests, wanted);
    /* What opens files is lent a third. */
    uring->entries_max = MAX(requests - uring->front->thread_count - requests / LENT_PART,
                             uring->thread_count * ENTRIES_FIRST + others);
    uring->queue_entries_max = MIN((requests - others - 1) / uring->thread_count,
                                   (uint32_t)ENV_COMMANDS_MAX / (others + 1));
    return 0;
}

int channel_uring_new(struct front *front, struct channel_dev *dev,
                      struct channel_uring **ret_uring, struct fuse_problem *problem) {
    struct channel_uring *uring;
    cpu_set_t allowed;
    int r;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return problem_set(problem, -ERR_NOT_SUPPORTED,
                           "no FUSE over io_uring: the machine may have more than %d CPUs",
                           CPU_SETSIZE);
    uring = calloc(1, sizeof(*uring));
    if (!uring)
        return problem_set(problem, -ERR_NO_MEMORY, "no memory for FUSE over io_uring");
    *uring = (struct channel_uring){.front = front,
                                    .dev = dev,
                                    .queue_count = cpus_possible(),
                                    .thread_count = (unsigned)CPU_COUNT(&allowed)};
    uring->queues = calloc(uring->queue_count, sizeof(*uring->queues));
    uring->threads = calloc(uring->thread_count, sizeof(*uring->threads));
    r = queues_size(uring, problem);
    if (r == 0 && (!uring->queues || !uring->threads || queues_init(uring, &allowed) < 0))
        r = problem_set(problem, -ERR_NO_MEMORY, "no memory for FUSE over io_uring");
    if (r < 0) {
        channel_uring_free(uring);
        return r;
    }
    *ret_uring = uring;
    return 0;
}

void channel_uring_free(struct channel_uring *uring) {
    if (!uring)
        return;
    for (unsigned i = 0; uring->queues && i < uring->queue_count; i++) {
        struct uring_queue *queue = &uring->queues[i];

        for (uint32_t k = 0; queue->entries && k < queue->entry_count; k++) {
            queue->entries[k]->request->entry = NULL;
            request_pool_put(&uring->front->requests, queue->entries[k]->request);
            free(queue->entries[k]);
        }
        free(queue->entries);
    }
    free(uring->threads);
    free(uring->queues);
    free(uring);
}

unsigned channel_uring_threads(const struct channel_uring *uring) {
    return uring->thread_count;
}
