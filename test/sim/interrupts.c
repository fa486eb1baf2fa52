/* The contract is in interrupts.h. */
#include "interrupts.h"
#include "client/client.h"

enum { SEEDS = 2, QUESTIONS = 3, GONE = 4, LATE = 4, SOON_MS = 200, CUTS = 2 };

void interrupts_init(struct interrupts *interrupts, struct world *world, uint64_t operations) {
    *interrupts = (struct interrupts){.world = world, .operations = operations};
    prng_init(&interrupts->prng, world->options.seed ^ UINT64_C(0x7369676e616c73));
    interrupts->is_on = prng_chance(&interrupts->prng, 1, SEEDS);
    interrupts->cut_at = prng_between(&interrupts->prng, operations / 4, operations / 2);
}

/* For as long as it takes to know that the target is away, and what was asked to be interrupted. */
static uint64_t cut_ns(const struct world_options *options) {
    uint64_t known_ns =
        2 * options->lane_silent_ns + (options->streams ? options->lane_connect_ns : 0);

    return known_ns + 2 * SOON_MS * NS_PER_MS;
}

uint64_t interrupts_cut(struct interrupts *interrupts, uint64_t submitted) {
    struct world *world = interrupts->world;
    uint64_t operations = interrupts->operations;

    if (!interrupts->is_on || interrupts->cuts == CUTS || submitted < interrupts->cut_at) {
        return 0;
    }
    struct node *client =
        &world->clients[prng_below(&interrupts->prng, world->options.client_count)];
    struct node *mdt = world_any_mdt(world, &interrupts->prng);
    if (!node_client(client) || !node_is_up(mdt)) {
        return 0;
    }
    interrupts->cuts++;
    interrupts->cut_at = prng_between(&interrupts->prng, 3 * operations / 4, 15 * operations / 16);
    world_cut(world, mdt, client);
    return cut_ns(&world->options);
}

static bool opens(const struct shoal_request *request) {
    return request->operation == SHOAL_OPEN || request->operation == SHOAL_CREATE;
}

/* What goes on for a program that was interrupted. */
static bool goes_on(const struct shoal_request *request) {
    return opens(request) || request->operation == SHOAL_RELEASE;
}

void interrupts_draw(struct interrupts *interrupts, struct interrupt *interrupt,
                     const struct shoal_request *request) {
    const struct world *world = interrupts->world;
    struct prng *prng = &interrupts->prng;

    *interrupt = (struct interrupt){.world = world};
    if (!interrupts->is_on || !prng_chance(prng, opens(request) ? 2 : 1, QUESTIONS)) {
        return;
    }
    uint64_t most_ns =
        prng_chance(prng, 1, LATE) ? world->options.request_timeout_ns : SOON_MS * NS_PER_MS;
    interrupt->at_ns = sim_now_ns(world->sim) + 1 + prng_below(prng, most_ns);
    interrupt->wish = prng_chance(prng, goes_on(request) ? 2 : 1, GONE) ? SHOAL_ABANDONED : 1;
}

int interrupt_ask(struct interrupt *interrupt) {
    bool is_due = interrupt->at_ns > 0 && sim_now_ns(interrupt->world->sim) >= interrupt->at_ns;

    interrupt->heard = interrupt->heard || is_due;
    return is_due ? interrupt->wish : 0;
}

bool interrupts_answered(struct interrupts *interrupts, const struct interrupt *interrupt,
                         const struct shoal_request *request) {
    if (client_failure(request) != -ERR_INTERRUPTED) {
        return true;
    }
    interrupts->met++;
    return interrupt->heard && (interrupt->wish == SHOAL_ABANDONED || !goes_on(request));
}

bool interrupt_takes_back(const struct interrupt *interrupt, const struct shoal_request *request) {
    return interrupt->heard && opens(request) && request->result == 0;
}
