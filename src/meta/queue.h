#pragma once
#include "base/types.h"
struct order_queue {
    uint64_t count;
};
