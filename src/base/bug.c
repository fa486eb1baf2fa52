/* The choice of one bug. */
#include "base/bug.h"
#include <string.h>

#if defined(SHOAL_BUG_ANY)
enum bug bug_chosen = BUG_NONE;
#endif

bool bug_choose(const char *name) {
    static const char *const names[] = {
#define BUG_NAME(enumerator, text) text,
        BUGS(BUG_NAME)
#undef BUG_NAME
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(names[i], name) == 0) {
#if defined(SHOAL_BUG_ANY)
            bug_chosen = (enum bug)i;
#endif
            return bug_chosen == (enum bug)i;
        }
    }
    return false;
}
