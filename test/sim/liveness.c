/* The contract is in liveness.h. */
#include "liveness.h"
#include "waits.h"
#include "client/client.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_BYTES = 1000, LARGE_BYTES = 100000, LARGE_AT = 50000, CUT_TO = 70000 };
enum { NAME_BYTES = 24, TEXT_BYTES = 300 };

enum name { NAME_FILE, NAME_LINK, NAME_MOVED, NAME_DIRECTORY, NAME_COUNT };

struct caller {
    struct liveness *liveness;
    struct node *node;
    uint64_t incarnation; /* of the node that asks; 0: none has yet */
    size_t step;
    bool open, over;
    bool no_space; /* the large write found none */
    uint64_t asked_ns;
    uint64_t begin; /* of the piece of a listing that was asked for last */
    struct shoal_request request;
    char names[NAME_COUNT][NAME_BYTES];
    bool listed[NAME_COUNT];
    uint64_t ino, directory;
    struct shoal_file *file, *listing;
    uint8_t data[LARGE_BYTES];
};

struct liveness {
    struct world *world;
    bool no_space_may;
    uint64_t waits_ns; /* the last answer came; 0: it has not */
    uint64_t answers, no_space, longest_ns, waited_ns;
    char failure[TEXT_BYTES];
    struct caller callers[WORLD_CLIENTS_MAX];
};

static void name_set(struct caller *caller, enum name name) {
    caller->request.name = caller->names[name];
    caller->request.name_bytes = strlen(caller->names[name]);
}

static void new_name_set(struct caller *caller, enum name name) {
    caller->request.new_name = caller->names[name];
    caller->request.new_name_bytes = strlen(caller->names[name]);
}

static uint8_t byte_at(const struct caller *caller, size_t at) {
    return (uint8_t)(at * 7 + caller->node->index + caller->incarnation);
}

static void ask_create(struct caller *caller) {
    name_set(caller, NAME_FILE);
    caller->request.ino = SHOAL_INO_ROOT;
    caller->request.mode = 0644;
    caller->request.flags = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE | SHOAL_OPEN_EXCLUSIVE;
}

static void ask_file(struct caller *caller) {
    caller->request.file = caller->file;
}

static void data_fill(struct caller *caller) {
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        caller->data[i] = byte_at(caller, i);
    }
}

static void ask_small(struct caller *caller) {
    ask_file(caller);
    data_fill(caller);
    caller->request.data = caller->data;
    caller->request.size = SMALL_BYTES;
}

static void ask_large(struct caller *caller) {
    ask_file(caller);
    data_fill(caller);
    caller->request.data = caller->data;
    caller->request.size = LARGE_BYTES;
    caller->request.offset = LARGE_AT;
}

static void ask_read(struct caller *caller) {
    ask_file(caller);
    memset(caller->data, 0, LARGE_BYTES);
    caller->request.data = caller->data;
    caller->request.size = LARGE_BYTES;
    caller->request.offset = LARGE_AT;
}

static void ask_cut(struct caller *caller) {
    ask_file(caller);
    caller->request.ino = caller->ino;
    caller->request.set = SHOAL_SET_SIZE;
    caller->request.attributes.size = CUT_TO;
}

static void ask_attributes(struct caller *caller) {
    caller->request.ino = caller->ino;
}

static void ask_link(struct caller *caller) {
    caller->request.ino = caller->ino;
    caller->request.new_ino = SHOAL_INO_ROOT;
    new_name_set(caller, NAME_LINK);
}

static void ask_mkdir(struct caller *caller) {
    name_set(caller, NAME_DIRECTORY);
    caller->request.ino = SHOAL_INO_ROOT;
    caller->request.mode = 0755;
}

static void ask_rename(struct caller *caller) {
    name_set(caller, NAME_LINK);
    new_name_set(caller, NAME_MOVED);
    caller->request.ino = SHOAL_INO_ROOT;
    caller->request.new_ino = caller->directory;
}

static void ask_look(struct caller *caller) {
    name_set(caller, NAME_MOVED);
    caller->request.ino = caller->directory;
}

static void ask_open(struct caller *caller) {
    caller->request.ino = SHOAL_INO_ROOT;
    caller->request.flags = SHOAL_OPEN_READ | SHOAL_OPEN_DIRECTORY;
}

static int entry_take(void *context, const struct shoal_entry *entry) {
    struct caller *caller = context;

    for (int i = 0; i < NAME_COUNT; i++) {
        caller->listed[i] =
            caller->listed[i] || (entry->name_bytes == strlen(caller->names[i]) &&
                                  memcmp(entry->name, caller->names[i], entry->name_bytes) == 0);
    }
    caller->request.offset = entry->cookie;
    return 0;
}

static void ask_listing(struct caller *caller) {
    memset(caller->listed, 0, sizeof caller->listed);
    caller->request.file = caller->listing;
    caller->request.entry = entry_take;
    caller->request.entry_context = caller;
}

static void ask_close_listing(struct caller *caller) {
    caller->request.file = caller->listing;
}

static void ask_unlink(struct caller *caller) {
    name_set(caller, NAME_FILE);
    caller->request.ino = SHOAL_INO_ROOT;
}

static void ask_rmdir(struct caller *caller) {
    name_set(caller, NAME_DIRECTORY);
    caller->request.ino = SHOAL_INO_ROOT;
}

static void ask_nothing(struct caller *caller) {
    (void)caller;
}

static bool made(struct caller *caller) {
    caller->ino = caller->request.attributes.ino;
    caller->file = caller->request.file;
    return caller->file;
}

static bool wrote_small(struct caller *caller) {
    return caller->request.result == SMALL_BYTES;
}

static bool wrote_large(struct caller *caller) {
    return caller->no_space || caller->request.result == LARGE_BYTES;
}

static bool read_right(struct caller *caller) {
    bool right = caller->no_space || caller->request.result == LARGE_BYTES;

    for (size_t i = 0; right && !caller->no_space && i < LARGE_BYTES; i++) {
        right = caller->data[i] == byte_at(caller, i);
    }
    return right;
}

static bool sized(struct caller *caller) {
    return caller->request.attributes.size == CUT_TO;
}

static bool made_directory(struct caller *caller) {
    caller->directory = caller->request.attributes.ino;
    return caller->directory;
}

static bool linked(struct caller *caller) {
    return caller->request.attributes.nlink == 2;
}

static bool found(struct caller *caller) {
    return caller->request.attributes.ino == caller->ino;
}

static bool opened(struct caller *caller) {
    caller->listing = caller->request.file;
    return caller->listing;
}

/* Of the root, once its end was reached. */
static bool listed(struct caller *caller) {
    return caller->listed[NAME_FILE] && caller->listed[NAME_DIRECTORY] &&
           !caller->listed[NAME_LINK];
}

static bool told_space(struct caller *caller) {
    return caller->request.statfs.bytes_total > 0 && caller->request.statfs.files_total > 0;
}

static bool anything(struct caller *caller) {
    (void)caller;
    return true;
}

static const struct {
    enum shoal_operation operation;
    const char *name;
    void (*ask)(struct caller *caller);
    bool (*is_right)(struct caller *caller); /* of one that succeeded */
} steps[] = {
    {SHOAL_CREATE, "create", ask_create, made},
    {SHOAL_WRITE, "small write", ask_small, wrote_small},
    {SHOAL_FSYNC, "fsync of what is small", ask_file, anything},
    {SHOAL_WRITE, "large write", ask_large, wrote_large},
    {SHOAL_FSYNC, "fsync", ask_file, anything},
    {SHOAL_READ, "read", ask_read, read_right},
    {SHOAL_SETATTR, "truncate", ask_cut, sized},
    {SHOAL_FLUSH, "flush", ask_file, anything},
    {SHOAL_GETATTR, "getattr", ask_attributes, sized},
    {SHOAL_LINK, "link", ask_link, linked},
    {SHOAL_MKDIR, "mkdir", ask_mkdir, made_directory},
    {SHOAL_RENAME, "rename", ask_rename, anything},
    {SHOAL_LOOKUP, "lookup", ask_look, found},
    {SHOAL_OPEN, "open of the root", ask_open, opened},
    {SHOAL_READDIR, "listing", ask_listing, listed},
    {SHOAL_RELEASE, "close of the root", ask_close_listing, anything},
    {SHOAL_UNLINK, "unlink", ask_look, anything},
    {SHOAL_UNLINK, "last unlink", ask_unlink, anything},
    {SHOAL_RMDIR, "rmdir", ask_rmdir, anything},
    {SHOAL_RELEASE, "close", ask_file, anything},
    {SHOAL_STATFS, "statfs", ask_nothing, told_space},
    {SHOAL_SYNC, "sync", ask_nothing, anything},
};

static void answered(struct shoal_request *request);

static void say(struct caller *caller, const char *what) {
    struct liveness *liveness = caller->liveness;

    if (!liveness->failure[0]) {
        snprintf(liveness->failure, sizeof liveness->failure,
                 "when all is over, the %s of %s %s (%" PRId64 ")", steps[caller->step].name,
                 sim_process_name(caller->node->process), what, caller->request.result);
    }
}

static void submit(struct caller *caller) {
    caller->open = true;
    shoal_submit(node_client(caller->node), &caller->request);
}

static void ask(void *context) {
    struct caller *caller = context;
    struct shoal_client *client = node_client(caller->node);

    if (!client || client_is_fenced(client) || caller->incarnation != caller->node->incarnation) {
        return; /* Its next life begins anew. */
    }
    caller->request = (struct shoal_request){
        .operation = steps[caller->step].operation, .done = answered, .context = caller};
    steps[caller->step].ask(caller);
    caller->asked_ns = sim_now_ns(caller->liveness->world->sim);
    submit(caller);
}

/* Storage targets that are full say so of new blocks; what is kept back for all else is there. */
static bool is_excused(struct caller *caller) {
    bool excused = caller->liveness->no_space_may && caller->request.result == -ENOSPC &&
                   caller->request.operation == SHOAL_WRITE;

    caller->no_space = caller->no_space || excused;
    caller->liveness->no_space += excused;
    return excused;
}

static void answered(struct shoal_request *request) {
    struct caller *caller = request->context;
    struct liveness *liveness = caller->liveness;
    uint64_t took_ns = sim_now_ns(liveness->world->sim) - caller->asked_ns;
    uint64_t offset = request->offset;

    caller->open = false;
    liveness->answers++;
    liveness->longest_ns = MAX(liveness->longest_ns, took_ns);
    sim_trace(liveness->world->sim, "alive", caller->step, (uint64_t)request->result);
    if (request->operation == SHOAL_READDIR && request->result >= 0 && offset != caller->begin) {
        caller->begin = offset; /* There may be more. */
        submit(caller);
        return;
    }
    bool excused = is_excused(caller);
    if (request->result < 0 && !excused) {
        say(caller, "fails");
    } else if (!excused && !steps[caller->step].is_right(caller)) {
        say(caller, "is wrong");
    } else if (took_ns > RULE_ALIVE_S * NS_PER_S) {
        say(caller, "takes too long");
    }
    caller->step++;
    caller->over = caller->step == ARRAY_SIZE(steps) || liveness->failure[0];
    if (!caller->over) {
        sim_schedule(liveness->world->sim, caller->node->process, NS_PER_US, ask, caller);
    }
}

static void caller_begin(struct caller *caller) {
    static const char *const words[NAME_COUNT] = {"file", "link", "moved", "directory"};

    caller->incarnation = caller->node->incarnation;
    caller->step = 0;
    caller->no_space = false;
    caller->begin = 0;
    for (int i = 0; i < NAME_COUNT; i++) {
        snprintf(caller->names[i], NAME_BYTES, "%s.%" PRIu32 ".%" PRIu64, words[i],
                 caller->node->index, caller->incarnation);
    }
    caller->asked_ns = sim_now_ns(caller->liveness->world->sim);
    sim_schedule(caller->liveness->world->sim, caller->node->process, NS_PER_US, ask, caller);
}

/* False: it has had all answers. */
static bool caller_look(struct caller *caller) {
    uint64_t now_ns = sim_now_ns(caller->liveness->world->sim);
    const struct shoal_client *client = node_client(caller->node);

    if (!caller->over && client && !client_is_fenced(client) &&
        caller->incarnation != caller->node->incarnation) {
        caller_begin(caller);
    } else if (!caller->over && now_ns - caller->asked_ns > RULE_ALIVE_S * NS_PER_S) {
        say(caller, caller->open ? "takes too long" : "cannot be asked for");
    }
    return !caller->over;
}

struct liveness *liveness_new(struct world *world, bool no_space) {
    struct liveness *liveness = calloc(1, sizeof *liveness);

    if (!liveness) {
        abort();
    }
    liveness->world = world;
    liveness->no_space_may = no_space;
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        liveness->callers[i] = (struct caller){
            .liveness = liveness, .node = &world->clients[i], .asked_ns = sim_now_ns(world->sim)};
    }
    return liveness;
}

void liveness_free(struct liveness *liveness) {
    free(liveness);
}

bool liveness_look(struct liveness *liveness, char failure[600]) {
    uint64_t now_ns = sim_now_ns(liveness->world->sim);
    char waits[WAITS_TEXT_BYTES];
    bool asking = false;

    for (uint32_t i = 0; i < liveness->world->options.client_count; i++) {
        asking = caller_look(&liveness->callers[i]) || asking;
    }
    if (liveness->failure[0]) {
        snprintf(failure, 600, "%s", liveness->failure);
        return true;
    }
    if (asking) {
        return false;
    }
    liveness->waits_ns = liveness->waits_ns ? liveness->waits_ns : now_ns;
    liveness->waited_ns = now_ns - liveness->waits_ns;
    if (!waits_any(liveness->world, waits)) {
        return true;
    }
    if (liveness->waited_ns > RULE_WAITS_S * NS_PER_S) {
        snprintf(failure, 600, "%d s after the last answer something waits at %s", RULE_WAITS_S,
                 waits);
        return true;
    }
    return false;
}

void liveness_sum(const struct liveness *liveness, struct seed_report *report) {
    report->counts[TOTAL_ALIVE] = liveness->answers;
    report->counts[TOTAL_ALIVE_NO_SPACE] = liveness->no_space;
    report->alive_ns = liveness->longest_ns;
    report->waited_ns = liveness->waited_ns;
}
