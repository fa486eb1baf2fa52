/* Where a verb over all nodes is asked: at a daemon of this machine, or at addresses. */
#include "cmd/find.h"
#include "host/process.h"
#include "node/cluster_question.h"
#include "node/config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_BYTES_MAX = 3 << 20, WORDS_BYTES_MAX = 1024 };
#define PATIENCE_NS (120 * NS_PER_S)

const struct verb_option find_options[] = {
    VERB_TEXT("--join", "ADDR:PORT[,...]", struct find_words, join,
              "ask the cluster that has nodes there"),
    VERB_TEXT("--key", "FILE", struct find_words, key, "with the members' key"),
    {.name = NULL},
};

int find_noun(const struct verb *verb, const char *word, void *words) {
    struct find_words *found = words;

    if (found->what) {
        return verb_usage(verb, "one directory or path, not %s as well", word);
    }
    found->what = word;
    return EXIT_OK;
}

static bool is_path(const char *text) {
    return text[0] == '/' || text[0] == '.';
}

/* What was not typed is of the environment. */
static struct find_words words_with_environment(const struct find_words *typed) {
    const char *cluster = process_variable("SHOAL_CLUSTER");
    struct find_words words = *typed;

    if (!words.what && !words.join && cluster) {
        *(is_path(cluster) ? &words.what : &words.join) = cluster;
    }
    if (!words.key) {
        words.key = process_variable("SHOAL_KEY");
    }
    return words;
}

int find_place(const struct verb *verb, const struct find_words *typed,
               struct find_place *ret_place) {
    struct find_words words = words_with_environment(typed);
    struct find_place place = {.directory = ""};
    struct address addresses[CONFIG_JOIN_MAX];

    if (words.join && words.what) {
        return verb_usage(verb, "a directory or path, or --join, not both");
    }
    if (!words.join) {
        int status = find_cluster_or_addresses(verb, words.what, place.directory, place.addresses);

        if (status != EXIT_OK) {
            return status;
        }
    } else if (snprintf(place.addresses, sizeof place.addresses, "%s", words.join) >=
               (int)sizeof place.addresses) {
        return verb_usage(verb, "--join takes up to %zu bytes", sizeof place.addresses - 1);
    } else if (config_addresses(words.join, addresses, CONFIG_JOIN_MAX) < 0) {
        return verb_usage(verb,
                          "--join takes ADDRESS:PORT, up to %d with commas between, as "
                          "10.0.0.1:7400, not %.300s",
                          CONFIG_JOIN_MAX, words.join);
    }
    if (!place.directory[0] && !words.key) {
        return verb_fail(verb,
                         "the cluster at %s is asked with the members' key: --key FILE, or "
                         "SHOAL_KEY",
                         place.addresses);
    }
    if (words.key) {
        snprintf(place.key, sizeof place.key, "%s", words.key);
    }
    *ret_place = place;
    return EXIT_OK;
}

/* Each ended by NUL. False: they are too long. */
static bool words_join(const struct find_request *request, struct buffer *out) {
    for (size_t i = 0; i < request->argument_count; i++) {
        size_t size = strlen(request->arguments[i]) + 1;

        if (size > out->capacity - out->size) {
            return false;
        }
        memcpy(out->data + out->size, request->arguments[i], size);
        out->size += size;
    }
    return true;
}

int find_ask_afar(const struct verb *verb, const struct find_place *place,
                  const struct find_request *request) {
    uint8_t words[WORDS_BYTES_MAX];
    struct buffer joined = {.data = words, .capacity = sizeof words};
    struct buffer answer = {.data = malloc(ANSWER_BYTES_MAX), .capacity = ANSWER_BYTES_MAX};
    struct cluster_question question = {.addresses = place->addresses,
                                        .key_path = place->key,
                                        .patience_ns = request->patience_ns,
                                        .ret_answer = &answer};
    char problem[512];
    int status = EXIT_FAILED;

    if (!answer.data || !words_join(request, &joined)) {
        int r = answer.data ? -ERR_TOO_SMALL : -ERR_NO_MEMORY;

        free(answer.data);
        return verb_fail(verb, "%s", err_text(r));
    }
    question.words = (struct bytes){words, joined.size};
    int r = cluster_ask(&question, &status, problem);
    if (r < 0) {
        status = verb_fail(verb, "%s", problem[0] ? problem : err_text(r));
    } else {
        request->output(request->context, (const char *)answer.data, answer.size);
    }
    free(answer.data);
    return status;
}

static void keep(void *context, const char *text, size_t size) {
    *(char **)context = strndup(text, size);
}

int find_and_ask(const struct verb *verb, const struct find_words *words, size_t argument_count,
                 const char *const *arguments) {
    struct find_place place;
    char *text = NULL;
    const struct find_request request = {.argument_count = argument_count,
                                         .arguments = arguments,
                                         .patience_ns = PATIENCE_NS,
                                         .output = keep,
                                         .context = &text};
    int status = find_place(verb, words, &place);

    if (status != EXIT_OK) {
        return status;
    }
    if (place.directory[0]) {
        return call_daemon(verb, place.directory, argument_count, arguments);
    }
    status = find_ask_afar(verb, &place, &request);
    return text ? find_print(verb, status, text) : status;
}
