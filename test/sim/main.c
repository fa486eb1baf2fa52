#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static bool done_flag;
static struct shoal_request request;
static void req_done(struct shoal_request *r) { (void)r; done_flag = true; }
static bool is_done(void *c) { return *(bool *)c; }
static bool ready(void *c) {
    struct world *w = c;
    for (uint32_t i = 0; i < w->options.client_count; i++)
        if (!node_client(&w->clients[i])) return false;
    return true;
}
static int64_t run(struct world *w, struct shoal_request r) {
    request = r; request.done = req_done; done_flag = false;
    node_enter(&w->clients[0]);
    shoal_submit(node_client(&w->clients[0]), &request);
    node_leave(&w->clients[0]);
    int s = sim_run_until(w->sim, sim_now_ns(w->sim) + 60 * NS_PER_S, is_done, &done_flag);
    printf("op %d stop %d result %ld at %.3f ms\n", r.operation, s, (long)request.result, sim_now_ns(w->sim) / 1e6);
    return request.result;
}
int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    struct world_options o;
    struct timespec a, b, c;
    clock_gettime(CLOCK_MONOTONIC, &a);
    world_draw(seed, &o);
    struct world *w = world_new(&o);
    if (argc > 2) sim_trace_to(w->sim, stdout);
    for (uint32_t i = 0; i < w->node_count; i++)
        if (!node_start(&w->nodes[i], UINT64_MAX)) { printf("%s\n", w->failure); return 1; }
    clock_gettime(CLOCK_MONOTONIC, &b);
    int s = sim_run_until(w->sim, 60 * NS_PER_S, ready, w);
    printf("stop %d at %.3f ms\n", s, sim_now_ns(w->sim) / 1e6);
    if (run(w, (struct shoal_request){.operation = SHOAL_CREATE, .ino = 1, .name = "a", .name_bytes = 1, .mode = 0644, .flags = 3}) < 0) return 1;
    struct shoal_file *f = request.file;
    static char buf[200000], back[200000];
    memset(buf, 7, sizeof buf);
    run(w, (struct shoal_request){.operation = SHOAL_WRITE, .file = f, .data = buf, .size = sizeof buf});
    run(w, (struct shoal_request){.operation = SHOAL_FSYNC, .file = f});
    run(w, (struct shoal_request){.operation = SHOAL_READ, .file = f, .data = back, .size = sizeof buf});
    printf("same %d\n", memcmp(buf, back, sizeof buf) == 0);
    for (int i = 1; i < 1 + (int)o.ost_count + 1; i++) { node_power(&w->nodes[i]); if (!node_start(&w->nodes[i], UINT64_MAX)) { printf("%s\n", w->failure); return 1; } }
    memset(back, 0, sizeof back);
    run(w, (struct shoal_request){.operation = SHOAL_READ, .file = f, .data = back, .size = sizeof buf});
    printf("same %d\n", memcmp(buf, back, sizeof buf) == 0);
    clock_gettime(CLOCK_MONOTONIC, &c);
    for (size_t i = 0;; i++) { uint64_t v; const char *n = sim_counter_at(w->sim, i, &v); if (!n) break; printf("%s %lu\n", n, v); }
    printf("hash %016lx\n", sim_trace_hash(w->sim));
    world_free(w);
    printf("open %.1f ms run %.1f ms\n", (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6, (c.tv_sec - b.tv_sec) * 1e3 + (c.tv_nsec - b.tv_nsec) / 1e6);
}
