/* Lanes and gates over real sockets, both ends on one thread. Tests wait for conditions; the limit
 * is only for one that fails. */
#pragma once
#include "env/env_linux.h"
#include "env/env_stream.h"
#include "keys/tls.h"
#include "rpc/connection.h"
#include "rpc/gate.h"
#include "rpc/transport.h"
#include "rpc/worker.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 300, HELD_MAX = 4096, BULK_BYTES = 1 << 20, LOGS_MAX = 4 };
#define LIMIT_NS (20 * NS_PER_S)

struct lane_bench {
    char folder[32];
    struct address address;
    struct env *env;
    struct worker worker;
    struct log_table *logs;
    struct gate *gate;
    struct lanes *lanes;
    struct lane_thread *thread;
    struct rpc *rpc;
    struct actor server, origin;
    bool holds;
    struct call *held[HELD_MAX];
    uint32_t held_count, held_answered, ran_count;
    struct call calls[CALLS];
    uint8_t *bulk_out, *bulk_in;
    uint32_t done_count, asks_again;
    char said[512]; /* the last two lines */
    uint32_t asked_as;
    int admits;
    struct key_ring *ring;
    struct tls_context *serving, *calling; /* NULL: a Unix socket */
    enum link_encryption encryption, encryption_of_gate;
    bool serves_itself, keeps; /* options of lanes */
    uint32_t node;             /* that the lanes are of; 0: none */
    uint64_t gate_silent_ns;
    uint32_t requests_max;
};
extern struct lane_bench it;
extern const struct log_id log_served;

/* Streams that were accepted and get no answer. */
enum { SILENT_MAX = 64 };
extern struct env_stream *silent[SILENT_MAX];
extern uint32_t silent_count;

/* How the tests are run. */
struct way {
    bool without_ring;
    bool by_tcp;
    bool of_mount; /* its key, for reading, with root squashed */
    enum link_encryption encryption;
};

/* The reply tells what came; bulk comes back turned. */
void serve(struct call *call);
void say(void *context, const char *line);
void gate_begin(uint8_t cluster);
void gate_end(void);
void thread_begin(void);
void lanes_begin(uint8_t cluster);
void lanes_end(void);
void silent_event(struct env_stream *stream, enum env_stream_event event, int reason);
void accept_silent(struct env_listener *listener, struct env_stream *stream);
int set_up(void **state);
void answer_held(void);
int tear_down(void **state);
void turn(void);
void turn_between_ticks(void); /* of the lanes */
bool is_held(void *count);
void run_until(bool (*is_so)(void *context), void *context);
void wait_done(uint32_t count);
struct call *ask(uint32_t number, uint16_t opcode, size_t bulk_bytes);

#define LANE_WAYS(test)                                                                            \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down),                                      \
        LANE_WAY(test, "without io_uring", without_ring), LANE_WAY(test, "by TCP", plain),         \
        LANE_WAY(test, "in TLS", encrypted)
#define LANE_WAY(test, words, way) {#test " " words, test, set_up, tear_down, &(way)}
