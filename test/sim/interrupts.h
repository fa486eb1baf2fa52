/* Programs that are interrupted while they wait for an answer, as by a signal: in half of the
 * seeds, by a generator of their own, a third of the questions, and two of three that open
 * something, at a moment that is drawn.
 *
 * What that ends is only what waits for a server that is away; it may have taken effect, wholly or
 * not at all, as all that is lost, so the other oracles judge it as they judge that. Opens, creates
 * and closes go on for a program that was interrupted, and end for one that is gone. Whoever opened
 * it has no use for it any more, so an open that is granted behind its interrupt is given back, as
 * a mount does: nothing may stay open for it (holds.h), and nothing wait (waits.h).
 *
 * Twice in such a seed a client hears nothing of a metadata target for a while, which hears of it
 * all the same: so what was asked there and interrupted has mostly taken effect.
 *
 * The oracle here: nobody is told of an interrupt that did not happen, or that does not end it.
 *
 * Thread: the world's. */
#pragma once
#include "base/prng.h"
#include "world.h"
#include <shoal/shoal.h>

struct interrupts {
    struct prng prng;
    struct world *world;
    uint64_t operations;
    bool is_on;
    uint32_t cuts;       /* that were made */
    uint64_t cut_at;     /* operations submitted at the next one */
    uint64_t met;        /* answers that they ended */
    uint64_t given_back; /* opens that were granted behind one */
};

/* Of a question. */
struct interrupt {
    const struct world *world;
    uint64_t at_ns; /* 0: there is none */
    int wish;       /* what the library is told then */
    bool heard;     /* it was */
};

/* operations: of the whole seed. */
void interrupts_init(struct interrupts *interrupts, struct world *world, uint64_t operations);
/* Where it is time to: a link was cut just now, which the caller heals after so long; 0: none. */
uint64_t interrupts_cut(struct interrupts *interrupts, uint64_t submitted);
/* Of the question that is about to be asked: perhaps one. Before the request leaves. */
void interrupts_draw(struct interrupts *interrupts, struct interrupt *interrupt,
                     const struct shoal_request *request);
/* As `interrupted` answers. */
int interrupt_ask(struct interrupt *interrupt);
/* It was answered: what that was is counted. False: it cannot be. */
bool interrupts_answered(struct interrupts *interrupts, const struct interrupt *interrupt,
                         const struct shoal_request *request);
/* What the question has opened is to be given back. */
bool interrupt_takes_back(const struct interrupt *interrupt, const struct shoal_request *request);
