/* How files that are only read are served, and which version the kernel's pages are of. */
#include "front/fuse/kept.h"
#include "front/fuse/mix.h"
#include <stdlib.h>

enum {
    SLOT_COUNT = 1 << 22, /* as many files as a machine has small ones in its page cache: 32 MiB */
    PAGE_BYTES = 4096,
    PAGES_AT = 1, /* bits of a slot */
    PAGES_MAX = 511,
    HASH_AT = 10,
    IS_KEPT = 1,
    SMALL_BYTES = 16384,  /* of these a READ says nothing of who reads */
    WHOLE_BYTES = 131072, /* more the kernel does not read ahead for who reads piece by piece */
    HABIT_WHOLE = 2,      /* files on end */
    ROOM_LEAST = 64,      /* a part of the most */
    GROWTH_FAST = 2,      /* parts of a file's pages */
    GROWTH_SLOW = 16,
    CALM = 256, /* hits on end: what is missed behind them is missed anew */
};

static _Atomic uint64_t *slot_of(const struct kept_table *table, uint64_t ino) {
    return &table->slots[mix(ino) % SLOT_COUNT];
}

int kept_table_init(struct kept_table *table, uint64_t memory_bytes) {
    *table = (struct kept_table){
        .slots = calloc(SLOT_COUNT, sizeof *table->slots),
        .room_max = (int64_t)(memory_bytes / PAGE_BYTES / 2),
    };
    atomic_store(&table->room, table->room_max);
    atomic_store(&table->enough, table->room_max);
    return table->slots ? 0 : -ERR_NO_MEMORY;
}

void kept_table_deinit(struct kept_table *table) {
    free(table->slots);
    table->slots = NULL;
}

static int64_t pages_of(uint64_t slot) {
    return (int64_t)(slot >> PAGES_AT & PAGES_MAX);
}

/* Of what an open was told; 0: there is no version to go by. */
static uint64_t mark_of(const struct shoal_attributes *attributes) {
    uint64_t pages = attributes->size <= SMALL_BYTES
                         ? 0 /* They need no room. */
                         : MIN(attributes->size / PAGE_BYTES + 1, (uint64_t)PAGES_MAX);
    uint64_t hash = mix(attributes->ino);

    hash = mix(hash ^ attributes->version);
    hash = mix(hash ^ attributes->size);
    hash = mix(hash ^ (uint64_t)attributes->mtime_ns);
    hash = mix(hash ^ (uint64_t)attributes->ctime_ns) | 1;
    return attributes->version != 0 ? hash << HASH_AT | pages << PAGES_AT : 0;
}

static void count(struct kept_table *table, uint64_t before, uint64_t now) {
    int64_t more = (now & IS_KEPT ? pages_of(now) : 0) - (before & IS_KEPT ? pages_of(before) : 0);

    if (more != 0)
        atomic_fetch_add(&table->pages, more);
}

static void note(struct kept_table *table, uint64_t ino, uint64_t slot) {
    count(table, atomic_exchange(slot_of(table, ino), slot), slot);
}

/* Its pages are not kept any more, and it was seen all the same. */
static void note_gone(struct kept_table *table, uint64_t ino, uint64_t slot) {
    if (atomic_compare_exchange_strong(slot_of(table, ino), &slot, slot & ~(uint64_t)IS_KEPT))
        count(table, slot, 0);
}

/* Fast up to half of what was too much. */
static void room_grow(struct kept_table *table, int64_t pages) {
    int64_t room = atomic_load(&table->room);
    int64_t more = pages / (room < atomic_load(&table->enough) ? GROWTH_FAST : GROWTH_SLOW) + 1;

    if (room == table->room_max)
        return;
    atomic_fetch_add_explicit(&table->calm, 1, memory_order_relaxed);
    while (room < table->room_max &&
           !atomic_compare_exchange_weak(&table->room, &room, MIN(room + more, table->room_max))) {
    }
}

/* Not all that is kept was there. */
static void room_shrink(struct kept_table *table, int64_t pages) {
    int64_t kept = atomic_load(&table->pages);
    int64_t least = table->room_max / ROOM_LEAST;
    int64_t room = atomic_load(&table->room);

    if (atomic_exchange(&table->calm, 0) >= CALM || room == table->room_max)
        atomic_store(&table->enough, room / 2);
    while (room > least && !atomic_compare_exchange_weak(&table->room, &room,
                                                         MAX(MIN(room, kept) - pages, least))) {
    }
}

static bool has_room(struct kept_table *table, uint64_t mark) {
    return atomic_load(&table->pages) + pages_of(mark) <= atomic_load(&table->room);
}

enum kept_way kept_use_begin(struct kept_table *table, struct kept_use *use,
                             const struct shoal_attributes *attributes, uint32_t thread,
                             bool may_pass) {
    uint64_t mark = mark_of(attributes);
    uint64_t slot = atomic_load(slot_of(table, attributes->ino));
    bool small = attributes->size <= SMALL_BYTES || !may_pass;

    use->reader = (uint8_t)(mix(thread) % KEPT_READERS);
    use->whole_bytes = small ? 0 : (uint32_t)MIN(attributes->size, (uint64_t)WHOLE_BYTES);
    if (mark != 0 && slot == (mark | IS_KEPT))
        use->way = KEPT_THERE;
    else if (mark == 0 || small || (slot == mark && has_room(table, mark)) ||
             atomic_load_explicit(&table->whole[use->reader], memory_order_relaxed) < HABIT_WHOLE)
        use->way = KEPT_DROPPED;
    else
        use->way = KEPT_PAST;
    atomic_store_explicit(&use->mark, mark, memory_order_relaxed);
    return use->way;
}

void kept_use_none(struct kept_use *use) {
    use->way = KEPT_APART;
    atomic_store_explicit(&use->mark, 0, memory_order_relaxed);
}

static void habit_note(struct kept_table *table, const struct kept_use *use, bool is_whole) {
    _Atomic uint8_t *whole = &table->whole[use->reader];
    uint8_t before = atomic_load_explicit(whole, memory_order_relaxed);
    uint8_t now = (uint8_t)(is_whole ? MIN(before + 1, HABIT_WHOLE) : 0);

    if (now != before)
        atomic_store_explicit(whole, now, memory_order_relaxed);
}

/* Of what is kept: the pages have gone, and come again by this READ. Of those behind the first ones
 * some may never have been there, where who read the file before went no further. */
static void missed(struct kept_table *table, const struct kept_use *use, uint64_t ino,
                   uint64_t mark, uint64_t offset) {
    if (use->whole_bytes == 0 || offset > 0)
        return;
    room_shrink(table, pages_of(mark));
    if (!has_room(table, 0))
        note_gone(table, ino, mark | IS_KEPT);
}

void kept_use_read(struct kept_table *table, struct kept_use *use, uint64_t ino, uint64_t offset,
                   uint32_t bytes) {
    uint64_t mark = atomic_load_explicit(&use->mark, memory_order_relaxed);

    if (mark == 0 || !atomic_compare_exchange_strong(&use->mark, &mark, 0))
        return;
    if (use->whole_bytes > 0)
        habit_note(table, use, offset == 0 && bytes >= use->whole_bytes);
    if (use->way == KEPT_DROPPED)
        note(table, ino, mark | IS_KEPT);
    else if (use->way == KEPT_PAST && atomic_load(slot_of(table, ino)) != (mark | IS_KEPT))
        note(table, ino, mark);
    else if (use->way == KEPT_THERE)
        missed(table, use, ino, mark, offset);
}

void kept_use_end(struct kept_table *table, struct kept_use *use) {
    uint64_t mark = atomic_load_explicit(&use->mark, memory_order_relaxed);

    if (use->way == KEPT_THERE && mark != 0 && use->whole_bytes > 0)
        room_grow(table, pages_of(mark));
}

void kept_forget(struct kept_table *table, uint64_t ino) {
    uint64_t slot = atomic_load_explicit(slot_of(table, ino), memory_order_relaxed);

    if (slot & IS_KEPT)
        note_gone(table, ino, slot);
}
