/* What a client's end over packets knows of the servers that it calls: which of them are away.
 *
 *     heard --awaited, and silent for silent_ns--> asked, each tick --as long again--> away
 *       ^                                            |                                  |
 *       '------ a packet of it, an answer or not ----+----------------------------------'
 *
 * As with lanes: a server that is at work on what it was asked says that it is there; the time for
 * which one is away counts from when it should first have been heard; and it is asked on while
 * nobody waits, so that it is known to be back. A question is a packet of four zero bytes, and so
 * is its answer, by whoever serves the log.
 *
 * Thread: the world's. Memory: a few words a server, from the heap. */
#pragma once
#include "rpc/awaited.h"
#include "rpc/call.h"
#include "rpc/sim_net.h"

struct env;
struct sim_aways;

/* silent_ns: above 0. */
struct sim_aways *sim_aways_new(struct sim_port *port, struct env *env, uint64_t silent_ns);
/* Takes NULL. */
void sim_aways_free(struct sim_aways *aways);
/* A call is awaited; no more. One that is sent again is awaited once. */
void sim_aways_await(struct sim_aways *aways, struct log_id log);
void sim_aways_over(struct sim_aways *aways, struct log_id log);
void sim_aways_heard(struct sim_aways *aways, uint64_t address);
/* Asks those that are silent; the calls that are awaited of one that is away wait for as long as
 * their patience is from then on, once each. */
void sim_aways_tick(struct sim_aways *aways, const struct awaited *awaited);
/* Of log 0: whether anybody is. */
bool sim_aways_has(const struct sim_aways *aways, struct log_id log);
/* The call's patience is over. */
bool sim_aways_waited(const struct sim_aways *aways, const struct call *call);

/* A question, or its answer. */
bool sim_aways_is_question(const struct sim_packet *packet);
void sim_aways_answer(struct sim_port *port, uint64_t to);
