/* The workloads of `shoal bench`, on the machine's own files: what they count, make and leave. */
#include "unit.h"
#include "cmd/bench/bench.h"
#include "host/machine.h"
#include "local_place.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    char root[64];
    char rows[1024]; /* "name=operations " of each */
    uint64_t bytes;
};

static int set_up(void **state) {
    struct place *place = calloc(1, sizeof *place);

    snprintf(place->root, sizeof place->root, "/tmp/test_bench.XXXXXX");
    assert_non_null(mkdtemp(place->root));
    *state = place;
    return 0;
}

/* Fails when something is left. */
static int tear_down(void **state) {
    struct place *place = *state;
    int r = rmdir(place->root);

    free(place);
    return r;
}

static void row(void *user, const struct bench_row *row) {
    struct place *place = user;
    size_t size = strlen(place->rows);

    snprintf(place->rows + size, sizeof place->rows - size, "%s=%llu ", row->name,
             (unsigned long long)row->operations);
    place->bytes += row->bytes;
    assert_true(row->elapsed_ns > 0);
    assert_true(row->operations == 0 || row->latency_ns.count > 0);
}

/* The words, with spaces between. */
static bool parse(const char *text, struct bench_options *options, char problem[256]) {
    char copy[256];
    const char *words[16];
    size_t count = 0;
    char *rest;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        words[count++] = word;
    }
    return bench_parse(count, words, options, problem);
}

static int run(struct place *place, const char *words) {
    struct bench_options options;
    struct bench_run run = {
        .options = &options, .files = &bench_host_files, .row = row, .user = place};
    char text[256];
    char problem[256] = "";
    int space = (int)strcspn(words, " ");

    snprintf(text, sizeof text, "%.*s %s%s", space, words, place->root, words + space);
    place->rows[0] = '\0';
    place->bytes = 0;
    assert_true(parse(text, &options, problem));
    int r = bench_run(&run, problem);
    assert_int_equal(r == 0, problem[0] == '\0');
    return r;
}

static void test_kinds(void **state) {
    static const struct {
        const char *words;
        const char *rows;
        uint64_t bytes;
    } table[] = {
        {"meta --files 10 --dirs 3",
         "create=10 stat=10 open=10 rename=20 list=10 unlink=10 mkdir=10 rmdir=10 ", 0},
        {"meta --files 10 --dirs 3 --threads 4",
         "create=10 stat=10 open=10 rename=20 list=10 unlink=10 mkdir=10 rmdir=10 ", 0},
        {"meta --files 10 --dirs 5 --branch 2 --threads 3",
         "create=10 stat=10 open=10 rename=20 list=10 unlink=10 mkdir=10 rmdir=10 ", 0},
        {"meta --files 300 --listing 1K --phases create,list,unlink",
         "create=300 list=300 unlink=300 ", 0},
        {"small --files 4 --size 1000 --dirs 4 --branch 2", "write=4 read=4 delete=4 ", 8000},
        {"meta --files 3 --threads 7 --phases create,unlink", "create=3 unlink=3 ", 0},
        {"small --files 7 --size 5000 --threads 2", "write=7 read=7 delete=7 ", 70000},
        {"small --files 2 --size 3M --dirs 1", "write=2 read=2 delete=2 ", 12 << 20},
        {"big --size 4M --threads 2 --phases write,read,erase", "write=4 read=4 erase=2 ", 8 << 20},
        {"checkpoint --size 2M --threads 2 --files 4", "save=6 restore=2 commit=4 drop=4 ",
         (8 << 20) + 4 * 4096},
    };
    struct place *place = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(run(place, table[i].words), 0);
        assert_string_equal(place->rows, table[i].rows);
        assert_int_equal(place->bytes, table[i].bytes);
    }
}

/* Files stay between calls that are only part of a run. */
static void test_phases_one_by_one(void **state) {
    struct place *place = *state;

    assert_int_equal(run(place, "small --files 20 --phases write"), 0);
    assert_int_equal(run(place, "small --files 20 --phases read --threads 3"), 0);
    assert_string_equal(place->rows, "read=20 ");
    assert_int_equal(run(place, "small --files 21 --phases read"), -ERR_NOT_FOUND);
    assert_string_equal(place->rows, "");
    assert_int_equal(run(place, "small --files 20 --phases delete --threads 2"), 0);
}

static void test_end_of_time(void **state) {
    struct place *place = *state;

    assert_int_equal(
        run(place, "big --size 1M --seconds 1 --phases write,randread,randwrite,erase"), 0);
    assert_memory_equal(place->rows, "write=1 randread=", 17);
    assert_true(place->bytes > MIB);
}

static void test_bad_words(void **state) {
    static const char *const table[] = {
        "",
        "everything /tmp",
        "meta",
        "meta /tmp /var",
        "meta /tmp --threads",
        "meta /tmp --threads 0",
        "meta /tmp --threads 1025",
        "meta /tmp --threads -1",
        "meta /tmp --files 1x",
        "meta /tmp --files 99999999999999999999",
        "meta /tmp --phases",
        "meta /tmp --phases read",
        "meta /tmp --phases create,,unlink",
        "meta /tmp --phases ,",
        "small /tmp --size 1Q",
        "small /tmp --size 0",
        "big /tmp --size 3M --threads 4",
        "big /tmp --direct --native",
        "meta /tmp --listing 100",
        "meta /tmp --listing 2M",
        "big /tmp --loud",
        "big /tmp --loud 3",
    };
    struct bench_options options;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char problem[256] = "";

        if (parse(table[i], &options, problem)) {
            fail_msg("\"%s\" is taken", table[i]);
        }
        assert_true(strlen(problem) > 10);
    }
}

static void test_directory_is_missing(void **state) {
    struct place *place = *state;
    struct bench_options options;
    struct bench_run run = {
        .options = &options, .files = &bench_host_files, .row = row, .user = place};
    char problem[256] = "";

    assert_true(parse("meta /nowhere/at/all", &options, problem));
    assert_int_equal(bench_run(&run, problem), -ERR_NOT_FOUND);
    assert_non_null(strstr(problem, "/nowhere/at/all"));
}

struct apart {
    struct bench_run run;
    char problem[256];
    int result;
};

static void run_apart(void *context, unsigned index) {
    struct apart *apart = context;

    (void)index;
    apart->result = bench_run(&apart->run, apart->problem);
}

/* Threads of a cluster's own process. The one that opened it sleeps elsewhere than in its loop, so
 * nothing may have been left to it, and it makes no request itself: what that begins would be. */
static void test_native(void **state) {
    static const char *const words[] = {"meta / --files 100 --threads 3 --native",
                                        "small / --files 50 --threads 3 --native",
                                        "checkpoint / --size 16M --threads 4 --files 40 --native"};
    struct local_place local;
    struct place place = {"", "", 0};
    struct bench_options options;
    char problem[256] = "";

    (void)state;
    local_place_open(&local);
    struct apart apart = {.run = {.options = &options,
                                  .files = &bench_native_files,
                                  .context = local_cluster_client(local.cluster),
                                  .row = row,
                                  .user = &place}};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        assert_true(parse(words[i], &options, problem));
        assert_int_equal(machine_threads(1, run_apart, &apart), 0);
        if (apart.result < 0) {
            fail_msg("%s", apart.problem);
        }
    }
    assert_non_null(strstr(place.rows, "save=12 restore=4 commit=40 drop=8 "));
    local_place_close(&local);
}

struct text {
    char bytes[4096];
};

static void text_add(void *context, const char *piece) {
    struct text *text = context;

    size_t size = strlen(text->bytes);

    snprintf(text->bytes + size, sizeof text->bytes - size, "%s", piece);
}

static void test_json(void **state) {
    struct text text = {""};
    struct bench_print print = {.json = true, .out = text_add, .context = &text};
    struct bench_row *row = calloc(1, sizeof *row);

    (void)state;
    *row = (struct bench_row){.name = "save",
                              .threads = 3,
                              .operations = 4,
                              .bytes = 8000000,
                              .elapsed_ns = 2 * NS_PER_S};
    histogram_add(&row->latency_ns, 1000);
    bench_print_row(&print, row);
    bench_print_row(&print, row);
    bench_print_end(&print);
    free(row);
    assert_non_null(strstr(text.bytes,
                           "{\"name\":\"save\",\"threads\":3,\"ops\":4,\"ops_per_s\":2.0,"
                           "\"mb_per_s\":4.0,\"p50_us\":1.0,"));
    assert_int_equal(text.bytes[0], '[');
    assert_non_null(strstr(text.bytes, "},\n{"));
    assert_string_equal(text.bytes + strlen(text.bytes) - 3, "\n]\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kinds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_phases_one_by_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_of_time, set_up, tear_down),
        cmocka_unit_test(test_bad_words),
        cmocka_unit_test_setup_teardown(test_directory_is_missing, set_up, tear_down),
        cmocka_unit_test(test_native),
        cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
