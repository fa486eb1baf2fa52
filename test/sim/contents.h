/* What the bytes and sizes of files may be: the oracle of data.
 *
 *     file: [0 ........ 4096)[4096 ......... 70000)[70000 ................. end of all)
 *            write 7          write 9, write 7      nothing (zeros)
 *                             `-- candidates: a read must give one of them, for all of the segment
 *
 * Time is a count of the beginnings and ends that are told here. A write supersedes what had ended
 * before it began, from its own end on. What was superseded by a write that no fsync covers stays
 * a candidate-in-waiting: a power failure may bring it back. A read that gives a candidate which
 * nothing else looks like settles the question. Each write has a number and its bytes follow from
 * it, so that bytes say who wrote them.
 *
 * Sizes are an interval: `settled` is what everybody must see, `known` what one client must, `high`
 * what nobody may see more than. Once a size was seen after a power failure, of a file that nobody
 * has open for writing since before it, nothing from before it may come back behind that size. */
#pragma once
#include "base/list.h"
#include "base/types.h"

enum { CONTENTS_CLIENTS = 4, CONTENTS_PROBLEM_BYTES = 400 };

struct contents;
struct content_file;

struct content_write {
    uint64_t number; /* 0: zeros that were always there */
    uint64_t offset;
    uint64_t end_offset;
    uint64_t begin;
    uint64_t end; /* UINT64_MAX: it may still take effect */
    uint32_t client;
    bool zeros;     /* a truncation: zeros from offset on */
    bool hole;      /* zeros in the range, which make the file no longer */
    bool ok;        /* acknowledged, and not overtaken by a power failure */
    bool overtaken; /* may count as before a truncation that had ended when it began */
    bool durable;   /* no power failure takes it back */
    bool answered;  /* acknowledged, whatever has been since */
    uint64_t power; /* the first power failure since it began; 0: none */
    struct content_file *file;
    struct content_write *next; /* of the file */
    uint64_t cut_before;        /* file's cut count when it began */
};

/* Reads and writes are atomic within aligned pieces of so many bytes. */
struct contents *contents_new(uint64_t atom_bytes);
void contents_free(struct contents *contents);
uint64_t contents_now(const struct contents *contents);

/* The file of an inode, made when it is not known. */
struct content_file *contents_file(struct contents *contents, uint64_t ino);
/* NULL when it is not known. */
struct content_file *contents_find(struct contents *contents, uint64_t ino);

struct content_write *contents_write_begin(struct content_file *file, uint32_t client,
                                           uint64_t offset, uint64_t size);
void contents_fill(const struct content_write *write, void *data);
/* Ended: acknowledged; refused or failed (it may have happened in part); nobody knows and it may
 * still happen (until contents_session_over); or acknowledged, but it rests on metadata that the
 * last power failure may have taken, as a file's way to chunks, and fsync will tell of it. */
enum content_end { CONTENT_OK, CONTENT_FAILED, CONTENT_LOST, CONTENT_UNSURE };
void contents_write_end(struct content_write *write, enum content_end how);
/* A range of zeros; ended as a write is. */
struct content_write *contents_hole_begin(struct content_file *file, uint32_t client,
                                          uint64_t offset, uint64_t size);
/* Space for the range is promised from now on, until a truncation, a hole, a failed write or a
 * power failure may have taken it. */
void contents_promised(struct content_file *file, uint64_t begin, uint64_t offset, uint64_t size);
/* Whether that of the whole write was so before it began, and is; behind the end it may be taken
 * at any time, where somebody's write fails. */
bool contents_is_promised(const struct content_write *write);
/* A truncation is a write of zeros from its size on, and sets the size. */
struct content_write *contents_cut_begin(struct content_file *file, uint32_t client, uint64_t size);
void contents_cut_end(struct content_write *cut, enum content_end how);

/* From before it asks for it until the answer of the close, a client may have the file open for
 * writing; opens whose end nobody knows are over with its session. */
void contents_writer_begin(struct content_file *file, uint32_t client);
void contents_writer_end(struct content_file *file, uint32_t client);

/* A question about the file: keep what it needs until its end. */
struct content_look {
    uint64_t begin;
    uint64_t settled; /* what must be seen at least, as of the beginning */
    uint64_t known;
    uint64_t opened; /* what was settled when the client had opened the file last */
    uint64_t high;
    uint64_t stale; /* of the client's open file as it was then: a later open changes nothing */
    uint64_t stale_at;
    uint64_t cuts;
    bool rests;       /* as of the read that ends it */
    uint64_t writers; /* the file's count of changes of who writes; UINT64_MAX: somebody does */
    struct list_node node;
};
void contents_look_begin(struct content_file *file, uint32_t client, struct content_look *look);
void contents_look_drop(struct content_file *file, struct content_look *look);
/* Each ends the look; false with a line in problem when what was seen cannot be. */
/* got bytes came of [offset, end_offset). rests: by a handle from before the last power failure,
 * which has not heard what that took: it may still lead to what was there then, whatever others
 * have written since by what they were given after it. */
struct content_read {
    uint32_t client;
    bool rests;
    uint64_t offset;
    uint64_t end_offset;
    const uint8_t *data;
    uint64_t got;
};
bool contents_read_end(struct content_file *file, struct content_look *look,
                       const struct content_read *read, char problem[CONTENTS_PROBLEM_BYTES]);
bool contents_size_end(struct content_file *file, uint32_t client, struct content_look *look,
                       uint64_t size, char problem[CONTENTS_PROBLEM_BYTES]);
/* An open began at look's time and has succeeded: with that size, for writing. */
struct content_open {
    uint64_t size;
    bool writes;
};
void contents_opened(struct content_file *file, uint32_t client, struct content_look *look,
                     const struct content_open *open);
/* Who syncs: a handle that was opened at some time, and was not told of what power failures up to
 * `sure` have taken; it is told of all after. */
struct content_sync {
    uint64_t opened;
    uint64_t sure;
};
/* A flush, close or fsync (sync not NULL) of the client that began at look's time has succeeded. */
void contents_settled(struct content_file *file, uint32_t client, struct content_look *look,
                      const struct content_sync *sync);
/* A close has ended, and nobody knows whether it was taken: the client may forget what it owed. */
void contents_close_lost(struct content_file *file, uint32_t client);
/* A close of a writer has succeeded that the server has not taken yet: what it settles is settled,
 * and the file has that writer, until all such closes of the client are taken. */
void contents_closed_late(struct content_file *file, uint32_t client, struct content_look *look);
void contents_late_taken(struct contents *contents, uint32_t client);
/* All that had ended before `begin` is on disk everywhere. */
void contents_synced_all(struct contents *contents, uint64_t begin);
/* A session has ended for good: nothing of it takes effect any more, and what it had written is
 * settled. */
void contents_session_over(struct contents *contents, uint32_t client);
/* A server, or all of them together, lost what was not synced. */
void contents_power(struct contents *contents, bool all);
/* How many power failures there were; since the client's session began. */
uint32_t contents_powers(const struct contents *contents, uint32_t client);
/* When the last one was; 0: never. */
uint64_t contents_power_at(const struct contents *contents);
/* What is known for sure: true with the size when only one is possible. */
bool contents_size_sure(const struct content_file *file, uint32_t client, uint64_t *ret_size);
uint64_t contents_high(const struct content_file *file);
