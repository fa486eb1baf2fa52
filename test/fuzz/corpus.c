/* Plays inputs without fuzzing: corpus [DIRECTORY [NAME]], DIRECTORY being that of found bugs;
 * corpus --list; corpus --write NAME DIRECTORY, a file a seed.
 *
 * Of each target it plays the seeds, changes of them that are the same in each run, and the inputs
 * that were once found to break something, DIRECTORY/NAME/WHAT.hex: pairs of hexadecimal digits;
 * spaces, line ends and lines that begin with # mean nothing. */
#include "base/prng.h"
#include "fuzz.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANGES = 160, CUTS_MAX = 48, SPLICES_MAX = 4, PATH_BYTES = 1024 };

struct player {
    const struct fuzz_target *target;
    struct prng prng;
    uint64_t input_count;
    const char *directory; /* of --write */
    bool failed;
};

static void player_run(struct player *player, struct bytes in) {
    uint8_t *copy = malloc(in.size > 0 ? in.size : 1);

    assert(copy && in.size <= FUZZ_INPUT_BYTES_MAX);
    if (in.size > 0) {
        memcpy(copy, in.data, in.size);
    }
    player->target->run((struct bytes){copy, in.size});
    player->input_count++;
    free(copy);
}

/* A bit, a byte, a number that limits stumble over, or a run of bytes from elsewhere. */
static void change_once(struct prng *prng, uint8_t *data, size_t size) {
    static const uint64_t edges[] = {0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff};
    size_t at = prng_below(prng, size);
    size_t left = size - at;

    switch (prng_below(prng, 4)) {
    case 0:
        data[at] ^= (uint8_t)(1 << prng_below(prng, 8));
        break;
    case 1:
        data[at] = (uint8_t)prng_next(prng);
        break;
    case 2:
        memcpy(data + at, &edges[prng_below(prng, ARRAY_SIZE(edges))],
               MIN(left, (size_t)1 << prng_below(prng, 3)));
        break;
    default: {
        size_t count = prng_between(prng, 1, left);

        memmove(data + at, data + prng_below(prng, size - count + 1), count);
    }
    }
}

static void play_changes(struct player *player, struct bytes seed, uint8_t *space) {
    for (size_t i = 0; seed.size > 0 && i < CHANGES; i++) {
        size_t size = prng_chance(&player->prng, 1, 4) ? prng_between(&player->prng, 1, seed.size)
                                                       : seed.size;

        memcpy(space, seed.data, size);
        for (size_t j = prng_between(&player->prng, 1, SPLICES_MAX); j > 0; j--) {
            change_once(&player->prng, space, size);
        }
        player_run(player, (struct bytes){space, size});
    }
}

static void play_seed(void *context, struct bytes seed) {
    struct player *player = context;
    uint8_t *space = malloc(seed.size + 1);

    assert(space);
    player_run(player, seed);
    for (size_t i = 0; i < CUTS_MAX && i < seed.size; i++) {
        player_run(player, (struct bytes){seed.data, seed.size * i / CUTS_MAX});
    }
    play_changes(player, seed, space);
    free(space);
}

static void write_seed(void *context, struct bytes seed) {
    struct player *player = context;
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/seed-%llu", player->directory,
             (unsigned long long)player->input_count++);
    FILE *file = fopen(path, "wb");
    player->failed |= !file || fwrite(seed.data, 1, seed.size, file) != seed.size;
    player->failed |= file && fclose(file) != 0;
}

static int hex_digit(int letter) {
    const char *digits = "0123456789abcdef";
    const char *found = letter ? strchr(digits, letter) : NULL;

    return found ? (int)(found - digits) : -1;
}

/* Bytes of the text, or SIZE_MAX when it is none. */
static size_t hex_read(FILE *file, uint8_t *to, size_t capacity) {
    char line[256];
    size_t digits = 0;

    while (fgets(line, sizeof line, file)) {
        for (const char *at = line; line[0] != '#' && *at; at++) {
            int digit = hex_digit(*at);

            if (*at == ' ' || *at == '\n') {
                continue;
            }
            if (digit < 0 || digits / 2 == capacity) {
                return SIZE_MAX;
            }
            to[digits / 2] = (uint8_t)((digits % 2 ? to[digits / 2] << 4 : 0) | digit);
            digits++;
        }
    }
    return digits % 2 ? SIZE_MAX : digits / 2;
}

static void play_file(struct player *player, const char *path) {
    static uint8_t space[FUZZ_INPUT_BYTES_MAX];
    FILE *file = fopen(path, "r");
    size_t size = file ? hex_read(file, space, sizeof space) : SIZE_MAX;

    if (file) {
        (void)fclose(file);
    }
    if (size == SIZE_MAX) {
        fprintf(stderr, "fuzz: %s is not hexadecimal text\n", path);
        player->failed = true;
        return;
    }
    player_run(player, (struct bytes){space, size});
}

static void play_found(struct player *player, const char *directory) {
    char path[PATH_BYTES];
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/%s", directory, player->target->name);
    DIR *found = opendir(path);
    while (found && (entry = readdir(found))) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s/%s", directory, player->target->name, entry->d_name);
            play_file(player, path);
        }
    }
    if (found) {
        (void)closedir(found);
    }
}

static bool play_target(const struct fuzz_target *target, const char *directory) {
    struct player player = {.target = target};
    const struct fuzz_seeds seeds = {play_seed, &player};

    printf("%s ", target->name); /* before, as an assertion names its place only */
    (void)fflush(stdout);
    prng_init(&player.prng, 1);
    player_run(&player, (struct bytes){NULL, 0});
    target->seed(&seeds);
    if (directory) {
        play_found(&player, directory);
    }
    printf("%llu\n", (unsigned long long)player.input_count);
    return !player.failed;
}

static int write_seeds(const char *name, const char *directory) {
    struct player player = {.target = fuzz_target_find(name), .directory = directory};
    const struct fuzz_seeds seeds = {write_seed, &player};

    if (!player.target) {
        fprintf(stderr, "fuzz: no target '%s'; they are in test/fuzz/targets.def\n", name);
        return 2;
    }
    player.target->seed(&seeds);
    return player.failed ? 1 : 0;
}

static int list_targets(void) {
    for (size_t i = 0; i < fuzz_target_count; i++) {
        printf("%-16s %s\n", fuzz_targets[i].name, fuzz_targets[i].what);
    }
    return 0;
}

int main(int count, char **words) {
    bool good = true;

    if (count == 4 && strcmp(words[1], "--write") == 0) {
        return write_seeds(words[2], words[3]);
    }
    if (count == 2 && strcmp(words[1], "--list") == 0) {
        return list_targets();
    }
    for (size_t i = 0; i < fuzz_target_count; i++) {
        if (count < 3 || strcmp(words[2], fuzz_targets[i].name) == 0) {
            good &= play_target(&fuzz_targets[i], count > 1 ? words[1] : NULL);
        }
    }
    return good ? 0 : 1;
}
