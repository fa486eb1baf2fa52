/* The same question to several servers at once: numbers [0, count), each sent with a piece. */
#pragma once
#include "client/file.h"

/* False: that one need not be asked. */
typedef bool fan_send_fn(struct operation *operation, struct errand *errand, uint32_t number);
/* Of each answer: what its error becomes. */
typedef int fan_take_fn(struct operation *operation, const struct errand *errand);

void fan_start(struct operation *operation, uint32_t count);
/* Sends what is still to be sent. True when all has been answered; the first error is then in
 * operation->result. take, NULL for none, is given each answer. */
MUST_CHECK bool fan_advance(struct operation *operation, fan_send_fn *send, fan_take_fn *take);
/* For sync: one that was lost while it was asked is no error, as the ledger tells of that. */
MUST_CHECK int sync_take(struct operation *operation, const struct errand *errand);
