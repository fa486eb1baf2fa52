/* Ways: states of a tree with what of the open questions has taken effect in them. */
#include "trees.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOVES_DIRECTORIES = 4, OPEN_MAX = 4, WAYS_MAX = 20000, LONG_NAME_BYTES = 250 };

/* Without padding, so that ways can be compared as bytes. */
struct way {
    struct tree_state state;
    struct tree_outcome outcomes[OPEN_MAX]; /* of those that are applied */
    uint32_t applied;                       /* bit of each open question */
};

struct ways {
    struct way *list;
    uint64_t *untils; /* of the past: when each was possible last */
    size_t count;
    size_t capacity;
};

struct open_question {
    bool used;
    bool lost;
    uint32_t client;
    uint64_t begin;
    struct tree_operation operation;
};

struct tree {
    struct trees *trees;
    uint64_t number; /* in its names */
    struct ways now;
    struct ways past; /* since the last sync point */
    struct open_question open[OPEN_MAX];
    uint64_t inos[TREE_OBJECTS]; /* 0: not known */
};

struct trees {
    bool many;
    bool moves;
    uint64_t clock;
    uint64_t power_at; /* 0: never */
    uint64_t numbers;
    struct tree trees[TREES_COUNT];
    struct trees_counters counters;
};

static void ways_deinit(struct ways *ways) {
    free(ways->list);
    free(ways->untils);
    *ways = (struct ways){.list = NULL};
}

static void ways_add(struct ways *ways, const struct way *way, uint64_t until) {
    for (size_t i = 0; i < ways->count; i++) {
        if (memcmp(&ways->list[i], way, sizeof *way) == 0) {
            ways->untils[i] = MAX(ways->untils[i], until);
            return;
        }
    }
    if (ways->count == ways->capacity) {
        ways->capacity = ways->capacity ? 2 * ways->capacity : 16;
        ways->list = realloc(ways->list, ways->capacity * sizeof *ways->list);
        ways->untils = realloc(ways->untils, ways->capacity * sizeof *ways->untils);
        if (!ways->list || !ways->untils) {
            abort();
        }
    }
    ways->list[ways->count] = *way;
    ways->untils[ways->count++] = until;
}

static void tree_init(struct trees *trees, struct tree *tree) {
    const struct way nothing = {.applied = 0};

    *tree = (struct tree){.trees = trees, .number = trees->numbers++};
    tree->inos[TREE_ROOT] = SHOAL_INO_ROOT;
    ways_add(&tree->now, &nothing, 0);
}

static void tree_deinit(struct tree *tree) {
    ways_deinit(&tree->now);
    ways_deinit(&tree->past);
}

struct trees *trees_new(bool many, bool moves) {
    struct trees *trees = calloc(1, sizeof *trees);

    if (!trees) {
        abort();
    }
    trees->many = many;
    trees->moves = moves;
    trees->clock = 1;
    for (size_t i = 0; i < TREES_COUNT; i++) {
        tree_init(trees, &trees->trees[i]);
    }
    return trees;
}

void trees_free(struct trees *trees) {
    for (size_t i = 0; i < TREES_COUNT; i++) {
        tree_deinit(&trees->trees[i]);
    }
    free(trees);
}

uint64_t trees_now(const struct trees *trees) {
    return trees->clock;
}

const struct trees_counters *trees_counters_get(const struct trees *trees) {
    return &trees->counters;
}

static bool way_has(const struct way *way, uint8_t object) {
    for (size_t i = 0; i < OPEN_MAX; i++) {
        if (way->outcomes[i].object == object) {
            return true;
        }
    }
    return tree_has(&way->state, object);
}

static bool ways_have(const struct ways *ways, uint8_t object) {
    for (size_t i = 0; i < ways->count; i++) {
        if (way_has(&ways->list[i], object)) {
            return true;
        }
    }
    return false;
}

/* Whether any way has the object, or an open question speaks of it. */
static bool is_in_use(const struct tree *tree, uint8_t object) {
    for (size_t i = 0; i < OPEN_MAX; i++) {
        const struct tree_operation *operation = &tree->open[i].operation;

        if (tree->open[i].used &&
            (operation->object == object || operation->from.directory == object ||
             operation->to.directory == object)) {
            return true;
        }
    }
    return ways_have(&tree->now, object) || ways_have(&tree->past, object);
}

/* 0: all are in use. */
static uint8_t object_new(struct tree *tree, bool directory) {
    uint8_t first = directory ? TREE_ROOT + 1 : TREE_DIRECTORIES + 1;
    uint8_t end = directory ? TREE_DIRECTORIES + 1 : TREE_OBJECTS;

    for (uint8_t object = first; object < end; object++) {
        if (!is_in_use(tree, object)) {
            tree->inos[object] = 0;
            return object;
        }
    }
    return 0;
}

/* A directory whose inode is known; it may be gone. */
static uint8_t directory_draw(const struct tree *tree, struct prng *prng) {
    uint8_t directory = (uint8_t)(TREE_ROOT + prng_below(prng, TREE_DIRECTORIES));

    return tree->inos[directory] ? directory : TREE_ROOT;
}

static struct tree_place place_draw(const struct tree *tree, struct prng *prng) {
    return (struct tree_place){directory_draw(tree, prng), (uint8_t)prng_below(prng, TREE_NAMES)};
}

/* Mostly one where there is something. */
static struct tree_place place_draw_used(const struct tree *tree, struct prng *prng) {
    struct tree_place place = place_draw(tree, prng);

    for (int i = 0; i < 12; i++) {
        if (tree->now.list[0].state.entries[place.directory][place.name]) {
            break;
        }
        place = place_draw(tree, prng);
    }
    return place;
}

static uint32_t flags_draw(struct prng *prng) {
    static const uint32_t flags[] = {0,
                                     0,
                                     0,
                                     0,
                                     SHOAL_RENAME_NO_REPLACE,
                                     SHOAL_RENAME_NO_REPLACE,
                                     SHOAL_RENAME_EXCHANGE,
                                     SHOAL_RENAME_EXCHANGE,
                                     SHOAL_RENAME_EXCHANGE,
                                     SHOAL_RENAME_NO_REPLACE | SHOAL_RENAME_EXCHANGE};

    return flags[prng_below(prng, ARRAY_SIZE(flags))];
}

static struct tree_operation make_draw(struct tree *tree, struct prng *prng, bool directory) {
    uint8_t object = object_new(tree, directory);

    return (struct tree_operation){.operation = !object     ? SHOAL_LOOKUP
                                                : directory ? SHOAL_MKDIR
                                                            : SHOAL_MKNOD,
                                   .from = place_draw(tree, prng),
                                   .object = object};
}

static bool lies_within(const struct tree_state *state, uint8_t directory, uint8_t ancestor) {
    for (int depth = 0; directory != TREE_ROOT && depth < TREE_DIRECTORIES; depth++) {
        uint8_t parent = 0;

        if (directory == ancestor) {
            return true;
        }
        for (uint8_t i = TREE_ROOT; i <= TREE_DIRECTORIES && parent == 0; i++) {
            parent = memchr(state->entries[i], directory, TREE_NAMES) ? i : 0;
        }
        directory = parent;
    }
    return directory != TREE_ROOT;
}

static uint32_t directories_of(const struct tree_state *state) {
    uint32_t count = 0;

    for (uint8_t object = TREE_ROOT + 1; object <= TREE_DIRECTORIES; object++) {
        count += tree_has(state, object);
    }
    return count;
}

/* Where there is one: a directory gets another parent, as nothing speaks against it so far. */
static struct tree_operation move_draw(struct tree *tree, struct prng *prng) {
    const struct tree_state *state = &tree->now.list[0].state;
    struct tree_operation operation = {.operation = SHOAL_RENAME};
    struct tree_place *from = &operation.from;
    struct tree_place *to = &operation.to;

    if (prng_below(prng, MOVES_DIRECTORIES) >= directories_of(state)) {
        return make_draw(tree, prng, true);
    }
    for (int i = 0; i < 100; i++) {
        *from = place_draw_used(tree, prng);
        *to = place_draw(tree, prng);
        uint8_t object = state->entries[from->directory][from->name];
        if (tree_is_directory(object) && to->directory != from->directory &&
            state->entries[to->directory][to->name] == 0 &&
            !lies_within(state, to->directory, object)) {
            break;
        }
    }
    return operation;
}

static struct tree_operation operation_draw(struct tree *tree, struct prng *prng) {
    uint8_t file =
        (uint8_t)(TREE_DIRECTORIES + 1 + prng_below(prng, TREE_OBJECTS - TREE_DIRECTORIES - 1));

    switch (prng_below(prng, 20)) {
    case 0:
    case 1:
    case 2:
        return make_draw(tree, prng, true);
    case 3:
    case 4:
        return make_draw(tree, prng, false);
    case 5:
        return (struct tree_operation){.operation = tree->inos[file] ? SHOAL_LINK : SHOAL_LOOKUP,
                                       .from = place_draw(tree, prng),
                                       .to = place_draw(tree, prng),
                                       .object = tree->inos[file] ? file : 0};
    case 6:
        return (struct tree_operation){.operation = SHOAL_UNLINK,
                                       .from = place_draw_used(tree, prng)};
    case 7:
    case 8:
        return (struct tree_operation){.operation = SHOAL_RMDIR,
                                       .from = place_draw_used(tree, prng)};
    case 9:
    case 10:
    case 11:
    case 12:
        return (struct tree_operation){.operation = SHOAL_LOOKUP, .from = place_draw(tree, prng)};
    default:
        return (struct tree_operation){.operation = SHOAL_RENAME,
                                       .flags = flags_draw(prng),
                                       .from = place_draw_used(tree, prng),
                                       .to = place_draw(tree, prng)};
    }
}

/* One of the names is as long as names may nearly be. */
static void name_write(const struct tree *tree, struct tree_place place,
                       char text[TREES_NAME_BYTES]) {
    int used = snprintf(text, TREES_NAME_BYTES, "t%" PRIu64 "-%u", tree->number, place.name);

    if (place.name == TREE_NAMES - 1) {
        memset(text + used, 'n', LONG_NAME_BYTES - (size_t)used);
        text[LONG_NAME_BYTES] = '\0';
    }
}

static void request_fill(const struct tree *tree, const struct tree_operation *operation,
                         struct tree_question *question, struct shoal_request *request) {
    bool link = operation->operation == SHOAL_LINK;

    name_write(tree, operation->from, question->name);
    name_write(tree, operation->to, question->new_name);
    *request = (struct shoal_request){
        .operation = operation->operation,
        .flags = operation->flags,
        .ino = tree->inos[link ? operation->object : operation->from.directory],
        .name = question->name,
        .name_bytes = strlen(question->name),
        .mode = operation->operation == SHOAL_MKNOD ? S_IFREG | 0644 : 0755,
    };
    if (operation->to.directory) {
        request->new_ino = tree->inos[operation->to.directory];
        request->new_name = question->new_name;
        request->new_name_bytes = strlen(question->new_name);
    }
}

/* A tree whose places are all taken by questions that nobody will answer is left to itself. */
static void tree_renew(struct trees *trees, struct tree *tree) {
    bool all_lost = true;

    for (size_t i = 0; i < OPEN_MAX; i++) {
        all_lost &= tree->open[i].used && tree->open[i].lost;
    }
    if (all_lost) {
        tree_deinit(tree);
        tree_init(trees, tree);
    }
}

/* OPEN_MAX: all are taken. */
static size_t slot_free(const struct tree *tree) {
    size_t slot = 0;

    while (slot < OPEN_MAX && tree->open[slot].used) {
        slot++;
    }
    return slot;
}

static void question_open(struct tree *tree, const struct open_question *open,
                          struct tree_question *question, struct shoal_request *ret_request) {
    size_t slot = slot_free(tree);

    question->number = tree->number;
    question->tree = (uint8_t)(tree - tree->trees->trees);
    question->slot = (uint8_t)slot;
    tree->open[slot] = *open;
    tree->open[slot].used = true;
    tree->open[slot].begin = ++tree->trees->clock;
    request_fill(tree, &open->operation, question, ret_request);
}

bool trees_ask(struct trees *trees, struct prng *prng, uint32_t client,
               struct tree_question *question, struct shoal_request *ret_request) {
    struct tree *tree = &trees->trees[prng_below(prng, TREES_COUNT)];

    tree_renew(trees, tree);
    if (slot_free(tree) == OPEN_MAX) {
        return false;
    }
    bool moves = trees->moves && prng_chance(prng, 3, 4);
    struct open_question open = {
        .client = client, .operation = moves ? move_draw(tree, prng) : operation_draw(tree, prng)};
    question_open(tree, &open, question, ret_request);
    return true;
}

bool trees_review(struct trees *trees, uint32_t *at, uint32_t client,
                  struct tree_question *question, struct shoal_request *ret_request) {
    enum { PLACES = TREE_DIRECTORIES * TREE_NAMES };

    while (*at < TREES_COUNT * PLACES) {
        uint32_t number = (*at)++;
        struct tree *tree = &trees->trees[number / PLACES];
        struct tree_place place = {(uint8_t)(TREE_ROOT + number % PLACES / TREE_NAMES),
                                   (uint8_t)(number % TREE_NAMES)};
        struct open_question open = {.client = client,
                                     .operation = {.operation = SHOAL_LOOKUP, .from = place}};

        if (tree->inos[place.directory] && slot_free(tree) < OPEN_MAX) {
            question_open(tree, &open, question, ret_request);
            return true;
        }
    }
    return false;
}

static void way_forget(struct way *way, size_t slot) {
    way->applied &= ~(UINT32_C(1) << slot);
    memset(&way->outcomes[slot], 0, sizeof way->outcomes[slot]);
}

static void way_apply(struct way *way, const struct tree *tree, size_t slot) {
    tree_apply(&way->state, &tree->open[slot].operation, &way->outcomes[slot]);
    way->applied |= UINT32_C(1) << slot;
}

static bool looks_right(const struct tree *tree, const struct tree_outcome *outcome,
                        const struct shoal_request *request) {
    const struct shoal_attributes *seen = &request->attributes;
    uint64_t ino = tree->inos[outcome->object];
    bool later = tree->trees->many && request->operation == SHOAL_LOOKUP;

    return (!ino || ino == seen->ino) && (later || seen->nlink == outcome->nlink) &&
           S_ISDIR(seen->mode) == tree_is_directory(outcome->object);
}

/* request NULL: whatever it was. */
static bool outcome_is(const struct tree *tree, const struct way *way, size_t slot,
                       const struct shoal_request *request) {
    const struct tree_outcome *outcome = &way->outcomes[slot];

    if (!request) {
        return true;
    }
    if (request->result < 0) {
        return outcome->errors & tree_error_of(request->result);
    }
    return !outcome->errors && (!outcome->object || looks_right(tree, outcome, request));
}

/* Follows all orders in which open questions may have taken effect, up to that of the slot; those
 * that end as the answer says go to `found`, and what they went through to the past. */
struct search {
    struct tree *tree;
    size_t slot;
    const struct shoal_request *request;
    struct ways found;
    bool replaced;
};

static bool search_from(struct search *search, const struct way *way);

static bool search_end(struct search *search, const struct way *way) {
    struct way end = *way;

    if (!outcome_is(search->tree, way, search->slot, search->request)) {
        return false;
    }
    search->replaced = way->outcomes[search->slot].replaced;
    way_forget(&end, search->slot);
    ways_add(&search->found, &end, 0);
    return true;
}

static bool search_step(struct search *search, const struct way *way, size_t slot) {
    struct way next = *way;

    way_apply(&next, search->tree, slot);
    return slot == search->slot ? search_end(search, &next) : search_from(search, &next);
}

static bool search_from(struct search *search, const struct way *way) {
    struct tree *tree = search->tree;
    bool found = false;

    if (way->applied & UINT32_C(1) << search->slot) {
        return search_end(search, way);
    }
    for (size_t i = 0; i < OPEN_MAX; i++) {
        if (tree->open[i].used && !(way->applied & UINT32_C(1) << i)) {
            found |= search_step(search, way, i);
        }
    }
    if (found) {
        ways_add(&tree->past, way, tree->trees->clock);
    }
    return found;
}

/* It is open no more: the past speaks of it no more either. */
static void past_forget(struct tree *tree, size_t slot) {
    struct ways kept = {.list = NULL};

    for (size_t i = 0; i < tree->past.count; i++) {
        way_forget(&tree->past.list[i], slot);
        ways_add(&kept, &tree->past.list[i], tree->past.untils[i]);
    }
    ways_deinit(&tree->past);
    tree->past = kept;
}

static void search_finish(struct search *search) {
    struct tree *tree = search->tree;

    tree->open[search->slot].used = false;
    ways_deinit(&tree->now);
    tree->now = search->found;
    past_forget(tree, search->slot);
}

/* Ways in which it has not taken effect, also: has not since a power failure. */
static void search_undone(struct search *search) {
    const struct ways *now = &search->tree->now;

    for (size_t i = 0; i < now->count; i++) {
        if (!(now->list[i].applied & UINT32_C(1) << search->slot)) {
            ways_add(&search->found, &now->list[i], 0);
        }
    }
}

static void search_all(struct search *search) {
    struct ways *now = &search->tree->now;

    for (size_t i = 0; i < now->count; i++) {
        (void)search_from(search, &now->list[i]);
    }
}

static bool ino_learn(struct tree *tree, uint8_t object, uint64_t ino) {
    for (size_t i = 0; i < TREE_OBJECTS; i++) {
        if (tree->inos[i] == ino) {
            return false;
        }
    }
    tree->inos[object] = ino;
    return true;
}

static void count(struct trees *trees, const struct search *search,
                  const struct tree_operation *operation) {
    struct trees_counters *counters = &trees->counters;

    if (operation->operation != SHOAL_RENAME) {
        return;
    }
    bool succeeded = search->request->result == 0;
    bool exchange = operation->flags & SHOAL_RENAME_EXCHANGE;

    counters->renames += succeeded;
    counters->refused += !succeeded;
    counters->exchanged += succeeded && exchange && search->replaced;
    counters->replaced += succeeded && !exchange && search->replaced;
}

static void problem_write(const struct tree *tree, const struct tree_question *question,
                          const struct shoal_request *request, char *problem) {
    const struct tree_operation *operation = &tree->open[question->slot].operation;

    snprintf(problem, TREES_PROBLEM_BYTES,
             "tree %" PRIu64 ", object %u, place %u/%u to %u/%u, flags %x, inode %" PRIx64
             " of %u links: none of %zu ways answers so",
             tree->number, operation->object, operation->from.directory, operation->from.name,
             operation->to.directory, operation->to.name, operation->flags, request->attributes.ino,
             request->attributes.nlink, tree->now.count);
}

bool trees_answered(struct trees *trees, const struct tree_question *question,
                    const struct shoal_request *request, bool excused,
                    char problem[TREES_PROBLEM_BYTES]) {
    struct tree *tree = &trees->trees[question->tree];
    struct open_question open = tree->open[question->slot];
    struct search search = {.tree = tree, .slot = question->slot, .request = request};
    bool makes = open.operation.operation == SHOAL_MKDIR || open.operation.operation == SHOAL_MKNOD;

    trees->clock++;
    if (tree->number != question->number) {
        return true; /* Nobody knows what that tree is. */
    }
    if (excused && !tree_error_of(request->result)) {
        search_undone(&search);
    } else {
        search_all(&search);
        if (open.begin < trees->power_at) {
            search_undone(&search);
        }
    }
    if (search.found.count == 0 || search.found.count > WAYS_MAX) {
        problem_write(tree, question, request, problem);
        ways_deinit(&search.found);
        return false;
    }
    search_finish(&search);
    count(trees, &search, &open.operation);
    if (makes && request->result == 0 &&
        !ino_learn(tree, open.operation.object, request->attributes.ino)) {
        snprintf(problem, TREES_PROBLEM_BYTES, "inode number %" PRIx64 " was given twice",
                 request->attributes.ino);
        return false;
    }
    return true;
}

void trees_lost(struct trees *trees, const struct tree_question *question) {
    struct tree *tree = &trees->trees[question->tree];

    trees->clock++;
    if (tree->number == question->number) {
        tree->open[question->slot].lost = true;
    }
}

void trees_session_over(struct trees *trees, uint32_t client, uint64_t asked_by) {
    trees->clock++;
    for (size_t i = 0; i < TREES_COUNT; i++) {
        struct tree *tree = &trees->trees[i];

        for (size_t slot = 0; slot < OPEN_MAX; slot++) {
            struct search search = {.tree = tree, .slot = slot};

            if (tree->open[slot].used && tree->open[slot].client == client &&
                tree->open[slot].begin <= asked_by) {
                search_undone(&search);
                search_all(&search);
                search_finish(&search);
            }
        }
    }
}

void trees_power(struct trees *trees) {
    trees->power_at = ++trees->clock;
    for (size_t i = 0; i < TREES_COUNT; i++) {
        struct tree *tree = &trees->trees[i];

        if (trees->many) {
            tree_deinit(tree);
            tree_init(trees, tree);
        }
        for (size_t k = 0; k < tree->past.count; k++) {
            ways_add(&tree->now, &tree->past.list[k], 0);
        }
        ways_deinit(&tree->past);
    }
}

void trees_synced(struct trees *trees, uint64_t begin) {
    for (size_t i = 0; i < TREES_COUNT; i++) {
        struct ways *past = &trees->trees[i].past;
        size_t kept = 0;

        for (size_t k = 0; k < past->count; k++) {
            if (past->untils[k] >= begin) {
                past->list[kept] = past->list[k];
                past->untils[kept++] = past->untils[k];
            }
        }
        past->count = kept;
    }
}
