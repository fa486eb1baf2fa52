/* Lines of /proc/self/mountinfo. */
#include "unit.h"
#include "base/types.h"
#include "front/fuse/mount_table.h"
#include <string.h>

static void test_lines(void **state) {
    static const struct {
        const char *line;
        const char *device, *mount_point, *type, *source;
    } table[] = {
        {"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n", "98:0",
         "/mnt2", "ext3", "/dev/root"},
        {"22 1 0:20 / / rw - tmpfs tmpfs rw", "0:20", "/", "tmpfs", "tmpfs"},
        {"50 22 0:39 / /m shared:1 master:2 rw - fuse.shoal shoal rw\n", "0:39", "/m", "fuse.shoal",
         "shoal"},
        {"50 22 0:39 / /a\\040b\\011c\\134d\\012e rw - t so\\040urce rw\n", "0:39", "/a b\tc\\d\ne",
         "t", "so urce"},
        {"50 22 0:39 / /end\\04 rw - t s rw\n", "0:39", "/end\\04", "t", "s"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char line[256] = {0};
        struct mount_line parsed;

        memcpy(line, table[i].line, strlen(table[i].line));
        assert_true(mount_line_parse(line, &parsed));
        assert_string_equal(parsed.device, table[i].device);
        assert_string_equal(parsed.mount_point, table[i].mount_point);
        assert_string_equal(parsed.type, table[i].type);
        assert_string_equal(parsed.source, table[i].source);
    }
}

/* Any beginning of a line is no line until the source is there. */
static void test_cut_lines(void **state) {
    static const char whole[] = "36 35 98:0 /mnt1 /mnt2 rw master:1 - ext3 s";

    (void)state;
    for (size_t bytes = 0; bytes < sizeof(whole); bytes++) {
        char line[sizeof(whole)] = {0};
        struct mount_line parsed;

        memcpy(line, whole, bytes);
        assert_int_equal(mount_line_parse(line, &parsed), bytes >= sizeof(whole) - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_cut_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
