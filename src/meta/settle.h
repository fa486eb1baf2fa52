#pragma once
#include "base/types.h"
struct group;
struct settle {
    uint32_t active_count;
};
bool settle_is_awaited(const struct group *group, struct ino ino);
