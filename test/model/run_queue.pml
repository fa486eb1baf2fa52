/* The run queue of src/rpc/run_queue.c: one owner pushes and pops, thieves steal, without locks.
 *
 * Proved: every actor that was pushed is taken exactly once, the oldest first, and when the owner
 * finds nothing left nothing is. What does not fit stays with the owner (its overflow list), here
 * an index of what it has not pushed yet.
 *
 * Mutants, each of which must fail: PLAIN_HEAD, TAIL_FIRST, REUSE_EARLY. */

#define SLOTS 2
#define ACTORS 5
#define THIEVES 2

byte head = 0;
byte tail = 0;
byte slots[SLOTS]; /* 0: never written */

#ifdef REUSE_EARLY /* Writes the slot of an actor that nobody has taken yet. */
#define CAPACITY 3
#else
#define CAPACITY SLOTS
#endif

byte taken[ACTORS + 1];
byte taken_count = 0;
bool owner_done = false;

inline take(actor) {
    assert(actor != 0);
    taken[actor]++;
    assert(taken[actor] == 1);
    taken_count++
}

/* run_queue_steal, once: the owner's pop is the same. got says whether the queue had one. */
inline steal(h, actor, got) {
    got = false;
    h = head;
    do
    :: h < tail ->
        actor = slots[h % SLOTS];
#ifdef PLAIN_HEAD
        if
        :: head == h ->
            head = h + 1;
            got = true
        :: else
        fi;
        if
        :: got ->
            take(actor);
            break
        :: else -> h = head
        fi
#else
        atomic {
            if
            :: head == h ->
                head = h + 1;
                assert(actor == h + 1);
                take(actor);
                got = true;
                break
            :: else -> h = head
            fi
        }
#endif
    :: else -> break
    od;
    h = 0;
    actor = 0
}

proctype thief() {
    byte h = 0, actor = 0;
    bool got = false;

    do
    :: owner_done -> break
    :: head < tail -> steal(h, actor, got)
    od
}

proctype owner() {
    byte h = 0, actor = 0, pushed = 0;
    bool got = false;

    do
    :: pushed < ACTORS && tail - head < CAPACITY ->
#ifdef TAIL_FIRST
        tail++;
        slots[(tail - 1) % SLOTS] = pushed + 1;
#else
        slots[tail % SLOTS] = pushed + 1;
        tail++;
#endif
        pushed++
    :: true ->
        steal(h, actor, got);
        if
        :: pushed == ACTORS && !got -> break
        :: else
        fi
    od;
    owner_done = true
}

init {
    byte i = 0;

    atomic {
        do
        :: i == THIEVES -> break
        :: else ->
            run thief();
            i++
        od;
        run owner()
    };
    _nr_pr == 1;
    assert(taken_count == ACTORS)
}
