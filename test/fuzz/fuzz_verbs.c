/* Verbs: the words that a daemon hears behind their frame, what other nodes answer to them, and
 * what of it goes to a terminal. */
#include "cmd/bench/bench.h"
#include "cmd/control_nodes.h"
#include "cmd/control_words.h"
#include "cmd/fsck_lines.h"
#include "cmd/fsck_report.h"
#include "cmd/json_text.h"
#include "cmd/verb.h"
#include "fuzz.h"
#include "host/control_frame.h"
#include "host/plain_text.h"
#include "layout/layout.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_BYTES_MAX = 8192, WORD_BYTES = 64, UNTOUCHED = 0xa5 };

static void check_untouched(const void *output, size_t size) {
    for (size_t i = 0; i < size; i++) {
        assert(((const uint8_t *)output)[i] == UNTOUCHED);
    }
}

static void stat_words(size_t count, char **words) {
    char ino[WORD_BYTES];
    char *const same[] = {words[0], ino};
    uint64_t number = UINT64_MAX, again;

    if (!control_words_stat(count, words, &number)) {
        assert(number == UINT64_MAX);
        return;
    }
    snprintf(ino, sizeof ino, "%" PRIu64, number);
    bool is_same = control_words_stat(ARRAY_SIZE(same), same, &again) && again == number;
    assert(is_same);
}

/* Said again they are the same. */
static void stripe_words_repeat(const struct control_stripe_words *said) {
    char ino[WORD_BYTES], count[WORD_BYTES] = "-", bytes[WORD_BYTES] = "-";
    char verb[] = "stripe", set[] = "set", get[] = "get";
    char *const words[] = {verb, said->sets ? set : get, ino, count, bytes};
    struct control_stripe_words again;

    snprintf(ino, sizeof ino, "%" PRIu64, said->ino);
    if (said->stripe_count < 0) {
        snprintf(count, sizeof count, "all");
    } else if (said->stripe_count > 0) {
        snprintf(count, sizeof count, "%" PRId32, said->stripe_count);
    }
    if (said->chunk_bytes > 0) {
        snprintf(bytes, sizeof bytes, "%" PRIu32, said->chunk_bytes);
    }
    bool is_taken = control_words_stripe(ARRAY_SIZE(words), words, &again);
    assert(is_taken && again.sets == said->sets && again.ino == said->ino);
    assert(again.stripe_count == said->stripe_count && again.chunk_bytes == said->chunk_bytes);
}

static void stripe_words(size_t count, char **words) {
    struct control_stripe_words said;

    memset(&said, UNTOUCHED, sizeof said);
    if (!control_words_stripe(count, words, &said)) {
        check_untouched(&said, sizeof said);
        return;
    }
    const struct layout layout = {
        .pool_version = 1,
        .chunk_bytes = said.chunk_bytes > 0 ? said.chunk_bytes : CHUNK_BYTES_DEFAULT,
        .stripe_count = (uint16_t)(said.stripe_count > 0 ? said.stripe_count : STRIPE_ALL)};
    assert(said.stripe_count >= -1 && said.stripe_count < STRIPE_ALL && layout_is_valid(&layout));
    assert(said.sets || (said.stripe_count == 0 && said.chunk_bytes == 0));
    stripe_words_repeat(&said);
}

static void target_words(size_t count, char **words) {
    struct control_target_words said;
    unsigned long long target;

    memset(&said, UNTOUCHED, sizeof said);
    if (!control_words_target(count, words, &said)) {
        check_untouched(&said, sizeof said);
        return;
    }
    assert(verb_parse_count(words[2], &target) && said.target == target);
    assert((said.what == CONTROL_TARGET_DO) == (strcmp(words[3], "yes") == 0));
    assert((said.what == CONTROL_TARGET_ASK) == (strcmp(words[3], "ask") == 0));
}

static void revoke_words(size_t count, char **words) {
    char printed[WORD_BYTES];
    uint64_t serial = 0;

    if (!control_words_revoke(count, words, &serial)) {
        assert(serial == 0);
        return;
    }
    snprintf(printed, sizeof printed, "%016" PRIx64, serial);
    assert(serial != 0 && count == 2 && strcmp(printed, words[1]) == 0);
}

static void bench_words(size_t count, char **words) {
    static struct bench_options options;
    char problem[256];

    memset(&options, 0, sizeof options);
    memset(problem, UNTOUCHED, sizeof problem);
    if (count < 2) {
        return;
    }
    if (!bench_parse(count - 2, (const char *const *)(words + 2), &options, problem)) {
        assert(problem[0] && memchr(problem, '\0', sizeof problem));
        return;
    }
    assert(options.threads > 0 && options.threads <= BENCH_THREADS_MAX && options.dirs > 0);
    assert(options.path[0] && memchr(options.path, '\0', sizeof options.path));
    assert(options.phases != 0 && options.listing_bytes > 0);
    assert(options.kind == BENCH_META || options.size_bytes > 0);
}

static const struct {
    const char *verb;
    void (*parse)(size_t count, char **words);
} verbs[] = {{"stat", stat_words},
             {"stripe", stripe_words},
             {"target", target_words},
             {"revoke", revoke_words},
             {"bench", bench_words}};

/* Words as they lie behind their frame, each ended by NUL. */
void fuzz_verb_words(struct bytes in) {
    char *words[CONTROL_FRAME_ARGUMENTS_MAX];
    size_t size = MIN(in.size, (size_t)CONTROL_FRAME_REQUEST_BYTES_MAX);
    char *text = malloc(size + 1);

    assert(text);
    if (size > 0) {
        memcpy(text, in.data, size);
    }
    text[size] = '\0';
    size_t count = size > 0 ? control_request_split(text, size, words) : 0;
    for (size_t i = 0; count > 0 && i < ARRAY_SIZE(verbs); i++) {
        if (strcmp(words[0], verbs[i].verb) == 0) {
            verbs[i].parse(count, words);
        }
    }
    free(text);
}

#define SEED_WORDS(seeds, text)                                                                    \
    fuzz_seed(seeds, (struct bytes){(const uint8_t *)(text), sizeof(text)})

void seed_verb_words(const struct fuzz_seeds *seeds) {
    SEED_WORDS(seeds, "stat\0"
                      "4097\0--json");
    SEED_WORDS(seeds, "stripe\0set\0"
                      "1\0"
                      "65534\0"
                      "64M");
    SEED_WORDS(seeds, "stripe\0get\0"
                      "1\0-\0-\0--json");
    SEED_WORDS(seeds, "stripe\0set\0"
                      "12\0all\0-");
    SEED_WORDS(seeds, "target\0lost\0"
                      "12\0check");
    SEED_WORDS(seeds, "target\0lost\0"
                      "4294967295\0yes");
    SEED_WORDS(seeds, "revoke\0"
                      "00ff45670123cdef");
    SEED_WORDS(seeds, "bench\0/mnt\0meta\0/a/b\0--threads\0"
                      "4\0--phases\0create,stat\0--json");
    SEED_WORDS(seeds, "bench\0/mnt\0big\0--size\0"
                      "2G\0--listing\0"
                      "64K\0--native\0/a");
}

/* u8 how it ended, u8 size of the address, address, text: its row is always there, and JSON. */
void fuzz_node_answer(struct bytes in) {
    static char text[TEXT_BYTES_MAX];
    struct wire_cursor cursor = fuzz_cursor(in);
    struct node_answer node = {.node = 7, .text = text};

    node.result = -(int)(wire_take_number(&cursor, 1) % 3);
    size_t size = MIN((size_t)wire_take_number(&cursor, 1), cursor.size);
    const uint8_t *address = wire_take(&cursor, size);
    fuzz_string((struct bytes){address, address ? size : 0}, node.address, sizeof node.address);
    fuzz_string(fuzz_rest(&cursor), text, sizeof text);
    bool has_answered = node.result == 0;
    json_t *row = control_nodes_answer_json(&node);
    assert(row && json_integer_value(json_object_get(row, "id")) == 7);
    assert(json_is_string(json_object_get(row, "address")));
    assert(json_is_null(json_object_get(row, "error")) == (node.result == 0));
    assert(json_is_null(json_object_get(row, "answer")) == (node.result < 0));
    assert(has_answered || node.result < 0);
    char *printed = json_dumps(row, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
    json_t *again = printed ? json_loads(printed, 0, NULL) : NULL;
    assert(again);
    json_decref(again);
    free(printed);
    json_decref(row);
}

static void seed_answer(const struct fuzz_seeds *seeds, uint8_t result, const char *text) {
    static const char address[] = "10.0.0.2:7400";
    uint8_t space[512];
    struct buffer out = {space, 0, sizeof space};

    wire_give_number(&out, result, 1);
    wire_give_number(&out, sizeof address - 1, 1);
    wire_give(&out, address, sizeof address - 1);
    wire_give(&out, text, strlen(text));
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

void seed_node_answer(const struct fuzz_seeds *seeds) {
    seed_answer(seeds, 0,
                "{\"directory\": \"/srv/\\u00e9\", \"targets\": [{\"id\": \"ost0\", \"fill\": "
                "12.5, \"bytes\": 9223372036854775807}], \"key_file\": null}");
    seed_answer(seeds, 0, "[[[[1e308, -0.0, true, false, \"\\ud83d\\ude00\"]]]]");
    seed_answer(seeds, 1, "");
}

/* Whatever it is there is a text, of as many characters at most; what is UTF-8 stays. */
void fuzz_json_text(struct bytes in) {
    char *text = malloc(in.size + 1);

    assert(text);
    fuzz_string(in, text, in.size + 1);
    json_t *plain = json_string(text);
    json_t *json = json_text(text);
    assert(json && json_string_length(json) == strlen(text));
    assert(!plain || json_equal(plain, json));
    for (const char *at = json_string_value(json), *was = text; *at; at++, was++) {
        assert(*at == *was || (*at == '?' && (unsigned char)*was >= 128 && !plain));
    }
    json_decref(plain);
    json_decref(json);
    free(text);
}

void seed_json_text(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "/srv/shoal");
    fuzz_seed_text(seeds, "/srv/\xc3\xa9/\xf0\x9f\x98\x80");
    fuzz_seed_text(seeds, "/srv/\xff\"\\");
}

/* Nothing that a terminal would obey, but ends of lines and tabs. */
static void check_plain(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)text[i];

        assert((byte >= ' ' && byte != 0x7f) || byte == '\n' || byte == '\t');
        assert(i == 0 || (uint8_t)text[i - 1] != 0xc2 || byte < 0x80 || byte > 0x9f);
    }
}

struct shown {
    char *answer, *notes;
    size_t answer_size, notes_size;
};

static void answer_show(struct bytes text, size_t step, bool progress, struct shown *ret_shown) {
    struct fsck_lines lines = {.answer =
                                   open_memstream(&ret_shown->answer, &ret_shown->answer_size),
                               .notes = open_memstream(&ret_shown->notes, &ret_shown->notes_size),
                               .progress = progress};

    assert(lines.answer && lines.notes);
    while (text.size > 0) {
        size_t size = step > 0 ? MIN(step, text.size) : text.size;

        fsck_lines_show(&lines, (const char *)text.data, size);
        text = (struct bytes){text.data + size, text.size - size};
    }
    (void)fclose(lines.answer);
    (void)fclose(lines.notes);
}

/* u8 size of its pieces, u8 whether progress is wanted, the answer: no matter in which pieces. */
void fuzz_fsck_answer(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    size_t step = wire_take_number(&cursor, 1);
    bool progress = wire_take_number(&cursor, 1) & 1;
    struct bytes text = fuzz_rest(&cursor);
    struct shown pieces = {.answer = NULL}, whole = {.answer = NULL};

    answer_show(text, step, progress, &pieces);
    answer_show(text, 0, progress, &whole);
    check_plain(pieces.answer, pieces.answer_size);
    check_plain(pieces.notes, pieces.notes_size);
    check_plain(whole.answer, whole.answer_size);
    check_plain(whole.notes, whole.notes_size);
    assert(pieces.answer_size == whole.answer_size && pieces.notes_size == whole.notes_size);
    free(pieces.answer);
    free(pieces.notes);
    free(whole.answer);
    free(whole.notes);
}

void seed_fsck_answer(const struct fuzz_seeds *seeds) {
    static const uint8_t seed[] = "\x07\x01"
                                  "\x01" /* FSCK_NOTE */
                                  "looked at 4 targets\n"
                                  "orphan-chunk: ino 4097 \xc2\x9b \xc3\xa9: nobody has it\n"
                                  "\x02" /* FSCK_ERROR */
                                  "the check could not be finished\n"
                                  "4 files, 1 directories: clean\n";

    fuzz_seed(seeds, (struct bytes){seed, sizeof seed - 1});
}

/* In pieces of u8 it is what it is at once, but that a piece cannot take back what one before has
 * shown: then a lone lead byte stays, which no terminal obeys. */
void fuzz_plain_text(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    size_t step = MAX((size_t)wire_take_number(&cursor, 1), (size_t)1);
    struct bytes rest = fuzz_rest(&cursor);
    char *pieces = malloc(rest.size + 1);
    uint8_t before = 0;

    assert(pieces);
    fuzz_string(rest, pieces, rest.size + 1);
    char *whole = strdup(pieces);
    assert(whole);
    size_t size = strlen(pieces);
    for (size_t at = 0; at < size; at += step) {
        plain_text_piece(pieces + at, MIN(step, size - at), true, &before);
    }
    (void)plain_text(whole, false);
    check_plain(pieces, size);
    check_plain(whole, size);
    assert(strlen(whole) == size && !strpbrk(whole, "\n\t"));
    for (size_t i = 0; i < size; i++) {
        bool is_lead = (uint8_t)pieces[i] == 0xc2 && whole[i] == '?' && i + 1 < size;

        assert(pieces[i] == whole[i] || pieces[i] == '\n' || pieces[i] == '\t' ||
               (is_lead && pieces[i + 1] == '?'));
    }
    free(whole);
    free(pieces);
}

void seed_plain_text(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "\x03"
                          "a\tb\n\x1b[2J \xc2\x9b"
                          "2J \xc3\xa9 \x7f");
}
