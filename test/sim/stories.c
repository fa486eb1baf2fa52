/* The stories, their player, and what of a trace is kept. */
#include "stories.h"
#include "kv/kv_mem.h"
#include "kv/log_format.h"
#include "meta/rows.h"
#include "world.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STORY_STEPS_MAX = 16, DATA_BYTES = 200000, STEP_S = 30, WAIT_S = 3, LINE_BYTES = 600 };

enum step_kind {
    STEP_NONE,
    STEP_ASK,
    STEP_KILL,
    STEP_POWER,
    STEP_START,
    STEP_WAIT,
    STEP_FLIP,    /* the first bit of the disk log's first batch; a second time: back */
    STEP_DAMAGE,  /* the row of the file's inode below; likewise */
    STEP_REFUSED, /* a start is, as damage was found */
};
enum story_node { ON_MDT, ON_OTHER_MDT, ON_OST };

struct step {
    enum step_kind kind;
    enum story_node node;
    enum shoal_operation operation; /* of STEP_ASK: on the file that is open, or on the root */
    const char *verb;               /* its name */
    const char *name;
    const char *new_name;
    uint64_t size; /* to write or read, or to cut to */
    uint8_t byte;  /* to write, or to be read everywhere */
    bool fails;
};

struct story {
    const char *name;
    struct step steps[STORY_STEPS_MAX];
    uint64_t checkpoint_ns; /* 0: none by time */
    uint32_t mdt_count;     /* 0: one */
};

#define ASK(what, ...) {.kind = STEP_ASK, .operation = SHOAL_##what, .verb = #what, __VA_ARGS__}
#define KILL(who) {.kind = STEP_KILL, .node = who}
#define POWER(who) {.kind = STEP_POWER, .node = who}
#define START(who) {.kind = STEP_START, .node = who}
#define WAIT {.kind = STEP_WAIT}
#define FLIP(who) {.kind = STEP_FLIP, .node = who}
#define DAMAGE {.kind = STEP_DAMAGE}
#define REFUSED(who) {.kind = STEP_REFUSED, .node = who}

static const struct story stories[] = {
    {.name = "power-of-an-ost",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 100000, .byte = 'a'),
               ASK(FSYNC, .size = 0), ASK(WRITE, .size = 4096, .byte = 'b'), ASK(FSYNC, .size = 0),
               POWER(ON_OST), START(ON_OST), ASK(READ, .size = 4096, .byte = 'b'),
               ASK(RELEASE, .size = 0), WAIT}},
    {.name = "unlinked-and-open",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 70000, .byte = 'a'),
               ASK(UNLINK, .name = "a"), KILL(ON_MDT), START(ON_MDT),
               ASK(READ, .size = 70000, .byte = 'a'), ASK(LOOKUP, .name = "a", .fails = true),
               ASK(RELEASE, .size = 0), WAIT}},
    {.name = "small-file-grows",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 4000, .byte = 'a'),
               ASK(FSYNC, .size = 0), ASK(WRITE, .size = 8000, .byte = 'a'), POWER(ON_OST),
               START(ON_OST), ASK(READ, .size = 4000, .byte = 'a'), ASK(RELEASE, .size = 0),
               ASK(CREATE, .name = "b"), ASK(WRITE, .size = 4096, .byte = 'b'),
               ASK(WRITE, .size = 8000, .byte = 'b'), ASK(FSYNC, .size = 0), POWER(ON_OST),
               START(ON_OST), ASK(READ, .size = 8000, .byte = 'b'), ASK(RELEASE, .size = 0)}},
    {.name = "old-bytes-move",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 4000, .byte = 'a'), WAIT,
               ASK(WRITE, .size = 8000, .byte = 'a'), POWER(ON_OST), START(ON_OST),
               ASK(READ, .size = 4000, .byte = 'a'), ASK(RELEASE, .size = 0)}},
    {.name = "rename-over",
     .steps = {ASK(CREATE, .name = "new"), ASK(WRITE, .size = 10000, .byte = 'n'),
               ASK(FSYNC, .size = 0), ASK(RELEASE, .size = 0), ASK(CREATE, .name = "old"),
               ASK(WRITE, .size = 3000, .byte = 'o'), ASK(RENAME, .name = "new", .new_name = "old"),
               KILL(ON_MDT), START(ON_MDT), ASK(LOOKUP, .name = "new", .fails = true),
               ASK(LOOKUP, .name = "old"), ASK(RELEASE, .size = 0), WAIT}},
    {.name = "truncate-and-power",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 150000, .byte = 'a'),
               ASK(FSYNC, .size = 0), ASK(SETATTR, .size = 5000), POWER(ON_MDT), POWER(ON_OST),
               START(ON_MDT), START(ON_OST), ASK(READ, .size = 5000, .byte = 'a'),
               ASK(RELEASE, .size = 0), WAIT}},
    {.name = "rot-of-a-log",
     .steps = {ASK(CREATE, .name = "a"), ASK(FSYNC, .size = 0), ASK(RELEASE, .size = 0),
               ASK(CREATE, .name = "b"), ASK(FSYNC, .size = 0), POWER(ON_MDT), FLIP(ON_MDT),
               REFUSED(ON_MDT), FLIP(ON_MDT), START(ON_MDT), ASK(LOOKUP, .name = "a"),
               ASK(LOOKUP, .name = "b"), ASK(RELEASE, .size = 0), WAIT}},
    {.name = "rot-of-a-row",
     .steps = {ASK(CREATE, .name = "b"), ASK(RELEASE, .size = 0), ASK(CREATE, .name = "a"),
               ASK(RELEASE, .size = 0), WAIT, KILL(ON_MDT), DAMAGE, START(ON_MDT),
               ASK(LOOKUP, .name = "a", .fails = true), ASK(LOOKUP, .name = "b"), KILL(ON_MDT),
               DAMAGE, START(ON_MDT), ASK(LOOKUP, .name = "a")},
     .checkpoint_ns = NS_PER_S},
    {.name = "growth-after-power",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 20000, .byte = 'a'),
               ASK(SETATTR, .size = 0), ASK(RELEASE, .size = 0), ASK(SYNC, .size = 0),
               ASK(OPEN, .size = 0), ASK(WRITE, .size = 30000, .byte = 'b'),
               ASK(RELEASE, .size = 0), POWER(ON_MDT), START(ON_MDT), ASK(SETATTR, .size = 20000),
               ASK(OPEN, .size = 0), ASK(READ, .size = 20000, .byte = 0), ASK(RELEASE, .size = 0)}},
    {.name = "halves",
     .steps = {ASK(MKDIR, .name = "a"), ASK(MKDIR, .name = "b"), ASK(MKDIR, .name = "c"),
               ASK(LOOKUP, .name = "a"), ASK(LOOKUP, .name = "b"), ASK(LOOKUP, .name = "c"),
               ASK(RENAME, .name = "a", .new_name = "b"), KILL(ON_OTHER_MDT), START(ON_OTHER_MDT),
               ASK(RENAME, .name = "b", .new_name = "c"), POWER(ON_MDT), START(ON_MDT),
               ASK(RMDIR, .name = "c"), ASK(LOOKUP, .name = "c", .fails = true), WAIT},
     .mdt_count = 2},
};

struct player {
    const struct story *story;
    struct world *world;
    FILE *trace;
    struct shoal_request request;
    struct shoal_file *file;
    uint64_t ino;
    bool answered;
    uint8_t data[DATA_BYTES];
    char problem[200];
};

static void answered(struct shoal_request *request) {
    ((struct player *)request->context)->answered = true;
}

static bool is_answered(void *context) {
    return ((struct player *)context)->answered;
}

static bool has_session(void *context) {
    return node_client(&((struct player *)context)->world->clients[0]) != NULL;
}

static bool wait_for_ns(struct player *player, uint64_t time_ns, bool (*until)(void *context)) {
    struct sim *sim = player->world->sim;

    return sim_run_until(sim, sim_now_ns(sim) + time_ns, until, player) == SIM_DONE;
}

static bool wait_for(struct player *player, bool (*until)(void *context)) {
    return wait_for_ns(player, STEP_S * NS_PER_S, until);
}

static bool opens(const struct step *step) {
    return step->operation == SHOAL_CREATE || step->operation == SHOAL_OPEN;
}

static struct shoal_request request_of(struct player *player, const struct step *step) {
    struct shoal_request request = {
        .operation = step->operation,
        .ino = step->name ? SHOAL_INO_ROOT : player->ino,
        .name = step->name,
        .name_bytes = step->name ? strlen(step->name) : 0,
        .new_ino = SHOAL_INO_ROOT,
        .new_name = step->new_name,
        .new_name_bytes = step->new_name ? strlen(step->new_name) : 0,
        .file = step->name ? NULL : player->file,
        .mode = 0644,
        .flags = opens(step) ? SHOAL_OPEN_READ | SHOAL_OPEN_WRITE : 0,
        .data = player->data,
        .size = step->size,
        .done = answered,
        .context = player,
    };

    if (step->operation == SHOAL_WRITE) {
        memset(player->data, step->byte, step->size);
    } else if (step->operation == SHOAL_SETATTR) {
        request.set = SHOAL_SET_SIZE;
        request.attributes.size = step->size;
    }
    return request;
}

static bool is_as_written(const struct player *player, const struct step *step) {
    if (player->request.result != (int64_t)step->size) {
        return false;
    }
    for (size_t i = 0; i < step->size; i++) {
        if (player->data[i] != step->byte) {
            return false;
        }
    }
    return true;
}

static bool ask(struct player *player, const struct step *step) {
    struct node *client = &player->world->clients[0];
    bool reads = step->operation == SHOAL_READ;

    player->answered = false;
    player->request = request_of(player, step);
    fprintf(player->trace, "> %s %s %s %" PRIu64 "\n", step->verb, step->name ? step->name : "",
            step->new_name ? step->new_name : "", step->size);
    node_enter(client);
    shoal_submit(node_client(client), &player->request);
    node_leave(client);
    if (!wait_for(player, is_answered)) {
        return false;
    }
    fprintf(player->trace, "< %" PRId64 "\n", player->request.result);
    if (step->operation == SHOAL_RELEASE) {
        player->file = NULL;
    } else if (opens(step) && player->request.result == 0) {
        player->file = player->request.file;
        player->ino = player->request.attributes.ino;
    }
    return (player->request.result < 0) == step->fails && (!reads || is_as_written(player, step));
}

static bool flip(struct player *player, struct node *node) {
    fprintf(player->trace, "> flips a bit of %s's log\n", sim_process_name(node->process));
    return sim_disk_flip_bit(node->process, "kv/log", (uint64_t)DISK_LOG_REGION_START * 8);
}

static bool damage(struct player *player) {
    struct kv_key key = key_inode((struct ino){player->ino});

    fprintf(player->trace, "> damages the row of an inode\n");
    return kv_mem_store_damage(player->world->mdts->store, &key) == 0;
}

static bool is_refused(struct player *player, struct node *node) {
    char problem[256];
    int r = node_try(node, problem);

    fprintf(player->trace, "< %s: %s\n", err_name(r), problem);
    return r == -ERR_CORRUPT;
}

static bool step_play(struct player *player, const struct step *step) {
    struct node *node =
        step->node == ON_OST ? player->world->osts : player->world->mdts + (step->node - ON_MDT);

    switch (step->kind) {
    case STEP_ASK:
        return ask(player, step);
    case STEP_KILL:
        node_kill(node);
        return true;
    case STEP_POWER:
        node_power(node);
        return true;
    case STEP_START:
        return node_start(node, UINT64_MAX);
    case STEP_WAIT:
        player->answered = false;
        return !wait_for_ns(player, WAIT_S * NS_PER_S, is_answered);
    case STEP_FLIP:
        return flip(player, node);
    case STEP_DAMAGE:
        return damage(player);
    case STEP_REFUSED:
        return is_refused(player, node);
    case STEP_NONE:
        break;
    }
    return false;
}

static void story_run(struct player *player) {
    struct world *world = player->world;

    for (uint32_t i = 0; i < world->node_count; i++) {
        if (!node_start(&world->nodes[i], UINT64_MAX)) {
            snprintf(player->problem, sizeof player->problem, "a node cannot start");
            return;
        }
    }
    if (!wait_for(player, has_session)) {
        snprintf(player->problem, sizeof player->problem, "the client gets no session");
        return;
    }
    sim_trace_to(world->sim, player->trace);
    for (size_t i = 0; i < STORY_STEPS_MAX; i++) {
        const struct step *step = &player->story->steps[i];

        if (step->kind == STEP_NONE) {
            break;
        }
        if (!step_play(player, step)) {
            snprintf(player->problem, sizeof player->problem, "step %zu went wrong (%" PRId64 ")",
                     i + 1, player->request.result);
            return;
        }
    }
}

/* Without the digits behind the word. */
static void number_drop(char *line, const char *word) {
    char *at = strstr(line, word);

    if (at) {
        at += strlen(word);
        size_t digits = strspn(at, "0123456789");

        memmove(at, at + digits, strlen(at + digits) + 1);
    }
}

/* Of the trace: what was asked and answered, messages, writes and flushes, what befell nodes.
 * Without times, which nothing depends on. */
static void line_keep(char *line, FILE *file) {
    static const char *const kinds[] = {"write", "sync", "kill", "power", "start"};
    const char *rest = strstr(line, " ms ");
    char node[32] = "";
    char kind[32] = "";

    if (line[0] == '>' || line[0] == '<') {
        fputs(line, file);
        return;
    }
    if (!rest || sscanf(rest + 4, "%31s %31s", node, kind) != 2) {
        return;
    }
    number_drop(line, " mtime_ns=");
    if (strcmp(kind, "->") == 0) {
        fprintf(file, "  %s", rest + 4);
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            fprintf(file, "  %s", rest + 4);
        }
    }
}

/* What is kept of the story's trace; NULL with a line in problem. The caller frees it. */
static char *story_tell(const struct story *story, char problem[200]) {
    static const struct world_options options = {
        .seed = 1,
        .ost_count = 1,
        .client_count = 1,
        .sync_interval_ns = NS_PER_S,
        .ring_bytes = 128 * KIB,
        .log_rings = 8,
        .data_bytes_max = 16 * MIB,
        .chunk_bytes = 64 * KIB,
        .session_timeout_ns = 20 * NS_PER_S,
        .request_timeout_ns = 20 * NS_PER_S,
        .schedule_ns_max = NS_PER_US,
    };
    struct player *player = calloc(1, sizeof *player);
    struct world_options told = options;
    char *trace = NULL;
    char *kept = NULL;
    size_t size;
    char line[LINE_BYTES];

    if (!player) {
        abort();
    }
    player->trace = open_memstream(&trace, &size);
    FILE *out = open_memstream(&kept, &size);
    told.tell = player->trace;
    told.checkpoint_ns = story->checkpoint_ns;
    told.mdt_count = MAX(story->mdt_count, 1U);
    told.late_mdt = false;
    player->story = story;
    player->world = world_new(&told);
    story_run(player);
    sim_trace_to(player->world->sim, NULL);
    world_free(player->world);
    fclose(player->trace);
    FILE *in = fmemopen(trace, strlen(trace), "r");
    while (in && fgets(line, sizeof line, in)) {
        line_keep(line, out);
    }
    fclose(in);
    fclose(out);
    free(trace);
    memcpy(problem, player->problem, sizeof player->problem);
    free(player);
    return kept;
}

static char *file_read(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size;

    if (!file) {
        return NULL;
    }
    FILE *out = open_memstream(&text, &size);
    for (int letter = fgetc(file); letter != EOF; letter = fgetc(file)) {
        fputc(letter, out);
    }
    fclose(out);
    fclose(file);
    return text;
}

static bool file_write(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    if (!file) {
        perror(path);
        return false;
    }
    bool written = fputs(text, file) >= 0;

    return fclose(file) == 0 && written;
}

static size_t first_difference(const char *a, const char *b) {
    size_t line = 1;

    for (; *a && *a == *b; a++, b++) {
        line += *a == '\n';
    }
    return line;
}

static bool story_play(const struct story *story, const char *directory, bool write) {
    char problem[200];
    char path[LINE_BYTES];
    char *told = story_tell(story, problem);
    bool same = true;

    snprintf(path, sizeof path, "%s/%s.txt", directory, story->name);
    if (problem[0]) {
        printf("story %s: %s\n", story->name, problem);
        same = false;
    } else if (write) {
        same = file_write(path, told);
    } else {
        char *kept = file_read(path);

        same = kept && strcmp(kept, told) == 0;
        if (!same) {
            printf("story %s goes otherwise than %s from line %zu on; if it is meant to: "
                   "./dev sim stories --write\n",
                   story->name, path, kept ? first_difference(kept, told) : 0);
        }
        free(kept);
    }
    free(told);
    return same;
}

unsigned stories_play(const char *directory, bool write) {
    unsigned failed = 0;

    for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
        failed += !story_play(&stories[i], directory, write);
    }
    printf("%zu passed, %u failed\n", ARRAY_SIZE(stories) - failed, failed);
    return failed;
}
