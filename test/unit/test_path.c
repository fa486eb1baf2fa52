/* The path layer on a real cluster: what paths mean, and that each call does what it says. */
#include "local_place.h"
#include <errno.h>
#include <fcntl.h>
#include <shoal/path.h>

enum { RW = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE, MAKE = RW | SHOAL_OPEN_CREATE };

static struct local_place local;
static struct shoal_place place;

static int setup(void **state) {
    (void)state;
    local_place_open(&local);
    place = (struct shoal_place){.client = local_cluster_client(local.cluster)};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    local_place_close(&local);
    return 0;
}

static void make_file(const char *path, const char *text) {
    struct shoal_file *file;

    assert_int_equal(shoal_path_open(&place, path, MAKE, 0644, &file), 0);
    assert_int_equal(shoal_path_write(&place, file, text, strlen(text), 0), strlen(text));
    assert_int_equal(shoal_path_close(&place, file), 0);
}

static uint64_t ino_of(const char *path) {
    struct shoal_attributes attributes;

    assert_int_equal(shoal_path_lstat(&place, path, &attributes), 0);
    return attributes.ino;
}

/* dir/file, dir/sub/, and links of all kinds. */
static void make_tree(void) {
    assert_int_equal(shoal_path_mkdir(&place, "/dir", 0755), 0);
    assert_int_equal(shoal_path_mkdir(&place, "dir/sub/", 0755), 0);
    make_file("dir/file", "content");
    assert_int_equal(shoal_path_symlink(&place, "file", "dir/to_file"), 0);
    assert_int_equal(shoal_path_symlink(&place, "/dir", "to_dir"), 0);
    assert_int_equal(shoal_path_symlink(&place, "../dir/sub/..//file", "dir/winding"), 0);
    assert_int_equal(shoal_path_symlink(&place, "nowhere", "dangling"), 0);
    assert_int_equal(shoal_path_symlink(&place, "loop_b", "loop_a"), 0);
    assert_int_equal(shoal_path_symlink(&place, "loop_a", "loop_b"), 0);
    assert_int_equal(shoal_path_symlink(&place, "to_dir/", "to_dir_slash"), 0);
}

static void test_paths_mean_what_posix_says(void **state) {
    static const struct {
        const char *path;
        const char *same_as; /* what stat finds; NULL: error */
        int error;
        bool link; /* lstat finds a symbolic link */
    } rows[] = {
        {"/", "/", 0, false},
        {"//", "/", 0, false},
        {".", "/", 0, false},
        {"..", "/", 0, false},
        {"/../..", "/", 0, false},
        {"dir", "/dir", 0, false},
        {"dir/", "/dir", 0, false},
        {"dir//.//", "/dir", 0, false},
        {"dir/sub/..", "/dir", 0, false},
        {"dir/sub/../sub/../file", "/dir/file", 0, false},
        {"dir/to_file", "/dir/file", 0, true},
        {"to_dir", "/dir", 0, true},
        {"to_dir/", "/dir", 0, false},
        {"to_dir/file", "/dir/file", 0, false},
        {"to_dir/to_file", "/dir/file", 0, true},
        {"to_dir/..", "/", 0, false},
        {"to_dir_slash", "/dir", 0, true},
        {"to_dir_slash/sub/../winding", "/dir/file", 0, true},
        {"", NULL, ENOENT, false},
        {"none", NULL, ENOENT, false},
        {"none/", NULL, ENOENT, false},
        {"none/file", NULL, ENOENT, false},
        {"dir/file/", NULL, ENOTDIR, false},
        {"dir/file/.", NULL, ENOTDIR, false},
        {"dir/file/..", NULL, ENOTDIR, false},
        {"dir/to_file/", NULL, ENOTDIR, false},
        {"dangling", NULL, ENOENT, true},
        {"dangling/", NULL, ENOENT, false},
        {"loop_a", NULL, ELOOP, true},
        {"loop_a/x", NULL, ELOOP, false},
    };

    (void)state;
    make_tree();
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct shoal_attributes attributes;
        int r = shoal_path_stat(&place, rows[i].path, &attributes);

        if (r != -rows[i].error || (r == 0 && attributes.ino != ino_of(rows[i].same_as))) {
            fail_msg("stat \"%s\": %d, ino %llu", rows[i].path, r,
                     (unsigned long long)attributes.ino);
        }
        r = shoal_path_lstat(&place, rows[i].path, &attributes);
        if (rows[i].link ? r != 0 || attributes.mode >> 12 != 10 : r != -rows[i].error) {
            fail_msg("lstat \"%s\": %d", rows[i].path, r);
        }
    }
}

static void test_relative_paths_begin_at_the_place(void **state) {
    struct shoal_place there = place;
    struct shoal_attributes attributes;

    (void)state;
    there.directory = ino_of("/dir/sub");
    assert_int_equal(shoal_path_stat(&there, "../file", &attributes), 0);
    assert_int_equal(attributes.ino, ino_of("/dir/file"));
    assert_int_equal(shoal_path_stat(&there, "/dir", &attributes), 0);
    assert_int_equal(shoal_path_stat(&there, "dir", &attributes), -ENOENT);
}

static void test_lengths_are_limited(void **state) {
    static char path[5000];
    struct shoal_attributes attributes;
    char name[300];

    (void)state;
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    make_file(name, "long");
    assert_int_equal(shoal_path_stat(&place, name, &attributes), 0);
    name[255] = 'n';
    name[256] = '\0';
    assert_int_equal(shoal_path_stat(&place, name, &attributes), -ENAMETOOLONG);
    memset(path, '/', sizeof path - 1);
    path[4096] = '\0';
    assert_int_equal(shoal_path_stat(&place, path, &attributes), 0);
    path[4096] = '/';
    path[4097] = '\0';
    assert_int_equal(shoal_path_stat(&place, path, &attributes), -ENAMETOOLONG);
}

/* link0 -> link1 -> ... -> a file. */
static void test_forty_links_are_followed(void **state) {
    struct shoal_attributes attributes;
    char name[16];
    char target[16];

    (void)state;
    make_file("chain41", "end");
    for (int i = 0; i <= 40; i++) {
        snprintf(name, sizeof name, "chain%d", i);
        snprintf(target, sizeof target, "chain%d", i + 1);
        assert_int_equal(shoal_path_symlink(&place, target, name), 0);
    }
    assert_int_equal(shoal_path_stat(&place, "chain1", &attributes), 0);
    assert_int_equal(attributes.ino, ino_of("chain41"));
    assert_int_equal(shoal_path_stat(&place, "chain0", &attributes), -ELOOP);
}

static void test_names_come_and_go(void **state) {
    static const struct {
        int (*call)(const struct shoal_place *place, const char *path);
        const char *path;
        int error;
    } rows[] = {
        {shoal_path_unlink, "/", EISDIR},        {shoal_path_unlink, "dir", EISDIR},
        {shoal_path_unlink, "none", ENOENT},     {shoal_path_unlink, "dir/file/", ENOTDIR},
        {shoal_path_unlink, "none/x", ENOENT},   {shoal_path_rmdir, "/", EBUSY},
        {shoal_path_rmdir, "dir", ENOTEMPTY},    {shoal_path_rmdir, "dir/file", ENOTDIR},
        {shoal_path_rmdir, "dir/sub/.", EINVAL}, {shoal_path_rmdir, "dir/sub/", 0},
        {shoal_path_unlink, "dir/to_file", 0},   {shoal_path_unlink, "dangling", 0},
    };
    struct shoal_attributes attributes;

    (void)state;
    assert_int_equal(shoal_path_mkdir(&place, "/", 0755), -EEXIST);
    assert_int_equal(shoal_path_mkdir(&place, "dir", 0755), -EEXIST);
    assert_int_equal(shoal_path_mkdir(&place, "none/dir", 0755), -ENOENT);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int r = rows[i].call(&place, rows[i].path);

        if (r != -rows[i].error) {
            fail_msg("row %zu, \"%s\": %d", i, rows[i].path, r);
        }
    }
    assert_int_equal(shoal_path_link(&place, "dir/file", "hard"), 0);
    assert_int_equal(ino_of("hard"), ino_of("dir/file"));
    assert_int_equal(shoal_path_stat(&place, "hard", &attributes), 0);
    assert_int_equal(attributes.nlink, 2);
    assert_int_equal(shoal_path_link(&place, "dir/file", "hard"), -EEXIST);
    assert_int_equal(shoal_path_rename(&place, "hard", "dir/moved", 0), 0);
    assert_int_equal(shoal_path_rename(&place, "hard", "dir/moved", 0), -ENOENT);
    assert_int_equal(shoal_path_rename(&place, "dir/moved/", "x", 0), -ENOTDIR);
    assert_int_equal(shoal_path_rename(&place, "dir/moved", "x/", 0), -ENOTDIR);
    assert_int_equal(shoal_path_rename(&place, "/", "x", 0), -EBUSY);
    assert_int_equal(shoal_path_rename(&place, "dir", "dir/in", 0), -EINVAL);
    assert_int_equal(shoal_path_rename(&place, "dir/moved", "dir/file", SHOAL_RENAME_NO_REPLACE),
                     -EEXIST);
    assert_int_equal(shoal_path_unlink(&place, "dir/moved"), 0);
}

static void test_open_makes_follows_and_refuses(void **state) {
    struct shoal_file *file;
    char back[16] = "";

    (void)state;
    assert_int_equal(shoal_path_open(&place, "none", RW, 0, &file), -ENOENT);
    assert_int_equal(shoal_path_open(&place, "none/", MAKE, 0644, &file), -EISDIR);
    assert_int_equal(shoal_path_open(&place, "dir", MAKE, 0644, &file), -EISDIR);
    assert_int_equal(shoal_path_open(&place, "dir", RW, 0, &file), -EISDIR);
    assert_int_equal(shoal_path_open(&place, "dir/file", MAKE | SHOAL_OPEN_EXCLUSIVE, 0, &file),
                     -EEXIST);
    assert_int_equal(shoal_path_open(&place, "loop_a", MAKE, 0644, &file), -ELOOP);
    /* What a dangling link names is made where it points. */
    assert_int_equal(shoal_path_symlink(&place, "dir/made", "makes"), 0);
    assert_int_equal(shoal_path_open(&place, "makes", MAKE | SHOAL_OPEN_EXCLUSIVE, 0644, &file),
                     -EEXIST);
    assert_int_equal(shoal_path_open(&place, "makes", MAKE, 0600, &file), 0);
    assert_int_equal(shoal_path_write(&place, file, "made", 4, 0), 4);
    assert_int_equal(shoal_path_fsync(&place, file), 0);
    assert_int_equal(shoal_path_close(&place, file), 0);
    assert_int_equal(shoal_path_open(&place, "dir/made", SHOAL_OPEN_READ, 0, &file), 0);
    assert_int_equal(shoal_path_read(&place, file, back, sizeof back, 1), 3);
    assert_string_equal(back, "ade");
    assert_int_equal(shoal_path_close(&place, file), 0);
    assert_int_equal(shoal_path_close(&place, NULL), 0);
}

static void test_attributes_are_set(void **state) {
    static const int64_t times[2] = {1000000007, 2000000009};
    struct shoal_attributes attributes;
    struct shoal_place other = place;

    (void)state;
    make_file("set", "0123456789");
    assert_int_equal(shoal_path_truncate(&place, "set", 4), 0);
    assert_int_equal(shoal_path_chmod(&place, "set", 0640), 0);
    assert_int_equal(shoal_path_chown(&place, "set", 1000, UINT32_MAX), 0);
    assert_int_equal(shoal_path_utimens(&place, "set", times), 0);
    assert_int_equal(shoal_path_stat(&place, "set", &attributes), 0);
    assert_int_equal(attributes.size, 4);
    assert_int_equal(attributes.mode & 07777, 0640);
    assert_int_equal(attributes.uid, 1000);
    assert_int_equal(attributes.gid, 0);
    assert_int_equal(attributes.atime_ns, times[0]);
    assert_int_equal(attributes.mtime_ns, times[1]);
    assert_int_equal(shoal_path_utimens(&place, "set", NULL), 0);
    assert_int_equal(shoal_path_stat(&place, "set", &attributes), 0);
    assert_true(attributes.mtime_ns > times[1]);
    other.identity.uid = 2000;
    assert_int_equal(shoal_path_chmod(&other, "set", 0777), -EPERM);
    assert_int_equal(shoal_path_truncate(&other, "set", 0), -EACCES);
}

static void test_links_are_read(void **state) {
    char target[64];

    (void)state;
    assert_int_equal(shoal_path_readlink(&place, "to_dir", target, sizeof target), 4);
    assert_memory_equal(target, "/dir", 4);
    assert_int_equal(shoal_path_readlink(&place, "to_dir", target, 2), 2);
    assert_int_equal(shoal_path_readlink(&place, "dir", target, sizeof target), -EINVAL);
    assert_int_equal(shoal_path_symlink(&place, "", "empty"), -ENOENT);
    assert_int_equal(shoal_path_symlink(&place, "x", "to_dir"), -EEXIST);
}

/* More entries than one read takes in: each exactly once, and the two dots. */
static void test_directories_are_listed(void **state) {
    enum { ENTRIES = 700 };
    static uint8_t seen[ENTRIES];
    struct shoal_directory *directory;
    struct shoal_entry entry;
    char path[64];
    int dots = 0;
    int r;

    (void)state;
    assert_int_equal(shoal_path_mkdir(&place, "many", 0755), 0);
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(path, sizeof path, "many/a_name_of_some_length_%d", i);
        make_file(path, "");
    }
    assert_int_equal(shoal_path_opendir(&place, "many", &directory), 0);
    while ((r = shoal_path_readdir(directory, &entry)) == 1) {
        int number = -1;

        if (entry.name[0] == '.') {
            dots++;
            continue;
        }
        assert_int_equal(sscanf(entry.name, "a_name_of_some_length_%d", &number), 1);
        assert_in_range(number, 0, ENTRIES - 1);
        assert_int_equal(seen[number]++, 0);
        assert_int_equal(strlen(entry.name), entry.name_bytes);
    }
    assert_int_equal(r, 0);
    assert_int_equal(shoal_path_readdir(directory, &entry), 0);
    shoal_path_closedir(directory);
    shoal_path_closedir(NULL);
    assert_int_equal(dots, 2);
    for (int i = 0; i < ENTRIES; i++) {
        assert_int_equal(seen[i], 1);
    }
    assert_int_equal(shoal_path_opendir(&place, "dir/file", &directory), -ENOTDIR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_mean_what_posix_says),
        cmocka_unit_test(test_relative_paths_begin_at_the_place),
        cmocka_unit_test(test_lengths_are_limited),
        cmocka_unit_test(test_forty_links_are_followed),
        cmocka_unit_test(test_names_come_and_go),
        cmocka_unit_test(test_open_makes_follows_and_refuses),
        cmocka_unit_test(test_attributes_are_set),
        cmocka_unit_test(test_links_are_read),
        cmocka_unit_test(test_directories_are_listed),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
