/* Changes of settings, and the way back. What is refused is refused before the first of them: the
 * files are looked at, then the old values are written, then the file for the next start, then the
 * settings. A crash in between leaves old values of what was not changed, which an undo passes
 * over. */
#include "env/env_linux.h"
#include "host/doctor.h"
#include "host/doctor_files.h"
#include "host/folder.h"
#include "host/plain_file.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char conf_head[] =
    "# Written by `shoal doctor --fix --persist`; `shoal doctor --undo` removes it.\n";
enum { CONF_BYTES = 1024, CONF_MODE = 0644 };

struct doctor_changer {
    const char *root;
    const struct doctor_table *table;
    struct doctor_changes *changes;
    char *problem;
    struct env *env; /* on the folder of old values; NULL: there is none */
    struct folder_lock *lock;
    char *kept_text; /* as it was; NULL: there was none */
    size_t kept_size;
    struct doctor_kept kept;
    bool has_conf;
};

PRINTF_LIKE(3, 4)
static int changer_fail(struct doctor_changer *changer, int error, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(changer->problem, DOCTOR_PROBLEM_BYTES, format, arguments);
    va_end(arguments);
    return error;
}

/* Whether there is a file for systemd-tmpfiles; one that is not ours is refused. */
static int conf_look(struct doctor_changer *changer) {
    char head[sizeof conf_head];
    FILE *file;
    int r = doctor_file_open(changer->root, DOCTOR_CONF_FOLDER "/" DOCTOR_CONF_NAME, &file);

    if (r == -ERR_NOT_FOUND) {
        return 0;
    }
    if (r == 0) {
        bool is_ours = fgets(head, sizeof head, file) && strcmp(head, conf_head) == 0;

        fclose(file);
        r = is_ours ? 0 : -ERR_NOT_OURS;
    }
    changer->has_conf = r == 0;
    if (r == -ERR_NOT_OURS) {
        return changer_fail(changer, r,
                            "%s%s/%s was not written by doctor, and stays: move it away",
                            changer->root, DOCTOR_CONF_FOLDER, DOCTOR_CONF_NAME);
    }
    return r == 0 ? 0
                  : changer_fail(changer, r, "%s%s/%s cannot be read: %s", changer->root,
                                 DOCTOR_CONF_FOLDER, DOCTOR_CONF_NAME, err_text(r));
}

static int folder_env_new(const char *path, struct env **ret_env) {
    const struct env_linux_options options = {.root = path};

    return env_linux_new(&options, ret_env);
}

static int kept_fail(struct doctor_changer *changer, int error, const char *what) {
    const char *why = err_text(error);

    if (error == -ERR_MALFORMED) {
        why = "it holds what no doctor has written; remove it to go on without the old values";
    }
    return changer_fail(changer, error, "the old values in %s%s/%s cannot be %s: %s", changer->root,
                        DOCTOR_KEPT_FOLDER, DOCTOR_KEPT_NAME, what, why);
}

static int kept_read(struct doctor_changer *changer) {
    int r = folder_file_read(changer->env, DOCTOR_KEPT_NAME, DOCTOR_KEPT_BYTES_MAX - 1,
                             &changer->kept_text, &changer->kept_size);

    if (r == -ERR_NOT_FOUND) {
        return 0;
    }
    if (r == -ERR_FILE_TOO_BIG) {
        r = -ERR_MALFORMED;
    }
    if (r == 0) {
        r = doctor_kept_parse(changer->kept_text, changer->kept_size, &changer->kept);
    }
    return r == 0 ? 0 : kept_fail(changer, r, "read");
}

/* Opens the folder of old values, one process at a time, and reads them. makes: where it is
 * missing. */
static int kept_open(struct doctor_changer *changer, bool makes) {
    char path[DOCTOR_FILE_BYTES];
    int r = doctor_path(changer->root, DOCTOR_KEPT_FOLDER, path);

    if (r == 0 && makes) {
        r = plain_file_make_directories(path);
    }
    if (r == 0) {
        r = folder_env_new(path, &changer->env);
    }
    if (r == -ERR_NOT_FOUND && !makes) {
        return 0;
    }
    if (r == 0) {
        r = folder_lock_open(changer->env, "lock", &changer->lock);
    }
    if (r == -ERR_IN_USE) {
        return changer_fail(changer, r, "another doctor is at work");
    }
    return r == 0 ? kept_read(changer) : kept_fail(changer, r, makes ? "written" : "read");
}

static int kept_write(struct doctor_changer *changer) {
    char *text = malloc(DOCTOR_KEPT_BYTES_MAX);
    int r = text ? 0 : -ERR_NO_MEMORY;

    if (r == 0) {
        size_t size = doctor_kept_print(&changer->kept, text);

        r = folder_file_write(changer->env, DOCTOR_KEPT_NAME, text, size);
    }
    free(text);
    return r == 0 ? 0 : kept_fail(changer, r, "written");
}

/* As it was before kept_write. */
static void kept_restore(struct doctor_changer *changer) {
    if (changer->kept_text) {
        (void)!folder_file_write(changer->env, DOCTOR_KEPT_NAME, changer->kept_text,
                                 changer->kept_size);
    } else {
        (void)!changer->env->ops->file_remove(changer->env, DOCTOR_KEPT_NAME);
    }
}

static void changer_close(struct doctor_changer *changer) {
    folder_lock_close(changer->lock);
    if (changer->env) {
        env_linux_free(changer->env);
    }
    free(changer->kept_text);
    free(changer);
}

static int changer_new(const char *root, const struct doctor_table *table,
                       struct doctor_changes *changes, char *problem,
                       struct doctor_changer **ret_changer) {
    struct doctor_changer *changer = calloc(1, sizeof *changer);

    *changes = (struct doctor_changes){.count = 0};
    if (!changer) {
        snprintf(problem, DOCTOR_PROBLEM_BYTES, "%s", err_text(-ERR_NO_MEMORY));
        return -ERR_NO_MEMORY;
    }
    changer->root = root;
    changer->table = table;
    changer->changes = changes;
    changer->problem = problem;
    *ret_changer = changer;
    return 0;
}

/* Those that outlive a start of the machine: a mount's number is another one then. */
static bool row_is_persistent(const struct doctor_row *row) {
    return row->is_changed_by_fix && row->setting != DOCTOR_READ_AHEAD && row->denied == 0 &&
           (row->state == DOCTOR_GOOD || row->state == DOCTOR_COSTS);
}

/* The text of the file for systemd-tmpfiles; 0: it would set nothing. */
static size_t conf_print(const struct doctor_table *table, char ret_text[CONF_BYTES]) {
    size_t head_size = (size_t)snprintf(ret_text, CONF_BYTES, "%s", conf_head);
    size_t size = head_size;

    for (size_t i = 0; i < table->count; i++) {
        const struct doctor_row *row = &table->rows[i];

        if (row_is_persistent(row)) {
            size +=
                (size_t)snprintf(ret_text + size, CONF_BYTES - size, "w %s - - - - %s\n", row->path,
                                 doctor_row_is_fixable(row) ? row->wanted : row->value);
        }
    }
    return size > head_size ? size : 0;
}

static int conf_write(struct doctor_changer *changer) {
    char text[CONF_BYTES];
    char path[DOCTOR_FILE_BYTES];
    struct env *env;
    size_t size = conf_print(changer->table, text);
    int r = doctor_path(changer->root, DOCTOR_CONF_FOLDER, path);

    if (size == 0) {
        return 0;
    }
    if (r == 0) {
        r = folder_env_new(path, &env);
    }
    if (r == 0) {
        r = folder_file_write(env, DOCTOR_CONF_NAME, text, size);
        env_linux_free(env);
    }
    if (r == 0) {
        r = doctor_path(changer->root, DOCTOR_CONF_FOLDER "/" DOCTOR_CONF_NAME, path);
    }
    if (r < 0) {
        return changer_fail(changer, r, "%s%s/%s cannot be written, as --persist asks: %s",
                            changer->root, DOCTOR_CONF_FOLDER, DOCTOR_CONF_NAME, err_text(r));
    }
    /* Others may read what the machine is set to. */
    (void)!chmod(path, CONF_MODE);
    changer->changes->is_conf_changed = true;
    return 0;
}

static struct doctor_change *change_add(struct doctor_changer *changer, enum doctor_setting setting,
                                        const char *of) {
    struct doctor_change *change = &changer->changes->rows[changer->changes->count++];

    change->setting = setting;
    snprintf(change->of, sizeof change->of, "%s", of);
    return change;
}

/* A value that we have set, and nobody else since, keeps the one before ours. */
static void kept_add(struct doctor_kept *kept, const struct doctor_row *row) {
    struct doctor_kept_row *found = doctor_kept_find(kept, row->setting, row->of);

    if (!found) {
        found = &kept->rows[kept->count++];
        found->setting = row->setting;
        snprintf(found->of, sizeof found->of, "%s", row->of);
        snprintf(found->before, sizeof found->before, "%s", row->value);
    } else if (strcmp(found->after, row->value) != 0) {
        snprintf(found->before, sizeof found->before, "%s", row->value);
    }
    snprintf(found->after, sizeof found->after, "%s", row->wanted);
}

static bool row_is_to_change(const struct doctor_row *row) {
    return doctor_row_is_fixable(row) && row->denied == 0;
}

/* Mounts that are gone make room for new ones. */
static void kept_drop_gone(struct doctor_changer *changer) {
    struct doctor_kept *kept = &changer->kept;
    size_t count = 0;

    for (size_t i = 0; i < kept->count; i++) {
        bool is_gone = kept->rows[i].setting == DOCTOR_READ_AHEAD;

        for (size_t j = 0; j < changer->table->count; j++) {
            const struct doctor_row *row = &changer->table->rows[j];

            is_gone = is_gone &&
                      (row->setting != DOCTOR_READ_AHEAD || strcmp(row->of, kept->rows[i].of) != 0);
        }
        if (!is_gone) {
            kept->rows[count++] = kept->rows[i];
        }
    }
    kept->count = count;
}

static void kept_add_all(struct doctor_changer *changer) {
    for (size_t i = 0; i < changer->table->count; i++) {
        if (row_is_to_change(&changer->table->rows[i])) {
            kept_add(&changer->kept, &changer->table->rows[i]);
        }
    }
}

static void rows_fix(struct doctor_changer *changer) {
    for (size_t i = 0; i < changer->table->count; i++) {
        const struct doctor_row *row = &changer->table->rows[i];

        if (!doctor_row_is_fixable(row)) {
            continue;
        }
        struct doctor_change *change = change_add(changer, row->setting, row->of);
        snprintf(change->before, sizeof change->before, "%s", row->value);
        snprintf(change->after, sizeof change->after, "%s", row->wanted);
        change->error =
            row->denied ? row->denied : doctor_value_write(changer->root, row->path, row->wanted);
        change->outcome = change->error < 0 ? DOCTOR_FAILED : DOCTOR_CHANGED;
    }
}

static bool table_has_change(const struct doctor_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        if (row_is_to_change(&table->rows[i])) {
            return true;
        }
    }
    return false;
}

static int prepare_fix(struct doctor_changer *changer, bool persists) {
    int r = persists ? conf_look(changer) : 0;

    if (r == 0 && table_has_change(changer->table)) {
        r = kept_open(changer, true);
        if (r == 0) {
            kept_drop_gone(changer);
            kept_add_all(changer);
            r = kept_write(changer);
        }
    }
    if (r == 0 && persists) {
        r = conf_write(changer);
        if (r < 0 && changer->env) {
            kept_restore(changer);
        }
    }
    return r;
}

int doctor_fix(const char *root, const struct doctor_table *table, bool persists,
               struct doctor_changes *ret_changes, char problem[DOCTOR_PROBLEM_BYTES]) {
    struct doctor_changer *changer;
    int r = changer_new(root, table, ret_changes, problem, &changer);

    if (r < 0) {
        return r;
    }
    r = prepare_fix(changer, persists);
    if (r == 0) {
        rows_fix(changer);
    }
    changer_close(changer);
    return r;
}

/* The row as it is now; NULL where the machine has no such setting any more. */
static const struct doctor_row *row_find(const struct doctor_table *table,
                                         const struct doctor_kept_row *kept) {
    for (size_t i = 0; i < table->count; i++) {
        const struct doctor_row *row = &table->rows[i];

        if (row->setting == kept->setting && strcmp(row->of, kept->of) == 0 &&
            row->state != DOCTOR_ABSENT) {
            return row;
        }
    }
    return NULL;
}

static enum doctor_outcome outcome_of(const struct doctor_kept_row *kept,
                                      const struct doctor_row *row) {
    if (!row) {
        return DOCTOR_GONE;
    }
    if (row->state == DOCTOR_UNREADABLE) {
        return DOCTOR_FAILED;
    }
    if (strcmp(row->value, kept->before) == 0) {
        return DOCTOR_SAME;
    }
    return strcmp(row->value, kept->after) == 0 ? DOCTOR_CHANGED : DOCTOR_FOREIGN;
}

/* Refused as a whole where one of them may not be changed. */
static int undo_check(struct doctor_changer *changer) {
    for (size_t i = 0; i < changer->kept.count; i++) {
        const struct doctor_kept_row *kept = &changer->kept.rows[i];
        const struct doctor_row *row = row_find(changer->table, kept);

        if (outcome_of(kept, row) == DOCTOR_CHANGED && row->denied < 0) {
            return changer_fail(changer, row->denied, "%s%s may not be set back here: %s",
                                changer->root, row->path, err_text(row->denied));
        }
    }
    return 0;
}

static bool rows_undo(struct doctor_changer *changer) {
    bool is_done = true;

    for (size_t i = 0; i < changer->kept.count; i++) {
        const struct doctor_kept_row *kept = &changer->kept.rows[i];
        const struct doctor_row *row = row_find(changer->table, kept);
        struct doctor_change *change = change_add(changer, kept->setting, kept->of);

        change->outcome = outcome_of(kept, row);
        snprintf(change->before, sizeof change->before, "%s", row ? row->value : kept->after);
        snprintf(change->after, sizeof change->after, "%s", kept->before);
        if (change->outcome == DOCTOR_CHANGED) {
            change->error = doctor_value_write(changer->root, row->path, kept->before);
        } else if (change->outcome == DOCTOR_FAILED) {
            change->error = row->error;
        }
        if (change->error < 0) {
            change->outcome = DOCTOR_FAILED;
        }
        is_done = is_done && change->outcome != DOCTOR_FAILED;
    }
    return is_done;
}

static int file_remove(struct doctor_changer *changer, const char *path) {
    char whole[DOCTOR_FILE_BYTES];
    int r = doctor_path(changer->root, path, whole);

    if (r == 0) {
        r = plain_file_unlink(whole);
    }
    return r == 0 || r == -ERR_NOT_FOUND ? 0
                                         : changer_fail(changer, r, "%s%s cannot be removed: %s",
                                                        changer->root, path, err_text(r));
}

int doctor_undo(const char *root, const struct doctor_table *table,
                struct doctor_changes *ret_changes, char problem[DOCTOR_PROBLEM_BYTES]) {
    struct doctor_changer *changer;
    int r = changer_new(root, table, ret_changes, problem, &changer);

    if (r < 0) {
        return r;
    }
    r = conf_look(changer);
    if (r == 0) {
        r = kept_open(changer, false);
    }
    if (r == 0) {
        r = undo_check(changer);
    }
    /* First what would set the values again at the next start. */
    if (r == 0 && changer->has_conf) {
        r = file_remove(changer, DOCTOR_CONF_FOLDER "/" DOCTOR_CONF_NAME);
        ret_changes->is_conf_changed = r == 0;
    }
    if (r == 0) {
        ret_changes->is_kept = changer->kept_text != NULL;
        if (rows_undo(changer)) {
            r = file_remove(changer, DOCTOR_KEPT_FOLDER "/" DOCTOR_KEPT_NAME);
        }
    }
    changer_close(changer);
    return r;
}
