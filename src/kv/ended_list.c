/* See ended_list.h. */
#include "kv/ended_list.h"

enum { NAMES_A_STEP = 64, ROWS_A_STEP = 64, RUN_MIN = 64 };

struct taking {
    struct ended_list *list;
    struct ended_work *work;
    const struct ended_news *news;
    void *context;
};

static struct kv_key row_key(const struct ended_list *list, uint64_t id) {
    return kv_key_make(
        (struct kv_key_fields){.space = KV_SPACE_OWNER, .type = list->owner->row_type, .id = id});
}

static struct kv_key bits_key(const struct ended_list *list, uint64_t session) {
    return row_key(list, 1 + session / ENDED_BITS);
}

static int byte_get(const struct ended_list *list, uint64_t session, uint8_t *ret_byte) {
    struct kv_key key = bits_key(list, session);
    size_t at = session % ENDED_BITS / 8;
    struct bytes value;
    int r = kv_get(list->kv, &key, &value);

    if (r == 0 || r == -ERR_NOT_FOUND) {
        *ret_byte = r == 0 && at < value.size ? value.data[at] : 0;
        r = 0;
    }
    return r;
}

int ended_list_has(const struct ended_list *list, uint64_t session, bool *ret_ended) {
    uint8_t byte = UINT8_MAX;
    int r = session < list->lowest ? 0 : byte_get(list, session, &byte);

    if (r == 0) {
        *ret_ended = byte >> session % 8 & 1;
    }
    return r;
}

int ended_list_load(struct ended_list *list, struct kv *kv, const struct ended_owner *owner) {
    struct ended_row row;
    struct bytes value;

    *list = (struct ended_list){.owner = owner, .kv = kv};
    struct kv_key key = row_key(list, 0);
    int r = kv_get(kv, &key, &value);
    if (r < 0) {
        return r == -ERR_NOT_FOUND ? 0 : r;
    }
    if (value.size != sizeof row || value.data[0] != ENDED_FORMAT) {
        return -ERR_CORRUPT;
    }
    memcpy(&row, value.data, sizeof row);
    list->number = row.number;
    list->lowest = row.lowest;
    list->first_row = row.first_row;
    return 0;
}

static int begin(struct taking *taking, const struct kv_need *need) {
    return taking->list->owner->begin(taking->context, need);
}

/* r: of what was staged. */
static int commit(struct taking *taking, int r) {
    const struct ended_owner *owner = taking->list->owner;

    if (r < 0) {
        owner->abort(taking->context);
        return r;
    }
    owner->commit(taking->context);
    taking->list->position = kv_position(taking->list->kv) + 1;
    return 0;
}

/* names: its bit is set, too; else it is below the lowest that is about to be told. */
static int end_one(struct taking *taking, uint64_t session, bool names) {
    struct ended_list *list = taking->list;
    const struct ended_owner *owner = list->owner;
    struct kv_key key = bits_key(list, session);
    struct kv_need need = owner->need;
    uint8_t byte = 0;
    int r = names ? byte_get(list, session, &byte) : 0;

    need.rows += 1;
    need.value_bytes += ENDED_BITS / 8;
    need.record_bytes += KV_ROW_RECORD_BYTES + 1;
    need.session.value = need.drops ? session : 0;
    r = r < 0 ? r : begin(taking, &need);
    if (r != 0) {
        return r;
    }
    byte |= (uint8_t)(1U << session % 8);
    r = names ? kv_patch(list->kv, &key, session % ENDED_BITS / 8, (struct bytes){&byte, 1}) : 0;
    r = commit(taking, r < 0 ? r : owner->end(taking->context, session));
    if (r == 0) {
        owner->ended(taking->context, session);
    }
    return r;
}

/* The next session that the news name, from work->cursor on; 0: none. */
static uint64_t next_name(const struct taking *taking) {
    const struct ended_news *news = taking->news;
    const uint8_t *bits = news->names.data;
    uint64_t at = taking->work->cursor;

    if (news->first == 0) {
        return at < news->names.size / 8 ? load_le64(bits + 8 * at) : 0;
    }
    while (at < 8 * (uint64_t)news->names.size && !(bits[at / 8] >> at % 8 & 1)) {
        at++;
    }
    taking->work->cursor = at;
    return at < 8 * (uint64_t)news->names.size ? news->first + at : 0;
}

/* How many that follow one another are named from the session on, as far as one row has them; 1
 * where they are few. */
static uint32_t run_count(const struct taking *taking, uint64_t session) {
    const struct ended_news *news = taking->news;
    uint64_t at = taking->work->cursor;
    uint64_t end = MIN(8 * (uint64_t)news->names.size, at + ENDED_BITS - session % ENDED_BITS);
    uint32_t count = 0;

    while (news->first != 0 && at < end && (news->names.data[at / 8] >> at % 8 & 1)) {
        count++;
        at++;
    }
    return count < RUN_MIN ? 1 : count;
}

/* Of none of them anything is kept. */
static int run_end(struct taking *taking, uint64_t session, uint32_t count) {
    struct ended_list *list = taking->list;
    struct kv_key key = bits_key(list, session);
    uint32_t first = session % ENDED_BITS;
    size_t from = first / 8;
    size_t end = (first + count - 1) / 8 + 1;
    uint8_t bits[ENDED_BITS / 8] = {0};
    struct bytes value;
    const struct kv_need need = {.rows = 1,
                                 .value_bytes = sizeof bits,
                                 .record_bytes = KV_ROW_RECORD_BYTES + (uint32_t)(end - from)};
    int r = kv_get(list->kv, &key, &value);

    if (r < 0 && r != -ERR_NOT_FOUND) {
        return r;
    }
    if (r == 0) {
        memcpy(bits, value.data, MIN(value.size, sizeof bits));
    }
    for (uint32_t i = first; i < first + count; i++) {
        bits[i / 8] |= (uint8_t)(1U << i % 8);
    }
    r = begin(taking, &need);
    if (r != 0) {
        return r;
    }
    return commit(taking, kv_patch(list->kv, &key, from, (struct bytes){bits + from, end - from}));
}

/* A manager that was rebuilt names many numbers that were never given. Of a run those end first of
 * whom something is kept, in any order. *ret_count: how many names the cursor has come past. */
static int name_end(struct taking *taking, uint64_t session, uint32_t *ret_count) {
    const struct ended_list *list = taking->list;
    uint32_t count = run_count(taking, session);
    uint64_t kept = 0;

    *ret_count = count;
    if (count == 1) {
        return end_one(taking, session, true);
    }
    int r = list->owner->within(taking->context, session, session + count, &kept);
    if (r < 0 || kept == 0) {
        return r < 0 ? r : run_end(taking, session, count);
    }
    *ret_count = 0;
    return end_one(taking, kept, true);
}

static int names_take(struct taking *taking) {
    uint64_t session;

    for (int i = 0; (session = next_name(taking)) != 0; i++) {
        uint32_t count = 1;
        bool ended = false;
        int r = ended_list_has(taking->list, session, &ended);

        if (r == 0 && !ended && i >= NAMES_A_STEP) {
            return ENDED_YIELDS;
        }
        if (r == 0 && !ended) {
            r = name_end(taking, session, &count);
        }
        if (r != 0) {
            return r;
        }
        taking->work->cursor += count;
    }
    taking->work->cursor = 0;
    return 0;
}

/* Bits of a row, at least one; what it is too short for is 0. */
static bool all_set(struct bytes row, uint32_t first, uint32_t end) {
    bool all = (end - 1) / 8 < row.size;

    for (uint32_t at = first, count; all && at < end; at += count) {
        count = at % 8 == 0 && end - at >= 8 ? 8 : 1;
        all = count == 8 ? row.data[at / 8] == UINT8_MAX : row.data[at / 8] >> at % 8 & 1;
    }
    return all;
}

/* Whether all that end by the lowest are named: so they are by a manager that knows what it says,
 * and nobody looks at all sessions for each end. work->cursor: the one it has come to; the lowest
 * where all are. A number that is not named stops it, whatever the lowest is. */
static int below_look(struct taking *taking) {
    const struct ended_list *list = taking->list;
    uint64_t end = taking->news->lowest;
    uint64_t session = MAX(taking->work->cursor, MAX(list->lowest, UINT64_C(1)));
    int r = 0;

    if (taking->news->first != 0) {
        return 0; /* it names none below its lowest */
    }
    for (int i = 0; session < end; i++) {
        struct kv_key key = bits_key(list, session);
        uint32_t first = session % ENDED_BITS;
        uint32_t count = (uint32_t)MIN(end - session, ENDED_BITS - first);
        struct bytes value;

        r = i < ROWS_A_STEP ? kv_get(list->kv, &key, &value) : ENDED_YIELDS;
        if (r != 0 || !all_set(value, first, first + count)) {
            break;
        }
        session += count;
    }
    taking->work->cursor = session;
    return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Whoever is told all of the list is not told the names below its lowest; and who tells of a lowest
 * may have named too few. Until the lowest is kept nothing keeps one of them from attaching. */
static int below_take(struct taking *taking) {
    const struct ended_news *news = taking->news;
    const struct ended_list *list = taking->list;
    uint64_t session = 0;
    int r = 0;

    for (int i = 0; MAX(taking->work->cursor, list->lowest) < news->lowest; i++) {
        r = list->owner->within(taking->context, 0, news->lowest, &session);
        if (r < 0 || session == 0) {
            break;
        }
        r = i < NAMES_A_STEP ? end_one(taking, session, false) : ENDED_YIELDS;
        if (r != 0) {
            break;
        }
        session = 0;
    }
    return r;
}

static int number_take(struct taking *taking) {
    const struct ended_news *news = taking->news;
    struct ended_list *list = taking->list;
    struct kv_key key = row_key(list, 0);
    struct ended_row row = {.format = ENDED_FORMAT,
                            .number = news->number,
                            .lowest = MAX(list->lowest, news->lowest),
                            .first_row = list->first_row};
    const struct kv_need need = {
        .rows = 1, .value_bytes = sizeof row, .record_bytes = KV_ROW_RECORD_BYTES + sizeof row};

    int r = below_take(taking); /* Also where it begins anew, having waited for room. */

    if (r != 0 || news->from != list->number || news->number == news->from) {
        return r;
    }
    r = begin(taking, &need);
    if (r != 0) {
        return r;
    }
    r = commit(taking, kv_put(list->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row}));
    if (r == 0) {
        list->number = row.number;
        list->lowest = row.lowest;
    }
    return r;
}

/* Rows of bits that are all below the lowest; where that is cut short it is done the next time. Who
 * tells the lowest may tell any number: only rows that are there are looked at. */
static int rows_trim(struct taking *taking) {
    const struct kv_need need = {.rows = 1, .record_bytes = KV_ROW_RECORD_BYTES};
    struct ended_list *list = taking->list;
    uint64_t end = list->lowest / ENDED_BITS;
    struct kv_key to = bits_key(list, end * ENDED_BITS);
    int r = 0;

    while (list->first_row < end) {
        struct kv_key from = bits_key(list, list->first_row * ENDED_BITS);
        struct kv_cursor cursor;
        struct bytes value;

        kv_cursor_init(&cursor, &from, &to);
        r = kv_next(list->kv, &cursor, &value);
        if (r == -ERR_NOT_FOUND) {
            list->first_row = end;
            return 0;
        }
        r = r < 0 ? r : begin(taking, &need);
        r = r != 0 ? r : commit(taking, kv_delete(list->kv, &cursor.key));
        if (r != 0) {
            break;
        }
        list->first_row = kv_key_split(&cursor.key).id;
    }
    return r;
}

static int news_check(const struct ended_news *news) {
    bool good = news->number >= news->from &&
                (news->first == 0 ? news->names.size % 8 == 0
                                  : 8 * (uint64_t)news->names.size <= UINT64_MAX - news->first);

    for (size_t i = 0; good && news->first == 0 && i < news->names.size; i += 8) {
        good = load_le64(news->names.data + i) != 0;
    }
    return good ? 0 : -ERR_INVALID;
}

int ended_list_take(struct ended_list *list, struct ended_work *work, const struct ended_news *news,
                    void *context) {
    static int (*const stages[])(struct taking *taking) = {names_take, below_look, number_take,
                                                           rows_trim};
    struct taking taking = {list, work, news, context};
    int r = news_check(news);

    while (r == 0 && work->stage < (int)ARRAY_SIZE(stages)) {
        r = stages[work->stage](&taking);
        work->stage += r == 0;
    }
    return r;
}
