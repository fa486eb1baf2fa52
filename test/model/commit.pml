/* The path of a change from its bytes to its answer, to the disk, and the reuse of what it
 * replaced (docs/internals/log.md): one engine, one logical block that is overwritten again and
 * again, each time into a free block.
 *
 *     stage -> seal (record in the ring) -> reply
 *     sync point: cut, small bytes to their blocks, flush data, records to the log, flush, free
 *     checkpoint: freeze at a position, wait until it is synced, commit
 *     read: look up the block, read it, both in steps of their own
 *
 * A kill may come between any two steps: the ring, the files and what is in their caches stay. A
 * power loss too: the ring goes; a block whose write was not flushed holds anything; of the records
 * that were written but not flushed a prefix of any length stays. Start replays base, disk log and
 * ring, and takes a sync point before it serves; it too may be cut off at any step.
 *
 * Proved: an acknowledged change survives a kill, one acknowledged by fsync a power loss; after
 * either, the block that the newest surviving record names holds that record's bytes, so data is
 * there before its record, no block is reused while the log on disk may still name it, and no
 * checkpoint is ahead of the log; a read gets the bytes that its look-up promised.
 *
 * Mutants, each of which must fail: EARLY_REPLY, EARLY_REUSE, EARLY_RECORD, EARLY_CHECKPOINT,
 * NO_FLUSH, SMALL_FORGOTTEN, SERVE_BEFORE_SYNC, REUSE_WHILE_READ. */

#define CHANGES 4 /* in all; a change's number stands for its bytes */
#define POSITIONS 5
#define BLOCKS 3
#define CRASHES 2

/* Record at position p; position 0 is the empty file in block 0. Kept in the ring above ring_start,
 * and in the disk log. */
byte record_block[POSITIONS];
byte record_change[POSITIONS];
bool record_small[POSITIONS];
byte sealed = 0;  /* newest record in the ring */
byte written = 0; /* newest record written to the disk log */
byte flushed = 0; /* newest record that no power loss takes from the disk log */
byte synced = 0;  /* what the engine believes of flushed; ring_start - 1 */
byte applied = 0; /* position of the last checkpoint */

byte cached[BLOCKS]; /* what a read of the block gives */
byte stored[BLOCKS]; /* what stays after a power loss, if it is the same */
bool is_free[BLOCKS];
byte freed_by[BLOCKS]; /* position of the record that replaced its content, not synced yet; or 0 */

/* What was promised. */
byte acknowledged = 0;
byte fsynced = 0;

byte change = 0; /* the last one staged */
byte crashes = 0;
bool serving = true;

mtype = { IDLE, STAGED, SEALED, CUT, COPIED, DATA, RECORDS, FLUSHED, FROZEN, LOOKED_UP };
mtype writer = IDLE, syncer = IDLE, checkpointer = IDLE, reader = IDLE;
byte staged_block = 0;
bool staged_small = false;
byte cut = 0;
byte frozen = 0;
byte read_block = 0, read_change = 0;
bool read_ring = false;

#ifdef REUSE_WHILE_READ
#define IS_READ(block) false
#else
#define IS_READ(block) (reader == LOOKED_UP && !read_ring && read_block == block)
#endif

#define MAY_STAGE(block) \
    (serving && writer == IDLE && change < CHANGES && is_free[block] && !IS_READ(block))

inline stage(block) {
    is_free[block] = false;
    change++;
    staged_block = block;
    /* Small: the bytes go beside the record, the block gets them at the sync point. */
    if
    :: staged_small = true
    :: staged_small = false; cached[block] = change
    fi;
    writer = STAGED
}

inline seal() {
    sealed++;
    record_block[sealed] = staged_block;
    record_change[sealed] = change;
    record_small[sealed] = staged_small;
#ifdef EARLY_REUSE
    is_free[record_block[sealed - 1]] = true;
#else
    freed_by[record_block[sealed - 1]] = sealed;
#endif
    staged_block = 0;
    staged_small = false;
    writer = SEALED
}

/* Bytes of small writes of (synced, last], from the ring to their blocks. A block that a later
 * record has freed gets them too: it is not reused before that record is synced. */
inline copy_small(last, p) {
    p = synced + 1;
    do
    :: p > last -> break
    :: else ->
        if
        :: record_small[p] -> cached[record_block[p]] = record_change[p]
        :: else
        fi;
        p++
    od;
    p = 0
}

inline flush_data(b) {
    do
    :: b == BLOCKS -> break
    :: else ->
        stored[b] = cached[b];
        b++
    od;
    b = 0
}

inline free_synced(b) {
    do
    :: b == BLOCKS -> break
    :: else ->
        if
        :: freed_by[b] != 0 && freed_by[b] <= synced ->
            freed_by[b] = 0;
            is_free[b] = true
        :: else
        fi;
        b++
    od;
    b = 0
}

/* A new process: everything in memory is what the records say up to the newest. */
inline start_over(b) {
    writer = IDLE;
    syncer = IDLE;
    checkpointer = IDLE;
    reader = IDLE;
    staged_block = 0;
    staged_small = false;
    cut = 0;
    frozen = 0;
    read_block = 0;
    read_change = 0;
    read_ring = false;
    do
    :: b == BLOCKS -> break
    :: else ->
        is_free[b] = (b != record_block[sealed]);
        freed_by[b] = 0;
        b++
    od;
    b = 0;
#ifndef SERVE_BEFORE_SYNC
    serving = false;
#endif
    crashes++
}

inline kill_process(b) {
    assert(acknowledged <= sealed);
    assert((record_small[sealed] && sealed > synced) ||
           cached[record_block[sealed]] == record_change[sealed]);
    start_over(b)
}

inline lose_power(b) {
    /* How much of the unflushed end of the log stays. */
    sealed = flushed;
    do
    :: sealed < written -> sealed++
    :: break
    od;
    if
    :: sealed < applied -> sealed = applied
    :: else
    fi;
    assert(fsynced <= sealed);
    /* Both, as a block with an unflushed write may hold either or a part of each. */
    assert(stored[record_block[sealed]] == record_change[sealed]);
    assert(cached[record_block[sealed]] == record_change[sealed]);
    written = sealed;
    flushed = sealed;
    synced = sealed;
    if
    :: acknowledged > sealed -> acknowledged = sealed
    :: else
    fi;
    do
    :: b == BLOCKS -> break
    :: else ->
        cached[b] = stored[b];
        b++
    od;
    b = sealed + 1;
    do
    :: b >= POSITIONS -> break
    :: else ->
        record_block[b] = 0;
        record_change[b] = 0;
        record_small[b] = false;
        b++
    od;
    b = 0;
    start_over(b)
}

init {
    byte i = 0;

    d_step {
        is_free[1] = true;
        is_free[2] = true
    };
    do
    /* The writer. */
    :: atomic { MAY_STAGE(0) -> stage(0) }
    :: atomic { MAY_STAGE(1) -> stage(1) }
    :: atomic { MAY_STAGE(2) -> stage(2) }
#ifdef EARLY_REPLY
    :: atomic { writer == STAGED && acknowledged == sealed -> acknowledged = sealed + 1 }
#endif
    :: atomic { writer == STAGED -> seal() }
    :: atomic { writer == SEALED -> acknowledged = sealed; writer = IDLE }

    /* The sync point; at start it is what opens the door. */
    :: atomic { syncer == IDLE && (sealed > synced || !serving) -> cut = sealed; syncer = CUT }
    :: atomic { syncer == CUT ->
#ifndef SMALL_FORGOTTEN
        copy_small(cut, i);
#endif
        syncer = COPIED }
#ifdef EARLY_RECORD
    :: atomic { syncer == COPIED -> written = cut; syncer = DATA }
    :: atomic { syncer == DATA -> flush_data(i); syncer = RECORDS }
#else
    :: atomic { syncer == COPIED -> flush_data(i); syncer = DATA }
    :: atomic { syncer == DATA -> written = cut; syncer = RECORDS }
#endif
    :: atomic { syncer == RECORDS ->
#ifndef NO_FLUSH
        flushed = cut;
#endif
        syncer = FLUSHED }
    :: atomic { syncer == FLUSHED ->
        synced = cut;
        fsynced = cut;
        free_synced(i);
        serving = true;
        cut = 0;
        syncer = IDLE }

    /* The checkpoint. */
    :: atomic { serving && checkpointer == IDLE && sealed > applied ->
        frozen = sealed;
        checkpointer = FROZEN }
#ifdef EARLY_CHECKPOINT
    :: atomic { checkpointer == FROZEN ->
#else
    :: atomic { checkpointer == FROZEN && synced >= frozen ->
#endif
        applied = frozen;
        frozen = 0;
        checkpointer = IDLE }

    /* A reader. */
    :: atomic { serving && reader == IDLE ->
        read_block = record_block[sealed];
        read_change = record_change[sealed];
        read_ring = (record_small[sealed] && sealed > synced);
        reader = LOOKED_UP }
    :: atomic { reader == LOOKED_UP ->
        assert(read_ring || cached[read_block] == read_change);
        read_block = 0;
        read_change = 0;
        read_ring = false;
        reader = IDLE }

    :: atomic { crashes < CRASHES -> kill_process(i) }
    :: atomic { crashes < CRASHES -> lose_power(i) }
    :: atomic { change == CHANGES && writer == IDLE && synced == sealed && serving &&
                syncer == IDLE && checkpointer == IDLE && reader == IDLE -> break }
    od
}
