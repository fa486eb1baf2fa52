/* Start: the data file and its label, the state row, the bitmap and the sessions.
 *
 *     data file   size 0: made and sized, on disk before the first record
 *     state row   missing: formatted now, unless the data file says that there was an index
 *     label       written when the state row is on disk
 *
 * Rows may be PENDING: then ost_load_step goes on in the step, and calls wait. */
#include "store/label.h"
#include "store/operations.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS_MIN = 64 };

static int file_run(struct ost *ost, struct env_io io) {
    io.file = ost->file;
    return ost->env->ops->io_run(ost->env, &io);
}

/* The size that it begins with, on disk before the first record. A start that was cut short may
 * have left less, and so may a smaller limit: where there is no room for more, that has to do. */
static int file_make(struct ost *ost, uint64_t *size) {
    uint64_t first = MIN(ost->options.grow_bytes, (uint64_t)OST_FIRST_BYTES);
    uint64_t blocks = MIN(first / BLOCK_BYTES, ost->block_size_max);
    int r = 0;

    if (*size < blocks * BLOCK_BYTES) {
        r = file_run(ost, (struct env_io){.kind = ENV_IO_ALLOCATE,
                                          .size = blocks * BLOCK_BYTES,
                                          .keep_free_bytes =
                                              ost->was_empty ? 0 : ost->options.keep_free_bytes});
        if (r == -ERR_NO_SPACE && *size >= BLOCKS_MIN * BLOCK_BYTES) {
            r = 0;
        }
        if (r == 0) {
            r = file_run(ost, (struct env_io){.kind = ENV_IO_SYNC});
        }
        if (r == 0) {
            r = ost->env->ops->file_size(ost->file, size);
        }
    }
    return r;
}

static int file_prepare(struct ost *ost, uint64_t *ret_size) {
    struct ost_options *options = &ost->options;
    uint64_t size = 0;
    int r = ost->env->ops->file_open(ost->env, options->data_path,
                                     ENV_FILE_CREATE | ENV_FILE_DIRECT, &ost->file);

    if (r == 0) {
        r = ost->env->ops->file_size(ost->file, &size);
    }
    if (r < 0) {
        return r;
    }
    if (options->data_bytes_max == 0) {
        options->data_bytes_max = size;
    }
    ost->block_size_max = options->data_bytes_max / BLOCK_BYTES;
    ost->was_empty = size == 0;
    ost->found_blocks = size / BLOCK_BYTES;
    if (size >= BLOCK_BYTES) {
        /* What a killed process had still with the medium is in the file before anything is read
         * of it, or written to blocks that it has never recorded. */
        r = file_run(ost, (struct env_io){.kind = ENV_IO_ALLOCATE, .size = BLOCK_BYTES});
        r = r == -ERR_NO_SPACE ? 0 : r; /* A full file system has waited all the same. */
    }
    r = r < 0 ? r : file_make(ost, &size);
    /* Blocks in use may lie anywhere in it: it never gets smaller, a limit below only stops it. */
    ost->block_size_max = MAX(ost->block_size_max, size / BLOCK_BYTES);
    *ret_size = size;
    return r;
}

int load_file(struct ost *ost, char problem[256]) {
    const char *path = ost->options.data_path;
    uint64_t size = 0;
    int r = file_prepare(ost, &size);

    if (r == 0 && (ost->block_size_max < BLOCKS_MIN || size < BLOCKS_MIN * BLOCK_BYTES)) {
        snprintf(problem, 256, "%s is too small for a storage target", path);
        r = -ERR_INVALID;
    }
    if (r == 0) {
        struct env_io io = {.kind = ENV_IO_READ, .buffer = ost->label_block, .size = BLOCK_BYTES};

        r = file_run(ost, io);
    }
    if (r == 0) {
        r = label_decode(ost->label_block, ost->options.target, path, &ost->file_label, problem);
    }
    if (r == -ERR_NO_SPACE) {
        int size_text = snprintf(problem, 256, "%s cannot be made: ", path);

        space_say_full(ost, problem + size_text, 256 - (size_t)size_text);
    } else if (r < 0 && !problem[0]) {
        snprintf(problem, 256, "%s cannot be opened: %s", path, err_text(r));
    }
    ost->file_blocks = size / BLOCK_BYTES;
    return r;
}

static const struct kv_need state_need = {
    .rows = 2,
    .value_bytes = sizeof(struct store_state) + sizeof(struct store_bitmap),
    .record_bytes =
        2 * KV_ROW_RECORD_BYTES + sizeof(struct store_state) + sizeof(struct store_bitmap)};

static int state_put(struct ost *ost, bool labelled) {
    struct store_state state = {.format = STORE_FORMAT,
                                .labelled = labelled,
                                .target = ost->options.target.value,
                                .label = ost->label};
    struct kv_key key = store_owner_key(STORE_ROW_STATE, 0, 0);

    return kv_put(ost->kv, &key, (struct bytes){(const uint8_t *)&state, sizeof state});
}

static int load_format(struct ost *ost) {
    struct store_bitmap bitmap = {.format = STORE_FORMAT, .bits = {1}};
    struct kv_key bitmap_key = store_owner_key(STORE_ROW_BITMAP, 0, 0);

    if (ost->file_label != 0) {
        snprintf(ost->problem, sizeof ost->problem,
                 "the index of %s is missing: %s does not hold it: put the right base.mdb and log "
                 "back",
                 ost->options.data_path, ost->options.kv.directory);
        return -ERR_CORRUPT;
    }
    ost->env->ops->random(ost->env, &ost->label, sizeof ost->label);
    ost->label |= 1;
    struct kv_grant grant;
    int r = kv_admit(ost->kv, KV_CLASS_CONTROL, &state_need, &grant);
    if (r < 0) {
        return r;
    }
    kv_begin(ost->kv, &grant);
    r = state_put(ost, false);
    if (r == 0) {
        r = kv_put(ost->kv, &bitmap_key, (struct bytes){(const uint8_t *)&bitmap, sizeof bitmap});
    }
    if (r < 0) {
        kv_abort(ost->kv);
        return r;
    }
    (void)kv_commit(ost->kv);
    ost->label_wanted = true;
    ost->label_position = kv_seal(ost->kv);
    return 0;
}

static int load_state(struct ost *ost) {
    struct kv_key key = store_owner_key(STORE_ROW_STATE, 0, 0);
    struct store_state state;
    struct bytes value;
    int r = kv_get(ost->kv, &key, &value);

    if (r == -ERR_NOT_FOUND) {
        return load_format(ost);
    }
    if (r < 0) {
        return r;
    }
    if (value.size != sizeof state) {
        return -ERR_CORRUPT;
    }
    memcpy(&state, value.data, sizeof state);
    if (state.format > STORE_FORMAT) {
        return -ERR_NEWER_FORMAT;
    }
    bool label_fits = ost->file_label == state.label || (ost->file_label == 0 && !state.labelled);
    if (ost->was_empty || !label_fits || state.target != ost->options.target.value) {
        snprintf(ost->problem, sizeof ost->problem,
                 "%s is not the data file that the index in %s is about: put the right one back",
                 ost->options.data_path, ost->options.kv.directory);
        return -ERR_CORRUPT;
    }
    ost->label = state.label;
    ost->label_wanted = !state.labelled;
    ost->label_position = kv_position(ost->kv);
    return 0;
}

static int load_promised(struct ost *ost) {
    struct kv_key key = store_owner_key(STORE_ROW_PROMISED, 0, 0);
    struct store_promised row;
    struct bytes value;
    int r = kv_get(ost->kv, &key, &value);

    if (r == -ERR_NOT_FOUND) {
        return 0; /* Nothing was ever promised. */
    }
    if (r == 0 && (value.size != sizeof row || value.data[0] != STORE_FORMAT)) {
        r = -ERR_CORRUPT;
    }
    if (r == 0) {
        memcpy(&row, value.data, sizeof row);
        ost->blocks.promised_count = row.block_count;
        ost->blocks.promised_changes = row.changes;
    }
    return r;
}

static void walk_rows(struct ost *ost, enum store_row type) {
    struct kv_key from = store_owner_key(type, 0, 0);
    struct kv_key to = store_owner_key((enum store_row)(type + 1), 0, 0);

    kv_cursor_init(&ost->load_cursor, &from, &to);
}

static int load_bitmap(struct ost *ost, struct bytes value) {
    uint64_t index = kv_key_split(&ost->load_cursor.key).index;
    uint64_t first = index * STORE_BITMAP_BITS;
    size_t offset = offsetof(struct store_bitmap, bits);

    if (value.size < offset || value.size > sizeof(struct store_bitmap) ||
        value.data[0] != STORE_FORMAT || index > UINT64_MAX / STORE_BITMAP_BITS) {
        return -ERR_CORRUPT;
    }
    for (size_t i = offset; i < value.size; i++) {
        for (unsigned bits = value.data[i]; bits; bits &= bits - 1) {
            uint64_t block = first + (i - offset) * 8 + (unsigned)__builtin_ctz(bits);
            int r = block >= ost->found_blocks && !ost->was_empty
                        ? -ERR_CORRUPT
                        : blocks_mark(&ost->blocks, block);

            if (r < 0) {
                snprintf(ost->problem, sizeof ost->problem,
                         "%s was cut short: it had %" PRIu64 " bytes, and byte %" PRIu64
                         " is in use: restore DIR from a backup",
                         ost->options.data_path, ost->found_blocks * BLOCK_BYTES,
                         block * BLOCK_BYTES);
                return r;
            }
        }
    }
    return 0;
}

static int load_session(struct ost *ost, struct bytes value) {
    uint64_t session = kv_key_split(&ost->load_cursor.key).id;
    struct store_session row;

    if (value.size != sizeof row || value.data[0] != STORE_FORMAT || session == 0) {
        return -ERR_CORRUPT;
    }
    memcpy(&row, value.data, sizeof row);
    return sessions_put(&ost->sessions, (struct session_entry){.session = session,
                                                               .incarnation = row.incarnation,
                                                               .node = row.node,
                                                               .window = row.window});
}

static int load_rows(struct ost *ost, int (*load)(struct ost *ost, struct bytes value)) {
    struct bytes value;
    int r;

    while ((r = kv_next(ost->kv, &ost->load_cursor, &value)) == 0) {
        r = load(ost, value);
        if (r < 0) {
            return r;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

int ost_load_step(struct ost *ost) {
    int r = 0;

    while (r == 0 && ost->load_stage != LOAD_DONE) {
        switch (ost->load_stage) {
        case LOAD_STATE:
            r = load_state(ost);
            walk_rows(ost, STORE_ROW_BITMAP);
            break;
        case LOAD_PROMISED:
            r = load_promised(ost);
            break;
        case LOAD_BITMAP:
            r = load_rows(ost, load_bitmap);
            if (r == 0 && blocks_is_free(&ost->blocks, 0)) {
                snprintf(ost->problem, sizeof ost->problem,
                         "the bitmap in %s has lost its first row", ost->options.kv.directory);
                r = -ERR_CORRUPT;
            }
            if (r == 0) {
                walk_rows(ost, STORE_ROW_SESSION);
            }
            break;
        case LOAD_SESSIONS:
            r = load_rows(ost, load_session);
            r = r < 0 ? r : ost_ended_load(ost);
            break;
        case LOAD_DONE:
            break;
        }
        ost->load_stage += r == 0;
    }
    return r;
}

/* The row is recorded when the label is on disk: a disk that goes away, and comes back without what
 * was not flushed, leaves the ring with all its records. */
static void label_synced(struct ost *ost, struct ost_io *io) {
    assert(ost->label_writing && !ost->label_wanted);
    ost->label_writing = false;
    if (io->result < 0) {
        ost_log(ost, "target %" PRIu32 ": the label of %s cannot be written: %s",
                ost->options.target.value, ost->options.data_path, err_text(io->result));
        return;
    }
    if (ost->stop_stage >= STOP_KV) {
        return; /* Too late for a record; the next start sees to it. */
    }
    struct kv_grant grant;
    if (kv_admit(ost->kv, KV_CLASS_CONTROL, &state_need, &grant) < 0) {
        /* Once more, behind the sync point that makes room. */
        ost->label_wanted = true;
        ost->label_position = kv_position(ost->kv) + 1;
        return;
    }
    kv_begin(ost->kv, &grant);
    if (state_put(ost, true) < 0) {
        kv_abort(ost->kv);
    } else {
        (void)kv_commit(ost->kv);
    }
}

static void label_written(struct ost *ost, struct ost_io *io) {
    if (io->result < 0) {
        label_synced(ost, io);
        return;
    }
    io->finished = label_synced;
    io->io = (struct env_io){.kind = ENV_IO_SYNC};
    ost_io_start(ost, io);
}

void load_label(struct ost *ost) {
    if (!ost->label_wanted || ost->label_position > kv_synced_position(ost->kv)) {
        return;
    }
    assert(!ost->label_writing && ost->load_stage > LOAD_STATE);
    label_encode(ost->options.target, ost->label, ost->label_block);
    ost->label_wanted = false;
    ost->label_writing = true;
    ost->label_io.finished = label_written;
    ost->label_io.io =
        (struct env_io){.kind = ENV_IO_WRITE, .buffer = ost->label_block, .size = BLOCK_BYTES};
    ost_io_start(ost, &ost->label_io);
}
