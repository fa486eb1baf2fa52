/* Both directions come from base/err.def. Several codes share an errno there: from the system, the
 * first of them is meant, but for those below, whose first row speaks of our own protocol. */
#include "env/errno_map.h"
#include <errno.h>

struct errno_row {
    int number;
    int errno_value;
};

static const struct errno_row rows[] = {
#define ERR(name, number, errno_value, action, text) {ERR_##name, errno_value},
#include "base/err.def"
#undef ERR
};

static int meant_by_system(int errno_value) {
    switch (errno_value) {
    case EAGAIN:
        return -ERR_BUSY;
    case ESTALE:
        return -ERR_STALE;
    case EMFILE:
        return -ERR_TOO_MANY_OPEN;
    case EDQUOT:
        return -ERR_NO_SPACE;
    case ENOSYS:
        return -ERR_NOT_SUPPORTED;
    case ENXIO:
        return -ERR_NO_DEVICE;
    case EADDRINUSE:
        return -ERR_IN_USE;
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
        return -ERR_CLOSED;
    default:
        return 0;
    }
}

int err_from_errno(int errno_value) {
    int meant = meant_by_system(errno_value);

    if (meant) {
        return meant;
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].errno_value == errno_value) {
            return -rows[i].number;
        }
    }
    return -ERR_IO;
}

int err_to_errno(int result) {
    if (result >= 0) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].number == -result) {
            return rows[i].errno_value;
        }
    }
    return EIO;
}
