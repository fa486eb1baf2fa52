/* The life of a victim. */
#include "victims.h"
#include "shoal/shoal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOKS_MAX = 4, RUN_BYTES = 512 };

/* Each run of bytes has one value. */
static uint8_t byte_at(const struct victim *victim, uint64_t offset) {
    return (uint8_t)(1 + (victim->number * 31 + offset / RUN_BYTES) % 255);
}

static void fill(const struct victim *victim, uint8_t *data) {
    for (uint64_t i = 0; i < victim->size; i += RUN_BYTES) {
        memset(data + i, byte_at(victim, i), (size_t)MIN(victim->size - i, (uint64_t)RUN_BYTES));
    }
}

/* The first byte that is not the victim's; size when all are. */
static uint64_t difference(const struct victim *victim, const uint8_t *data, uint64_t size) {
    for (uint64_t i = 0; i < size; i += RUN_BYTES) {
        uint64_t end = MIN(i + RUN_BYTES, size);
        uint8_t byte = byte_at(victim, i);

        for (uint64_t k = i; k < end; k++) {
            if (data[k] != byte) {
                return k;
            }
        }
    }
    return size;
}

static enum shoal_operation operation_of(const struct victim *victim) {
    static const enum shoal_operation operations[] = {
        [VICTIM_NONE] = SHOAL_CREATE,     [VICTIM_MADE] = SHOAL_WRITE,
        [VICTIM_WRITTEN] = SHOAL_FSYNC,   [VICTIM_SYNCED] = SHOAL_RELEASE,
        [VICTIM_CLOSED] = SHOAL_UNLINK,   [VICTIM_COVERED] = SHOAL_RENAME,
        [VICTIM_UNLINKED] = SHOAL_LOOKUP, [VICTIM_BACK] = SHOAL_OPEN,
        [VICTIM_OPEN] = SHOAL_READ,
    };
    bool covers = victim->stage == VICTIM_CLOSED && victim->number % 2 == 0;

    return covers ? SHOAL_MKNOD : operations[victim->stage];
}

static bool is_named(enum shoal_operation operation) {
    return operation == SHOAL_CREATE || operation == SHOAL_UNLINK || operation == SHOAL_LOOKUP;
}

static void cover_fill(const struct victim *victim, struct shoal_request *request) {
    request->ino = SHOAL_INO_ROOT;
    request->name = victim->cover;
    request->name_bytes = strlen(victim->cover);
    request->mode = S_IFREG | 0644;
    request->new_ino = SHOAL_INO_ROOT;
    request->new_name = victim->name;
    request->new_name_bytes = strlen(victim->name);
}

static void begin(struct victim *victim, uint64_t number) {
    *victim = (struct victim){.number = number, .size = 5000 + number * 7919 % 90000};
    snprintf(victim->name, sizeof victim->name, "v%" PRIu64, number);
}

void victim_ask(struct victim *victim, uint64_t number, uint64_t now_ns, void *buffer,
                struct shoal_request *ret_request) {
    enum shoal_operation operation = operation_of(victim);
    uint8_t *data = buffer;

    if (operation == SHOAL_CREATE) {
        begin(victim, number);
    } else if (operation == SHOAL_UNLINK || operation == SHOAL_RENAME) {
        victim->unlinked_ns = now_ns;
    } else if (operation == SHOAL_MKNOD) {
        snprintf(victim->cover, sizeof victim->cover, "w%" PRIu64, number);
    }
    *ret_request = (struct shoal_request){.operation = operation, .ino = victim->ino};
    if (is_named(operation)) {
        ret_request->ino = SHOAL_INO_ROOT;
        ret_request->name = victim->name;
        ret_request->name_bytes = strlen(victim->name);
        ret_request->mode = 0644;
        ret_request->flags = operation == SHOAL_CREATE ? SHOAL_OPEN_READ | SHOAL_OPEN_WRITE : 0;
    } else if (operation == SHOAL_MKNOD || operation == SHOAL_RENAME) {
        cover_fill(victim, ret_request);
    } else if (operation == SHOAL_OPEN) {
        ret_request->flags = SHOAL_OPEN_READ;
    } else {
        ret_request->file = victim->file;
    }
    if (operation == SHOAL_WRITE || operation == SHOAL_READ) {
        ret_request->data = data;
        ret_request->size = victim->size;
    }
    if (operation == SHOAL_WRITE) {
        fill(victim, data);
    }
}

static bool look_answered(struct victim *victim, const struct shoal_request *request,
                          uint64_t lost_ns, char *problem) {
    bool doubtful = lost_ns >= victim->unlinked_ns;
    bool covered = victim->cover_ino != 0;

    if (request->result == -ENOENT && covered) {
        snprintf(problem, VICTIM_PROBLEM_BYTES, "%s was renamed over, and is not there",
                 victim->name);
        return false;
    }
    if (request->result == -ENOENT ||
        (request->result == 0 && covered && request->attributes.ino == victim->cover_ino)) {
        if (doubtful || ++victim->look_count == LOOKS_MAX) {
            victim_forget(victim);
        }
        return true;
    }
    if (request->result < 0) {
        victim_forget(victim);
        return true;
    }
    if (!doubtful || request->attributes.ino != victim->ino) {
        snprintf(problem, VICTIM_PROBLEM_BYTES, "%s was %s, and inode %" PRIx64 " is there",
                 victim->name, covered ? "renamed over" : "unlinked", request->attributes.ino);
        return false;
    }
    victim->cover_ino = 0;
    victim->stage = VICTIM_BACK;
    return true;
}

static bool read_answered(struct victim *victim, const struct shoal_request *request,
                          char *problem) {
    const uint8_t *data = request->data;
    uint64_t got = request->result < 0 ? 0 : (uint64_t)request->result;

    /* It has an unlink before it again, and a release before that. */
    victim->stage = VICTIM_SYNCED;
    uint64_t wrong = difference(victim, data, got);
    if (wrong < got) {
        snprintf(problem, VICTIM_PROBLEM_BYTES,
                 "%s came back after its unlink with other bytes at %" PRIu64, victim->name, wrong);
        return false;
    }
    if (request->result >= 0 && got < victim->size) {
        snprintf(problem, VICTIM_PROBLEM_BYTES,
                 "%s came back after its unlink with %" PRIu64 " of %" PRIu64 " bytes",
                 victim->name, got, victim->size);
        return false;
    }
    return true;
}

bool victim_answered(struct victim *victim, const struct shoal_request *request, uint64_t lost_ns,
                     char problem[VICTIM_PROBLEM_BYTES]) {
    if (victim->stage == VICTIM_UNLINKED) {
        return look_answered(victim, request, lost_ns, problem);
    }
    if (victim->stage == VICTIM_OPEN) {
        return read_answered(victim, request, problem);
    }
    bool whole = request->operation != SHOAL_WRITE || (uint64_t)request->result == victim->size;
    bool is_open = victim->stage == VICTIM_MADE || victim->stage == VICTIM_WRITTEN;
    if (is_open && (request->result < 0 || !whole)) {
        victim->spoiled = true;
        victim->stage = VICTIM_SYNCED; /* Its handle goes back. */
        return true;
    }
    if (request->result < 0 || !whole || victim->spoiled) {
        victim_forget(victim);
        return true;
    }
    if (request->operation == SHOAL_CREATE || request->operation == SHOAL_OPEN) {
        victim->file = request->file;
    }
    if (request->operation == SHOAL_CREATE) {
        victim->ino = request->attributes.ino;
    }
    if (request->operation == SHOAL_MKNOD) {
        victim->cover_ino = request->attributes.ino;
    }
    victim->stage += request->operation == SHOAL_UNLINK ? 2 : 1;
    return true;
}

/* A release takes the file, whatever it answers. */
void victim_left(struct victim *victim) {
    bool is_open = victim->stage == VICTIM_MADE || victim->stage == VICTIM_WRITTEN ||
                   victim->stage == VICTIM_OPEN;

    if (is_open) {
        victim->spoiled = true;
        victim->stage = VICTIM_SYNCED;
    } else {
        victim_forget(victim);
    }
}

void victim_forget(struct victim *victim) {
    *victim = (struct victim){.stage = VICTIM_NONE};
}
