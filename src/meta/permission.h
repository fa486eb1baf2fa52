/* Who may do what, as POSIX and Linux have it. Functions of credentials, mode, owner and group;
 * uid 0 has what Linux calls CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_CHOWN and CAP_FSETID. Pure. */
#pragma once
#include "base/types.h"
#include "wire/wire_types.h"

enum { ACCESS_EXECUTE = 1, ACCESS_WRITE = 2, ACCESS_READ = 4 };

/* What access to an inode depends on; mode with its type. */
struct ownership {
    uint32_t mode;
    uint32_t uid;
    uint32_t gid;
};

bool credentials_in_group(const struct credentials *who, uint32_t gid);

/* Whether all of mask (ACCESS_) is granted: 0 or -ERR_ACCESS. */
MUST_CHECK int permission_check(const struct credentials *who, struct ownership what,
                                uint32_t mask);
/* Whether the directory's entry for an inode of victim_uid may go: write and search (-ERR_ACCESS),
 * then the sticky bit (-ERR_NOT_PERMITTED). */
MUST_CHECK int permission_remove(const struct credentials *who, struct ownership directory,
                                 uint32_t victim_uid);

/* Mode, owner and group of what is made in a directory: setgid is inherited, and kept on an
 * executable file by members of the group only. */
struct ownership permission_create(const struct credentials *who, struct ownership directory,
                                   uint32_t mode);

/* The following answer -ERR_NOT_PERMITTED or change *what. valid: SETATTR_ bits. */
MUST_CHECK int permission_chmod(const struct credentials *who, uint32_t mode,
                                struct ownership *what);
MUST_CHECK int permission_chown(const struct credentials *who, uint32_t valid, struct ownership to,
                                struct ownership *what);
/* Owner and root set any time; who may write may set both to now (else -ERR_ACCESS). */
MUST_CHECK int permission_times(const struct credentials *who, uint32_t valid,
                                struct ownership what);
/* What a write or truncation by somebody else, or a change of owner, leaves of a file's mode. */
uint32_t permission_drop_set_ids(uint32_t mode);
/* Those bits: a regular file that is run acts by them for its owner or its group. */
uint32_t permission_acts(uint32_t mode);
/* Likewise of a write by one whose groups are known: set-group-ID without group execution stays for
 * root and members of the group only. */
uint32_t permission_drop_set_ids_by(const struct credentials *who, struct ownership what);
