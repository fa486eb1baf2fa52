/* Settings of this machine that cost Shoal speed or safety: what each is, what it should be, and
 * changes of some of them that can be taken back. All of it lies in files below a root: "" is this
 * machine, any other folder stands for one (its sys, proc, etc and var). Blocking. Threads: any. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum doctor_setting {
    DOCTOR_URING,           /* the fuse module hands requests out over io_uring */
    DOCTOR_HALT_POLL,       /* how long an idle CPU of a virtual machine polls before it halts */
    DOCTOR_HALT_POLL_START, /* how long at first */
    DOCTOR_SLEEP,           /* the deepest sleep of an idle CPU */
    DOCTOR_READ_AHEAD,      /* of a mount of Shoal's */
    DOCTOR_OPEN_FILES,
    DOCTOR_LOCKED_MEMORY,
    DOCTOR_HUGE_PAGES,
    DOCTOR_WRITE_CACHE, /* of a disk */
    DOCTOR_SHARED_MEMORY,
    DOCTOR_SETTING_COUNT
};

/* In place of enable_uring's Y or N: no process gets io_uring. */
#define DOCTOR_URING_DISABLED "disabled"

enum doctor_state {
    DOCTOR_GOOD,
    DOCTOR_COSTS,      /* speed */
    DOCTOR_UNSAFE,     /* a start that is refused, or data */
    DOCTOR_ABSENT,     /* the machine has no such setting */
    DOCTOR_UNUSED,     /* it has, and nothing here asks for it */
    DOCTOR_UNREADABLE, /* error says why */
};

enum {
    DOCTOR_MOUNTS_MAX = 64, /* that are looked at */
    DOCTOR_DISKS_MAX = 64,
    DOCTOR_ROWS_MAX = DOCTOR_SETTING_COUNT + DOCTOR_MOUNTS_MAX + DOCTOR_DISKS_MAX,
    DOCTOR_OF_BYTES = 512, /* a mount whose path is longer is not looked at */
    DOCTOR_PATH_BYTES = 128,
    DOCTOR_VALUE_BYTES = 64,
    DOCTOR_PROBLEM_BYTES = 512
};

struct doctor_row {
    enum doctor_setting setting;
    enum doctor_state state;
    int error;                    /* of one that is unreadable */
    bool is_changed_by_fix;       /* doctor_fix changes settings of this kind */
    int denied;                   /* -ERR_: why it may not be changed here; 0: it may */
    char of[DOCTOR_OF_BYTES];     /* the mount's path, as mountinfo has it, or the disk; or "" */
    char path[DOCTOR_PATH_BYTES]; /* of its file, without the root; "": it has none of its own */
    char value[DOCTOR_VALUE_BYTES];
    char wanted[DOCTOR_VALUE_BYTES];
};

struct doctor_table {
    bool in_container;
    size_t count;
    struct doctor_row rows[DOCTOR_ROWS_MAX]; /* by setting */
};

/* The folder that SHOAL_MACHINE_ROOT names for tests, or "". */
const char *doctor_root(void);
/* Looks at all settings and changes nothing. What can't be read is a row that says so. */
MUST_CHECK int doctor_table_new(const char *root, struct doctor_table **ret_table);
/* Takes NULL. */
void doctor_table_free(struct doctor_table *table);
/* The word by which the setting is known: of output, and of the kept file. */
const char *doctor_setting_name(enum doctor_setting setting);
/* Whether doctor_fix would change this row: it costs something, and is one of those that it may. */
bool doctor_row_is_fixable(const struct doctor_row *row);
/* Whether that is known to bring more than a fifth. Nothing is measured: idle CPUs that halt at
 * once are known to cost that. */
bool doctor_brings_much(const struct doctor_table *table);

enum doctor_outcome {
    DOCTOR_CHANGED,
    DOCTOR_SAME,    /* it had that value already */
    DOCTOR_FOREIGN, /* of an undo: somebody else has changed it since, so it stays */
    DOCTOR_GONE,    /* of an undo: the machine has no such setting any more */
    DOCTOR_FAILED,  /* error says why */
};

struct doctor_change {
    enum doctor_setting setting;
    enum doctor_outcome outcome;
    int error;
    char of[DOCTOR_OF_BYTES];
    char before[DOCTOR_VALUE_BYTES];
    char after[DOCTOR_VALUE_BYTES];
};

enum { DOCTOR_CHANGES_MAX = DOCTOR_MOUNTS_MAX + 2 };
struct doctor_changes {
    bool is_conf_changed; /* the file for systemd-tmpfiles was written, or removed */
    bool is_kept;         /* of an undo: there was something to take back */
    size_t count;
    struct doctor_change rows[DOCTOR_CHANGES_MAX];
};

/* Below the root: where old values are kept from the first change until they are taken back, and
 * what sets values at each start of the machine. */
#define DOCTOR_KEPT_FOLDER "/var/lib/shoal-doctor"
#define DOCTOR_KEPT_NAME "kept"
#define DOCTOR_CONF_FOLDER "/etc/tmpfiles.d"
#define DOCTOR_CONF_NAME "shoal-doctor.conf"

/* Changes what costs something and may be changed; the old values are on disk before. persists:
 * also writes the file for systemd-tmpfiles, of the settings that are the machine's own. When it
 * fails nothing has changed, and problem has one line. What could not, or may not, be changed is a
 * row of *ret_changes. */
MUST_CHECK int doctor_fix(const char *root, const struct doctor_table *table, bool persists,
                          struct doctor_changes *ret_changes, char problem[DOCTOR_PROBLEM_BYTES]);
/* Sets back what doctor_fix has set, unless somebody has changed it since, and removes its files.
 * Likewise; what could not be written is kept for another try. */
MUST_CHECK int doctor_undo(const char *root, const struct doctor_table *table,
                           struct doctor_changes *ret_changes, char problem[DOCTOR_PROBLEM_BYTES]);
