/* The stories of one client, and how all are compared with what is kept of them. */
#include "stories.h"
#include "story_player.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 600 };

#define FLIP(who) {.kind = STEP_FLIP, .node = who}
#define DAMAGE {.kind = STEP_DAMAGE}
#define REFUSED(who) {.kind = STEP_REFUSED, .node = who}

static const struct story stories[] = {
    {.name = "power-of-an-ost",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 100000, .byte = 'a'),
               ASK(FSYNC, .size = 0), ASK(WRITE, .size = 4096, .byte = 'b'), ASK(FSYNC, .size = 0),
               POWER(ON_OST), START(ON_OST), ASK(READ, .size = 4096, .byte = 'b'),
               ASK(RELEASE, .size = 0), WAIT}},
    {.name = "unlinked-and-open",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 70000, .byte = 'a'),
               ASK(UNLINK, .name = "a"), KILL(ON_MDT), START(ON_MDT),
               ASK(READ, .size = 70000, .byte = 'a'), ASK(LOOKUP, .name = "a", .fails = true),
               ASK(RELEASE, .size = 0), WAIT}},
    {.name = "small-file-grows",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 4000, .byte = 'a'),
               ASK(FSYNC, .size = 0), ASK(WRITE, .size = 8000, .byte = 'a'), POWER(ON_OST),
               START(ON_OST), ASK(READ, .size = 4000, .byte = 'a'), ASK(RELEASE, .size = 0),
               ASK(CREATE, .name = "b"), ASK(WRITE, .size = 4096, .byte = 'b'),
               ASK(WRITE, .size = 8000, .byte = 'b'), ASK(FSYNC, .size = 0), POWER(ON_OST),
               START(ON_OST), ASK(READ, .size = 8000, .byte = 'b'), ASK(RELEASE, .size = 0)}},
    {.name = "old-bytes-move",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 4000, .byte = 'a'), WAIT,
               ASK(WRITE, .size = 8000, .byte = 'a'), POWER(ON_OST), START(ON_OST),
               ASK(READ, .size = 4000, .byte = 'a'), ASK(RELEASE, .size = 0)}},
    {.name = "rename-over",
     .steps = {ASK(CREATE, .name = "new"), ASK(WRITE, .size = 10000, .byte = 'n'),
               ASK(FSYNC, .size = 0), ASK(RELEASE, .size = 0), ASK(CREATE, .name = "old"),
               ASK(WRITE, .size = 3000, .byte = 'o'), ASK(RENAME, .name = "new", .new_name = "old"),
               KILL(ON_MDT), START(ON_MDT), ASK(LOOKUP, .name = "new", .fails = true),
               ASK(LOOKUP, .name = "old"), ASK(RELEASE, .size = 0), WAIT}},
    {.name = "truncate-and-power",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 150000, .byte = 'a'),
               ASK(FSYNC, .size = 0), ASK(SETATTR, .size = 5000), POWER(ON_MDT), POWER(ON_OST),
               START(ON_MDT), START(ON_OST), ASK(READ, .size = 5000, .byte = 'a'),
               ASK(RELEASE, .size = 0), WAIT}},
    {.name = "rot-of-a-log",
     .steps = {ASK(CREATE, .name = "a"), ASK(FSYNC, .size = 0), ASK(RELEASE, .size = 0),
               ASK(CREATE, .name = "b"), ASK(FSYNC, .size = 0), POWER(ON_MDT), FLIP(ON_MDT),
               REFUSED(ON_MDT), FLIP(ON_MDT), START(ON_MDT), ASK(LOOKUP, .name = "a"),
               ASK(LOOKUP, .name = "b"), ASK(RELEASE, .size = 0), WAIT}},
    {.name = "rot-of-a-row",
     .steps = {ASK(CREATE, .name = "b"), ASK(RELEASE, .size = 0), ASK(CREATE, .name = "a"),
               ASK(RELEASE, .size = 0), WAIT, KILL(ON_MDT), DAMAGE, START(ON_MDT),
               ASK(LOOKUP, .name = "a", .fails = true), ASK(LOOKUP, .name = "b"), KILL(ON_MDT),
               DAMAGE, START(ON_MDT), ASK(LOOKUP, .name = "a")},
     .checkpoint_ns = NS_PER_S},
    {.name = "growth-after-power",
     .steps = {ASK(CREATE, .name = "a"), ASK(WRITE, .size = 20000, .byte = 'a'),
               ASK(SETATTR, .size = 0), ASK(RELEASE, .size = 0), ASK(SYNC, .size = 0),
               ASK(OPEN, .size = 0), ASK(WRITE, .size = 30000, .byte = 'b'),
               ASK(RELEASE, .size = 0), POWER(ON_MDT), START(ON_MDT), ASK(SETATTR, .size = 20000),
               ASK(OPEN, .size = 0), ASK(READ, .size = 20000, .byte = 0), ASK(RELEASE, .size = 0)}},
    {.name = "halves",
     .steps = {ASK(MKDIR, .name = "a"), ASK(MKDIR, .name = "b"), ASK(MKDIR, .name = "c"),
               ASK(LOOKUP, .name = "a"), ASK(LOOKUP, .name = "b"), ASK(LOOKUP, .name = "c"),
               ASK(RENAME, .name = "a", .new_name = "b"), KILL(ON_OTHER_MDT), START(ON_OTHER_MDT),
               ASK(RENAME, .name = "b", .new_name = "c"), POWER(ON_MDT), START(ON_MDT),
               ASK(RMDIR, .name = "c"), ASK(LOOKUP, .name = "c", .fails = true), WAIT},
     .mdt_count = 2},
};

static char *file_read(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size;

    if (!file) {
        return NULL;
    }
    FILE *out = open_memstream(&text, &size);
    for (int letter = fgetc(file); letter != EOF; letter = fgetc(file)) {
        fputc(letter, out);
    }
    fclose(out);
    fclose(file);
    return text;
}

static bool file_write(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    if (!file) {
        perror(path);
        return false;
    }
    bool written = fputs(text, file) >= 0;

    return fclose(file) == 0 && written;
}

static size_t first_difference(const char *a, const char *b) {
    size_t line = 1;

    for (; *a && *a == *b; a++, b++) {
        line += *a == '\n';
    }
    return line;
}

static bool story_play(const struct story *story, const char *directory, bool write) {
    char problem[STORY_PROBLEM_BYTES];
    char path[LINE_BYTES];
    char *told = story_tell(story, problem);
    bool same = true;

    snprintf(path, sizeof path, "%s/%s.txt", directory, story->name);
    if (problem[0]) {
        printf("story %s: %s\n", story->name, problem);
        same = false;
    } else if (write) {
        same = file_write(path, told);
    } else {
        char *kept = file_read(path);

        same = kept && strcmp(kept, told) == 0;
        if (!same) {
            printf("story %s goes otherwise than %s from line %zu on; if it is meant to: "
                   "./dev sim stories --write\n",
                   story->name, path, kept ? first_difference(kept, told) : 0);
        }
        free(kept);
    }
    free(told);
    return same;
}

unsigned stories_play(const char *directory, bool write) {
    unsigned failed = 0;

    for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
        failed += !story_play(&stories[i], directory, write);
    }
    for (size_t i = 0; i < cluster_story_count; i++) {
        failed += !story_play(&cluster_stories[i], directory, write);
    }
    printf("%zu passed, %u failed\n", ARRAY_SIZE(stories) + cluster_story_count - failed, failed);
    return failed;
}
