/* The rules of fs/namei.c and fs/attr.c of Linux, where POSIX leaves a choice. */
#include "meta/permission.h"
#include "base/err.h"
#include "meta/rows.h"

bool credentials_in_group(const struct credentials *who, uint32_t gid) {
    if (who->gid == gid) {
        return true;
    }
    for (uint32_t i = 0; i < who->group_count; i++) {
        if (who->groups[i] == gid) {
            return true;
        }
    }
    return false;
}

int permission_check(const struct credentials *who, struct ownership what, uint32_t mask) {
    uint32_t granted = what.mode & 7;

    if (who->uid == 0) {
        /* Root may do all but execute what nobody may. */
        bool executable = mode_is_directory(what.mode) || (what.mode & 0111);
        granted = ACCESS_READ | ACCESS_WRITE | (executable ? ACCESS_EXECUTE : 0);
    } else if (who->uid == what.uid) {
        granted = what.mode >> 6 & 7;
    } else if (credentials_in_group(who, what.gid)) {
        granted = what.mode >> 3 & 7;
    }
    return (granted & mask) == mask ? 0 : -ERR_ACCESS;
}

int permission_remove(const struct credentials *who, struct ownership directory,
                      uint32_t victim_uid) {
    int r = permission_check(who, directory, ACCESS_WRITE | ACCESS_EXECUTE);
    if (r < 0) {
        return r;
    }
    bool free_to_all = !(directory.mode & MODE_STICKY);
    bool may = who->uid == 0 || who->uid == victim_uid || who->uid == directory.uid;
    return free_to_all || may ? 0 : -ERR_NOT_PERMITTED;
}

static bool may_keep_setgid(const struct credentials *who, uint32_t gid) {
    return who->uid == 0 || credentials_in_group(who, gid);
}

struct ownership permission_create(const struct credentials *who, struct ownership directory,
                                   uint32_t mode) {
    struct ownership made = {.mode = mode, .uid = who->uid, .gid = who->gid};

    if (directory.mode & MODE_SETGID) {
        uint32_t both = MODE_SETGID | MODE_GROUP_EXECUTE;
        made.gid = directory.gid;
        if (mode_is_directory(mode)) {
            made.mode |= MODE_SETGID;
        } else if ((mode & both) == both && !may_keep_setgid(who, directory.gid)) {
            made.mode &= ~(uint32_t)MODE_SETGID;
        }
    }
    return made;
}

int permission_chmod(const struct credentials *who, uint32_t mode, struct ownership *what) {
    if (who->uid != 0 && who->uid != what->uid) {
        return -ERR_NOT_PERMITTED;
    }
    if (!may_keep_setgid(who, what->gid)) {
        mode &= ~(uint32_t)MODE_SETGID;
    }
    what->mode = (what->mode & MODE_TYPE_BITS) | (mode & MODE_BITS);
    return 0;
}

int permission_chown(const struct credentials *who, uint32_t valid, struct ownership to,
                     struct ownership *what) {
    bool owner = who->uid == what->uid;

    if ((valid & SETATTR_UID) && who->uid != 0 && !(owner && to.uid == what->uid)) {
        return -ERR_NOT_PERMITTED;
    }
    if ((valid & SETATTR_GID) && who->uid != 0 &&
        !(owner && (to.gid == what->gid || credentials_in_group(who, to.gid)))) {
        return -ERR_NOT_PERMITTED;
    }
    what->uid = valid & SETATTR_UID ? to.uid : what->uid;
    what->gid = valid & SETATTR_GID ? to.gid : what->gid;
    if (!mode_is_directory(what->mode)) {
        what->mode = permission_drop_set_ids(what->mode);
    }
    return 0;
}

int permission_times(const struct credentials *who, uint32_t valid, struct ownership what) {
    uint32_t both_now = SETATTR_ATIME_NOW | SETATTR_MTIME_NOW;
    uint32_t times = both_now | SETATTR_ATIME | SETATTR_MTIME;

    if (who->uid == 0 || who->uid == what.uid) {
        return 0;
    }
    return (valid & times) == both_now ? permission_check(who, what, ACCESS_WRITE)
                                       : -ERR_NOT_PERMITTED;
}

uint32_t permission_drop_set_ids(uint32_t mode) {
    mode &= ~(uint32_t)MODE_SETUID;
    /* Without group execution setgid has another meaning (mandatory locks) and stays. */
    return mode & MODE_GROUP_EXECUTE ? mode & ~(uint32_t)MODE_SETGID : mode;
}

uint32_t permission_acts(uint32_t mode) {
    return mode & ~permission_drop_set_ids(mode);
}

uint32_t permission_drop_set_ids_by(const struct credentials *who, struct ownership what) {
    uint32_t mode = permission_drop_set_ids(what.mode);

    return may_keep_setgid(who, what.gid) ? mode : mode & ~(uint32_t)MODE_SETGID;
}
