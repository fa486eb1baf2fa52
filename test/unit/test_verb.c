/* Words are read by the rows of their verb, and the rows of all verbs can be. */
#include "unit.h"
#include "base/types.h"
#include "cmd/verb.h"
#include <stdio.h>
#include <string.h>

struct toy_words {
    const char *shared; /* the first, for the shared rows */
    const char *noun;
    const char *text;
    bool flag;
    bool own;
    int taken;
};

static int seven_take(const struct verb *verb, const char *value, void *context) {
    struct toy_words *words = context;

    words->taken++;
    return strcmp(value, "7") == 0 ? EXIT_OK : verb_usage(verb, "--seven takes 7, not %s", value);
}

static int noun_take(const struct verb *verb, const char *word, void *context) {
    struct toy_words *words = context;

    if (words->noun) {
        return verb_usage(verb, "one word, not %s as well", word);
    }
    words->noun = word;
    return EXIT_OK;
}

static const struct verb_option rows[] = {
    {.name = "--flag", .help = "a flag", .offset = offsetof(struct toy_words, flag)},
    {.name = "--text", .value = "T", .help = "text", .offset = offsetof(struct toy_words, text)},
    {.name = "--seven", .value = "N", .help = "7", .take = seven_take},
    {.name = "--own",
     .help = "of two kinds",
     .of = "one two",
     .offset = offsetof(struct toy_words, own)},
    {.name = "-o word", .help = "a word of -o", .offset = offsetof(struct toy_words, flag)},
    {.name = NULL},
};
static const struct verb_option shared[] = {
    {.name = "--shared", .value = "T", .help = "of others, too", .offset = 0},
    {.name = NULL},
};
static const struct verb toy = {.name = "toy",
                                .arguments = "one|two WORD | three [--own | --none] | last",
                                .summary = "Is one.",
                                .options = rows,
                                .shared = shared,
                                .example = "shoal toy"};

/* The words, with spaces between. */
static int parse(const char *kind, const char *text, struct toy_words *words) {
    static char copy[256];
    char *argv[16];
    size_t count = 0;
    char *rest;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        argv[count++] = word;
    }
    argv[count] = NULL;
    *words = (struct toy_words){.noun = NULL};
    return verb_parse(&toy, kind, argv, noun_take, words);
}

static void test_words_go_where_their_rows_say(void **state) {
    struct toy_words words;

    (void)state;
    assert_int_equal(parse(NULL, "--text --flag here --seven 7 --shared s", &words), EXIT_OK);
    assert_string_equal(words.text, "--flag");
    assert_string_equal(words.noun, "here");
    assert_string_equal(words.shared, "s");
    assert_int_equal(words.taken, 1);
    assert_false(words.flag);
    assert_int_equal(parse(NULL, "--flag", &words), EXIT_OK);
    assert_true(words.flag);
    assert_null(words.noun);
    assert_int_equal(parse(NULL, "", &words), EXIT_OK);
}

static void test_what_has_no_row_is_refused(void **state) {
    static const char *const refused[] = {"--fla",     "--flagg", "-",         "-f", "--text",
                                          "--seven 8", "a b",     "--flag -x", "-o", "--seven"};
    struct toy_words words;
    char *word[] = {(char[]){"-o word"}, NULL};
    char *noun[] = {(char[]){"noun"}, NULL};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        assert_int_equal(parse(NULL, refused[i], &words), EXIT_USAGE);
    }
    assert_int_equal(parse(NULL, "--seven 8 --seven 7", &words), EXIT_USAGE);
    assert_int_equal(words.taken, 1);
    /* A row of a word of -o is reached by way of -o only. */
    assert_int_equal(verb_parse(&toy, NULL, word, noun_take, &words), EXIT_USAGE);
    assert_int_equal(verb_parse(&toy, NULL, noun, NULL, &words), EXIT_USAGE);
}

static void test_rows_of_a_kind(void **state) {
    struct toy_words words;

    (void)state;
    assert_int_equal(parse("one", "--own --flag", &words), EXIT_OK);
    assert_int_equal(parse("two", "--own", &words), EXIT_OK);
    assert_true(words.own);
    assert_int_equal(parse("three", "--own", &words), EXIT_USAGE);
    assert_int_equal(parse("on", "--own", &words), EXIT_USAGE);
    assert_int_equal(parse(NULL, "--own", &words), EXIT_OK);
}

static void test_ways_to_say_it(void **state) {
    static const char *const ways[] = {"one|two WORD", "three [--own | --none]", "last"};
    const char *way = NULL;
    size_t count = 0;
    size_t size;

    (void)state;
    while ((way = verb_way_next(toy.arguments, way, &size))) {
        assert_true(count < ARRAY_SIZE(ways));
        assert_int_equal(size, strlen(ways[count]));
        assert_memory_equal(way, ways[count], size);
        count++;
    }
    assert_int_equal(count, ARRAY_SIZE(ways));
}

static bool has_kind(const struct verb *verb, const char *name, size_t size) {
    bool has = false;

    for (const struct verb_kind *kind = verb->kinds; kind && kind->name; kind++) {
        has = has || (strlen(kind->name) == size && memcmp(kind->name, name, size) == 0);
    }
    return has;
}

/* What one row needs to be read and told. */
static void check_row(const struct verb *verb, const struct verb_option *row) {
    assert_true(row->name[0] == '-');
    assert_true(row->help && row->help[0]);
    assert_ptr_equal(verb_option_find(verb, NULL, row->name, strlen(row->name)), row);
    for (const char *at = row->of; at && *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");

        assert_true(has_kind(verb, at, size));
        at += size;
    }
}

static void test_rows_of_all_verbs(void **state) {
    size_t rows_seen = 0;
    size_t count = 0;

    (void)state;
    for (; verb_list[count]; count++) {
        const struct verb *verb = verb_list[count];
        const struct verb_option *row;

        assert_ptr_equal(verb_find(verb->name), verb);
        assert_true(verb->summary[0] && verb->example[0] && verb->run);
        for (size_t i = 0; (row = verb_option_at(verb, i)); i++) {
            check_row(verb, row);
            rows_seen++;
        }
    }
    assert_true(count > 15 && rows_seen > 60);
    assert_null(verb_find(verb_shoald.name));
    assert_ptr_equal(verb_find_any(verb_shoald.name), &verb_shoald);
    assert_null(verb_find_any("frobnicate"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_go_where_their_rows_say),
        cmocka_unit_test(test_what_has_no_row_is_refused),
        cmocka_unit_test(test_rows_of_a_kind),
        cmocka_unit_test(test_ways_to_say_it),
        cmocka_unit_test(test_rows_of_all_verbs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
