/* Handing a slot over (docs/internals/handover.md): two logs and the manager, each with a memory
 * that a crash takes and a disk. The slot goes from log 0 to log 1, and back if it was not opened.
 *
 *     number on disk -> asked -> given, on disk -> map, on disk -> told -> mine, on disk -> opened
 *
 * Messages are a set: one that was sent may come at any time afterwards, also to a later life.
 * Opening: the row says so on disk before anything is made there.
 *
 * Proved: the slot is opened by one log at most; what is opened is never given; when crashes have
 * ended, the log that the map names has it, and the other one has not.
 *
 * Mutants, each of which must fail: EARLY_GIVE, GIVE_OPENED, OLD_TELL, BY_MAP, NO_INTENT. */

#define NUMBERS 2
#define CRASHES 3

#define ABSENT 0
#define MINE 1
#define GIVEN 2

/* Of a log: its row, in memory and on disk. */
byte row[2], row_disk[2];
byte number[2], number_disk[2]; /* of the hand-over that made it so */
bool opened[2], opened_disk[2];

/* The manager: what it has drawn, and whether the map has it; the map, on disk. */
byte drawn = 0;
bool drawn_disk = false; /* and the map has not got it */
bool given = false;      /* in memory: the answer */
byte owner = 0;
byte owner_number = 0;

/* What was sent; by number. */
bool give_sent[3], given_sent[3], nothing_sent[3], tell_sent[3];
byte crashes = 0;

/* From whom to whom. */
#define FROM(h) ((h) - 1)
#define TO(h) (2 - (h))

#define UNFLUSHED(i)                                                                               \
    (row[i] != row_disk[i] || number[i] != number_disk[i] || opened[i] != opened_disk[i])

#ifdef GIVE_OPENED
#define MAY_GIVE(i) (row[i] == MINE)
#else
#define MAY_GIVE(i) (row[i] == MINE && !opened[i])
#endif

#define IS_NEW(i, h) (number[i] < (h))

#ifdef EARLY_GIVE
#define IS_ON_DISK(i, h) (true)
#else
#define IS_ON_DISK(i, h) (row_disk[i] == GIVEN && number_disk[i] == (h))
#endif

#ifdef OLD_TELL
#define TAKES(i, h) (row[i] != MINE)
#else
#define TAKES(i, h) (row[i] == ABSENT || number[i] < (h))
#endif

inline flush(i) {
    row_disk[i] = row[i];
    number_disk[i] = number[i];
    opened_disk[i] = opened[i];
    assert(!(opened_disk[0] && opened_disk[1]));
    assert(!(opened_disk[i] && row_disk[i] == GIVEN))
}

inline crash(i) {
    row[i] = row_disk[i];
    number[i] = number_disk[i];
    opened[i] = opened_disk[i];
#ifdef BY_MAP
    /* By a map that it has kept from before. */
    if
    :: i == 0 -> row[0] = MINE
    :: else -> skip
    fi
#endif
    crashes++
}

inline give(h) {
    if
    :: MAY_GIVE(FROM(h)) && IS_NEW(FROM(h), h) ->
       row[FROM(h)] = GIVEN;
       number[FROM(h)] = h
    :: row[FROM(h)] == GIVEN && number[FROM(h)] == h && IS_ON_DISK(FROM(h), h) ->
       given_sent[h] = true
    :: row[FROM(h)] == MINE && opened_disk[FROM(h)] && number[FROM(h)] < h ->
       nothing_sent[h] = true
    fi
}

/* Whether the question would change anything. */
#define GIVES(h)                                                                                   \
    (give_sent[h] &&                                                                               \
     ((MAY_GIVE(FROM(h)) && IS_NEW(FROM(h), h)) ||                                                 \
      (row[FROM(h)] == GIVEN && number[FROM(h)] == h && IS_ON_DISK(FROM(h), h) &&                  \
       !given_sent[h]) ||                                                                          \
      (row[FROM(h)] == MINE && opened_disk[FROM(h)] && number[FROM(h)] < h &&                      \
       !nothing_sent[h])))

#define TELLS(h) (tell_sent[h] && TAKES(TO(h), h))

active proctype world() {
    row[0] = MINE;
    row_disk[0] = MINE;
    do
    /* The manager. */
    :: atomic { !drawn_disk && drawn < NUMBERS && owner == FROM(drawn + 1) ->
        drawn++;
        drawn_disk = true
       }
    :: atomic { drawn_disk && !give_sent[drawn] -> give_sent[drawn] = true }
    :: atomic { drawn_disk && given_sent[drawn] && !given -> given = true }
    :: atomic { given ->
        owner = TO(drawn);
        owner_number = drawn;
        drawn_disk = false;
        given = false
       }
    :: atomic { drawn_disk && nothing_sent[drawn] -> drawn_disk = false }
    :: atomic { owner_number > 0 && !tell_sent[owner_number] -> tell_sent[owner_number] = true }
    :: atomic { crashes < CRASHES && drawn_disk ->
        given = false;
#ifdef NO_INTENT
        drawn_disk = false;
#endif
        crashes++
       }
    /* The logs. */
    :: atomic { GIVES(1) -> give(1) }
    :: atomic { GIVES(2) -> give(2) }
    :: atomic { TELLS(1) ->
        row[TO(1)] = MINE;
        number[TO(1)] = 1
       }
    :: atomic { TELLS(2) ->
        row[TO(2)] = MINE;
        number[TO(2)] = 2
       }
    :: atomic { UNFLUSHED(0) -> flush(0) }
    :: atomic { UNFLUSHED(1) -> flush(1) }
    :: atomic { row[0] == MINE && row_disk[0] == MINE && !opened[0] -> opened[0] = true }
    :: atomic { row[1] == MINE && row_disk[1] == MINE && !opened[1] -> opened[1] = true }
    :: atomic { crashes < CRASHES && UNFLUSHED(0) -> crash(0) }
    :: atomic { crashes < CRASHES && UNFLUSHED(1) -> crash(1) }
#ifdef BY_MAP
    :: atomic { crashes < CRASHES && row[0] == GIVEN -> crash(0) }
#endif
    :: timeout -> break
    od;
    assert(row_disk[owner] == MINE);
    assert(row_disk[1 - owner] != MINE)
}
