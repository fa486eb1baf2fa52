/* The small files of DIR, and the list of nodes that a rebuilding goes on without. */
#include "cmd/own_mount.h"
#include "fuzz.h"
#include "host/folder.h"
#include "host/plain_text.h"
#include "node/local_lives.h"
#include "node/local_mark.h"
#include "node/local_rebuild.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_BYTES = 1024, UNTOUCHED_ID = -7 };

static const uint8_t boot_id[LOCAL_MARK_BOOT_BYTES] = {0x12, 0xab, 0, 0xff, 7};

/* Whatever it holds there was an unclean end; only the one text of this boot tells of rings. */
void fuzz_start_mark(struct bytes in) {
    char served[LOCAL_MARK_BYTES + 1];
    struct local_mark mark;

    local_mark_print(boot_id, served);
    local_mark_parse(boot_id, in, &mark);
    assert(mark.unclean && mark.was_served == (in.size > 0));
    assert(mark.rings_left ==
           fuzz_is_same(in, (struct bytes){(const uint8_t *)served, LOCAL_MARK_BYTES}));
}

void seed_start_mark(const struct fuzz_seeds *seeds) {
    const uint8_t other[LOCAL_MARK_BOOT_BYTES] = {1};
    char text[LOCAL_MARK_BYTES + 1];

    local_mark_print(boot_id, text);
    fuzz_seed_text(seeds, text);
    local_mark_print(other, text);
    fuzz_seed_text(seeds, text);
}

/* One line that is no order to a terminal: the file's own, or one that says that it has none. */
void fuzz_refusal(struct bytes in) {
    char problem[256], plain[256];
    struct bytes text = {in.data, MIN(in.size, (size_t)LOCAL_REFUSED_BYTES_MAX)};

    memset(problem, 0xa5, sizeof problem);
    local_lives_refusal(text, problem);
    assert(problem[0] && memchr(problem, '\0', sizeof problem));
    memcpy(plain, problem, sizeof plain);
    assert(strcmp(plain_text(plain, false), problem) == 0);
    bool is_own = strstr(problem, "has no line any more") == NULL;
    assert(!is_own || memcmp(problem, text.data, MIN(text.size, sizeof problem - 1)) == 0);
}

void seed_refusal(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "ost0 of node 3 was served later from another copy of this directory: "
                          "this one is older, and serves nothing; start the other one");
    fuzz_seed_text(seeds, "node 2 \xc3\xa9\n");
}

static size_t without_print(const struct local_without *without, char *ret_text) {
    size_t size = 0;

    ret_text[0] = '\0';
    for (uint32_t i = 0; i < without->count; i++) {
        size += (size_t)snprintf(ret_text + size, TEXT_BYTES - size, "%s%" PRIu32, i > 0 ? "," : "",
                                 without->nodes[i]);
    }
    return size;
}

/* What is taken prints as the very same text. */
void fuzz_without_list(struct bytes in) {
    char text[TEXT_BYTES], printed[TEXT_BYTES];
    struct local_without without;

    fuzz_string(in, text, sizeof text);
    memset(&without, 0xa5, sizeof without);
    int r = local_without_parse(text, &without);
    if (r < 0) {
        assert(r == -ERR_INVALID && without.count == 0xa5a5a5a5);
        return;
    }
    assert(without.count <= LOCAL_WITHOUT_MAX);
    for (uint32_t i = 0; i < without.count; i++) {
        assert(without.nodes[i] > 0);
    }
    size_t size = without_print(&without, printed);
    assert(size == strlen(text) && strcmp(text, printed) == 0);
}

void seed_without_list(const struct fuzz_seeds *seeds) {
    struct local_without without = {.count = 0};
    char text[TEXT_BYTES];

    for (uint32_t i = 0; i < LOCAL_WITHOUT_MAX; i++) {
        without.nodes[without.count++] = i * i * i * 1000 + 2;
        if (without.count <= 2 || without.count == LOCAL_WITHOUT_MAX) {
            (void)without_print(&without, text);
            fuzz_seed_text(seeds, text);
        }
    }
}

/* Its digits come first, and line ends behind them. */
void fuzz_lock_file(struct bytes in) {
    char printed[FOLDER_LOCK_BYTES];
    int process_id = UNTOUCHED_ID;
    int r = folder_lock_parse(in, &process_id);

    if (r < 0) {
        assert(r == -ERR_MALFORMED && process_id == UNTOUCHED_ID);
        return;
    }
    size_t size = (size_t)snprintf(printed, sizeof printed, "%d", process_id);
    assert(process_id > 0 && in.size >= size && memcmp(in.data, printed, size) == 0);
    for (size_t i = size; i < MIN(in.size, (size_t)FOLDER_LOCK_BYTES); i++) {
        assert(in.data[i] == '\n');
    }
}

void seed_lock_file(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "4711\n\n\n\n\n\n\n\n\n\n\n\n");
    fuzz_seed_text(seeds, "2147483647\n\n\n\n\n\n");
    fuzz_seed_text(seeds, "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n");
}

/* Status tells of it as JSON, whatever bytes its text and its place have. */
static void mount_tell(const struct own_mount_channel *channel) {
    static struct own_mount mount = {.state = OWN_MOUNT_LIVES, .place = "/mnt/\xff"};

    mount.channel = *channel;
    json_t *json = own_mount_json(&mount);
    char *text = json_dumps(json, 0);
    assert(json && text);
    free(text);
    json_decref(json);
}

/* What is taken reads the same again when it is told again. */
void fuzz_mount_channel(struct bytes in) {
    char *text = malloc(in.size + 1); /* of just its size */
    char line[OWN_MOUNT_WHY_BYTES + 64];
    static struct own_mount_channel channel, same;

    assert(text);
    fuzz_string(in, text, in.size + 1);
    memset(&channel, 0xa5, sizeof channel);
    own_mount_channel_parse(text, &channel);
    free(text);
    assert(memchr(channel.why, '\0', sizeof channel.why));
    if (!channel.name) {
        assert(!channel.may_stand_aside && !channel.why[0]);
        assert(channel.stood_aside == 0 && channel.served_aside == 0);
        return;
    }
    size_t size = own_mount_channel_line(&channel, line);
    assert(size == strlen(line));
    own_mount_channel_parse(line, &same);
    assert(same.name == channel.name && same.may_stand_aside == channel.may_stand_aside);
    assert(same.stood_aside == channel.stood_aside && same.served_aside == channel.served_aside);
    assert(strncmp(same.why, channel.why, strlen(same.why)) == 0);
    mount_tell(&channel);
}

void seed_mount_channel(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "/dev/fuse 1 0 18446744073709551615 ");
    fuzz_seed_text(seeds, "io_uring 0 12 34 it was asked for");
}
