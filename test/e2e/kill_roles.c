/* See kill_roles.h.
 *
 * Daemons are started by a process that has no file of the mount: one that forks while threads have
 * some open closes them in the child, which waits for the answer of a daemon that is away.
 *
 * Thread: the main one conducts. What it shares with those that work lies under the lock. */
#include "kill_roles.h"
#include "kill_daemon.h"
#include "kill_threads.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROLES_MAX = 4, NODES_MAX = 8, MOUNTS = 2, FEW = 40, MANY = 1200, FIRST_NODE = 9 };

struct role {
    const char *name;
    uint64_t drawn;
    uint64_t kills;
    uint64_t felt;
    uint64_t longest_ms;
};

struct node {
    struct role *role;
    struct kill_daemon daemon;
    uint64_t killed_ms;  /* in this round; 0: not */
    uint64_t gone_ms;    /* when it was killed last, maybe while it started */
    uint64_t back_ms;    /* 0: it is away */
    uint64_t longest_ms; /* of the calls that were under way meanwhile */
};

struct stage {
    struct kill_threads threads;
    struct prng prng;
    const char *mounts[MOUNTS];
    pid_t mount_processes[MOUNTS];
    struct role roles[ROLES_MAX];
    unsigned role_count;
    struct node nodes[NODES_MAX];
    unsigned node_count;
    struct role *first; /* who is killed first; NULL: any */
    struct role *last;  /* who was killed last */
    uint64_t operations;
    int starter; /* a socket */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t answered;       /* in this round */
    uint64_t wanted;         /* at this many something happens: */
    struct node *victims[2]; /* these are killed; NULL: none */
    bool happened;
};

static void stage_lock(struct stage *stage) {
    pthread_mutex_lock(&stage->lock);
}

static void stage_unlock(struct stage *stage) {
    pthread_mutex_unlock(&stage->lock);
}

/* By the thread whose call was acknowledged, so nothing comes between. */
static void victims_kill(struct stage *stage) {
    for (size_t i = 0; i < ARRAY_SIZE(stage->victims) && stage->victims[i]; i++) {
        struct node *node = stage->victims[i];

        kill(node->daemon.process, SIGKILL);
        node->killed_ms = node->gone_ms = kill_now_ms();
        node->back_ms = 0;
        node->longest_ms = 0;
    }
}

/* A call ended; each node that was away while it was under way counts it. */
static void call_note(struct stage *stage, uint64_t began_ms) {
    uint64_t took_ms = kill_now_ms() - began_ms;

    for (unsigned i = 0; i < stage->node_count; i++) {
        struct node *node = &stage->nodes[i];

        if (node->killed_ms > 0 && (node->back_ms == 0 || began_ms <= node->back_ms)) {
            node->longest_ms = MAX(node->longest_ms, took_ms);
        }
    }
}

static void acknowledged(struct kill_threads *threads, uint64_t began_ms) {
    struct stage *stage = threads->context;

    stage_lock(stage);
    call_note(stage, began_ms);
    if (++stage->answered >= stage->wanted && !stage->happened) {
        victims_kill(stage);
        stage->happened = true;
        pthread_cond_signal(&stage->changed);
    }
    stage_unlock(stage);
}

static void broken(struct kill_threads *threads) {
    struct stage *stage = threads->context;

    stage_lock(stage);
    pthread_cond_signal(&stage->changed);
    stage_unlock(stage);
}

static uint64_t draw_count(struct stage *stage) {
    return prng_between(&stage->prng, 1, prng_chance(&stage->prng, 1, 4) ? FEW : MANY);
}

/* Waits for as many more acknowledgements; at the last one the victims are killed. Returns earlier
 * where a thread has found something: joining them tells it. */
static void acknowledgements_await(struct stage *stage, uint64_t count, struct node *victims[2]) {
    struct timespec end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += KILL_HANG_S;
    stage_lock(stage);
    stage->victims[0] = victims ? victims[0] : NULL;
    stage->victims[1] = victims ? victims[1] : NULL;
    stage->wanted = stage->answered + count;
    stage->happened = false;
    while (!stage->happened && !atomic_load(&stage->threads.stopped)) {
        if (pthread_cond_timedwait(&stage->changed, &stage->lock, &end) == ETIMEDOUT) {
            kill_give_up("at work: no call is answered any more");
        }
    }
    stage_unlock(stage);
}

/* Of those that were drawn least, but for the last one. */
static struct role *role_draw(struct stage *stage) {
    struct role *found = NULL;
    unsigned alike = 0;

    for (unsigned i = 0; i < stage->role_count; i++) {
        struct role *role = &stage->roles[i];

        if (role == stage->last || (found && role->drawn > found->drawn)) {
            continue;
        }
        alike = found && role->drawn == found->drawn ? alike + 1 : 1;
        if (prng_below(&stage->prng, alike) == 0) {
            found = role;
        }
    }
    found->drawn++;
    stage->last = found;
    return found;
}

static struct node *node_of(struct stage *stage, const struct role *role) {
    struct node *found = NULL;
    unsigned count = 0;

    for (unsigned i = 0; i < stage->node_count; i++) {
        if (stage->nodes[i].role == role && prng_below(&stage->prng, ++count) == 0) {
            found = &stage->nodes[i];
        }
    }
    return found;
}

/* What the starter is told. */
struct start_order {
    unsigned node;
    bool is_killed;
    uint64_t after_ms;
};

/* Ends with the other end of its socket. */
static _Noreturn void starter_run(struct stage *stage, int socket) {
    struct start_order order;

    while (read(socket, &order, sizeof order) == (ssize_t)sizeof order) {
        struct kill_daemon *daemon = &stage->nodes[order.node].daemon;

        daemon->process = 0;
        if (order.is_killed) {
            kill_daemon_start_and_kill(daemon, order.after_ms);
        } else {
            (void)kill_daemon_start(daemon);
        }
        if (write(socket, &daemon->process, sizeof daemon->process) !=
            (ssize_t)sizeof daemon->process) {
            break;
        }
    }
    _exit(0);
}

static void starter_begin(struct stage *stage) {
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        kill_give_up("no socket can be made");
    }
    pid_t process = fork();
    if (process < 0) {
        kill_give_up("no process can be made");
    }
    close(ends[process > 0]);
    if (process == 0) {
        starter_run(stage, ends[1]);
    }
    stage->starter = ends[0];
}

static void starter_tell(struct stage *stage, struct node *node, bool is_killed) {
    const struct start_order order = {
        .node = (unsigned)(node - stage->nodes),
        .is_killed = is_killed,
        .after_ms = is_killed ? prng_below(&stage->prng, KILL_START_MS_MAX) : 0};
    pid_t process;

    if (write(stage->starter, &order, sizeof order) != (ssize_t)sizeof order ||
        read(stage->starter, &process, sizeof process) != (ssize_t)sizeof process) {
        kill_give_up("a daemon could not be started");
    }
    if (!is_killed) {
        node->daemon.process = process;
    }
}

/* It may be killed again while it starts, or behind that, when calls have been answered. */
static void node_bring_back(struct stage *stage, struct node *node) {
    kill_daemon_wait(&node->daemon);
    if (prng_chance(&stage->prng, 1, 4)) {
        starter_tell(stage, node, true);
        node->gone_ms = kill_now_ms();
    }
    starter_tell(stage, node, false);
    stage_lock(stage);
    node->back_ms = kill_now_ms();
    stage_unlock(stage);
}

/* Two roles: one after the other, or both at the same acknowledgement. */
static void round_kill(struct stage *stage, struct node *victims[2], bool at_once) {
    struct node *first[2] = {victims[0], at_once ? victims[1] : NULL};
    struct node *second[2] = {victims[1], NULL};
    unsigned back = (unsigned)prng_below(&stage->prng, 2);

    acknowledgements_await(stage, draw_count(stage), first);
    if (atomic_load(&stage->threads.stopped)) {
        return;
    }
    if (at_once) {
        node_bring_back(stage, victims[back]);
        node_bring_back(stage, victims[1 - back]);
    } else {
        node_bring_back(stage, victims[0]);
        acknowledgements_await(stage, draw_count(stage), second);
        if (atomic_load(&stage->threads.stopped)) {
            return;
        }
        node_bring_back(stage, victims[1]);
    }
    acknowledgements_await(stage, draw_count(stage), NULL);
}

/* After the threads have ended. */
static void victim_count(const struct node *node) {
    struct role *role = node->role;
    uint64_t away_ms = node->back_ms - node->gone_ms;

    role->kills++;
    role->felt += 2 * node->longest_ms >= away_ms;
    role->longest_ms = MAX(role->longest_ms, node->longest_ms);
}

static void one_round(struct stage *stage, unsigned round) {
    struct role *first = stage->first ? stage->last = stage->first : role_draw(stage);
    struct role *second = role_draw(stage);
    struct node *victims[2] = {node_of(stage, first), node_of(stage, second)};
    bool at_once = prng_chance(&stage->prng, 1, 4);

    for (unsigned i = 0; i < stage->node_count; i++) {
        stage->nodes[i].killed_ms = 0;
    }
    stage->answered = 0;
    stage->wanted = UINT64_MAX;
    atomic_store(&stage->threads.stopped, false);
    kill_threads_begin(&stage->threads);
    round_kill(stage, victims, at_once);
    atomic_store(&stage->threads.stopped, true);
    kill_threads_join(&stage->threads, "at work");
    kill_threads_close(&stage->threads);
    kill_threads_compare(&stage->threads, stage->mounts[0], "by its mount");
    kill_threads_compare(&stage->threads, stage->mounts[1], "by another mount");
    for (unsigned i = 0; i < 2; i++) {
        victim_count(victims[i]);
    }
    stage->operations += stage->answered;
    printf("round %u: %s and %s killed%s, longest calls %llu and %llu ms, %llu operations\n", round,
           first->name, second->name, at_once ? " at once" : "",
           (unsigned long long)victims[0]->longest_ms, (unsigned long long)victims[1]->longest_ms,
           (unsigned long long)stage->answered);
    fflush(stdout);
}

/* Cuts WHAT:VALUE in place; NULL: it is none. */
static char *value_of(char *word) {
    char *colon = strrchr(word, ':');

    if (colon) {
        *colon++ = '\0';
    }
    return colon;
}

static struct role *role_find(struct stage *stage, const char *name) {
    for (unsigned i = 0; i < stage->role_count; i++) {
        if (strcmp(stage->roles[i].name, name) == 0) {
            return &stage->roles[i];
        }
    }
    return NULL;
}

/* NAME:DIRECTORY of a daemon that runs. */
static bool node_read(struct stage *stage, const char *shoal, char *word) {
    char *directory = value_of(word);
    struct role *role = role_find(stage, word);
    struct node *node = &stage->nodes[stage->node_count];

    if (!directory || stage->node_count == NODES_MAX || (!role && stage->role_count == ROLES_MAX)) {
        return false;
    }
    if (!role) {
        role = &stage->roles[stage->role_count++];
        role->name = word;
    }
    stage->node_count++;
    *node = (struct node){.role = role, .daemon = {.shoal = shoal, .directory = directory}};
    node->daemon.process = kill_daemon_holder(&node->daemon);
    return node->daemon.process > 0;
}

static bool words_read(struct stage *stage, int argc, char **argv) {
    bool good = argc > FIRST_NODE + 1;

    for (int i = 0; good && i < MOUNTS; i++) {
        char *process = value_of(argv[FIRST_NODE - MOUNTS + i]);

        stage->mounts[i] = argv[FIRST_NODE - MOUNTS + i];
        stage->mount_processes[i] = process ? (pid_t)strtol(process, NULL, 10) : 0;
        good = stage->mount_processes[i] > 0;
    }
    for (int i = FIRST_NODE; good && i < argc; i++) {
        good = node_read(stage, argv[1], argv[i]);
    }
    if (!good) {
        return false;
    }
    stage->first = role_find(stage, argv[3]);
    stage->threads.count = (unsigned)strtoul(argv[6], NULL, 0);
    return stage->role_count > 1 && stage->threads.count > 0 &&
           stage->threads.count <= KILL_THREADS_MAX &&
           (stage->first || strcmp(argv[3], "all") == 0);
}

static void stage_begin(struct stage *stage, uint64_t seed) {
    pthread_condattr_t clock;

    pthread_mutex_init(&stage->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&stage->changed, &clock);
    pthread_condattr_destroy(&clock);
    prng_init(&stage->prng, seed);
    stage->threads.acknowledged = acknowledged;
    stage->threads.broken = broken;
    stage->threads.context = stage;
    for (unsigned i = 0; i < MOUNTS; i++) {
        kill_take_along(&stage->mount_processes[i]);
    }
    starter_begin(stage);
    kill_threads_make(&stage->threads, stage->mounts[0], &stage->prng);
}

int kill_roles_main(int argc, char **argv) {
    static struct stage stage;

    if (!words_read(&stage, argc, argv)) {
        fprintf(stderr, "usage: kill SHOAL --roles ROLE SEED ROUNDS THREADS MOUNT:PROCESS "
                        "OTHER:PROCESS NAME:DIRECTORY...\n");
        return 2;
    }
    unsigned rounds = (unsigned)strtoul(argv[5], NULL, 0);
    stage_begin(&stage, strtoull(argv[4], NULL, 0));
    for (unsigned round = 1; round <= rounds; round++) {
        one_round(&stage, round);
    }
    printf("seed %s: %u rounds, %llu operations, all that was acknowledged is there\n", argv[4],
           rounds, (unsigned long long)stage.operations);
    for (unsigned i = 0; i < stage.role_count; i++) {
        const struct role *role = &stage.roles[i];

        printf("kills of %s: %llu, %llu of them waited for, the longest call %llu ms\n", role->name,
               (unsigned long long)role->kills, (unsigned long long)role->felt,
               (unsigned long long)role->longest_ms);
    }
    return 0;
}
