/* What the lanes of a process know of a peer in common: whether it is away, since when, and which
 * of them tries on.
 *
 *     answers --a lane breaks, falls silent or can't be joined,--> away
 *        ^      and has calls, or no other one is open              |
 *        '---- a lane is welcomed, or an open one hears something --'
 *
 * Calls end for that also while a lane is open: one that has heard nothing since then may be broken
 * as well, as that of a thread that sleeps, which finds it out when it uses it next.
 *
 * While it is away one lane, the prober, tries on also when nobody waits: so it is known to be away
 * at any moment, and a call whose patience is over needs no attempt of its own. Without a prober
 * (its thread has ended) nothing is known, and the next call finds out.
 *
 * Thread: that of the lane; what is in the peer, any. */
#include "base/bug.h"
#include "env/env.h"
#include "rpc/lane_internal.h"
#include <stdio.h>

uint64_t lane_now(const struct lane *lane) {
    return env_now_ns(lane->thread->lanes->options.env);
}

void lane_say(const struct lane *lane, const char *what, int reason) {
    const struct lanes_options *options = &lane->thread->lanes->options;
    char line[2 * LANE_NAME_BYTES];

    if (options->log) {
        snprintf(line, sizeof line, "%s %s%s%s", lane->peer->name, what, reason < 0 ? ": " : "",
                 lane->refusal ? lane->refusal
                 : reason < 0  ? err_text(reason)
                               : "");
        options->log(options->context, line);
    }
}

void lane_note_open(struct lane *lane, bool is_open) {
    uint32_t index = lane->thread->index;
    _Atomic uint64_t *word = &lane->peer->open_threads[index / 64];

    if (is_open) {
        atomic_fetch_or(word, UINT64_C(1) << index % 64);
        atomic_fetch_add(&lane->peer->open_count, 1);
    } else {
        atomic_fetch_and(word, ~(UINT64_C(1) << index % 64));
        atomic_fetch_sub(&lane->peer->open_count, 1);
    }
}

static uint64_t away_since_ns(const struct lane *lane) {
    return atomic_load_explicit(&lane->peer->away_since_ns, memory_order_relaxed);
}

bool lane_peer_is_away(const struct lane *lane) {
    return away_since_ns(lane) > 0 && atomic_load_explicit(&lane->peer->said, memory_order_relaxed);
}

static bool is_prober(const struct lane *lane) {
    return atomic_load_explicit(&lane->peer->prober, memory_order_relaxed) == lane;
}

static void prober_become(struct lane *lane) {
    const struct lane *nobody = NULL;

    if (atomic_compare_exchange_strong(&lane->peer->prober, &nobody, lane)) {
        atomic_fetch_add(&lane->thread->probe_count, 1);
    }
}

void lane_probe_end(struct lane *lane) {
    if (is_prober(lane)) {
        atomic_store_explicit(&lane->peer->away_since_ns, 0, memory_order_relaxed);
        atomic_store(&lane->peer->prober, NULL);
        atomic_fetch_sub(&lane->thread->probe_count, 1);
    }
}

bool lane_probes(struct lane *lane) {
    if (away_since_ns(lane) == 0) {
        lane_probe_end(lane);
    }
    return is_prober(lane);
}

bool lane_say_away(struct lane *lane, const char *what, int reason) {
    bool first = !atomic_exchange(&lane->peer->said, true);

    if (first) {
        atomic_fetch_add(&lane->thread->lanes->away_count, 1);
        lane_say(lane, what, reason);
    }
    return first;
}

/* Who has calls does not ask whether others have lanes that are open: theirs may be broken as well,
 * which a thread that sleeps finds out when it uses them next. */
void lane_note_away(struct lane *lane, uint64_t since_ns) {
    uint64_t answers = 0;

    if (atomic_load(&lane->peer->open_count) == 0 || lane_is_used(lane)) {
        if (atomic_compare_exchange_strong(&lane->peer->away_since_ns, &answers, since_ns)) {
            atomic_store(&lane->peer->wait_count, 0);
        }
        prober_become(lane);
    }
}

static uint32_t calls_count(const struct list *calls) {
    uint32_t count = 0;

    for (struct list_node *node = calls->head.next; node != &calls->head; node = node->next) {
        count++;
    }
    return count;
}

/* Read by people only, so it may be a little late. */
void lane_note_calls(struct lane *lane) {
    uint64_t since_ns = away_since_ns(lane);
    uint32_t count = since_ns > 0 ? calls_count(&lane->unsent) + calls_count(&lane->sent) : 0;

    if (lane->told_since_ns != since_ns) {
        lane->told_since_ns = since_ns;
        lane->told_count = 0;
    }
    if (count != lane->told_count) {
        atomic_fetch_add_explicit(&lane->peer->wait_count, count - lane->told_count,
                                  memory_order_relaxed);
        lane->told_count = count;
    }
}

static void is_back(struct lane *lane) {
    if (atomic_exchange(&lane->peer->said, false)) {
        atomic_fetch_sub(&lane->thread->lanes->away_count, 1);
        lane_say(lane, "answers again", 0);
    }
    atomic_store_explicit(&lane->peer->away_since_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&lane->peer->refusals, 0, memory_order_relaxed);
    lane_probe_end(lane);
}

void lane_note_welcome(struct lane *lane) {
    is_back(lane);
}

void lane_note_heard(struct lane *lane) {
    if (lane->state == LANE_OPEN && away_since_ns(lane) > 0) {
        is_back(lane);
    }
}

bool call_has_waited(const struct lane_peer *peer, const struct call *call, uint64_t now_ns) {
    uint64_t since_ns = atomic_load_explicit(&peer->away_since_ns, memory_order_relaxed);
    uint64_t end_ns = BUG(NEW_PATIENCE) ? call->deadline_ns : since_ns + call->patience_ns;

    return call->patience_ns > 0 && since_ns > 0 && now_ns >= end_ns &&
           atomic_load_explicit(&peer->prober, memory_order_relaxed);
}

void call_extend(const struct lane *lane, struct call *call) {
    uint64_t since_ns = away_since_ns(lane);

    if (lane->state != LANE_OPEN && call->patience_ns > 0 && call->deadline_ns > 0 &&
        since_ns > 0 && !call->is_extended) {
        call->is_extended = true;
        call->deadline_ns = MAX(call->deadline_ns, since_ns + call->patience_ns);
    }
}
