/* Texts and actions of the error table. */
#include "base/err.h"

struct err_row {
    const char *name;
    const char *text;
    enum err_action action;
};

static const struct err_row rows[] = {
#define ERR(name, number, errno_value, action, text) [number] = {#name, text, ERR_ACTION_##action},
#include "base/err.def"
#undef ERR
};

static const struct err_row *row_of(int result) {
    static const struct err_row success = {"OK", "success", ERR_ACTION_FAIL};
    static const struct err_row unknown = {"UNKNOWN", "an unknown error", ERR_ACTION_FAIL};

    if (result >= 0) {
        return &success;
    }
    unsigned number = 0U - (unsigned)result;
    if (number >= ARRAY_SIZE(rows) || !rows[number].name) {
        return &unknown;
    }
    return &rows[number];
}

const char *err_name(int result) {
    return row_of(result)->name;
}

const char *err_text(int result) {
    return row_of(result)->text;
}

enum err_action err_action(int result) {
    return row_of(result)->action;
}
