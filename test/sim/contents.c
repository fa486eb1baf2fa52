/* Segments and their candidates. */
#include "contents.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BUCKETS = 256, WORD_BYTES = 8 };

struct candidate {
    struct content_write *write;
    uint64_t gone_at; /* UINT64_MAX: it may be what is there */
    bool survived;    /* a power failure, here */
    bool dead;        /* what one has taken was seen to be gone */
};

struct segment {
    uint64_t start;
    uint32_t count;
    uint32_t capacity;
    struct candidate *candidates;
};

/* Of one client: closes that the server has not taken, and what they will settle. */
struct late_closes {
    uint32_t count;
    uint64_t known;
    uint64_t cuts; /* of the file, when the last one began */
    uint64_t begin;
};

/* segments[i] reaches to the start of the next; the last one to the end of all. */
struct content_file {
    struct content_file *next;
    struct contents *contents;
    uint64_t ino;
    struct segment *segments;
    size_t segment_count;
    size_t segment_capacity;
    struct content_write *writes;
    struct content_write nothing;
    struct list looks;
    uint64_t settled;
    uint64_t durable; /* what settled falls back to */
    uint64_t known[CONTENTS_CLIENTS];
    uint64_t opened[CONTENTS_CLIENTS]; /* what was settled when the client opened it */
    uint64_t
        stale[CONTENTS_CLIENTS]; /* + 1: where another client cut the file since it was opened */
    uint64_t stale_at[CONTENTS_CLIENTS]; /* when it did first; UINT64_MAX: not */
    uint64_t high;
    uint64_t high_before;    /* the last truncation */
    uint64_t high_volatile;  /* the most since all was durable */
    uint64_t cuts;           /* beginnings and ends of truncations */
    uint32_t unsure_count;   /* writes and truncations that may still take effect */
    uint32_t cuts_in_flight; /* likewise, truncations */
    uint32_t writers[CONTENTS_CLIENTS];
    bool wrote[CONTENTS_CLIENTS]; /* was one in this session: power may undo the close */
    uint64_t writer_changes;
    uint64_t promise_offset, promise_end; /* what is promised last for sure; both 0: nothing */
    uint64_t promised_at;
    uint64_t takes; /* when something was that may take a promise, last */
    struct late_closes late[CONTENTS_CLIENTS];
};

struct contents {
    uint64_t now;
    uint64_t numbers;
    uint64_t atom_bytes;
    uint64_t power_at;                     /* of any server, last; 0: never */
    uint64_t power_all_at;                 /* of all servers together */
    uint64_t session_at[CONTENTS_CLIENTS]; /* when the client's session began */
    uint32_t powers[CONTENTS_CLIENTS];     /* power failures since then */
    struct content_file *buckets[FILE_BUCKETS];
};

static void *allocate(size_t size_bytes) {
    void *memory = calloc(1, size_bytes);

    if (!memory) {
        abort();
    }
    return memory;
}

struct contents *contents_new(uint64_t atom_bytes) {
    struct contents *contents = allocate(sizeof *contents);

    contents->atom_bytes = atom_bytes;
    contents->now = 1;
    return contents;
}

static void file_free(struct content_file *file) {
    for (size_t i = 0; i < file->segment_count; i++) {
        free(file->segments[i].candidates);
    }
    while (file->writes) {
        struct content_write *write = file->writes;

        file->writes = write->next;
        free(write);
    }
    free(file->segments);
    free(file);
}

void contents_free(struct contents *contents) {
    for (size_t i = 0; i < FILE_BUCKETS; i++) {
        while (contents->buckets[i]) {
            struct content_file *file = contents->buckets[i];

            contents->buckets[i] = file->next;
            file_free(file);
        }
    }
    free(contents);
}

uint64_t contents_now(const struct contents *contents) {
    return contents->now;
}

static struct content_file **bucket_of(struct contents *contents, uint64_t ino) {
    return &contents->buckets[ino * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

struct content_file *contents_find(struct contents *contents, uint64_t ino) {
    struct content_file *file = *bucket_of(contents, ino);

    while (file && file->ino != ino) {
        file = file->next;
    }
    return file;
}

static void segment_add(struct segment *segment, struct content_write *write) {
    if (segment->count == segment->capacity) {
        segment->capacity = segment->capacity ? 2 * segment->capacity : 4;
        segment->candidates =
            realloc(segment->candidates, segment->capacity * sizeof *segment->candidates);
        if (!segment->candidates) {
            abort();
        }
    }
    segment->candidates[segment->count++] = (struct candidate){write, UINT64_MAX, false, false};
}

struct content_file *contents_file(struct contents *contents, uint64_t ino) {
    struct content_file *file = contents_find(contents, ino);
    struct content_file **bucket = bucket_of(contents, ino);

    if (file) {
        return file;
    }
    file = allocate(sizeof *file);
    file->contents = contents;
    file->ino = ino;
    file->nothing = (struct content_write){
        .end_offset = UINT64_MAX, .zeros = true, .ok = true, .durable = true, .file = file};
    list_init(&file->looks);
    for (size_t i = 0; i < CONTENTS_CLIENTS; i++) {
        file->stale_at[i] = UINT64_MAX;
    }
    file->segment_capacity = 8;
    file->segments = allocate(file->segment_capacity * sizeof *file->segments);
    file->segment_count = 1;
    segment_add(&file->segments[0], &file->nothing);
    file->next = *bucket;
    *bucket = file;
    return file;
}

static uint64_t segment_end(const struct content_file *file, size_t index) {
    return index + 1 < file->segment_count ? file->segments[index + 1].start : UINT64_MAX;
}

/* The segment that holds offset. */
static size_t segment_find(const struct content_file *file, uint64_t offset) {
    size_t low = 0, high = file->segment_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (file->segments[middle].start <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Makes a segment start at offset. */
static size_t segment_split(struct content_file *file, uint64_t offset) {
    size_t index = segment_find(file, offset);
    struct segment *from;

    if (file->segments[index].start == offset) {
        return index;
    }
    if (offset == UINT64_MAX) {
        return file->segment_count;
    }
    if (file->segment_count == file->segment_capacity) {
        file->segment_capacity *= 2;
        file->segments = realloc(file->segments, file->segment_capacity * sizeof *file->segments);
        if (!file->segments) {
            abort();
        }
    }
    memmove(&file->segments[index + 2], &file->segments[index + 1],
            (file->segment_count - index - 1) * sizeof *file->segments);
    file->segment_count++;
    from = &file->segments[index];
    file->segments[index + 1] = (struct segment){.start = offset};
    for (uint32_t i = 0; i < from->count; i++) {
        segment_add(&file->segments[index + 1], from->candidates[i].write);
        file->segments[index + 1].candidates[i] = from->candidates[i];
    }
    return index + 1;
}

/* Whether `write` has taken effect over all that had ended before it began. */
static bool supersedes(const struct content_write *newer, const struct content_write *older) {
    return older->end < newer->begin;
}

/* A durable write is over it: no power failure brings it back. */
static bool is_buried(const struct segment *segment, const struct content_write *write) {
    for (uint32_t i = 0; i < segment->count; i++) {
        const struct candidate *candidate = &segment->candidates[i];
        const struct content_write *other = candidate->write;
        bool stays = candidate->survived || (other->durable && other->ok);

        /* The zeros behind an end that was seen are newer than what was there. */
        stays = stays && !(candidate->dead && write == &write->file->nothing);
        if (stays && supersedes(other, write)) {
            return true;
        }
    }
    return false;
}

static uint64_t oldest_look(const struct content_file *file) {
    uint64_t oldest = UINT64_MAX;

    for (const struct list_node *node = file->looks.head.next; node != &file->looks.head;
         node = node->next) {
        const struct content_look *look = CONTAINER_OF(node, struct content_look, node);

        oldest = MIN(oldest, MIN(look->begin, look->stale_at));
    }
    for (size_t i = 0; i < CONTENTS_CLIENTS; i++) {
        oldest = MIN(oldest, file->stale_at[i]);
    }
    return oldest;
}

/* Forgets candidates that neither a read under way nor a power failure can bring back. */
static void segment_prune(struct content_file *file, struct segment *segment) {
    uint64_t oldest = oldest_look(file);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < segment->count; i++) {
        const struct candidate *candidate = &segment->candidates[i];

        bool buried = candidate->dead || is_buried(segment, candidate->write);

        if (candidate->gone_at >= oldest || !buried) {
            segment->candidates[kept++] = *candidate;
        }
    }
    segment->count = kept;
}

/* The write has taken effect in this segment by now. */
static void segment_apply(struct content_file *file, struct segment *segment,
                          const struct content_write *write) {
    for (uint32_t i = 0; i < segment->count; i++) {
        struct candidate *candidate = &segment->candidates[i];

        if (candidate->gone_at == UINT64_MAX && supersedes(write, candidate->write)) {
            candidate->gone_at = file->contents->now;
        }
    }
    if (segment->count > 3) {
        segment_prune(file, segment);
    }
}

/* A file that is open since before another client's truncation is written with a capability from
 * then: such a write may count as before it. Opening anew ends that (close-to-open). */
static bool is_overtaken(const struct content_write *write) {
    uint64_t stale = write->file->stale[write->client];

    return !write->zeros && stale > 0 && write->end_offset >= stale;
}

static struct content_write *write_begin(struct content_file *file,
                                         const struct content_write *what) {
    struct content_write *write = allocate(sizeof *write);
    size_t first, last;

    *write = *what;
    write->number = ++file->contents->numbers;
    write->begin = ++file->contents->now;
    write->end = UINT64_MAX;
    write->file = file;
    write->next = file->writes;
    write->cut_before = file->cuts;
    write->overtaken = is_overtaken(write);
    file->writes = write;
    file->unsure_count++;
    first = segment_split(file, write->offset);
    last = segment_split(file, write->end_offset);
    for (size_t i = first; i < last; i++) {
        segment_add(&file->segments[i], write);
    }
    return write;
}

struct content_write *contents_hole_begin(struct content_file *file, uint32_t client,
                                          uint64_t offset, uint64_t size) {
    file->takes = file->contents->now + 1;
    return write_begin(
        file, &(struct content_write){
                  .offset = offset, .end_offset = offset + size, .client = client, .hole = true});
}

void contents_promised(struct content_file *file, uint64_t begin, uint64_t offset, uint64_t size) {
    bool taken = begin <= file->takes;

    for (const struct content_write *write = file->writes; write; write = write->next) {
        taken = taken || ((write->zeros || write->hole) && write->end == UINT64_MAX);
    }
    file->contents->now++;
    if (!taken) {
        file->promise_offset = offset;
        file->promise_end = offset + size;
        file->promised_at = file->contents->now;
    }
}

bool contents_is_promised(const struct content_write *write) {
    const struct content_file *file = write->file;

    return write->offset >= file->promise_offset && write->end_offset <= file->promise_end &&
           write->end_offset <= file->settled && write->begin > file->promised_at &&
           file->takes < file->promised_at;
}

struct content_write *contents_write_begin(struct content_file *file, uint32_t client,
                                           uint64_t offset, uint64_t size) {
    file->high = MAX(file->high, offset + size);
    file->high_volatile = MAX(file->high_volatile, file->high);
    return write_begin(file, &(struct content_write){
                                 .offset = offset, .end_offset = offset + size, .client = client});
}

static uint64_t word_of(uint64_t number, uint64_t index) {
    uint64_t word = number * UINT64_C(0xd1342543de82ef95) + index * UINT64_C(0x9e3779b97f4a7c15);

    word = (word ^ word >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return word ^ word >> 32;
}

static void bytes_make(const struct content_write *write, uint64_t offset, uint8_t *data,
                       size_t size) {
    if (write->zeros || write->hole) {
        memset(data, 0, size);
        return;
    }
    while (size > 0) {
        uint64_t word = word_of(write->number, offset / WORD_BYTES);
        size_t skip = offset % WORD_BYTES;
        size_t count = MIN(size, WORD_BYTES - skip);

        memcpy(data, (uint8_t *)&word + skip, count);
        data += count;
        offset += count;
        size -= count;
    }
}

void contents_fill(const struct content_write *write, void *data) {
    bytes_make(write, write->offset, data, (size_t)(write->end_offset - write->offset));
}

static void write_end(struct content_write *write, enum content_end how) {
    struct content_file *file = write->file;

    file->contents->now++;
    if (how == CONTENT_LOST || how == CONTENT_FAILED || write->zeros || write->hole) {
        file->takes = file->contents->now;
    }
    if (how == CONTENT_LOST) {
        return;
    }
    write->end = file->contents->now;
    file->unsure_count--;
    write->overtaken |= is_overtaken(write);
    write->answered = how == CONTENT_OK || how == CONTENT_UNSURE;
    if (how == CONTENT_UNSURE && write->power == 0) {
        write->power = file->contents->power_at;
    }
    write->ok = how == CONTENT_OK && write->begin > file->contents->power_at && !write->overtaken;
    if (write->ok) {
        size_t first = segment_find(file, write->offset);

        for (size_t i = first;
             i < file->segment_count && file->segments[i].start < write->end_offset; i++) {
            segment_apply(file, &file->segments[i], write);
        }
    }
}

void contents_write_end(struct content_write *write, enum content_end how) {
    struct content_file *file = write->file;

    write_end(write, how);
    if (write->ok && !write->hole && write->cut_before == file->cuts && file->cuts_in_flight == 0) {
        file->known[write->client] = MAX(file->known[write->client], write->end_offset);
    }
}

/* From its beginning on nothing above its size must be seen any more. */
struct content_write *contents_cut_begin(struct content_file *file, uint32_t client,
                                         uint64_t size) {
    file->takes = file->contents->now + 1;
    file->cuts++;
    file->cuts_in_flight++;
    file->high_before = MAX(file->high, file->high_before);
    file->high = MAX(file->high, size);
    file->high_volatile = MAX(file->high_volatile, file->high);
    file->settled = MIN(file->settled, size);
    file->durable = MIN(file->durable, size);
    for (size_t i = 0; i < CONTENTS_CLIENTS; i++) {
        file->known[i] = MIN(file->known[i], size);
        file->opened[i] = MIN(file->opened[i], size);
        if (i != client) {
            file->stale[i] = MIN(file->stale[i] - 1, size) + 1;
            file->stale_at[i] = MIN(file->stale_at[i], file->contents->now);
        }
    }
    return write_begin(
        file, &(struct content_write){
                  .offset = size, .end_offset = UINT64_MAX, .client = client, .zeros = true});
}

/* The most that there may be behind a truncation: writes that went on beside it may count as after
 * it. */
static uint64_t high_after(const struct content_file *file, const struct content_write *cut) {
    uint64_t high = cut->offset;

    for (const struct content_write *write = file->writes; write; write = write->next) {
        if (!write->zeros && !write->hole && write->end > cut->begin) {
            high = MAX(high, write->end_offset);
        }
    }
    return high;
}

void contents_cut_end(struct content_write *cut, enum content_end how) {
    struct content_file *file = cut->file;

    write_end(cut, how);
    file->cuts++;
    if (how == CONTENT_LOST) {
        return;
    }
    file->cuts_in_flight--;
    if (cut->ok && file->cuts_in_flight == 0 && cut->cut_before + 1 == file->cuts) {
        file->settled = cut->offset;
        file->high_before = file->high;
        file->high = file->unsure_count == 0 ? high_after(file, cut) : file->high;
        file->known[cut->client] = MAX(file->known[cut->client], cut->offset);
        file->stale[cut->client] = 0;
        file->stale_at[cut->client] = UINT64_MAX;
    }
}

static bool has_writer(const struct content_file *file) {
    uint32_t count = 0;

    for (size_t i = 0; i < CONTENTS_CLIENTS; i++) {
        count += file->writers[i];
    }
    return count > 0 || file->unsure_count > 0;
}

void contents_writer_begin(struct content_file *file, uint32_t client) {
    file->writers[client]++;
    file->wrote[client] = true;
    file->writer_changes++;
}

void contents_writer_end(struct content_file *file, uint32_t client) {
    file->writers[client] -= file->writers[client] > 0;
    file->writer_changes++;
}

void contents_look_begin(struct content_file *file, uint32_t client, struct content_look *look) {
    *look = (struct content_look){.begin = ++file->contents->now,
                                  .settled = file->settled,
                                  .known = file->known[client],
                                  .opened = file->opened[client],
                                  .high = file->high,
                                  .stale = file->stale[client],
                                  .stale_at = file->stale_at[client],
                                  .cuts = file->cuts,
                                  .writers = has_writer(file) ? UINT64_MAX : file->writer_changes};
    if (file->cuts_in_flight > 0) {
        look->cuts = UINT64_MAX;
    }
    list_push_back(&file->looks, &look->node);
}

void contents_look_drop(struct content_file *file, struct content_look *look) {
    (void)file;
    list_remove(&look->node);
}

static bool look_is_plain(const struct content_file *file, const struct content_look *look) {
    return look->cuts == file->cuts;
}

static bool matches(const struct content_write *write, uint64_t offset, const uint8_t *data,
                    size_t size) {
    uint8_t expected[512];

    while (size > 0) {
        size_t count = MIN(size, sizeof expected);

        bytes_make(write, offset, expected, count);
        if (memcmp(expected, data, count) != 0) {
            return false;
        }
        data += count;
        offset += count;
        size -= count;
    }
    return true;
}

/* What was seen is there, and nothing else is. */
static void segment_settle(struct content_file *file, struct segment *segment,
                           struct content_write *seen, const struct content_look *look) {
    uint64_t power_at = file->contents->power_at;
    uint32_t kept = 0;

    if (look->begin < power_at || seen->overtaken) {
        return;
    }
    for (uint32_t i = 0; i < segment->count; i++) {
        const struct content_write *other = segment->candidates[i].write;
        bool lost = other != seen && supersedes(other, seen) && other->begin < power_at &&
                    other->end < look->begin;

        if (!lost) {
            segment->candidates[kept] = segment->candidates[i];
            segment->candidates[kept].survived |=
                other == seen && seen->end < file->contents->power_all_at;
            kept++;
        }
    }
    segment->count = kept;
    segment_apply(file, segment, seen);
}

/* From where on what the look has seen may be from before another client's truncation, + 1: who
 * had the file open since before that, when the look began or when it ended. */
static uint64_t look_stale(const struct content_file *file, const struct content_look *look,
                           uint32_t client) {
    return file->stale[client] == 0 ? look->stale
           : look->stale == 0       ? file->stale[client]
                                    : MIN(file->stale[client], look->stale);
}

static uint64_t look_since(const struct content_file *file, const struct content_look *look,
                           const struct content_write *part) {
    bool stale = part->end_offset >= look_stale(file, look, part->client);

    uint64_t since = stale ? MIN(look->begin - 1, MIN(look->stale_at, file->stale_at[part->client]))
                           : look->begin;

    return look->rests ? MIN(since, file->contents->power_at - 1) : since;
}

static bool segment_check(struct content_file *file, size_t index, const struct content_look *look,
                          const struct content_write *part, const uint8_t *data) {
    struct segment *segment = &file->segments[index];
    uint64_t since = look_since(file, look, part);
    size_t size = (size_t)(part->end_offset - part->offset);
    struct content_write *seen = NULL;
    uint32_t seen_count = 0;

    for (uint32_t i = 0; i < segment->count; i++) {
        const struct candidate *candidate = &segment->candidates[i];

        if (candidate->gone_at > since && matches(candidate->write, part->offset, data, size)) {
            seen = candidate->gone_at > look->begin ? candidate->write : NULL;
            seen_count++;
        }
    }
    /* Who may see what was before a truncation says nothing of what is behind it. */
    if (seen && seen_count == 1 && size >= WORD_BYTES && since == look->begin) {
        segment_settle(file, segment, seen, look);
    }
    return seen_count > 0;
}

static const char *who_wrote(const struct content_file *file, const struct content_write *part,
                             const uint8_t *data, char text[64]) {
    size_t size = (size_t)(part->end_offset - part->offset);

    for (const struct content_write *write = file->writes; write; write = write->next) {
        if (matches(write, part->offset, data, size)) {
            snprintf(text, 64, "write %" PRIu64, write->number);
            return text;
        }
    }
    return matches(&file->nothing, part->offset, data, size) ? "zeros" : "nobody's bytes";
}

static void segment_tell(const struct content_file *file, size_t index,
                         const struct content_write *part, const uint8_t *data, char *problem) {
    const struct segment *segment = &file->segments[index];
    char text[64];
    size_t used = (size_t)snprintf(
        problem, CONTENTS_PROBLEM_BYTES,
        "ino %" PRIx64 " bytes %" PRIu64 "..%" PRIu64 " are of %s, may be of:", file->ino,
        part->offset, part->end_offset, who_wrote(file, part, data, text));

    for (uint32_t i = 0; i < segment->count && used < CONTENTS_PROBLEM_BYTES; i++) {
        const struct candidate *candidate = &segment->candidates[i];

        used +=
            (size_t)snprintf(problem + used, CONTENTS_PROBLEM_BYTES - used, " %s%" PRIu64 "%s%s",
                             candidate->write->zeros ? "cut " : "", candidate->write->number,
                             candidate->write->durable ? " (durable)" : "",
                             candidate->gone_at != UINT64_MAX ? " (gone)" : "");
    }
}

static bool bytes_check(struct content_file *file, const struct content_look *look,
                        const struct content_read *read, char *problem) {
    struct content_write part = {.offset = read->offset, .client = read->client};
    uint64_t atom_bytes = file->contents->atom_bytes;
    uint64_t offset = read->offset;
    uint64_t end = offset + read->got;
    const uint8_t *data = read->data;

    for (; part.offset < end; part.offset = part.end_offset) {
        uint64_t atom = part.offset / atom_bytes * atom_bytes;
        size_t i = segment_find(file, part.offset);

        /* What is seen of one piece says nothing of another. */
        if (file->segments[i].count > 1) {
            (void)segment_split(file, MAX(atom, file->segments[i].start));
            i = segment_find(file, part.offset);
            (void)segment_split(file, MIN(atom + atom_bytes, segment_end(file, i)));
        }
        part.end_offset = MIN(MIN(end, segment_end(file, i)), atom + atom_bytes);
        if (!segment_check(file, i, look, &part, data + (part.offset - offset))) {
            segment_tell(file, i, &part, data + (part.offset - offset), problem);
            return false;
        }
    }
    return true;
}

bool contents_read_end(struct content_file *file, struct content_look *look,
                       const struct content_read *read, char problem[CONTENTS_PROBLEM_BYTES]) {
    uint32_t client = read->client;
    uint64_t got = read->got;
    uint64_t high = MAX(MAX(file->high, file->high_before), look->high);
    uint64_t low =
        MIN(MAX(look->known, look->opened), MAX(file->known[client], file->opened[client]));
    uint64_t end = read->offset + got;
    bool ends = end < read->end_offset;

    list_remove(&look->node);
    file->contents->now++;
    look->rests = read->rests && file->contents->power_at > 0;
    if (got > 0 && end > high && look_stale(file, look, client) == 0) {
        snprintf(problem, CONTENTS_PROBLEM_BYTES,
                 "ino %" PRIx64 " read to %" PRIu64 ", but it is at most %" PRIu64 " bytes",
                 file->ino, end, high);
        return false;
    }
    if (ends && look_is_plain(file, look) && end < low) {
        snprintf(problem, CONTENTS_PROBLEM_BYTES,
                 "ino %" PRIx64 " read ends at %" PRIu64 ", but it has at least %" PRIu64 " bytes",
                 file->ino, end, low);
        return false;
    }
    return bytes_check(file, look, read, problem);
}

/* Behind the size that was seen is nothing: what was there before the last power failure does not
 * come back, whatever becomes of the size. */
static void end_settle(struct content_file *file, uint64_t size) {
    uint64_t power_at = file->contents->power_at;

    for (size_t i = segment_split(file, size); i < file->segment_count; i++) {
        struct segment *segment = &file->segments[i];
        struct candidate *zeros = NULL;

        for (uint32_t k = 0; k < segment->count; k++) {
            struct candidate *candidate = &segment->candidates[k];

            if (candidate->write == &file->nothing) {
                zeros = candidate;
            } else if (candidate->write->begin < power_at) {
                candidate->gone_at = MIN(candidate->gone_at, file->contents->now);
                candidate->dead = true;
            }
        }
        if (zeros) {
            zeros->gone_at = UINT64_MAX;
        } else {
            segment_add(segment, &file->nothing);
        }
    }
}

bool contents_size_end(struct content_file *file, uint32_t client, struct content_look *look,
                       uint64_t size, char problem[CONTENTS_PROBLEM_BYTES]) {
    uint64_t low = MIN(MAX(look->settled, look->known), MAX(file->settled, file->known[client]));
    uint64_t high = MAX(file->high, look->high);

    list_remove(&look->node);
    file->contents->now++;
    if (!look_is_plain(file, look)) {
        low = 0;
        high = MAX(high, file->high_before);
    }
    if (size >= low && size <= high) {
        bool alone = look->writers == file->writer_changes && !has_writer(file);

        if (alone && look_is_plain(file, look) && look->begin > file->contents->power_at) {
            end_settle(file, size);
        }
        return true;
    }
    snprintf(problem, CONTENTS_PROBLEM_BYTES,
             "ino %" PRIx64 " has size %" PRIu64 ", but it is %" PRIu64 " to %" PRIu64, file->ino,
             size, low, high);
    return false;
}

void contents_opened(struct content_file *file, uint32_t client, struct content_look *look,
                     const struct content_open *open) {
    list_remove(&look->node);
    if (look_is_plain(file, look) && look->begin > file->contents->power_at) {
        if (look->writers + open->writes == file->writer_changes && file->unsure_count == 0) {
            end_settle(file, open->size);
        }
        file->opened[client] = MIN(look->settled, file->settled);
        file->stale[client] = 0;
        file->stale_at[client] = UINT64_MAX;
    }
}

static void durable_make(struct content_file *file, struct content_write *write) {
    size_t first = segment_find(file, write->offset);

    write->durable = true;
    if (write->ok) {
        return;
    }
    write->ok = true;
    for (size_t i = first; i < file->segment_count && file->segments[i].start < write->end_offset;
         i++) {
        segment_apply(file, &file->segments[i], write);
    }
}

/* What the client wrote in this session is durable unless the handle may have been told of its loss
 * (errseq). Of what others wrote, what had come about when the handle was opened: close-to-open. */
static bool sync_covers(const struct content_file *file, const struct content_write *write,
                        uint32_t client, const struct content_sync *sync) {
    const struct contents *contents = file->contents;

    if (write->client == client && write->begin > contents->session_at[client]) {
        return write->power == 0 || write->power > sync->sure;
    }
    return write->power == 0 && write->end < sync->opened &&
           write->end_offset <= file->opened[client];
}

static void durable_mark(struct content_file *file, uint64_t begin, uint32_t client,
                         const struct content_sync *sync) {
    for (struct content_write *write = file->writes; write; write = write->next) {
        if (write->answered && !write->overtaken && !write->durable && write->end < begin &&
            sync_covers(file, write, client, sync)) {
            durable_make(file, write);
        }
    }
}

void contents_settled(struct content_file *file, uint32_t client, struct content_look *look,
                      const struct content_sync *sync) {
    bool synced = sync != NULL;

    list_remove(&look->node);
    file->contents->now++;
    if (look->begin < file->contents->power_at) {
        return;
    }
    if (sync) {
        durable_mark(file, look->begin, client, sync);
    }
    if (look_is_plain(file, look)) {
        uint64_t known = MIN(look->known, file->known[client]);

        file->settled = MAX(file->settled, known);
        file->durable = synced ? MAX(file->durable, MAX(look->settled, known)) : file->durable;
        file->high_volatile = synced ? file->high : file->high_volatile;
    }
}

void contents_close_lost(struct content_file *file, uint32_t client) {
    file->known[client] = 0;
}

void contents_closed_late(struct content_file *file, uint32_t client, struct content_look *look) {
    struct late_closes *late = &file->late[client];

    list_remove(&look->node);
    file->contents->now++;
    *late = (struct late_closes){late->count + 1, look->known, look->cuts, look->begin};
}

void contents_late_taken(struct contents *contents, uint32_t client) {
    contents->now++;
    for (size_t i = 0; i < FILE_BUCKETS; i++) {
        for (struct content_file *file = contents->buckets[i]; file; file = file->next) {
            struct late_closes *late = &file->late[client];

            for (uint32_t k = 0; k < late->count; k++) {
                contents_writer_end(file, client);
            }
            if (late->count > 0 && late->cuts == file->cuts && late->begin >= contents->power_at) {
                file->settled = MAX(file->settled, late->known);
            }
            late->count = 0;
        }
    }
}

void contents_synced_all(struct contents *contents, uint64_t begin) {
    contents->now++;
    if (begin < contents->power_at) {
        return;
    }
    for (size_t i = 0; i < FILE_BUCKETS; i++) {
        for (struct content_file *file = contents->buckets[i]; file; file = file->next) {
            for (struct content_write *write = file->writes; write; write = write->next) {
                write->durable |= write->ok && write->end < begin && write->power == 0;
            }
        }
    }
}

static void file_session_over(struct content_file *file, uint32_t client) {
    file->takes = file->contents->now;
    for (struct content_write *write = file->writes; write; write = write->next) {
        if (write->client == client && write->end == UINT64_MAX) {
            write->end = file->contents->now;
            file->unsure_count--;
            file->cuts_in_flight -= write->zeros;
        }
    }
    file->writers[client] = 0;
    file->wrote[client] = false;
    file->late[client].count = 0;
    file->writer_changes++;
    file->settled = MAX(file->settled, file->known[client]);
    file->known[client] = 0;
    file->opened[client] = 0;
    /* A truncation that is under way may overtake what it opens now. */
    file->stale[client] = file->cuts_in_flight > 0 ? 1 : 0;
    file->stale_at[client] = file->cuts_in_flight > 0 ? file->contents->now : UINT64_MAX;
}

void contents_session_over(struct contents *contents, uint32_t client) {
    contents->now++;
    contents->session_at[client] = contents->now;
    contents->powers[client] = 0;
    for (size_t i = 0; i < FILE_BUCKETS; i++) {
        for (struct content_file *file = contents->buckets[i]; file; file = file->next) {
            file_session_over(file, client);
        }
    }
}

static void file_power(struct content_file *file) {
    file->takes = file->contents->now;
    for (struct content_write *write = file->writes; write; write = write->next) {
        write->power = write->power ? write->power : file->contents->now;
    }
    for (size_t i = 0; i < file->segment_count; i++) {
        struct segment *segment = &file->segments[i];

        for (uint32_t k = 0; k < segment->count; k++) {
            struct candidate *candidate = &segment->candidates[k];

            if (!candidate->dead && !is_buried(segment, candidate->write)) {
                candidate->gone_at = UINT64_MAX;
            }
        }
    }
    for (size_t i = 0; i < CONTENTS_CLIENTS; i++) {
        file->writers[i] += file->wrote[i];
    }
    file->writer_changes++;
    file->settled = MIN(file->settled, file->durable);
    file->high = MAX(file->high, file->high_volatile);
    for (size_t i = 0; i < CONTENTS_CLIENTS; i++) {
        file->known[i] = MIN(file->known[i], file->durable);
        file->opened[i] = MIN(file->opened[i], file->durable);
    }
}

void contents_power(struct contents *contents, bool all) {
    contents->power_at = ++contents->now;
    contents->power_all_at = all ? contents->now : contents->power_all_at;
    for (size_t i = 0; i < CONTENTS_CLIENTS; i++) {
        contents->powers[i]++;
    }
    for (size_t i = 0; i < FILE_BUCKETS; i++) {
        for (struct content_file *file = contents->buckets[i]; file; file = file->next) {
            file_power(file);
        }
    }
}

uint32_t contents_powers(const struct contents *contents, uint32_t client) {
    return contents->powers[client];
}

uint64_t contents_power_at(const struct contents *contents) {
    return contents->power_at;
}

bool contents_size_sure(const struct content_file *file, uint32_t client, uint64_t *ret_size) {
    *ret_size = MAX(file->settled, file->known[client]);
    return *ret_size == file->high && file->unsure_count == 0 && *ret_size == file->settled;
}

uint64_t contents_high(const struct content_file *file) {
    return file->high;
}
