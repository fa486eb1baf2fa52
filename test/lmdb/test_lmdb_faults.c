/* LMDB where writes and flushes fail, and where the process is killed between them: each call of a
 * scripted life fails once in each way. Behind it the rows are those of one commit, none older
 * than the last that was acknowledged: for the process itself, for the next one, and after a loss
 * of power.
 *
 *     life in a child: open, commit, commit, ...         (life.c; faults.c fails call N)
 *     then, each from the same moment:
 *       as it is        the next process finds the page cache
 *       power, lost     nothing that was not flushed
 *       power, kept     all of it
 *       power, drawn    of each sector the old or the new content, twice */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/prng.h"
#include "life.h"

enum {
    COMMITS = 6,
    COMMITS_BEFORE = 2, /* of a life that another one follows */
    COMMITS_BOTH = 4,
    SECTOR_BYTES = 512,
    FILE_BYTES_MAX = FAULT_BLOCKS * FAULT_BLOCK_BYTES,
    FULL_MAP_BYTES = 1 << 20,
    FULL_ROWS = 10,
    FULL_VALUE_BYTES = 1000,
    FULL_COMMITS_MAX = 200,
};

enum view { VIEW_AS_IS, VIEW_LOST, VIEW_KEPT, VIEW_DRAWN, VIEW_DRAWN_AGAIN, VIEWS };

enum { VIEWS_ALL = (1 << VIEWS) - 1, VIEWS_OF_POWER = 1 << VIEW_LOST | 1 << VIEW_DRAWN };

static const char *const view_names[VIEWS] = {"as it is", "power, lost", "power, kept",
                                              "power, drawn", "power, drawn again"};
static const char *const kind_names[FAULT_KINDS] = {
    "none",          "short",         "ENOSPC",      "EDQUOT",    "EIO",
    "EIO, yet done", "EIO, and lost", "kill before", "kill half", "kill after"};

/* One file of the target at a moment. */
struct moment {
    struct ledger ledger;
    bool there;
    char path[FAULT_PATH_BYTES];
    size_t bytes;
    uint8_t data[FILE_BYTES_MAX];
};

static char root[64];
static struct ledger *ledger;
static struct moment behind, between; /* a life, two lives */

static void target_path(char ret_path[FAULT_PATH_BYTES], const char *suffix) {
    (void)snprintf(ret_path, FAULT_PATH_BYTES, "%s/target/" KV_LMDB_NAME "%s", root, suffix);
}

static void target_clear(void) {
    static const char *const suffixes[] = {"", "-lock", ".new", ".new-lock"};
    char path[FAULT_PATH_BYTES];

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        target_path(path, suffixes[i]);
        (void)unlink(path);
    }
}

static int set_up(void **state) {
    (void)state;
    /* In memory where there is such a place: what is flushed is counted, not waited for. */
    (void)snprintf(root, sizeof root, "%s/test_lmdb_faults.XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ledger == MAP_FAILED || !mkdtemp(root)) {
        return -1;
    }
    life_place(root);
    return 0;
}

static int tear_down(void **state) {
    char path[FAULT_PATH_BYTES];

    (void)state;
    target_clear();
    (void)snprintf(path, sizeof path, "%s/target", root);
    (void)rmdir(path);
    (void)munmap(ledger, sizeof *ledger);
    return rmdir(root);
}

static void ledger_clear(void) {
    memset(ledger, 0, sizeof *ledger);
    (void)snprintf(ledger->faults.root, sizeof ledger->faults.root, "%s/", root);
    target_path(ledger->faults.name, "");
    ledger->next = 1;
}

static void fault_set(uint64_t at, enum fault_kind kind, uint64_t width) {
    ledger->faults.calls = 0;
    ledger->faults.struck = 0;
    ledger->faults.at = at;
    ledger->faults.kind = kind;
    ledger->faults.width = width;
}

/* The file under its name, or under the one that it is made with. */
static void moment_take(struct moment *moment) {
    static const char *const suffixes[] = {"", ".new"};
    ssize_t size = 0;
    int fd = -1;

    moment->ledger = *ledger;
    for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(suffixes); i++) {
        target_path(moment->path, suffixes[i]);
        fd = open(moment->path, O_RDONLY | O_CLOEXEC);
    }
    moment->there = fd >= 0;
    if (moment->there) {
        size = read(fd, moment->data, sizeof moment->data);
        assert_true(size >= 0 && (size_t)size < sizeof moment->data);
        (void)close(fd);
    }
    moment->bytes = (size_t)size;
}

/* What is found of a sector. */
static const uint8_t *sector_of(const struct moment *moment, enum view view, struct prng *prng,
                                size_t at) {
    size_t block = at / FAULT_BLOCK_BYTES;
    bool cached = view == VIEW_AS_IS ||
                  (moment->ledger.faults.dirty[block] &&
                   (view == VIEW_KEPT || (view != VIEW_LOST && prng_chance(prng, 1, 2))));

    return cached ? moment->data + at : moment->ledger.faults.disk[block] + at % FAULT_BLOCK_BYTES;
}

/* The target as a view shows it, and the ledger as it was. */
static void moment_play(const struct moment *moment, enum view view, struct prng *prng) {
    const struct faults *faults = &moment->ledger.faults;
    size_t bytes = view == VIEW_LOST ? (size_t)faults->disk_bytes : moment->bytes;
    static uint8_t image[FILE_BYTES_MAX];
    int fd;

    *ledger = moment->ledger;
    target_clear();
    if (!moment->there || (view == VIEW_LOST && !faults->named)) {
        return;
    }
    fd = open(moment->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t at = 0; at < bytes; at += SECTOR_BYTES) {
        memcpy(image + at, sector_of(moment, view, prng, at), SECTOR_BYTES);
    }
    assert_int_equal(write(fd, image, bytes), bytes);
    (void)close(fd);
}

/* Status is how a child ended, which faults may have killed. */
static void child_check(int status, enum fault_kind kind, const char *what) {
    bool killed = kind >= FAULT_KILL_BEFORE && ledger->faults.struck > 0;

    if (ledger->problem[0] != '\0') {
        fail_msg("%s: %s", what, ledger->problem);
    }
    if (killed ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL
               : !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("%s: the child ended with status %#x", what, (unsigned)status);
    }
}

/* The views of the moment behind a life, each in a process of its own. */
static void views_check(const char *what, unsigned views, struct prng *prng) {
    moment_take(&behind);
    for (enum view view = VIEW_AS_IS; view < VIEWS; view++) {
        char text[256];

        if ((views & 1u << view) == 0) {
            continue;
        }
        /* At first the files themselves, with the lock file as it was left. */
        if (view != VIEW_AS_IS) {
            moment_play(&behind, view, prng);
        }
        (void)snprintf(text, sizeof text, "%s, then %s", what, view_names[view]);
        child_check(life_fork(ledger, life_check), FAULT_NONE, text);
    }
}

static void commits_run(struct ledger *shared) {
    life_run(shared, COMMITS);
}

static void commits_both_run(struct ledger *shared) {
    life_run(shared, COMMITS_BOTH);
}

static void commits_before_run(struct ledger *shared) {
    life_run(shared, COMMITS_BEFORE);
}

/* One fault in one life; false: it has fewer calls. */
static bool life_play(uint64_t at, enum fault_kind kind, uint64_t width, struct prng *prng) {
    char what[128];
    bool struck;

    (void)snprintf(what, sizeof what, "call %lu, %s, %lu wide", (unsigned long)at, kind_names[kind],
                   (unsigned long)width);
    target_clear();
    ledger_clear();
    fault_set(at, kind, width);
    child_check(life_fork(ledger, commits_run), kind, what);
    struck = ledger->faults.struck > 0;
    views_check(what, VIEWS_ALL, prng);
    return struck;
}

/* Broken when a commit that failed leaves a part of it, or a base that goes wrong with the next
 * one; or when one that was acknowledged is lost. Two wide: LMDB takes a meta page that it could
 * not write back, which then fails as well. */
static void test_failures(void **state) {
    static const enum fault_kind twice[] = {FAULT_EIO, FAULT_EIO_LOST};
    struct prng prng;
    uint64_t at = 1;

    (void)state;
    prng_init(&prng, 1);
    for (bool struck = true; struck; at++) {
        for (enum fault_kind kind = FAULT_SHORT; kind < FAULT_KILL_BEFORE; kind++) {
            struck = life_play(at, kind, 1, &prng);
        }
        for (size_t i = 0; i < ARRAY_SIZE(twice); i++) {
            (void)life_play(at, twice[i], 2, &prng);
        }
    }
    print_message("%lu calls, each failed in %zu ways\n", (unsigned long)at - 2,
                  FAULT_KILL_BEFORE - FAULT_SHORT + ARRAY_SIZE(twice));
    assert_true(at > 30);
}

/* Broken when a process that is killed leaves what the next one cannot go on from. */
static void test_kills(void **state) {
    struct prng prng;
    uint64_t at = 1;

    (void)state;
    prng_init(&prng, 2);
    for (bool struck = true; struck; at++) {
        for (enum fault_kind kind = FAULT_KILL_BEFORE; kind < FAULT_KINDS; kind++) {
            struck = life_play(at, kind, 1, &prng);
        }
    }
    assert_true(at > 30);
}

/* A life from the moment between, killed at each of its calls, and the power lost with it. */
static void second_lives(const char *what, struct prng *prng) {
    char text[192];

    moment_take(&between);
    for (uint64_t at = 1; at == 1 || ledger->faults.struck > 0; at++) {
        moment_play(&between, VIEW_AS_IS, prng);
        ledger->stop_at_failure = false;
        fault_set(at, FAULT_KILL_AFTER, 1);
        (void)snprintf(text, sizeof text, "%s, then killed at call %lu", what, (unsigned long)at);
        child_check(life_fork(ledger, commits_both_run), FAULT_KILL_AFTER, text);
        views_check(text, VIEWS_OF_POWER, prng);
        *ledger = behind.ledger;
    }
}

/* Broken when a process builds on a meta page that is in the page cache and not on disk, or on
 * disk and not in the page cache: the next loss of power then shows another commit than the one it
 * went on from, or pages of none. */
static void test_next_life_loses_power(void **state) {
    static const struct {
        enum fault_kind kind;
        uint64_t width;
    } firsts[] = {{FAULT_EIO_DONE, 1}, {FAULT_EIO_LOST, 2}, {FAULT_KILL_AFTER, 1}};
    struct prng prng;
    bool struck = true;

    (void)state;
    prng_init(&prng, 3);
    for (uint64_t at = 1; struck; at++) {
        for (size_t i = 0; i < ARRAY_SIZE(firsts); i++) {
            char what[128];

            (void)snprintf(what, sizeof what, "call %lu, %s", (unsigned long)at,
                           kind_names[firsts[i].kind]);
            target_clear();
            ledger_clear();
            ledger->stop_at_failure = true;
            fault_set(at, firsts[i].kind, firsts[i].width);
            child_check(life_fork(ledger, commits_before_run), firsts[i].kind, what);
            struck = ledger->faults.struck > 0;
            if (struck) {
                second_lives(what, &prng);
            }
        }
    }
}

static int full_commit(struct kv_base *base, unsigned commit, bool deleted) {
    static uint8_t value[FULL_VALUE_BYTES];
    struct kv_base_row rows[FULL_ROWS];
    struct kv_base_commit given = {.rows = rows, .row_count = FULL_ROWS};

    memset(value, (int)commit, sizeof value);
    for (unsigned i = 0; i < FULL_ROWS; i++) {
        rows[i] = (struct kv_base_row){
            .key = kv_key_make((struct kv_key_fields){.index = commit * FULL_ROWS + i}),
            .value = {value, sizeof value},
            .deleted = deleted};
    }
    return kv_lmdb_ops.commit_now(base, &given);
}

/* Rows of commits from first to behind last are there, and no others. */
static void full_check(struct kv_base *base, unsigned first, unsigned last) {
    struct kv_key key = {{0}};
    struct bytes value;
    unsigned index = first * FULL_ROWS;

    for (int r = kv_lmdb_ops.next(base, &key, true, &key, &value); r == 0;
         r = kv_lmdb_ops.next(base, &key, false, &key, &value)) {
        assert_int_equal(kv_key_split(&key).index, index);
        assert_int_equal(value.data[0], (uint8_t)(index / FULL_ROWS));
        index++;
    }
    assert_int_equal(index, last * FULL_ROWS);
    kv_lmdb_ops.read_end(base);
}

static unsigned full_fill(struct kv_base *base, unsigned first, unsigned last) {
    int r = full_commit(base, last, false);

    while (r == 0 && last < FULL_COMMITS_MAX) {
        r = full_commit(base, ++last, false);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    full_check(base, first, last);
    return last;
}

/* Broken when a full map says anything else, changes something, or cannot be made room in; also
 * when it is opened anew. */
static void test_full_map(void **state) {
    struct kv_base *base;
    unsigned first = 0, last, again;

    (void)state;
    target_clear();
    faults_use(NULL);
    assert_int_equal(life_open(FULL_MAP_BYTES, &base), 0);
    last = full_fill(base, 0, 0);
    assert_true(last > 20);
    assert_int_equal(full_commit(base, last, false), -ERR_NO_SPACE);
    full_check(base, first, last);
    for (; first < last / 2; first++) {
        assert_int_equal(full_commit(base, first, true), 0);
        full_check(base, first + 1, last);
    }
    again = full_fill(base, first, last);
    assert_in_range(again, last + 5, last + first);
    kv_lmdb_ops.close(base);
    assert_int_equal(life_open(FULL_MAP_BYTES, &base), 0);
    full_check(base, first, again);
    assert_int_equal(full_commit(base, again, false), -ERR_NO_SPACE);
    assert_int_equal(full_commit(base, first, true), 0);
    full_check(base, ++first, again);
    kv_lmdb_ops.close(base);
    assert_int_equal(life_open(2 * FULL_MAP_BYTES, &base), 0);
    full_check(base, first, again);
    assert_in_range(full_fill(base, first, again), again + last / 2, FULL_COMMITS_MAX);
    kv_lmdb_ops.close(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_next_life_loses_power),
        cmocka_unit_test(test_full_map),
    };

    return cmocka_run_group_tests_name("lmdb_faults", tests, set_up, tear_down);
}
