/* The rules of names. */
#include "tree_model.h"
#include <errno.h>

static uint8_t *entry_of(struct tree_state *state, struct tree_place place) {
    return &state->entries[place.directory][place.name];
}

static unsigned links_of(const struct tree_state *state, uint8_t object) {
    unsigned count = 0;

    for (size_t i = TREE_ROOT; i <= TREE_DIRECTORIES; i++) {
        for (size_t k = 0; k < TREE_NAMES; k++) {
            count += state->entries[i][k] == object;
        }
    }
    return count;
}

bool tree_has(const struct tree_state *state, uint8_t object) {
    return object == TREE_ROOT || links_of(state, object) > 0;
}

/* As stat counts: a directory's own name and ".", and the ".." of each directory in it. */
static uint8_t nlink_of(const struct tree_state *state, uint8_t object) {
    unsigned count = 2;

    if (!tree_is_directory(object)) {
        return (uint8_t)links_of(state, object);
    }
    for (size_t i = 0; i < TREE_NAMES; i++) {
        count += tree_is_directory(state->entries[object][i]);
    }
    return (uint8_t)count;
}

static bool is_empty(const struct tree_state *state, uint8_t directory) {
    for (size_t i = 0; i < TREE_NAMES; i++) {
        if (state->entries[directory][i]) {
            return false;
        }
    }
    return true;
}

static uint8_t parent_of(const struct tree_state *state, uint8_t object) {
    for (uint8_t i = TREE_ROOT; i <= TREE_DIRECTORIES; i++) {
        for (size_t k = 0; k < TREE_NAMES; k++) {
            if (state->entries[i][k] == object) {
                return i;
            }
        }
    }
    return 0;
}

/* Both ends included; a directory that is gone lies in itself alone. */
static bool is_within(const struct tree_state *state, uint8_t directory, uint8_t ancestor) {
    while (directory && directory != ancestor) {
        directory = directory == TREE_ROOT ? 0 : parent_of(state, directory);
    }
    return directory == ancestor;
}

static uint8_t directory_errors(const struct tree_state *state, uint8_t directory) {
    return tree_has(state, directory) ? 0 : TREE_NOT_FOUND | TREE_STALE;
}

static uint8_t made(struct tree_state *state, struct tree_place place, uint8_t object) {
    uint8_t errors = directory_errors(state, place.directory);

    errors |= *entry_of(state, place) ? TREE_EXISTS : 0;
    if (!errors) {
        *entry_of(state, place) = object;
    }
    return errors;
}

static uint8_t linked(struct tree_state *state, const struct tree_operation *operation) {
    if (!tree_has(state, operation->object)) {
        return TREE_NOT_FOUND | TREE_STALE | directory_errors(state, operation->to.directory) |
               (*entry_of(state, operation->to) ? TREE_EXISTS : 0);
    }
    return made(state, operation->to, operation->object);
}

static uint8_t removed(struct tree_state *state, const struct tree_operation *operation) {
    uint8_t *entry = entry_of(state, operation->from);
    uint8_t errors = directory_errors(state, operation->from.directory);
    bool rmdir = operation->operation == SHOAL_RMDIR;

    if (!*entry) {
        errors |= TREE_NOT_FOUND;
    } else if (tree_is_directory(*entry) != rmdir) {
        errors |= rmdir ? TREE_NOT_DIRECTORY : TREE_IS_DIRECTORY;
    } else if (rmdir && !is_empty(state, *entry)) {
        errors |= TREE_NOT_EMPTY;
    }
    if (!errors) {
        *entry = 0;
    }
    return errors;
}

/* Of a rename whose both names are there. */
static uint8_t replace_errors(const struct tree_state *state, uint8_t from, uint8_t to) {
    uint8_t errors = 0;

    if (tree_is_directory(from) && !tree_is_directory(to)) {
        errors |= TREE_NOT_DIRECTORY;
    } else if (!tree_is_directory(from) && tree_is_directory(to)) {
        errors |= TREE_IS_DIRECTORY;
    }
    if (tree_is_directory(to) && !is_empty(state, to)) {
        errors |= TREE_NOT_EMPTY;
    }
    return errors;
}

static uint8_t rename_errors(struct tree_state *state, const struct tree_operation *operation) {
    bool exchange = operation->flags & SHOAL_RENAME_EXCHANGE;
    uint8_t from = *entry_of(state, operation->from);
    uint8_t to = *entry_of(state, operation->to);
    uint8_t errors = directory_errors(state, operation->from.directory) |
                     directory_errors(state, operation->to.directory);

    if (!from || (!to && exchange)) {
        errors |= TREE_NOT_FOUND;
    }
    if (to && operation->flags & SHOAL_RENAME_NO_REPLACE) {
        errors |= TREE_EXISTS;
    }
    if (tree_is_directory(from) && is_within(state, operation->to.directory, from)) {
        errors |= TREE_INVALID;
    }
    if (tree_is_directory(to) && is_within(state, operation->from.directory, to)) {
        errors |= exchange ? TREE_INVALID : TREE_NOT_EMPTY;
    }
    if (from && to && from != to && !exchange) {
        errors |= replace_errors(state, from, to);
    }
    return errors;
}

static uint8_t renamed(struct tree_state *state, const struct tree_operation *operation,
                       struct tree_outcome *outcome) {
    uint32_t both = SHOAL_RENAME_NO_REPLACE | SHOAL_RENAME_EXCHANGE;
    uint8_t *from = entry_of(state, operation->from);
    uint8_t *to = entry_of(state, operation->to);
    uint8_t moves = *from;

    if (operation->flags == both) {
        return TREE_INVALID;
    }
    uint8_t errors = rename_errors(state, operation);
    if (errors || *from == *to) {
        return errors; /* two names of one inode stay */
    }
    outcome->replaced = *to != 0;
    *from = operation->flags & SHOAL_RENAME_EXCHANGE ? *to : 0;
    *to = moves;
    return 0;
}

void tree_apply(struct tree_state *state, const struct tree_operation *operation,
                struct tree_outcome *ret_outcome) {
    struct tree_outcome outcome = {.errors = 0};

    switch (operation->operation) {
    case SHOAL_MKDIR:
    case SHOAL_MKNOD:
        outcome.errors = made(state, operation->from, operation->object);
        break;
    case SHOAL_LINK:
        outcome.errors = linked(state, operation);
        outcome.object = operation->object;
        break;
    case SHOAL_UNLINK:
    case SHOAL_RMDIR:
        outcome.errors = removed(state, operation);
        break;
    case SHOAL_RENAME:
        outcome.errors = renamed(state, operation, &outcome);
        break;
    default:
        outcome.errors = directory_errors(state, operation->from.directory);
        outcome.object = *entry_of(state, operation->from);
        outcome.errors |= outcome.object ? 0 : TREE_NOT_FOUND;
        break;
    }
    outcome.object = outcome.errors ? 0 : outcome.object;
    outcome.nlink = outcome.object ? nlink_of(state, outcome.object) : 0;
    *ret_outcome = outcome;
}

uint8_t tree_error_of(int64_t result) {
    switch (result) {
    case -ENOENT:
        return TREE_NOT_FOUND;
    case -ESTALE:
        return TREE_STALE;
    case -EEXIST:
        return TREE_EXISTS;
    case -ENOTDIR:
        return TREE_NOT_DIRECTORY;
    case -EISDIR:
        return TREE_IS_DIRECTORY;
    case -ENOTEMPTY:
        return TREE_NOT_EMPTY;
    case -EINVAL:
        return TREE_INVALID;
    default:
        return 0;
    }
}
