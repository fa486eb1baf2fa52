/* An open file: what this client knows of an inode that somebody here has open.
 *
 *     waiting, in order --> at work: any number of reads and writes,
 *                                or one of: truncate, conversion, allocation, open with truncation
 *
 * size is the size as this client sees it: the server's, and what was written here. While size or
 * times are owed to the server, every answer about the inode is overlaid with ours.
 *
 * Thread: its shard's step. Memory: the shard's pools. */
#pragma once
#include "client/errand.h"
#include "client/file_blocks.h"
#include "client/operation.h"
#include "rpc/call_number.h"
#include <shoal/shoal.h>

struct open_file {
    struct open_file *next; /* of its bucket, or free */
    struct shard *shard;
    struct ino ino;
    uint32_t pin_count;    /* handles, and operations at work on it */
    uint32_t writer_count; /* handles that may write; those that may not */
    uint32_t reader_count;
    uint32_t named_count;   /* of these, that the server has open by name: all as one */
    uint32_t opening_count; /* opens by name that have not been answered */
    uint64_t name;          /* the newest; 0: nobody has to close it */
    uint32_t uid;           /* who opened it when nobody had it open */
    struct list closing;    /* releases that wait for those opens */
    bool seen;              /* attributes and layout are known */
    bool overlaid;          /* counted in the shard's overlay_count */
    bool gone;              /* the server that has started anew does not know it any more */
    bool evicted;           /* gone, as its session is; in no bucket */

    struct attributes attributes; /* the newest of the server's */
    struct layout layout;         /* of the capability's generation; of 0 what was heard last */
    struct capability capability;
    uint64_t capabilities; /* how often it became another one */
    uint32_t untouched;    /* chunks that it was made with, here, while it counts as EMPTY; or 0 */
    uint64_t seen_ns;      /* when the server was asked last */
    uint64_t size;
    int64_t write_ns; /* wall time of the last write */
    bool size_owed;
    bool size_is_void; /* a new start has lost the chunks that it was of: the next answer has it */
    bool times_owed;
    bool is_doubtful; /* a write that failed may have changed it: told with what is told next */
    struct file_blocks blocks;
    uint64_t write_count; /* rises with each write that ended */

    uint32_t reads_in_flight;
    uint32_t writes_in_flight;
    uint32_t fsyncs;         /* at work beside what the file allows */
    struct operation *alone; /* that needs to be the only one */
    struct list waiting;

    bool renewing;     /* the capability, by one operation */
    struct list stale; /* operations that wait for it as well */
    bool advancing;
};

/* A handle. */
struct shoal_file {
    struct open_file *file;
    uint32_t flags;  /* enum shoal_open_flag */
    bool named;      /* opened by name */
    uint64_t name;   /* that its close ends */
    bool synced;     /* by an fsync of this handle, or made through it */
    uint64_t opened; /* the client's count of losses when it was opened */
    uint64_t seen;   /* up to which it was told of losses */

    /* Of those that are late (late.h): */
    uint8_t late; /* enum late_stage */
    struct list_node node;
    struct call_number number; /* that its close or open was sent by */
    struct message message;    /* to the shard of what it has made */
    struct ino ino;            /* of that; before, of the directory that it was to be made in */
    uint64_t term;             /* in which it was made */
};

enum file_need {
    FILE_NEEDS_READ,   /* beside other reads and writes */
    FILE_NEEDS_WRITE,  /* likewise */
    FILE_NEEDS_APPEND, /* beside reads, and the size must stand still */
    FILE_NEEDS_QUIET,  /* when earlier writes have ended; counts as nothing */
    FILE_NEEDS_ALL     /* alone */
};

/* Takes what the server said, unless we know newer; true when it was newer. */
bool file_see(struct open_file *file, const struct attributes *attributes);
/* After a truncation through this client: the size is what the server says. */
void file_see_truncated(struct open_file *file, const struct attributes *attributes,
                        const struct capability *capability);
/* What a server said of the layout. Once the file has chunks here it is the one that came with
 * their generation: others may have set it until then, and where answers cross each other an older
 * one would have bytes go where nobody looks for them. */
void file_see_layout(struct open_file *file, const struct layout *layout);
/* layout: that came with it. NULL: none did, and a generation that is not known is not taken from
 * there, but asked for with its layout (file_renew). */
void file_see_capability(struct open_file *file, const struct capability *capability,
                         const struct layout *layout);
/* The server has started anew. It may have lost what we know of the file, so what it says counts
 * from the epoch that it has now, and it is asked before the file is used; an outcome that it gives
 * again is older than that. */
void file_restarted(struct open_file *file, const struct reopen_reply *reply);
/* Replaces in an answer what the server cannot know yet. */
void file_overlay(const struct open_file *file, struct attributes *attributes);
/* A write up to end was acknowledged. */
void file_wrote(struct open_file *file, uint64_t end, uint32_t truncate_seq);
/* A write or punch has failed, and may have taken effect in part: the next settle says so. */
void file_may_have_changed(struct open_file *file);
bool file_is_owed(const struct open_file *file);

/* It was made here and is seen for the first time: what chunks it has are untouched. */
void file_made(struct open_file *file, const struct attributes *attributes,
               const struct capability *capability);
/* For a request that says so, of a sole user; 0: they are not. From then on they are nobody's. */
uint32_t file_untouched_give_back(struct open_file *file);
/* They are to be written to, and the file is CHUNKED; false: there are none. */
bool file_untouched_take(struct open_file *file);
void file_is_chunked(struct open_file *file);

/* A handle exists from now on; no longer does. */
void file_handle_added(struct open_file *file, const struct shoal_file *handle);
void file_handle_removed(struct open_file *file, const struct shoal_file *handle);
/* An open by name is sent; is over, and its handle, if it got one, is added. A close may not pass
 * an open that was sent before it: it would end what that is about to open. */
void file_opening(struct open_file *file);
void file_opened(struct open_file *file);
/* The operation, which releases a handle that was removed, waits for opens: step runs again. */
bool file_close_waits(struct open_file *file, struct operation *operation);
/* Presents all handles. */
void file_reopen_fill(const struct open_file *file, struct reopen_request *request);

/* Runs operation->step when the file allows what is needed: at once or later, in order. */
void file_enter(struct open_file *file, struct operation *operation, uint32_t need);
/* One that has entered asks to be alone, before all that wait; step runs again. */
void file_enter_alone(struct open_file *file, struct operation *operation);
/* The operation needs it no more; others start. */
void file_leave(struct open_file *file, struct operation *operation);
/* The server was not asked for so long that another mount's truncation may have been missed, or a
 * capability has told of one: before a request that began at now_ns uses the file, it asks
 * (getattr, then file_see). */
bool file_is_old(const struct open_file *file, uint64_t now_ns);
/* The capability is from before the file had chunks, or from before its last truncation. */
bool file_needs_renewal(const struct open_file *file);
/* Gets a fresh capability, then runs operation->step, with what came of it in result. */
void file_renew(struct open_file *file, struct operation *operation);

void file_pin(struct open_file *file);
/* Forgets the file with the last pin. */
void file_unpin(struct open_file *file);
