/* Who may do what: one row a rule. */
#include "unit.h"
#include "base/err.h"
#include "meta/permission.h"

enum { R = ACCESS_READ, W = ACCESS_WRITE, X = ACCESS_EXECUTE };
enum { REG = 0100000, DIR = 0040000 };

static const uint32_t more_groups[] = {50, 60};
static const struct credentials root = {0, 0, 0, NULL};
static const struct credentials owner = {1, 10, 0, NULL};
static const struct credentials member = {2, 10, 0, NULL};
static const struct credentials extra = {3, 30, 2, more_groups};
static const struct credentials other = {4, 40, 0, NULL};

static void test_check(void **state) {
    static const struct {
        const struct credentials *who;
        struct ownership what;
        uint32_t mask;
        int wanted;
    } rows[] = {
        {&owner, {REG | 0600, 1, 10}, R | W, 0},
        {&owner, {REG | 0600, 1, 10}, X, -ERR_ACCESS},
        {&owner, {REG | 0077, 1, 10}, R, -ERR_ACCESS}, /* the first class that fits decides */
        {&member, {REG | 0040, 1, 10}, R, 0},
        {&member, {REG | 0607, 1, 10}, R, -ERR_ACCESS},
        {&extra, {REG | 0020, 1, 60}, W, 0},
        {&extra, {REG | 0020, 1, 61}, W, -ERR_ACCESS},
        {&other, {REG | 0001, 1, 10}, X, 0},
        {&other, {REG | 0004, 1, 10}, R | W, -ERR_ACCESS},
        {&other, {REG | 0000, 1, 10}, 0, 0},
        {&root, {REG | 0000, 1, 10}, R | W, 0},
        {&root, {REG | 0666, 1, 10}, X, -ERR_ACCESS},
        {&root, {REG | 0010, 1, 10}, X, 0},
        {&root, {DIR | 0000, 1, 10}, R | W | X, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(permission_check(rows[i].who, rows[i].what, rows[i].mask), rows[i].wanted);
    }
}

static void test_remove(void **state) {
    static const struct {
        const struct credentials *who;
        struct ownership directory;
        uint32_t victim_uid;
        int wanted;
    } rows[] = {
        {&other, {DIR | 0777, 1, 10}, 2, 0},
        {&other, {DIR | 0775, 1, 10}, 4, -ERR_ACCESS},
        {&other, {DIR | 0776, 1, 10}, 4, -ERR_ACCESS}, /* no search */
        {&other, {DIR | 01777, 1, 10}, 2, -ERR_NOT_PERMITTED},
        {&other, {DIR | 01777, 1, 10}, 4, 0}, /* owns the victim */
        {&owner, {DIR | 01777, 1, 10}, 4, 0}, /* owns the directory */
        {&root, {DIR | 01777, 1, 10}, 4, 0},
        {&other, {DIR | 01775, 1, 10}, 2, -ERR_ACCESS}, /* access comes first */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(permission_remove(rows[i].who, rows[i].directory, rows[i].victim_uid),
                         rows[i].wanted);
    }
}

static void test_create(void **state) {
    static const struct {
        const struct credentials *who;
        struct ownership directory;
        uint32_t mode;
        struct ownership wanted;
    } rows[] = {
        {&other, {DIR | 0777, 1, 10}, REG | 0644, {REG | 0644, 4, 40}},
        {&other, {DIR | 02777, 1, 10}, REG | 0644, {REG | 0644, 4, 10}},
        {&other, {DIR | 02777, 1, 10}, DIR | 0755, {DIR | 02755, 4, 10}},
        {&other, {DIR | 02777, 1, 10}, REG | 02755, {REG | 0755, 4, 10}},
        {&other, {DIR | 02777, 1, 10}, REG | 02745, {REG | 02745, 4, 10}},
        {&member, {DIR | 02777, 1, 10}, REG | 02755, {REG | 02755, 2, 10}},
        {&root, {DIR | 02777, 1, 10}, REG | 06755, {REG | 06755, 0, 10}},
        {&other, {DIR | 0777, 1, 10}, REG | 06755, {REG | 06755, 4, 40}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ownership got = permission_create(rows[i].who, rows[i].directory, rows[i].mode);

        assert_int_equal(got.mode, rows[i].wanted.mode);
        assert_int_equal(got.uid, rows[i].wanted.uid);
        assert_int_equal(got.gid, rows[i].wanted.gid);
    }
}

static void test_chmod(void **state) {
    static const struct {
        const struct credentials *who;
        struct ownership what;
        uint32_t mode;
        int wanted;
        uint32_t wanted_mode;
    } rows[] = {
        {&owner, {REG | 0600, 1, 10}, 06755, 0, REG | 06755},
        {&owner, {REG | 0600, 1, 40}, 06755, 0, REG | 04755},
        {&owner, {DIR | 0600, 1, 40}, 02755, 0, DIR | 0755},
        {&member, {REG | 0666, 1, 10}, 0600, -ERR_NOT_PERMITTED, REG | 0666},
        {&root, {REG | 0600, 1, 40}, 06755, 0, REG | 06755},
        {&owner, {REG | 0600, 1, 10}, DIR | 0700, 0, REG | 0700}, /* the type stays */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ownership what = rows[i].what;

        assert_int_equal(permission_chmod(rows[i].who, rows[i].mode, &what), rows[i].wanted);
        assert_int_equal(what.mode, rows[i].wanted_mode);
    }
}

static void test_chown(void **state) {
    static const struct {
        const struct credentials *who;
        struct ownership what;
        uint32_t valid;
        struct ownership to;
        int wanted;
        struct ownership wanted_what;
    } rows[] = {
        {&owner,
         {REG | 0644, 1, 10},
         SETATTR_UID,
         {0, 2, 0},
         -ERR_NOT_PERMITTED,
         {REG | 0644, 1, 10}},
        {&owner, {REG | 06755, 1, 10}, SETATTR_UID, {0, 1, 0}, 0, {REG | 0755, 1, 10}},
        {&owner,
         {REG | 0644, 1, 10},
         SETATTR_GID,
         {0, 0, 20},
         -ERR_NOT_PERMITTED,
         {REG | 0644, 1, 10}},
        {&owner, {REG | 0644, 1, 40}, SETATTR_GID, {0, 0, 10}, 0, {REG | 0644, 1, 10}},
        {&extra, {REG | 0644, 3, 30}, SETATTR_GID, {0, 0, 60}, 0, {REG | 0644, 3, 60}},
        {&member,
         {REG | 0644, 1, 10},
         SETATTR_GID,
         {0, 0, 10},
         -ERR_NOT_PERMITTED,
         {REG | 0644, 1, 10}},
        {&root, {REG | 06755, 1, 10}, SETATTR_UID | SETATTR_GID, {0, 7, 8}, 0, {REG | 0755, 7, 8}},
        {&root, {REG | 06745, 1, 10}, SETATTR_UID, {0, 7, 8}, 0, {REG | 02745, 7, 10}},
        {&root, {DIR | 06755, 1, 10}, SETATTR_UID, {0, 7, 8}, 0, {DIR | 06755, 7, 10}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ownership what = rows[i].what;

        assert_int_equal(permission_chown(rows[i].who, rows[i].valid, rows[i].to, &what),
                         rows[i].wanted);
        assert_int_equal(what.mode, rows[i].wanted_what.mode);
        assert_int_equal(what.uid, rows[i].wanted_what.uid);
        assert_int_equal(what.gid, rows[i].wanted_what.gid);
    }
}

static void test_times(void **state) {
    static const uint32_t both_now = SETATTR_ATIME_NOW | SETATTR_MTIME_NOW;
    static const struct {
        const struct credentials *who;
        uint32_t valid;
        uint32_t mode;
        int wanted;
    } rows[] = {
        {&owner, SETATTR_MTIME, 0000, 0},
        {&root, SETATTR_MTIME, 0000, 0},
        {&other, SETATTR_MTIME, 0666, -ERR_NOT_PERMITTED},
        {&other, both_now, 0666, 0},
        {&other, both_now, 0644, -ERR_ACCESS},
        {&other, SETATTR_MTIME_NOW, 0666, -ERR_NOT_PERMITTED},
        {&other, both_now | SETATTR_ATIME, 0666, -ERR_NOT_PERMITTED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ownership what = {REG | rows[i].mode, 1, 10};

        assert_int_equal(permission_times(rows[i].who, rows[i].valid, what), rows[i].wanted);
    }
}

static void test_drop_set_ids_by(void **state) {
    static const struct {
        const struct credentials *who;
        uint32_t mode;
        uint32_t wanted;
    } rows[] = {
        {&other, 06755, 0755}, {&member, 06755, 0755},  {&root, 06755, 0755},
        {&other, 02644, 0644}, {&member, 02644, 02644}, {&root, 02644, 02644},
        {&other, 06644, 0644}, {&member, 06644, 02644}, {&extra, 02644, 0644},
        {&other, 0644, 0644},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ownership what = {REG | rows[i].mode, 1, 10};

        assert_int_equal(permission_drop_set_ids_by(rows[i].who, what), REG | rows[i].wanted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),  cmocka_unit_test(test_remove),
        cmocka_unit_test(test_create), cmocka_unit_test(test_drop_set_ids_by),
        cmocka_unit_test(test_chmod),  cmocka_unit_test(test_chown),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
