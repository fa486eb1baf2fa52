/* The life of a file without a name. */
#include "nameless.h"
#include "shoal/shoal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* One in four is given no name; of the others one in six must not have one. */
static bool is_to_be_named(const struct nameless *nameless) {
    return nameless->number % 4 != 3;
}

static bool may_be_named(const struct nameless *nameless) {
    return nameless->number % 6 != 0;
}

static uint64_t place_of_file(const struct nameless *nameless) {
    return nameless->number % 2 ? nameless->directory : SHOAL_INO_ROOT;
}

static uint64_t place_of_name(const struct nameless *nameless) {
    return nameless->number % 2 ? SHOAL_INO_ROOT : nameless->directory;
}

static enum shoal_operation operation_of(const struct nameless *nameless) {
    static const enum shoal_operation operations[] = {
        [NAMELESS_NONE] = SHOAL_MKDIR,      [NAMELESS_PLACE] = SHOAL_CREATE,
        [NAMELESS_MADE] = SHOAL_WRITE,      [NAMELESS_WRITTEN] = SHOAL_LINK,
        [NAMELESS_NAMED] = SHOAL_RELEASE,   [NAMELESS_CLOSED] = SHOAL_LOOKUP,
        [NAMELESS_FOUND] = SHOAL_UNLINK,    [NAMELESS_REFUSED] = SHOAL_RELEASE,
        [NAMELESS_SPOILED] = SHOAL_RELEASE, [NAMELESS_GONE] = SHOAL_GETATTR,
        [NAMELESS_OVER] = SHOAL_RMDIR,
    };
    bool stays = nameless->stage == NAMELESS_WRITTEN && !is_to_be_named(nameless);

    return stays ? SHOAL_RELEASE : operations[nameless->stage];
}

static void begin(struct nameless *nameless, uint64_t number, uint64_t now_ns) {
    *nameless = (struct nameless){.number = number, .began_ns = now_ns};
    nameless->size = number % 3 ? 1 + number % 3000 : NAMELESS_BYTES_MAX;
    snprintf(nameless->place, sizeof nameless->place, "u%" PRIu64, number);
    snprintf(nameless->name, sizeof nameless->name, "u%" PRIu64 ".named", number);
}

static void name_fill(struct shoal_request *request, uint64_t ino, const char *name) {
    request->ino = ino;
    request->name = name;
    request->name_bytes = strlen(name);
}

void nameless_ask(struct nameless *nameless, uint64_t number, uint64_t now_ns, void *buffer,
                  struct shoal_request *ret_request) {
    if (nameless->stage == NAMELESS_NONE) {
        begin(nameless, number, now_ns);
    }
    *ret_request = (struct shoal_request){.operation = operation_of(nameless), .mode = 0755};
    switch (ret_request->operation) {
    case SHOAL_MKDIR:
    case SHOAL_RMDIR:
        name_fill(ret_request, SHOAL_INO_ROOT, nameless->place);
        break;
    case SHOAL_LOOKUP:
    case SHOAL_UNLINK:
        name_fill(ret_request, place_of_name(nameless), nameless->name);
        break;
    case SHOAL_CREATE:
        ret_request->ino = place_of_file(nameless);
        ret_request->flags = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE | SHOAL_OPEN_UNNAMED |
                             (may_be_named(nameless) ? 0 : SHOAL_OPEN_EXCLUSIVE);
        break;
    case SHOAL_LINK:
        ret_request->ino = nameless->ino;
        ret_request->new_ino = place_of_name(nameless);
        ret_request->new_name = nameless->name;
        ret_request->new_name_bytes = strlen(nameless->name);
        break;
    case SHOAL_GETATTR:
        ret_request->ino = nameless->ino;
        break;
    default:
        ret_request->file = nameless->file;
        /* A release takes it, whatever it answers. */
        nameless->file = ret_request->operation == SHOAL_WRITE ? nameless->file : NULL;
        ret_request->data = buffer;
        ret_request->size = ret_request->operation == SHOAL_WRITE ? nameless->size : 0;
        break;
    }
    if (ret_request->operation == SHOAL_WRITE) {
        memset(buffer, (int)(1 + number % 255), (size_t)nameless->size);
    }
}

static bool is_found(const struct nameless *nameless, const struct shoal_request *request,
                     char *problem) {
    const struct shoal_attributes *seen = &request->attributes;
    /* But for its name and type it is lost, with the target that had it. */
    bool lost = seen->nlink == 0 && (seen->mode & 07777) == 0;
    bool right =
        request->result == 0 && seen->ino == nameless->ino &&
        (lost || (seen->nlink == 1 && (seen->size == nameless->size || !nameless->size_told)));

    if (!right) {
        snprintf(problem, NAMELESS_PROBLEM_BYTES,
                 "%s was named, and a look answers %" PRId64 ", inode %" PRIx64
                 " of %u links, %" PRIu64 " bytes instead of inode %" PRIx64 ", %" PRIu64 " bytes",
                 nameless->name, request->result, seen->ino, seen->nlink, seen->size, nameless->ino,
                 nameless->size);
    }
    return right;
}

/* Whom a metadata target that starts does not yet know to be nobody's is there, without a name. */
static bool is_gone(const struct nameless *nameless, const struct shoal_request *request,
                    char *problem) {
    bool right =
        request->result == -ESTALE || (request->result == 0 && request->attributes.nlink == 0);

    if (!right) {
        snprintf(problem, NAMELESS_PROBLEM_BYTES,
                 "inode %" PRIx64 " has no name and is open no more, and is there with %u links",
                 nameless->ino, request->attributes.nlink);
    }
    return right;
}

static bool is_named(const struct nameless *nameless, const struct shoal_request *request,
                     char *problem) {
    bool right = may_be_named(nameless) ? request->result == 0 && request->attributes.nlink == 1
                                        : request->result == -ENOENT;

    if (!right) {
        snprintf(problem, NAMELESS_PROBLEM_BYTES,
                 "a file that was made without a name, and %s, has %u links",
                 may_be_named(nameless) ? "may have one" : "never gets one",
                 request->attributes.nlink);
    }
    return right;
}

static bool is_right(const struct nameless *nameless, const struct shoal_request *request,
                     char *problem) {
    switch (request->operation) {
    case SHOAL_LINK:
        return is_named(nameless, request, problem);
    case SHOAL_LOOKUP:
        return is_found(nameless, request, problem);
    case SHOAL_GETATTR:
        return is_gone(nameless, request, problem);
    case SHOAL_WRITE:
    case SHOAL_RELEASE:
        return true; /* Their errors are others' to judge. */
    default:
        if (request->result < 0) {
            snprintf(problem, NAMELESS_PROBLEM_BYTES,
                     "of a file without a name nothing explains "
                     "this");
        }
        return request->result == 0;
    }
}

static void go_on(struct nameless *nameless, const struct shoal_request *request) {
    switch (request->operation) {
    case SHOAL_MKDIR:
        nameless->directory = request->attributes.ino;
        nameless->stage = NAMELESS_PLACE;
        break;
    case SHOAL_CREATE:
        nameless->ino = request->attributes.ino;
        nameless->file = request->file;
        nameless->stage = NAMELESS_MADE;
        break;
    case SHOAL_WRITE:
        nameless->stage =
            request->result == (int64_t)nameless->size ? NAMELESS_WRITTEN : NAMELESS_SPOILED;
        break;
    case SHOAL_LINK:
        nameless->stage = request->result == 0 ? NAMELESS_NAMED : NAMELESS_REFUSED;
        break;
    case SHOAL_RELEASE:
        nameless->size_told = request->result == 0;
        nameless->stage = nameless->stage == NAMELESS_NAMED     ? NAMELESS_CLOSED
                          : nameless->stage == NAMELESS_SPOILED ? NAMELESS_NONE
                                                                : NAMELESS_GONE;
        break;
    case SHOAL_LOOKUP:
        nameless->stage = NAMELESS_FOUND;
        break;
    case SHOAL_UNLINK:
        nameless->stage = NAMELESS_GONE;
        break;
    case SHOAL_GETATTR:
        nameless->stage = NAMELESS_OVER;
        break;
    default:
        nameless->stage = NAMELESS_NONE;
        break;
    }
}

bool nameless_answered(struct nameless *nameless, const struct shoal_request *request,
                       uint64_t lost_ns, char problem[NAMELESS_PROBLEM_BYTES]) {
    if (is_right(nameless, request, problem)) {
        go_on(nameless, request);
        return true;
    }
    if (lost_ns < nameless->began_ns) {
        return false;
    }
    nameless_left(nameless);
    return true;
}

void nameless_left(struct nameless *nameless) {
    nameless->stage = nameless->file ? NAMELESS_SPOILED : NAMELESS_NONE;
}

void nameless_forget(struct nameless *nameless) {
    *nameless = (struct nameless){.stage = NAMELESS_NONE};
}
