/* Error codes and errno: every row there and back, and what the system may say besides. */
#include "unit.h"
#include "env/errno_map.h"
#include <errno.h>

struct row {
    int number;
    int errno_value;
};

static const struct row rows[] = {
#define ERR(name, number, errno_value, action, text) {ERR_##name, errno_value},
#include "base/err.def"
#undef ERR
};

static void test_every_code_has_its_errno(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(err_to_errno(-rows[i].number), rows[i].errno_value);
    }
}

/* Another code may come back, as several share an errno, but the program sees the same errno. */
/* But for those that mean something else when the system says them. */
static void test_errno_survives_the_round(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int back = err_from_errno(rows[i].errno_value);

        assert_true(back < 0);
        if (rows[i].errno_value != EAGAIN && rows[i].errno_value != ENXIO) {
            assert_int_equal(err_to_errno(back), rows[i].errno_value);
        }
    }
}

static void test_what_the_system_means(void **state) {
    static const struct row meant[] = {
        {ERR_NOT_FOUND, ENOENT},     {ERR_NO_SPACE, ENOSPC},
        {ERR_NO_SPACE, EDQUOT},      {ERR_IO, EIO},
        {ERR_INVALID, EINVAL},       {ERR_ACCESS, EACCES},
        {ERR_BUSY, EAGAIN},          {ERR_BUSY, EBUSY},
        {ERR_STALE, ESTALE},         {ERR_TOO_MANY_OPEN, EMFILE},
        {ERR_NOT_SUPPORTED, ENOSYS}, {ERR_CLOSED, EPIPE},
        {ERR_NO_DEVICE, ENXIO},      {ERR_IO, 4095},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(meant); i++) {
        assert_int_equal(err_from_errno(meant[i].errno_value), -meant[i].number);
    }
}

static void test_success_and_unknown(void **state) {
    (void)state;
    assert_int_equal(err_to_errno(0), 0);
    assert_int_equal(err_to_errno(-9999), EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_has_its_errno),
        cmocka_unit_test(test_errno_survives_the_round),
        cmocka_unit_test(test_what_the_system_means),
        cmocka_unit_test(test_success_and_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
