/* The thread beside the first one. */
#include "cmd/beside.h"
#include "host/machine.h"
#include "node/local_wait.h"

struct beside {
    void (*run)(void *context);
    void *context;
    struct waiting waiting;
};

static void beside_main(void *context, unsigned index) {
    struct beside *beside = context;

    (void)index;
    beside->run(beside->context);
    waiting_done(&beside->waiting, 0);
}

void beside_run(struct local_cluster *cluster, void (*run)(void *context), void *context) {
    struct env *env = local_cluster_env(cluster);
    struct beside beside = {.run = run, .context = context, .waiting.loop = env_thread_loop(env)};
    struct machine_thread *thread;

    if (machine_thread_begin(beside_main, &beside, &thread) < 0) {
        while (local_cluster_thread_go_on(cluster)) {
        }
        run(context);
        return;
    }
    (void)waiting_end(&beside.waiting, env);
    machine_thread_join(thread);
}
