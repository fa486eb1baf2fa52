#include "life.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROWS = 96,
    TOUCHED_OF = 3, /* one row in so many is touched by a commit */
    VALUE_BYTES = 150,
    LONG_BYTES = 3000, /* has pages of its own in LMDB */
    APPLIED_INDEX = 1u << 20,
    MAP_BYTES = 1 << 24,
};

static struct env_ops ops;
static struct env env;
static char place[FAULT_PATH_BYTES];

static int directory_make(struct env *unused, const char *path) {
    char full[2 * FAULT_PATH_BYTES];

    (void)unused;
    (void)snprintf(full, sizeof full, "%s/%s", place, path);
    return mkdir(full, 0700) == 0 || errno == EEXIST ? 0 : -ERR_ACCESS;
}

void life_place(const char *root) {
    (void)snprintf(place, sizeof place, "%s", root);
    ops = (struct env_ops){.directory_make = directory_make};
    env.ops = &ops;
}

PRINTF_LIKE(2, 3)
static void wrong(struct ledger *ledger, const char *format, ...) {
    va_list arguments;

    if (ledger->problem[0] == '\0') {
        va_start(arguments, format);
        (void)vsnprintf(ledger->problem, sizeof ledger->problem, format, arguments);
        va_end(arguments);
    }
}

int life_open(uint64_t map_bytes, struct kv_base **ret_base) {
    const struct kv_base_options options = {.env = &env,
                                            .root = place,
                                            .directory = "target",
                                            .memory_bytes = GIB,
                                            .map_bytes = map_bytes};
    char problem[256];

    return kv_lmdb_ops.open(&options, ret_base, problem);
}

static struct kv_key row_key(unsigned index) {
    return kv_key_make((struct kv_key_fields){.space = 1, .index = index});
}

/* What commit does to a row: nothing, a value, or it deletes it. */
enum deed { DEED_NONE, DEED_PUT, DEED_DELETE };

static enum deed deed_of(unsigned commit, unsigned index) {
    unsigned lot = (commit * 7 + index * 13 + commit * index) % (TOUCHED_OF * 4);

    if (lot % TOUCHED_OF != 0) {
        return DEED_NONE;
    }
    return lot == 0 && commit > 1 ? DEED_DELETE : DEED_PUT;
}

static size_t value_of(unsigned commit, unsigned index, uint8_t ret_value[LONG_BYTES]) {
    size_t size = (commit + index) % 16 == 0 ? LONG_BYTES : VALUE_BYTES - index;

    memset(ret_value, (int)(commit * 16 + index % 16), size);
    return size;
}

/* Commits that the ledger holds, and also, unless it is 0. */
static bool row_is(const struct ledger *ledger, unsigned also, unsigned index,
                   const struct bytes *found) {
    uint8_t value[LONG_BYTES];
    unsigned commit = 0;
    size_t size;

    if (also != 0 && deed_of(also, index) != DEED_NONE) {
        commit = also;
    }
    for (unsigned i = ledger->held_count; commit == 0 && i-- > 0;) {
        if (deed_of(ledger->held[i], index) != DEED_NONE) {
            commit = ledger->held[i];
        }
    }
    if (commit == 0 || deed_of(commit, index) == DEED_DELETE) {
        return !found->data;
    }
    size = value_of(commit, index, value);
    return found->data && found->size == size && memcmp(found->data, value, size) == 0;
}

/* The commit that the applied row names; 0: none; below 0: it cannot be read. */
static int applied_read(struct kv_base *base) {
    struct kv_key key = row_key(APPLIED_INDEX);
    struct bytes value;
    int r = kv_lmdb_ops.get(base, &key, &value);

    return r == 0 ? value.data[0] : r == -ERR_NOT_FOUND ? 0 : r;
}

/* Every row is that of the commit which the applied row names, all of it. Answers below 0 when
 * nothing can be read. */
static int rows_check(struct ledger *ledger, struct kv_base *base, const char *when) {
    unsigned newest = ledger->held_count > 0 ? ledger->held[ledger->held_count - 1] : 0;
    int applied = applied_read(base);
    unsigned also = applied > 0 && applied == ledger->pending ? ledger->pending : 0;

    if (applied >= 0 && also == 0 && (unsigned)applied != newest) {
        wrong(ledger, "%s: applied names commit %d, of %u and perhaps %u", when, applied, newest,
              ledger->pending);
    }
    for (unsigned i = 0; applied >= 0 && i < ROWS; i++) {
        struct kv_key key = row_key(i);
        struct bytes value = {NULL, 0};
        int r = kv_lmdb_ops.get(base, &key, &value);

        if ((r != 0 && r != -ERR_NOT_FOUND) || !row_is(ledger, also, i, &value)) {
            wrong(ledger, "%s: row %u is not that of commit %d: %s", when, i, applied, err_text(r));
        }
    }
    kv_lmdb_ops.read_end(base);
    return applied;
}

static int commit_give(struct kv_base *base, unsigned commit) {
    static uint8_t values[(ROWS + 1) * LONG_BYTES];
    static struct kv_base_row rows[ROWS + 1];
    struct kv_base_commit given = {.rows = rows};
    uint8_t *value = values;

    for (unsigned i = 0; i < ROWS; i++) {
        enum deed deed = deed_of(commit, i);
        size_t size = deed == DEED_PUT ? value_of(commit, i, value) : 0;

        if (deed != DEED_NONE) {
            rows[given.row_count++] = (struct kv_base_row){
                .key = row_key(i), .value = {value, size}, .deleted = deed == DEED_DELETE};
        }
        value += size;
    }
    *value = (uint8_t)commit;
    rows[given.row_count++] =
        (struct kv_base_row){.key = row_key(APPLIED_INDEX), .value = {value, 1}};
    return kv_lmdb_ops.commit_now(base, &given);
}

/* Who opens a base goes on from what it holds. */
static void found_at_open(struct ledger *ledger, struct kv_base *base) {
    if (rows_check(ledger, base, "at an open") == ledger->pending && ledger->pending != 0) {
        ledger->held[ledger->held_count++] = ledger->pending;
    }
    ledger->pending = 0;
}

/* Once more when a fault struck. */
static struct kv_base *open_again(struct ledger *ledger) {
    uint64_t struck = ledger->faults.struck;
    struct kv_base *base = NULL;
    int r = life_open(MAP_BYTES, &base);

    while (r < 0 && ledger->faults.struck > struck) {
        struck = ledger->faults.struck;
        r = ledger->stop_at_failure ? r : life_open(MAP_BYTES, &base);
    }
    if (r == 0) {
        found_at_open(ledger, base);
    } else if (!ledger->stop_at_failure) {
        wrong(ledger, "an open fails: %s", err_text(r));
    }
    return r == 0 ? base : NULL;
}

/* Nothing of it may be seen; and -ERR_NO_SPACE says that it may be given again. */
static struct kv_base *failure_meet(struct ledger *ledger, struct kv_base *base, int result) {
    uint8_t pending = ledger->pending;
    uint64_t struck = ledger->faults.struck;

    ledger->pending = 0;
    if (rows_check(ledger, base, "behind a commit that failed") >= 0) {
        return base;
    }
    ledger->pending = pending;
    if (result == -ERR_NO_SPACE) {
        wrong(ledger, "-ERR_NO_SPACE, and then nothing can be read");
    }
    if (commit_give(base, pending + 1) != -ERR_IO || ledger->faults.struck > struck) {
        wrong(ledger, "a base that takes no more commits writes, or says so with another error");
    }
    kv_lmdb_ops.close(base);
    return open_again(ledger);
}

void life_run(struct ledger *ledger, uint8_t last) {
    struct kv_base *base;

    faults_use(&ledger->faults);
    base = open_again(ledger);
    while (base && ledger->next <= last) {
        uint64_t struck = ledger->faults.struck;
        uint8_t commit = ledger->next++;

        ledger->pending = commit;
        int r = commit_give(base, commit);
        if ((r < 0) != (ledger->faults.struck > struck)) {
            wrong(ledger, "commit %u answers %s with %lu faults", commit, err_text(r),
                  (unsigned long)(ledger->faults.struck - struck));
        }
        if (r == 0) {
            ledger->held[ledger->held_count++] = commit;
            ledger->pending = 0;
            (void)rows_check(ledger, base, "behind a commit");
        } else if (ledger->stop_at_failure) {
            break;
        } else {
            base = failure_meet(ledger, base, r);
        }
    }
    kv_lmdb_ops.close(base);
}

void life_check(struct ledger *ledger) {
    struct kv_base *base = NULL;
    int r = life_open(MAP_BYTES, &base);

    if (r < 0) {
        wrong(ledger, "cannot be opened: %s", err_text(r));
        return;
    }
    found_at_open(ledger, base);
    r = commit_give(base, LIFE_COMMITS_MAX);
    if (r < 0) {
        wrong(ledger, "takes no commit: %s", err_text(r));
    } else {
        ledger->held[ledger->held_count++] = LIFE_COMMITS_MAX;
        (void)rows_check(ledger, base, "behind one more commit");
    }
    kv_lmdb_ops.close(base);
}

int life_fork(struct ledger *ledger, void (*play)(struct ledger *ledger)) {
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        play(ledger);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}
