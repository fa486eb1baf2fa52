/* The contract is in stragglers.h. */
#include "stragglers.h"
#include "base/prng.h"
#include "lists.h"
#include "meta/rows.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AGAIN_AFTER = 100, /* operations, when something came between */
    TRIES_MAX = 4,
    FILE_BYTES = 40000, /* so that it is in chunks */
    WRITE_BYTES = 4096,
    WRITES_BEYOND = 8192, /* of its end, also */
    AFTER_MS = 1500,      /* the eviction */
};

enum stage {
    STAGE_WAITING,
    STAGE_BORN, /* the client starts anew, so that it has nothing else open */
    STAGE_CREATE,
    STAGE_WRITE,
    STAGE_FSYNC,
    STAGE_RELEASE,
    STAGE_SYNCED, /* the close is on disk: nothing says that it was open */
    STAGE_OPEN,
    STAGE_OPENED,
    STAGE_CUT,
    STAGE_ENDING,
    STAGE_OVER
};

/* A client that asks one thing at a time. */
struct hand {
    struct stragglers *stragglers;
    struct node *node; /* NULL: none */
    uint64_t incarnation;
    struct shoal_request request;
    struct shoal_file *file;
    bool is_asking;
    bool was_named; /* the session had ended when it asked */
    bool turn;      /* what it asks next */
    uint64_t asked_ns;
    uint8_t data[FILE_BYTES];
};

struct stragglers {
    struct world *world;
    struct prng prng; /* of its own, so that it changes nothing of other seeds */
    enum stage stage;
    uint64_t begins_at; /* operations submitted by then */
    uint32_t tries;
    struct hand writer, reader;
    uint64_t ino;
    struct session_id session;
    uint64_t close_position; /* of the metadata target */
    uint64_t close_life;
    uint64_t heal_ns;
    uint64_t named_position; /* when its list was first seen to name the session; 0: not yet */
    uint64_t named_life;
    bool is_named;    /* and that is on disk */
    uint64_t told_ns; /* 0: not yet */
    bool is_refused;
    uint64_t count, told, refused;
    char failure[200];
};

struct stragglers *stragglers_new(struct world *world, uint64_t operations, bool leaves) {
    struct stragglers *stragglers = calloc(1, sizeof *stragglers);

    if (!stragglers) {
        abort();
    }
    stragglers->world = world;
    stragglers->writer.stragglers = stragglers;
    stragglers->reader.stragglers = stragglers;
    prng_init(&stragglers->prng, world->options.seed ^ UINT64_C(0x7374726167676c65));
    /* By a new number of keys its capability would be refused, and it asks for no other one. */
    bool is_due = leaves && !world->options.keys;
    stragglers->stage = is_due ? STAGE_WAITING : STAGE_OVER;
    stragglers->begins_at = prng_between(&stragglers->prng, operations / 8, operations / 2);
    return stragglers;
}

void stragglers_free(struct stragglers *stragglers) {
    free(stragglers);
}

static uint64_t now_of(const struct stragglers *stragglers) {
    return sim_now_ns(stragglers->world->sim);
}

static struct node *mdt_of(const struct stragglers *stragglers) {
    return world_mdt_of(stragglers->world, stragglers->ino ? stragglers->ino : SHOAL_INO_ROOT);
}

static bool hand_lives(const struct hand *hand) {
    return hand->node && hand->node->incarnation == hand->incarnation && node_client(hand->node) &&
           !client_is_fenced(node_client(hand->node));
}

/* Its request is with a client that runs, if without its session. */
static bool hand_is_held(const struct hand *hand) {
    return hand->is_asking && hand->node && hand->node->incarnation == hand->incarnation &&
           node_client(hand->node);
}

/* Any client that has a session, and is not the other hand's; none while its request is held. */
static bool hand_find(struct hand *hand, const struct node *other) {
    struct world *world = hand->stragglers->world;
    uint32_t count = world->options.client_count;
    uint32_t from = (uint32_t)prng_below(&hand->stragglers->prng, count);

    if (hand_is_held(hand)) {
        return false;
    }
    hand->node = NULL;
    hand->file = NULL;
    hand->is_asking = false;
    for (uint32_t i = 0; i < count && !hand->node; i++) {
        struct node *node = &world->clients[(from + i) % count];

        if (node != other && !node->is_stopped && node_client(node) &&
            !client_is_fenced(node_client(node))) {
            hand->node = node;
            hand->incarnation = node->incarnation;
        }
    }
    return hand->node;
}

static void answered(struct shoal_request *request);

static void hand_ask(struct hand *hand, struct shoal_request request) {
    request.done = answered;
    request.context = hand;
    hand->request = request;
    hand->is_asking = true;
    hand->was_named = hand->stragglers->is_named;
    hand->asked_ns = now_of(hand->stragglers);
    node_enter(hand->node);
    shoal_submit(node_client(hand->node), &hand->request);
    node_leave(hand->node);
}

/* Each step of the writer, until it has the file open again. */
static void writer_answered(struct stragglers *stragglers, const struct shoal_request *request) {
    struct hand *writer = &stragglers->writer;

    if (request->operation == SHOAL_CREATE || request->operation == SHOAL_OPEN) {
        writer->file = request->result == 0 ? request->file : NULL;
        stragglers->ino = request->result == 0 ? request->attributes.ino : stragglers->ino;
    }
    if (request->result < 0) {
        stragglers->stage = STAGE_WAITING;
        return;
    }
    if (stragglers->stage == STAGE_RELEASE) {
        const struct node *mdt = mdt_of(stragglers);

        writer->file = NULL;
        stragglers->close_life = mdt->incarnation;
        stragglers->close_position = UINT64_MAX;
    }
    stragglers->stage++;
}

static void write_answered(struct stragglers *stragglers, const struct shoal_request *request) {
    const struct hand *writer = &stragglers->writer;

    if (request->result < 0) {
        stragglers->is_refused = true;
        stragglers->refused++;
    } else if (stragglers->told_ns != 0 && writer->asked_ns > stragglers->told_ns) {
        snprintf(stragglers->failure, sizeof stragglers->failure,
                 "%s, whose session has ended, has written to %" PRIx64 " %.3f ms after another "
                 "client was told its size",
                 sim_process_name(writer->node->process), stragglers->ino,
                 (double)(writer->asked_ns - stragglers->told_ns) / 1e6);
    }
}

static void reader_answered(struct stragglers *stragglers, const struct shoal_request *request) {
    struct hand *reader = &stragglers->reader;

    if (request->operation == SHOAL_RELEASE) {
        reader->file = NULL;
        return;
    }
    if (request->operation == SHOAL_OPEN && request->result == 0) {
        reader->file = request->file;
    }
    if (request->result == 0 && reader->was_named) {
        stragglers->told += !stragglers->is_refused;
        stragglers->told_ns = stragglers->told_ns ? stragglers->told_ns : now_of(stragglers);
    }
}

static void answered(struct shoal_request *request) {
    struct hand *hand = request->context;
    struct stragglers *stragglers = hand->stragglers;

    hand->is_asking = false;
    if (hand == &stragglers->reader) {
        reader_answered(stragglers, request);
    } else if (stragglers->stage < STAGE_CUT) {
        writer_answered(stragglers, request);
    } else if (request->operation == SHOAL_WRITE) {
        write_answered(stragglers, request);
    }
}

/* Nothing of what was done to the file so far can be lost. */
static bool close_is_synced(struct stragglers *stragglers) {
    struct node *mdt = mdt_of(stragglers);

    if (!node_is_up(mdt) || mdt->incarnation != stragglers->close_life) {
        stragglers->stage = STAGE_WAITING; /* It may be there, or be gone. */
        return false;
    }
    const struct kv *kv = group_kv(node_group(mdt));
    if (stragglers->close_position == UINT64_MAX) {
        stragglers->close_position = kv_position(kv);
    }
    return kv_synced_position(kv) >= stragglers->close_position;
}

static void writer_make(struct stragglers *stragglers) {
    struct hand *writer = &stragglers->writer;
    const uint32_t flags = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE;
    static const char name[] = "straggler";

    switch (stragglers->stage) {
    case STAGE_CREATE:
        hand_ask(writer, (struct shoal_request){.operation = SHOAL_CREATE,
                                                .ino = SHOAL_INO_ROOT,
                                                .name = name,
                                                .name_bytes = sizeof name - 1,
                                                .mode = 0644,
                                                .flags = flags});
        break;
    case STAGE_WRITE:
        hand_ask(writer, (struct shoal_request){.operation = SHOAL_WRITE,
                                                .file = writer->file,
                                                .data = writer->data,
                                                .size = FILE_BYTES});
        break;
    case STAGE_FSYNC:
        hand_ask(writer, (struct shoal_request){.operation = SHOAL_FSYNC, .file = writer->file});
        break;
    case STAGE_RELEASE:
        hand_ask(writer, (struct shoal_request){.operation = SHOAL_RELEASE, .file = writer->file});
        break;
    case STAGE_SYNCED:
        stragglers->stage += close_is_synced(stragglers);
        break;
    case STAGE_OPEN:
        hand_ask(writer, (struct shoal_request){
                             .operation = SHOAL_OPEN, .ino = stragglers->ino, .flags = flags});
        break;
    default:
        break;
    }
}

/* Cuts the writer off, and storage targets from the manager. */
static struct stragglers_turn cut(struct stragglers *stragglers) {
    struct world *world = stragglers->world;
    const struct node *writer = stragglers->writer.node;
    uint64_t timeout_ns = world->options.session_timeout_ns;

    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct node *other = &world->nodes[i];

        if (other->role == NODE_OST) {
            world_cut(world, world->manager, other);
        } else if (other != writer) {
            world_cut(world, writer, other);
            world_cut(world, other, writer);
        }
    }
    stragglers->session = client_session(node_client(stragglers->writer.node));
    stragglers->stage = STAGE_CUT;
    stragglers->count++;
    stragglers->heal_ns = now_of(stragglers) + timeout_ns + AFTER_MS * NS_PER_MS +
                          prng_below(&stragglers->prng, timeout_ns / 2);
    return (struct stragglers_turn){.powerless = mdt_of(stragglers),
                                    .heal_ns = stragglers->heal_ns};
}

static void name_look(struct stragglers *stragglers) {
    struct node *mdt = mdt_of(stragglers);

    if (stragglers->is_named || !node_is_up(mdt) || mdt->is_stopped || !node_group(mdt)) {
        return;
    }
    if (stragglers->named_life != mdt->incarnation) {
        stragglers->named_life = mdt->incarnation;
        stragglers->named_position = 0;
    }
    const struct kv *kv = group_kv(node_group(mdt));
    if (stragglers->named_position == 0 && lists_name(mdt, stragglers->session)) {
        stragglers->named_position = kv_position(kv) + 1;
    }
    stragglers->is_named =
        stragglers->named_position > 0 && kv_synced_position(kv) >= stragglers->named_position;
}

static void writer_write(struct stragglers *stragglers) {
    struct hand *writer = &stragglers->writer;
    uint64_t most = FILE_BYTES + WRITES_BEYOND - WRITE_BYTES;

    if (!writer->is_asking && !stragglers->is_refused) {
        hand_ask(writer, (struct shoal_request){.operation = SHOAL_WRITE,
                                                .file = writer->file,
                                                .data = writer->data,
                                                .size = WRITE_BYTES,
                                                .offset = prng_below(&stragglers->prng, most)});
    }
}

static void reader_look(struct stragglers *stragglers, bool ends) {
    struct hand *reader = &stragglers->reader;

    if (reader->is_asking) {
        return;
    }
    if (reader->file) {
        hand_ask(reader, (struct shoal_request){.operation = SHOAL_RELEASE, .file = reader->file});
    } else if (!ends) {
        reader->turn = !reader->turn;
        hand_ask(reader,
                 (struct shoal_request){.operation = reader->turn ? SHOAL_GETATTR : SHOAL_OPEN,
                                        .ino = stragglers->ino,
                                        .flags = SHOAL_OPEN_READ});
    }
}

static void play_cut(struct stragglers *stragglers) {
    bool ends = now_of(stragglers) >= stragglers->heal_ns;

    name_look(stragglers);
    if (!hand_lives(&stragglers->reader)) {
        (void)hand_find(&stragglers->reader, stragglers->writer.node);
    }
    if (stragglers->reader.node && !stragglers->reader.node->is_stopped) {
        reader_look(stragglers, ends);
    }
    if (ends || !hand_lives(&stragglers->writer)) {
        stragglers->stage = STAGE_ENDING;
    } else if (!stragglers->writer.node->is_stopped) {
        writer_write(stragglers);
    }
}

/* It has asked nothing else, and would not begin to: another life of it does. */
static struct node *writer_leave(struct hand *writer) {
    struct node *node = writer->node;

    writer->node = NULL;
    return node_is_up(node) && node->incarnation == writer->incarnation ? node : NULL;
}

static struct stragglers_turn play_ending(struct stragglers *stragglers) {
    struct hand *reader = &stragglers->reader;
    struct hand *writer = &stragglers->writer;

    if (hand_lives(reader) && (reader->is_asking || reader->file)) {
        if (!reader->node->is_stopped) {
            reader_look(stragglers, true);
        }
        return (struct stragglers_turn){0};
    }
    if (now_of(stragglers) < stragglers->heal_ns) {
        return (struct stragglers_turn){0};
    }
    stragglers->stage = STAGE_OVER;
    return (struct stragglers_turn){.killed = writer_leave(writer)};
}

/* What was made before is used again, if it is there. */
static struct stragglers_turn begin(struct stragglers *stragglers, uint64_t submitted) {
    struct hand *writer = &stragglers->writer;

    stragglers->begins_at = submitted + AGAIN_AFTER;
    if (stragglers->tries == TRIES_MAX || !hand_find(writer, NULL)) {
        return (struct stragglers_turn){0};
    }
    stragglers->tries++;
    stragglers->stage = STAGE_BORN;
    return (struct stragglers_turn){.killed = writer->node};
}

static void born(struct stragglers *stragglers) {
    struct hand *writer = &stragglers->writer;

    if (writer->node->incarnation != writer->incarnation && node_client(writer->node)) {
        writer->incarnation = writer->node->incarnation;
        stragglers->stage = STAGE_CREATE;
    }
}

static struct stragglers_turn opened(struct stragglers *stragglers, bool may_cut) {
    const struct node *manager = stragglers->world->manager;
    bool all_run = node_is_up(mdt_of(stragglers)) && node_is_up(manager) && !manager->is_stopped;

    if (may_cut && all_run) {
        return cut(stragglers);
    }
    stragglers->stage = STAGE_RELEASE; /* once more */
    return (struct stragglers_turn){0};
}

struct stragglers_turn stragglers_go_on(struct stragglers *stragglers, uint64_t submitted,
                                        bool may_cut, char failure[600]) {
    struct hand *writer = &stragglers->writer;
    struct stragglers_turn turn = {0};

    if (stragglers->failure[0]) {
        snprintf(failure, 600, "%s", stragglers->failure);
    }
    if (stragglers->stage > STAGE_BORN && stragglers->stage < STAGE_CUT && !hand_lives(writer)) {
        stragglers->stage = STAGE_WAITING;
    }
    if (stragglers->stage == STAGE_WAITING && writer->node) {
        turn.killed = writer_leave(writer);
    } else if (stragglers->stage == STAGE_WAITING && submitted >= stragglers->begins_at) {
        turn = begin(stragglers, submitted);
    } else if (stragglers->stage == STAGE_BORN) {
        born(stragglers);
    } else if (stragglers->stage == STAGE_OPENED) {
        turn = opened(stragglers, may_cut);
    } else if (stragglers->stage == STAGE_CUT) {
        play_cut(stragglers);
    } else if (stragglers->stage == STAGE_ENDING) {
        turn = play_ending(stragglers);
    } else if (stragglers->stage < STAGE_OPENED && stragglers->stage > STAGE_BORN &&
               !writer->is_asking && !writer->node->is_stopped) {
        writer_make(stragglers);
    }
    return turn;
}

bool stragglers_are_due(const struct stragglers *stragglers) {
    return stragglers->stage == STAGE_OPENED;
}

bool stragglers_has(const struct stragglers *stragglers, const struct node *client) {
    bool plays = stragglers->stage > STAGE_BORN && stragglers->stage < STAGE_OVER &&
                 stragglers->writer.incarnation == client->incarnation;

    return stragglers->writer.node == client && (plays || stragglers->stage == STAGE_BORN);
}

bool stragglers_need(const struct stragglers *stragglers, const struct node *node) {
    return stragglers->stage == STAGE_CUT &&
           (node == stragglers->writer.node || node->role == NODE_MANAGER);
}

bool stragglers_are_over(const struct stragglers *stragglers) {
    return stragglers->stage != STAGE_CUT && stragglers->stage != STAGE_ENDING;
}

uint64_t stragglers_count(const struct stragglers *stragglers) {
    return stragglers->count;
}

uint64_t stragglers_told(const struct stragglers *stragglers) {
    return stragglers->told;
}

uint64_t stragglers_refused(const struct stragglers *stragglers) {
    return stragglers->refused;
}
