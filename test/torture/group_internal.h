/* Inside of the group, shared by group*.c only. */
#pragma once
#include "base/list.h"
#include "fail.h"
#include "group.h"
#include "group_rules.h"
#include "model.h"

enum { GROUP_WAITS_MAX = 64, GROUP_NOTES_MAX = 4096, GROUP_ROWS_MAX = 12, GROUP_LIVES_MAX = 32 };
/* Above so many outcomes all sessions keep many. */
enum { GROUP_OUTCOMES_FEW = 64, GROUP_OUTCOMES_MANY = 1024, GROUP_WINDOW_SHARE = 32 };

enum pattern {
    PATTERN_MIXED,
    PATTERN_SMALL,
    PATTERN_LONG,
    PATTERN_FIXED,
    PATTERN_PATCH,
    PATTERN_COUNT
};

/* How its clients are, for a seed. */
struct group_temper {
    enum pattern pattern;
    uint32_t fixed_bytes; /* of each record, with its header */
    uint32_t abort_of_16, pend_of_16, note_of_16, outcome_of_16, drop_of_64, lazy_of_16;
    uint32_t sync_of_64, checkpoint_of_64, seal_of_4;
    uint32_t hook_of_16; /* chance that the data hook is answered in a turn; 16: in the call */
    uint32_t sessions;
    uint32_t crowd;           /* so many outcomes a session keeps before its floor rises */
    uint32_t reply_bytes_max; /* of an outcome */
    uint32_t flood_of_256;
};

/* A transaction as it is meant to be. */
struct plan {
    struct kv_need need;
    enum kv_class class;
    uint32_t row_count;
    uint32_t keys[GROUP_ROWS_MAX];
    enum model_kind kinds[GROUP_ROWS_MAX];
    uint32_t offsets[GROUP_ROWS_MAX]; /* of patches */
    uint32_t value_bytes[GROUP_ROWS_MAX];
    uint32_t session; /* index */
    uint32_t reply_bytes;
    bool outcome, drops, note, aborts;
};

struct group_session {
    uint64_t next; /* sequence */
    uint64_t floor;
    bool lazy; /* raises no floor */
    uint32_t generation;
};

struct group_wait {
    struct kv_waiter waiter;
    struct group *group;
    bool busy;
};

/* What came back by replay_note. */
struct group_note {
    uint64_t position, ring_offset;
    uint32_t size, stamp;
    bool in_ring;
};

/* The sizes of a life, from an event on. */
struct group_settings {
    size_t event;
    struct kv_options options;
};

struct group {
    struct owner owner;
    struct kv_options options;
    struct group_settings settings[GROUP_LIVES_MAX];
    size_t settings_count;
    char directory[8], ring_name[16], log_path[16];
    struct group_temper temper;
    struct model model;
    struct model_state state; /* of a check */
    struct group_session sessions[MODEL_SESSIONS];
    struct group_wait waits[GROUP_WAITS_MAX];
    struct group_note notes[GROUP_NOTES_MAX];
    size_t note_count;
    uint32_t next_stamp;
    uint64_t committed; /* position of the newest transaction of this life */
    uint64_t told_sealed, told_synced;
    uint64_t hook_cut;
    bool hook_called;
    bool due;     /* kv wants its step */
    bool flooded; /* since its last step */
    /* Lines of this life: that the log has failed; that the base is full, and has room again;
     * that the ring is gone. */
    uint32_t lines_failed, lines_full, lines_room, lines_gone;
    struct group_times times;
    /* How far it is with what clients must do. */
    bool content_begun, content_done[MODEL_SESSIONS];
    uint32_t content_class;
    int asked; /* what admission answered last */
};

static inline struct group *group_of(struct owner *owner) {
    return CONTAINER_OF(owner, struct group, owner);
}

/* group.c */
void group_count(struct group *group, enum total total);
/* group_work.c */
void group_temper_draw(struct group *group);
void group_act(struct owner *owner);
void group_seal(struct group *group);
struct session_id group_session_id(const struct group *group, uint32_t index);
/* What kv_admit refuses it with, 0, or 1: it was aborted. */
int group_transact(struct group *group, const struct plan *plan);
void group_note_write(const struct model_operation *operation, uint8_t ret_note[24]);
/* group_flood.c */
void group_flood(struct group *group);
void group_batch(struct group *group);
/* group_content.c */
bool group_content(struct owner *owner);
void group_left(struct owner *owner);
/* group_check.c */
void group_check(struct owner *owner, size_t point, bool power);
void group_check_now(struct group *group);
/* Each row of an outcome is that of one that is kept, or waits to be deleted. */
void group_check_outcome_rows(struct group *group);
