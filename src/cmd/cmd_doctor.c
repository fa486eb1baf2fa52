/* doctor: settings of this machine that cost speed or safety, what they bring, and the change of
 * some of them. */
#include "cmd/daemon.h"
#include "cmd/find.h"
#include "cmd/json_text.h"
#include "env/env_linux.h"
#include "host/doctor.h"
#include "host/doctor_measure.h"
#include "host/folder.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 256, LABEL_BYTES = DOCTOR_OF_BYTES + 64, LINE_BYTES = 1024 };

struct doctor_words {
    bool fixes;
    bool undoes;
    bool persists;
    bool as_json;
};

static const char *const state_words[] = {
    [DOCTOR_GOOD] = "good",     [DOCTOR_COSTS] = "costs",   [DOCTOR_UNSAFE] = "unsafe",
    [DOCTOR_ABSENT] = "absent", [DOCTOR_UNUSED] = "unused", [DOCTOR_UNREADABLE] = "unreadable"};
static const char *const outcome_words[] = {[DOCTOR_CHANGED] = "changed",
                                            [DOCTOR_SAME] = "same",
                                            [DOCTOR_FOREIGN] = "foreign",
                                            [DOCTOR_GONE] = "gone",
                                            [DOCTOR_FAILED] = "failed"};

/* What is timed of a setting: as it is now, and as it would be with the value that it should have.
 * 0: not known. */
struct doctor_worth {
    const char *what; /* NULL: nothing is timed */
    uint64_t now_ns;
    uint64_t wanted_ns;
};

/* The same pair of times, whichever of the two is now. */
static struct doctor_worth worth_of_two(const char *what, bool is_good, uint64_t without_ns,
                                        uint64_t with_ns) {
    return (struct doctor_worth){what, is_good ? with_ns : without_ns, with_ns};
}

static struct doctor_worth worth_of(const struct doctor_row *row,
                                    const struct doctor_measures *measures) {
    bool is_good = row->state == DOCTOR_GOOD;

    if (row->state != DOCTOR_GOOD && row->state != DOCTOR_COSTS) {
        return (struct doctor_worth){NULL, 0, 0};
    }
    switch (row->setting) {
    case DOCTOR_HALT_POLL:
        return worth_of_two("waking an idle CPU", false, measures->wake_idle_ns,
                            is_good ? measures->wake_idle_ns : measures->wake_awake_ns);
    case DOCTOR_SLEEP:
        return worth_of_two("waking a sleeping CPU", false, measures->wake_asleep_ns,
                            is_good ? measures->wake_asleep_ns : measures->wake_awake_ns);
    case DOCTOR_HUGE_PAGES:
        /* Where there are none, what they bring can't be measured. */
        return is_good ? worth_of_two("touching 1 MiB", true, 0, measures->touch_huge_ns)
                       : worth_of_two("touching 1 MiB", false, measures->touch_small_ns, 0);
    case DOCTOR_WRITE_CACHE:
        return strcmp(row->of, measures->flush_disk) == 0
                   ? worth_of_two("a flush", true, 0, measures->flush_ns)
                   : (struct doctor_worth){NULL, 0, 0};
    default:
        return (struct doctor_worth){NULL, 0, 0};
    }
}

static double us_of(uint64_t ns) {
    return (double)ns / (double)NS_PER_US;
}

static void worth_print(const struct doctor_worth *worth, char ret_text[TEXT_BYTES]) {
    if (!worth->what || worth->now_ns == 0) {
        snprintf(ret_text, TEXT_BYTES, "-");
    } else if (worth->wanted_ns == 0 || worth->wanted_ns >= worth->now_ns) {
        snprintf(ret_text, TEXT_BYTES, "%s %.1f us", worth->what, us_of(worth->now_ns));
    } else {
        snprintf(ret_text, TEXT_BYTES, "%s %.1f us, then %.1f: %.0f %% less", worth->what,
                 us_of(worth->now_ns), us_of(worth->wanted_ns),
                 100 * (1 - us_of(worth->wanted_ns) / us_of(worth->now_ns)));
    }
}

static void label_print(enum doctor_setting setting, const char *of, char ret_label[LABEL_BYTES]) {
    snprintf(ret_label, LABEL_BYTES, "%s%s%s", doctor_setting_name(setting), of[0] ? " of " : "",
             of);
}

/* Whether mounts are offered io_uring, and who makes it so. */
static const char *uring_advice(const struct doctor_row *row) {
    if (row->state == DOCTOR_ABSENT) {
        return "no io_uring for mounts: Linux 6.14 has it, once the module fuse is loaded";
    }
    if (strcmp(row->value, DOCTOR_URING_DISABLED) == 0) {
        return "no process gets io_uring: `sysctl kernel.io_uring_disabled=0`";
    }
    return strcmp(row->value, "Y") == 0
               ? "nothing: mounts are offered io_uring"
               : "mounts are not offered io_uring until one by root sets it, unless told tune=no; "
                 "or `echo Y >/sys/module/fuse/parameters/enable_uring`";
}

static void advice_print(const struct doctor_row *row, char ret_text[TEXT_BYTES]) {
    static const char *const advice[DOCTOR_SETTING_COUNT] = {
        [DOCTOR_SLEEP] = "`cpupower idle-set -D 20`",
        [DOCTOR_OPEN_FILES] = "raise `ulimit -Hn`, or LimitNOFILE= of a service",
        [DOCTOR_LOCKED_MEMORY] = "raise `ulimit -Hl`, or LimitMEMLOCK= of a service",
        [DOCTOR_HUGE_PAGES] = "`echo madvise >/sys/kernel/mm/transparent_hugepage/enabled`",
        [DOCTOR_SHARED_MEMORY] =
            "`mount -o remount,size=1G /dev/shm`; --shm-size=1g of a container",
    };

    if (row->state == DOCTOR_UNREADABLE) {
        snprintf(ret_text, TEXT_BYTES, "cannot be read: %s", err_text(row->error));
    } else if (row->setting == DOCTOR_URING) {
        snprintf(ret_text, TEXT_BYTES, "%s", uring_advice(row));
    } else if (row->state == DOCTOR_GOOD || row->state == DOCTOR_ABSENT) {
        snprintf(ret_text, TEXT_BYTES, "-");
    } else if (row->state == DOCTOR_UNUSED) {
        snprintf(ret_text, TEXT_BYTES, "nothing: idle CPUs don't go by it here");
    } else if (row->is_changed_by_fix && row->denied < 0) {
        snprintf(ret_text, TEXT_BYTES, "may not be changed here: %s", err_text(row->denied));
    } else if (row->is_changed_by_fix) {
        snprintf(ret_text, TEXT_BYTES, "`shoal doctor --fix`");
    } else if (row->setting == DOCTOR_WRITE_CACHE) {
        snprintf(ret_text, TEXT_BYTES, "its cache gets no flush: `echo write back >%s`", row->path);
    } else {
        snprintf(ret_text, TEXT_BYTES, "%s", advice[row->setting]);
    }
}

static json_t *text_or_null(const char *text) {
    return text && text[0] ? json_text(text) : json_null();
}

static json_t *time_json(uint64_t ns) {
    return ns > 0 ? json_real(us_of(ns)) : json_null();
}

static int json_print(json_t *json) {
    char *text =
        json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9))
             : NULL;

    printf("%s\n", text ? text : "null");
    free(text);
    json_decref(json);
    return text ? EXIT_OK : EXIT_FAILED;
}

static json_t *row_json(const struct doctor_row *row, const struct doctor_measures *measures) {
    struct doctor_worth worth = worth_of(row, measures);
    const char *error = row->state == DOCTOR_UNREADABLE ? err_text(row->error)
                        : row->denied < 0               ? err_text(row->denied)
                                                        : NULL;

    return json_pack("{s:s, s:o, s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "setting",
                     doctor_setting_name(row->setting), "of", text_or_null(row->of), "state",
                     state_words[row->state], "value", text_or_null(row->value), "wanted",
                     text_or_null(row->wanted), "fixable", doctor_row_is_fixable(row), "error",
                     text_or_null(error), "measured", text_or_null(worth.what), "now_us",
                     time_json(worth.now_ns), "wanted_us", time_json(worth.wanted_ns));
}

static int table_print_json(const struct doctor_table *table,
                            const struct doctor_measures *measures) {
    json_t *rows = json_array();

    for (size_t i = 0; rows && i < table->count; i++) {
        if (json_array_append_new(rows, row_json(&table->rows[i], measures)) < 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    return json_print(
        rows ? json_pack("{s:b, s:o}", "container", table->in_container, "settings", rows) : NULL);
}

enum { COLUMN_COUNT = 5 };
struct doctor_line {
    char cells[COLUMN_COUNT][LABEL_BYTES];
};

/* Columns as wide as what stands in them; the last one is not filled up. */
static void lines_print(const struct doctor_line *lines, size_t count) {
    size_t widths[COLUMN_COUNT] = {0};

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < COLUMN_COUNT; j++) {
            widths[j] = MAX(widths[j], strlen(lines[i].cells[j]));
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j + 1 < COLUMN_COUNT; j++) {
            printf("%-*s  ", (int)widths[j], lines[i].cells[j]);
        }
        printf("%s\n", lines[i].cells[COLUMN_COUNT - 1]);
    }
}

static void line_fill(struct doctor_line *line, const struct doctor_row *row,
                      const struct doctor_measures *measures) {
    struct doctor_worth worth = worth_of(row, measures);
    char text[TEXT_BYTES];

    label_print(row->setting, row->of, line->cells[0]);
    snprintf(line->cells[1], LABEL_BYTES, "%s",
             row->state == DOCTOR_ABSENT ? "-"
             : row->value[0]             ? row->value
                                         : "?");
    snprintf(line->cells[2], LABEL_BYTES, "%s", row->wanted[0] ? row->wanted : "-");
    worth_print(&worth, text);
    snprintf(line->cells[3], LABEL_BYTES, "%s", text);
    advice_print(row, text);
    snprintf(line->cells[4], LABEL_BYTES, "%s", text);
}

static int table_print(const struct doctor_table *table, const struct doctor_measures *measures) {
    static const struct doctor_line head = {
        {"setting", "is", "should be", "measured here", "what to do"}};
    struct doctor_line *lines = calloc(table->count + 1, sizeof *lines);

    if (!lines) {
        return EXIT_FAILED;
    }
    lines[0] = head;
    for (size_t i = 0; i < table->count; i++) {
        line_fill(&lines[i + 1], &table->rows[i], measures);
    }
    lines_print(lines, table->count + 1);
    free(lines);
    return EXIT_OK;
}

static bool table_is_good(const struct doctor_table *table) {
    bool is_good = true;

    for (size_t i = 0; i < table->count; i++) {
        enum doctor_state state = table->rows[i].state;

        is_good =
            is_good && (state == DOCTOR_GOOD || state == DOCTOR_ABSENT || state == DOCTOR_UNUSED);
    }
    return is_good;
}

struct doctor_search {
    struct env *env;
    char directory[FIND_PATH_BYTES];
};

/* Other than 0 ends the search. */
static int daemon_look(void *context, const struct folder_entry *entry) {
    struct doctor_search *search = context;
    struct env_linux_options options = {0};
    struct env *env = NULL;
    char *directory = NULL;
    size_t size = 0;
    int holder;
    int r = folder_file_read(search->env, entry->name, FIND_PATH_BYTES - 1, &directory, &size);

    if (r == 0) {
        options.root = directory;
        r = env_linux_new(&options, &env);
    }
    if (r == 0) {
        r = folder_lock_holder(env, "lock", &holder);
        env_linux_free(env);
    }
    if (r == 0) {
        snprintf(search->directory, sizeof search->directory, "%s", directory);
    }
    free(directory);
    return r == 0;
}

/* The directory of a cluster that runs here; empty: there is none. */
static void directory_find(struct doctor_search *search) {
    const struct env_linux_options options = {.root = DAEMON_REGISTRY};

    search->directory[0] = '\0';
    if (env_linux_new(&options, &search->env) == 0) {
        (void)!folder_list(search->env, ".", daemon_look, search);
        env_linux_free(search->env);
    }
}

static int run_look(const struct doctor_words *words, const struct doctor_table *table) {
    struct doctor_measures measures = {.flush_ns = 0};
    struct doctor_search search;

    /* One that only stands for a machine has no times. */
    if (doctor_root()[0] == '\0') {
        directory_find(&search);
        doctor_measure(search.directory[0] ? search.directory : NULL, &measures);
    }
    int status =
        words->as_json ? table_print_json(table, &measures) : table_print(table, &measures);
    return status == EXIT_OK && !table_is_good(table) ? EXIT_FAILED : status;
}

static json_t *change_json(const struct doctor_change *change) {
    return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o}", "setting",
                     doctor_setting_name(change->setting), "of", text_or_null(change->of),
                     "outcome", outcome_words[change->outcome], "before",
                     text_or_null(change->before), "after", text_or_null(change->after), "error",
                     change->error < 0 ? json_text(err_text(change->error)) : json_null());
}

static int changes_print_json(const struct doctor_changes *changes) {
    json_t *rows = json_array();

    for (size_t i = 0; rows && i < changes->count; i++) {
        if (json_array_append_new(rows, change_json(&changes->rows[i])) < 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    return json_print(
        rows ? json_pack("{s:b, s:o}", "conf_changed", changes->is_conf_changed, "changes", rows)
             : NULL);
}

static void change_print(const struct doctor_change *change) {
    char label[LABEL_BYTES];

    label_print(change->setting, change->of, label);
    switch (change->outcome) {
    case DOCTOR_CHANGED:
        printf("%s: %s, was %s\n", label, change->after, change->before);
        break;
    case DOCTOR_SAME:
        printf("%s: %s, as before\n", label, change->before);
        break;
    case DOCTOR_FOREIGN:
        printf("%s: stays %s, which doctor has not set\n", label, change->before);
        break;
    case DOCTOR_GONE:
        printf("%s: is there no more\n", label);
        break;
    default:
        break;
    }
}

static const char *hint_of(int error, bool in_container) {
    switch (error) {
    case -ERR_READ_ONLY:
        return in_container ? "this is a container, so run it on the host"
                            : "/sys is mounted read-only";
    case -ERR_ACCESS:
    case -ERR_NOT_PERMITTED:
        return "run it as root";
    default:
        return "the kernel has not taken it";
    }
}

/* One line for all that could not be changed, and why. */
static int changes_fail(const struct verb *verb, const struct doctor_table *table,
                        const struct doctor_changes *changes) {
    char label[LABEL_BYTES];
    char text[LINE_BYTES] = "";
    size_t size = 0;
    int error = 0;

    for (size_t i = 0; i < changes->count && size < sizeof text; i++) {
        const struct doctor_change *change = &changes->rows[i];

        if (change->outcome == DOCTOR_FAILED) {
            label_print(change->setting, change->of, label);
            error = error < 0 ? error : change->error;
            size += (size_t)snprintf(text + size, sizeof text - size, "%s%s: %s", size ? "; " : "",
                                     label, err_text(change->error));
        }
    }
    return size == 0 ? EXIT_OK
                     : verb_fail(verb, "what may not be changed here: %s: %s", text,
                                 hint_of(error, table->in_container));
}

static int changes_tell(const struct verb *verb, const struct doctor_words *words,
                        const struct doctor_table *table, const struct doctor_changes *changes) {
    int status = EXIT_OK;

    if (words->as_json) {
        status = changes_print_json(changes);
    } else {
        for (size_t i = 0; i < changes->count; i++) {
            change_print(&changes->rows[i]);
        }
        if (changes->is_conf_changed) {
            printf("%s: %s\n", DOCTOR_CONF_FOLDER "/" DOCTOR_CONF_NAME,
                   words->fixes ? "written" : "removed");
        }
        if (changes->count == 0 && !changes->is_conf_changed) {
            printf("there is nothing to %s\n", words->fixes ? "change" : "take back");
        }
    }
    int failed = changes_fail(verb, table, changes);
    return status == EXIT_OK ? failed : status;
}

static int run_change(const struct verb *verb, const struct doctor_words *words,
                      const struct doctor_table *table) {
    struct doctor_changes *changes = malloc(sizeof *changes);
    char problem[DOCTOR_PROBLEM_BYTES];

    if (!changes) {
        return verb_fail(verb, "%s", err_text(-ERR_NO_MEMORY));
    }
    int r = words->fixes ? doctor_fix(doctor_root(), table, words->persists, changes, problem)
                         : doctor_undo(doctor_root(), table, changes, problem);
    int status = r < 0 ? verb_fail(verb, "%s", problem) : changes_tell(verb, words, table, changes);
    free(changes);
    return status;
}

static int parse_doctor(const struct verb *verb, char **argv, struct doctor_words *words) {
    int status = verb_parse(verb, NULL, argv + 1, NULL, words);

    if (status != EXIT_OK) {
        return status;
    }
    if (words->fixes && words->undoes) {
        return verb_usage(verb, "--fix and --undo exclude each other");
    }
    return words->persists && !words->fixes
               ? verb_usage(verb, "--persist goes with --fix; --undo takes both back")
               : EXIT_OK;
}

static int run_doctor(const struct verb *verb, int argc, char **argv) {
    struct doctor_words words = {0};
    struct doctor_table *table;
    int status = parse_doctor(verb, argv, &words);

    (void)argc;
    if (status != EXIT_OK) {
        return status;
    }
    int r = doctor_table_new(doctor_root(), &table);
    if (r < 0) {
        return verb_fail(verb, "%s", err_text(r));
    }
    status =
        words.fixes || words.undoes ? run_change(verb, &words, table) : run_look(&words, table);
    doctor_table_free(table);
    return status;
}

static const struct verb_option doctor_options[] = {
    VERB_FLAG("--fix", struct doctor_words, fixes,
              "set the polling of idle CPUs and the read-ahead of mounts as they should be; the "
              "values before are kept"),
    VERB_FLAG("--persist", struct doctor_words, persists,
              "with --fix: at each start of the machine, too, by systemd-tmpfiles"),
    VERB_FLAG("--undo", struct doctor_words, undoes, "set them back"),
    VERB_FLAG("--json", struct doctor_words, as_json, "print JSON"),
    {.name = NULL},
};

const struct verb verb_doctor = {
    .name = "doctor",
    .arguments = "[--fix|--undo] [--persist] [--json]",
    .summary = "Tells which settings of this machine cost speed or safety, and what they bring; "
               "changes some.",
    .options = doctor_options,
    .nouns = VERB_NO_NOUNS,
    .example = "shoal doctor",
    .run = run_doctor};
