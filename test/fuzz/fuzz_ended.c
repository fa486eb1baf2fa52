/* The list of the ended sessions: news of it beside a model. Whatever they say, who is named has
 * ended from then on, also behind a kill, and is kept no longer; nobody else is. What is refused
 * changes nothing.
 *
 * An input is news, each u8 of enum said, u8 by how much the number goes on, lowest, first,
 * u8 size, names; lowest and first are u16, or u64 where WIDE. */
#include "fuzz.h"
#include "kv/ended_list.h"
#include "kv/kv_mem.h"
#include "memory_env.h"

enum said { FITS = 1, WIDE = 2, KILL = 4, OF_THE_PAST = 8 };
enum { NEWS_MAX = 12, SESSIONS = 3 * ENDED_BITS, KEPT_STEP = 37, PUMPS_MAX = 100000 };
enum { ROW_KEPT = 'S', ROW_LIST = 'E' };

/* A session of which something is kept has a row. */
static struct {
    struct memory_env *world;
    struct kv_mem_store *store;
    struct kv *kv;
    struct ended_list list;
    bool kept[SESSIONS];
    bool named[SESSIONS]; /* by the model: named by news that were taken */
    uint64_t lowest;      /* likewise */
} it;

static void wake(void *context) {
    (void)context;
}

static int list_begin(void *context, const struct kv_need *need) {
    struct kv_grant grant;
    int r = kv_admit(it.kv, KV_CLASS_CONTROL, need, &grant);

    (void)context;
    assert(r == 0 || r == -ERR_PENDING);
    if (r == 0) {
        kv_begin(it.kv, &grant);
    }
    return r;
}

static void list_commit(void *context) {
    (void)context;
    (void)kv_commit(it.kv);
}

static void list_abort(void *context) {
    (void)context;
    kv_abort(it.kv);
}

static struct kv_key kept_key(uint64_t session) {
    return kv_key_make(
        (struct kv_key_fields){.space = KV_SPACE_OWNER, .type = ROW_KEPT, .id = session});
}

static int list_end(void *context, uint64_t session) {
    const struct kv_key key = kept_key(session);

    (void)context;
    return session < SESSIONS && it.kept[session] ? kv_delete(it.kv, &key) : 0;
}

static void list_ended(void *context, uint64_t session) {
    (void)context;
    if (session < SESSIONS) {
        it.kept[session] = false;
    }
}

static int list_within(void *context, uint64_t from, uint64_t end, uint64_t *ret_session) {
    (void)context;
    *ret_session = 0;
    for (uint64_t session = from; session < MIN(end, (uint64_t)SESSIONS); session++) {
        if (it.kept[session]) {
            *ret_session = session;
            break;
        }
    }
    return 0;
}

static const struct ended_owner owner = {
    .row_type = ROW_LIST,
    .need = {.rows = 1, .record_bytes = KV_ROW_RECORD_BYTES},
    .begin = list_begin,
    .commit = list_commit,
    .abort = list_abort,
    .end = list_end,
    .ended = list_ended,
    .within = list_within,
};

static void go_on(void) {
    (void)kv_seal(it.kv);
    memory_env_advance(it.world, 2 * NS_PER_S);
    do {
        kv_step(it.kv);
    } while (memory_env_pump(it.world, 8) > 0);
    kv_step(it.kv);
}

static void kv_begin_life(void) {
    const struct kv_options options = {.env = memory_env_env(it.world),
                                       .directory = "t",
                                       .shared_name = "ring",
                                       .base = &kv_mem_ops,
                                       .base_store = it.store,
                                       .owner_id = "the-ended-listed",
                                       .ring_bytes = 64 * KIB,
                                       .disk_log_bytes = MIB,
                                       .changes_bytes_max = 2 * MIB,
                                       .sync_interval_ns = NS_PER_S,
                                       .outcomes_max = 64,
                                       .sessions_max = 16,
                                       .hooks = {.wake = wake}};
    char problem[256];
    int r = kv_open(&options, &it.kv, problem);

    assert(r == 0);
    r = ended_list_load(&it.list, it.kv, &owner);
    assert(r == 0);
}

static void kept_make(void) {
    const struct kv_need need = {
        .rows = 1, .value_bytes = 1, .record_bytes = KV_ROW_RECORD_BYTES + 1};

    for (uint64_t session = 1; session < SESSIONS; session += KEPT_STEP) {
        const struct kv_key key = kept_key(session);
        const uint8_t value = 1;
        int r = list_begin(NULL, &need);

        assert(r == 0);
        r = kv_put(it.kv, &key, (struct bytes){&value, 1});
        assert(r == 0);
        list_commit(NULL);
        it.kept[session] = true;
    }
    go_on();
}

static void world_begin(void) {
    const struct kv_mem_options store = {.cold_denominator = 1};
    int r;

    memset(&it, 0, sizeof it);
    r = memory_env_new(1, &it.world);
    assert(r == 0);
    r = kv_mem_store_new(&store, &it.store);
    assert(r == 0);
    kv_begin_life();
    kept_make();
}

static void world_end(void) {
    kv_abandon(it.kv);
    kv_mem_store_free(it.store);
    memory_env_free(it.world);
}

/* Whom the news name: the i-th, or 0 behind the last one. */
static uint64_t name_of(const struct ended_news *news, size_t i, bool *ret_named) {
    const uint8_t *names = news->names.data;

    if (news->first == 0) {
        *ret_named = true;
        return i < news->names.size / 8 ? load_le64(names + 8 * i) : 0;
    }
    *ret_named = i < 8 * news->names.size && (names[i / 8] >> i % 8 & 1);
    return i < 8 * news->names.size ? news->first + i : 0;
}

static bool makes_sense(const struct ended_news *news) {
    bool named;

    if (news->first != 0) {
        return news->number >= news->from && 8 * news->names.size <= UINT64_MAX - news->first;
    }
    for (size_t i = 0; i < news->names.size / 8; i++) {
        if (name_of(news, i, &named) == 0) {
            return false;
        }
    }
    return news->number >= news->from && news->names.size % 8 == 0;
}

static void model_take(const struct ended_news *news, uint64_t number_before) {
    uint64_t session;
    bool named;

    for (size_t i = 0; (session = name_of(news, i, &named)) != 0; i++) {
        if (named && session < SESSIONS) {
            it.named[session] = true;
        }
    }
    if (news->from == number_before && news->number != news->from) {
        it.lowest = MAX(it.lowest, news->lowest);
    }
}

/* As it was before the news. */
static struct {
    bool kept[SESSIONS];
    bool ended[SESSIONS];
    uint64_t lowest;
} before;

static void before_note(void) {
    memcpy(before.kept, it.kept, sizeof before.kept);
    before.lowest = it.lowest;
    for (uint64_t session = 0; session < SESSIONS; session++) {
        before.ended[session] = session < it.lowest || it.named[session];
    }
}

/* What is kept of whom has ended by these news goes with them, and nothing else does. */
static void check_kept(const struct ended_news *news, bool taken) {
    bool is_below = taken && news->lowest > before.lowest;

    for (uint64_t session = 1; session < SESSIONS; session += KEPT_STEP) {
        const struct kv_key key = kept_key(session);
        bool by_name = taken && it.named[session] && !before.ended[session];
        bool goes = by_name || (is_below && session < news->lowest);
        struct bytes value;
        int r = kv_get(it.kv, &key, &value);

        assert(it.kept[session] == (before.kept[session] && !goes));
        assert(r == (it.kept[session] ? 0 : -ERR_NOT_FOUND));
    }
}

static void check_list(void) {
    assert(it.list.lowest == it.lowest);
    for (uint64_t session = 0; session < SESSIONS; session++) {
        bool ended = false;
        int r = ended_list_has(&it.list, session, &ended);

        assert(r == 0 && ended == (session < it.lowest || it.named[session]));
    }
}

static void news_take(const struct ended_news *news) {
    uint64_t number = it.list.number;
    struct ended_work work = {0};
    int r;

    before_note();
    for (int i = 0;; i++) {
        r = ended_list_take(&it.list, &work, news, NULL);
        if (r != ENDED_YIELDS && r != -ERR_PENDING) {
            break;
        }
        assert(i < PUMPS_MAX);
        go_on();
    }
    go_on();
    assert(r == (makes_sense(news) ? 0 : -ERR_INVALID));
    if (r == 0) {
        model_take(news, number);
    }
    assert(it.list.number == (r == 0 && news->from == number ? news->number : number));
    check_kept(news, r == 0);
    check_list();
}

static void killed(void) {
    uint64_t number = it.list.number;

    memory_env_kill(it.world);
    kv_abandon(it.kv);
    kv_begin_life();
    assert(it.list.number == number);
    check_list();
}

void fuzz_ended_news(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);

    world_begin();
    for (int i = 0; i < NEWS_MAX && cursor.size > 0; i++) {
        enum said said = (enum said)wire_take_number(&cursor, 1);
        uint64_t by = wire_take_number(&cursor, 1);
        size_t bytes = said & WIDE ? 8 : 2;
        struct ended_news news = {.from = said & FITS ? it.list.number : by / 2};

        news.number = said & OF_THE_PAST ? news.from - MIN(by, news.from) : news.from + by;
        news.lowest = wire_take_number(&cursor, bytes);
        news.first = wire_take_number(&cursor, bytes);
        size_t size = wire_take_number(&cursor, 1);
        news.names.data = wire_take(&cursor, size);
        if (cursor.bad) {
            break;
        }
        news.names.size = size;
        news_take(&news);
        if (said & KILL) {
            killed();
        }
    }
    world_end();
}

static void give_news(struct buffer *out, enum said said, const struct ended_news *news) {
    size_t bytes = said & WIDE ? 8 : 2;

    wire_give_number(out, said, 1);
    wire_give_number(out, news->number, 1);
    wire_give_number(out, news->lowest, bytes);
    wire_give_number(out, news->first, bytes);
    wire_give_number(out, news->names.size, 1);
    wire_give(out, news->names.data, news->names.size);
}

void seed_ended_news(const struct fuzz_seeds *seeds) {
    static uint8_t run[200] = {[10] = 7, [190] = 1};
    uint8_t names[16], space[1024];
    struct buffer out = {space, 0, sizeof space};

    memset(run + 20, UINT8_MAX, 40);
    store_le64(names, 1 + KEPT_STEP);
    store_le64(names + 8, 5000);
    give_news(&out, FITS, &(const struct ended_news){.number = 2, .names = {names, sizeof names}});
    give_news(&out, FITS | KILL,
              &(const struct ended_news){
                  .number = 3, .lowest = 4200, .first = 4000, .names = {run, sizeof run}});
    give_news(&out, 0, &(const struct ended_news){.number = 3, .names = {names, 8}});
    give_news(&out, FITS | WIDE,
              &(const struct ended_news){
                  .number = 1, .lowest = 9000, .first = 10000, .names = {run, sizeof run}});
    fuzz_seed(seeds, (struct bytes){space, out.size});
    out.size = 0;
    give_news(&out, FITS | WIDE,
              &(const struct ended_news){
                  .number = 1, .lowest = UINT64_MAX / 2, .first = 1, .names = {run, 1}});
    fuzz_seed(seeds, (struct bytes){space, out.size});
}
