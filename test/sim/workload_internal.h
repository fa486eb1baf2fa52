/* Clients, their questions and their open files; shared by workload.c, questions.c and answers.c.
 *
 *     workload.c: whose turn it is --> questions.c: what to ask --> the library
 *          ^------ answers.c: what the oracles say of the answer <-------'
 *
 * Thread: the world's. */
#pragma once
#include "interrupts.h"
#include "layouts.h"
#include "losses.h"
#include "nameless.h"
#include "names.h"
#include "parents.h"
#include "pools.h"
#include "trees.h"
#include "victims.h"
#include "workload.h"

enum { HANDLES_MAX = 12, DEPTH_MAX = 8, FILES_MAX = 512, NAME_BYTES = 32 };

struct known_file {
    uint64_t ino;
    uint64_t created; /* when that was answered */
    bool durable;
    uint64_t doubted; /* when a power failure may have undone its creation; 0: it has not */
    char name[NAME_BYTES];
};

struct handle {
    struct shoal_file *file; /* NULL: none */
    struct content_file *content;
    uint64_t ino;
    uint32_t flags;
    uint32_t busy;
    uint32_t told; /* how often of a loss */
    struct content_sync sync;
    uint64_t synced; /* when its last fsync ended, or it was opened */
    bool small;      /* kept with its inode, and to be made large */
    bool closing;
};

struct asker;

enum about {
    ABOUT_DATA,
    ABOUT_NAMES,
    ABOUT_VICTIM,
    ABOUT_NAMELESS,
    ABOUT_TREE,
    ABOUT_LOST,
    ABOUT_PARENT,
    ABOUT_LAYOUT,
    ABOUT_ALL
};

/* A file from its creation on; or none. */
enum growth { GROWTH_NONE, GROWTH_SMALL, GROWTH_SYNC, GROWTH_LARGE, GROWTH_LOOK };

/* A slot for one question at a time. */
struct question {
    struct asker *asker;
    struct shoal_request request; /* its internal part is the library's */
    bool open;
    struct handle *handle;
    struct content_file *content;
    struct content_write *write;
    struct content_look look;
    bool looking;
    enum about about;
    struct name_slot names;
    struct victim victim;
    struct nameless nameless;
    struct handle *visit; /* opened to be written, read and closed at once; NULL: none */
    enum shoal_operation visit_next;
    struct handle *promised; /* of a range that is promised, to be written in; NULL: none */
    uint64_t promised_offset, promised_size;
    struct handle *grown; /* just made, to be written small, perhaps synced, and made large */
    enum growth growth;
    struct tree_question tree;
    uint64_t tree_begin;
    uint64_t asked_ns;
    struct interrupt interrupt;
    struct handle *back; /* opened for nobody: it is closed next; NULL: none */
    char name[NAME_BYTES];
    uint8_t *buffer;
    uint64_t begin;
    struct parent_floor parent;
    struct lost_part lost; /* of what a read asks for, when it was asked */
    uint32_t pool_floor;   /* when it was asked; of a file that it makes */
};

/* One client. */
struct asker {
    struct workload *workload;
    struct node *node;
    uint64_t incarnation; /* of the node that the askers are for; 0: none */
    struct session_id session;
    struct session_id over; /* the one before, while a metadata target may not know of its end */
    uint64_t over_at;       /* when the trees heard of that */
    struct handle handles[HANDLES_MAX];
    struct question questions[DEPTH_MAX];
    uint32_t busy;
    uint32_t told;       /* by syncs of everything, how often of a loss */
    bool late;           /* it may have closes that the metadata target has not taken */
    uint64_t late_count; /* ever, of this incarnation */
};

struct workload {
    struct world *world;
    struct workload_options options;
    struct workload_counters counters;
    struct contents *contents;
    struct trees *trees;
    struct parents parents;
    struct layouts layouts;
    struct interrupts interrupts;
    struct question *reviewer; /* or NULL */
    uint32_t review_at;
    const struct asker *remover; /* or NULL */
    uint32_t remove_at;
    struct shoal_request removal;
    const struct asker *measurer; /* or NULL */
    uint32_t measure_at;
    struct shoal_request measure;
    struct content_look measure_look;
    struct asker askers[WORLD_CLIENTS_MAX];
    uint64_t over_looked_ns;
    struct known_file files[FILES_MAX];
    uint32_t file_count;
    uint64_t name_count;
    uint64_t calm_ns;   /* since then there are no faults; 0: there are */
    uint64_t calm_goal; /* operations submitted */
    char failure[600];
};

static inline uint64_t workload_draw(struct workload *workload, uint64_t bound) {
    return prng_below(sim_prng(workload->world->sim), bound);
}
void workload_fail(struct workload *workload, const struct question *question, const char *text);

/* questions.c: fills the request with what is asked next, and tells the oracles that it begins.
 * False: what was drawn cannot be asked now. */
bool question_draw(struct question *question);
/* answers.c: tells the oracles what was answered, or that nobody will know. */
void question_take(struct question *question);
void question_lose(struct question *question);
