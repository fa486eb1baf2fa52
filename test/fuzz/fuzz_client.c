/* A client whose servers answer what the input says: attachments, attributes, layouts, listings,
 * bytes of files and links, starts of logs. The map alone is sound.
 *
 * An input is u8, what the client is asked for, and answers in the order of its calls, each as in
 * answers.h; one that brings bytes of a chunk has u8 first, whether their checksums are as they
 * should be. Behind its end all calls fail. Each request ends, within its limits, and nothing of it
 * is left in flight. */
#include "answers.h"
#include "base/crc32c.h"
#include "client/client.h"
#include "toy_cluster.h"
#include "wire/wire_lives.h"
#include <stdlib.h>

enum {
    STARTS_TICKS = 40, /* of seconds in which starts are asked for */
    TICKS_MAX = 400,   /* tenths of a second: of patience, and then of what follows */
    PATIENCE_S = 10,
    SMALL_BYTES = 100,
    LARGE_BYTES = TOY_CHUNK_BYTES + 3000,
    READ_BYTES = 3000,
    LINK_BYTES = 300,
    SEED_BYTES = 16384,
    SUMS_RIGHT = 1,
    ERRNO_MAX = 4095
};

typedef int handle_fn(struct toy_server *server, struct call *call);

static struct {
    struct toy_cluster cluster;
    handle_fn *honest[TOY_OST + TOY_OSTS]; /* by the server's number */
    struct shoal_client *client;
    struct answers answers;
    struct buffer *record; /* NULL: the input says what is answered */
    int started, stopped;
} it;

static uint32_t part_at(uint32_t offset, uint32_t size, uint32_t at) {
    return MIN(BLOCK_BYTES - (offset + at) % BLOCK_BYTES, size - at);
}

/* Of a read of a chunk. */
static void sums_fill(struct call *call, bool are_right) {
    uint32_t offset = call->request.chunk_read.offset;
    uint32_t size = (uint32_t)call->bulk_in.size;
    uint32_t count = 0;

    for (uint32_t at = 0; at < size && count < call->checksum_count; count++) {
        uint32_t part = part_at(offset, size, at);

        call->checksums[count] = crc32c(0, call->bulk_in.data + at, part) + !are_right;
        at += part;
    }
    call->checksum_count = count;
}

static bool is_of_map(const struct call *call) {
    return call->header.opcode == OP_MAP_GET;
}

static int said_handle(struct toy_server *server, struct call *call) {
    struct wire_cursor *left = &it.answers.left;

    if (is_of_map(call)) {
        return it.honest[server->id.value](server, call);
    }
    bool reads = call->header.opcode == OP_CHUNK_READ && left->size > 0 && !left->bad;
    bool are_right = !reads || wire_take_number(left, 1) & SUMS_RIGHT;
    int r = answers_take(&it.answers, call);

    if (reads) {
        sums_fill(call, are_right);
    }
    return r;
}

/* What the toys do not know is answered all the same. */
static int honest_answer(struct toy_server *server, struct call *call) {
    static const char target[] = "../elsewhere";

    if (call->header.opcode == OP_READLINK) {
        memcpy(call->bulk_in.data, target, sizeof target);
        call->bulk_in.size = sizeof target - 1;
        return 0;
    }
    int r = it.honest[server->id.value](server, call);
    return r == -ERR_NOT_SUPPORTED ? 0 : r;
}

static int record_handle(struct toy_server *server, struct call *call) {
    int r = honest_answer(server, call);

    if (is_of_map(call)) {
        return r;
    }
    if (call->header.opcode == OP_CHUNK_READ) {
        wire_give_number(it.record, SUMS_RIGHT, 1);
    }
    if (r < 0) {
        give_error(it.record, r);
    } else {
        give_reply(it.record, call->header.opcode, &call->reply,
                   (struct bytes){call->bulk_in.data, call->bulk_in.size});
    }
    return r;
}

static void server_take_over(struct toy_server *server) {
    it.honest[server->id.value] = server->handle;
    server->handle = it.record ? record_handle : said_handle;
    server->attached = !it.record;
}

static void note_result(void *context, int result) {
    *(int *)context = result;
}

static void run_all(void) {
    while (worker_run_one(&it.cluster.worker)) {
    }
}

static bool is_done(const void *done) {
    return *(const bool *)done;
}

static bool is_ended(const void *result) {
    return *(const int *)result <= 0;
}

static void tick(void) {
    toy_cluster_pass(&it.cluster, NS_PER_S / 10);
    client_tick(it.client);
    run_all();
}

static void wait_for(bool (*is_over)(const void *context), const void *context) {
    run_all();
    for (int i = 0; !is_over(context) && i < TICKS_MAX; i++) {
        tick();
    }
    assert(is_over(context));
}

static void client_begin(struct bytes in, struct buffer *record) {
    struct client_options options = {.open_files_max = 64,
                                     .chunk_calls_max = 64,
                                     .readdir_buffers_max = 64,
                                     .node = {7},
                                     .incarnation = 9,
                                     .origin = "/mnt",
                                     .request_timeout_ns = PATIENCE_S * NS_PER_S};

    memset(&it, 0, sizeof it);
    toy_cluster_init(&it.cluster);
    it.cluster.starts = 1;
    it.cluster.starts_row_bytes = sizeof(struct wire_start);
    it.record = record;
    answers_init(&it.answers, in, -ERR_INVALID);
    server_take_over(&it.cluster.manager);
    server_take_over(&it.cluster.mdt);
    for (size_t i = 0; i < TOY_OSTS; i++) {
        server_take_over(&it.cluster.osts[i]);
    }
    options.env = it.cluster.env;
    options.rpc = it.cluster.rpc;
    int r = client_new(&options, &it.client);
    assert(r == 0);
    it.started = 1;
    client_start(it.client, note_result, &it.started);
    wait_for(is_ended, &it.started);
}

static void client_finish(void) {
    it.stopped = 1;
    client_stop(it.client, note_result, &it.stopped);
    wait_for(is_ended, &it.stopped);
    client_free(it.client);
    assert(rpc_in_flight(it.cluster.rpc) == 0);
    toy_cluster_deinit(&it.cluster);
}

static void request_done(struct shoal_request *request) {
    *(bool *)request->context = true;
}

static int64_t run(struct shoal_request *request) {
    bool done = false;

    request->done = request_done;
    request->context = &done;
    shoal_submit(it.client, request);
    wait_for(is_done, &done);
    assert(request->result >= -ERRNO_MAX);
    return request->result;
}

static void run_plain(struct shoal_request request) {
    int64_t r = run(&request);

    assert(r <= 0);
}

static struct shoal_request of_name(enum shoal_operation operation, const char *name) {
    return (struct shoal_request){.operation = operation,
                                  .ino = SHOAL_INO_ROOT,
                                  .name = name,
                                  .name_bytes = strlen(name),
                                  .mode = 0644};
}

static struct shoal_file *file_make(const char *name) {
    struct shoal_request request = of_name(SHOAL_CREATE, name);

    request.flags = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE;
    int64_t r = run(&request);
    assert((r == 0) == (request.file != NULL));
    return request.file;
}

/* In memory of just its size. */
static void transfer(struct shoal_file *file, enum shoal_operation operation, uint64_t offset,
                     size_t size) {
    struct shoal_request request = {.operation = operation,
                                    .file = file,
                                    .offset = offset,
                                    .data = calloc(1, size),
                                    .size = size};

    assert(request.data);
    int64_t r = run(&request);
    assert(operation == SHOAL_WRITE ? r < 0 || r == (int64_t)size : r <= (int64_t)size);
    free(request.data);
}

static void seek(struct shoal_file *file, uint32_t what) {
    struct shoal_request request = {
        .operation = SHOAL_SEEK, .file = file, .offset = 10, .flags = what};
    int64_t r = run(&request);

    assert(r < 0 || (r >= 10 && (uint64_t)r <= FILE_BYTES_MAX));
}

static void file_use(struct shoal_file *file) {
    run_plain((struct shoal_request){.operation = SHOAL_GETATTR, .file = file});
    transfer(file, SHOAL_WRITE, 0, SMALL_BYTES);
    transfer(file, SHOAL_READ, 10, READ_BYTES);
    transfer(file, SHOAL_WRITE, 0, LARGE_BYTES);
    transfer(file, SHOAL_READ, TOY_CHUNK_BYTES - READ_BYTES / 2, READ_BYTES);
    seek(file, SHOAL_SEEK_HOLE);
    seek(file, SHOAL_SEEK_DATA);
    run_plain((struct shoal_request){.operation = SHOAL_ALLOCATE,
                                     .file = file,
                                     .offset = 5000,
                                     .size = TOY_CHUNK_BYTES,
                                     .flags = SHOAL_KEEP_SIZE});
    run_plain((struct shoal_request){.operation = SHOAL_SETATTR,
                                     .file = file,
                                     .set = SHOAL_SET_SIZE,
                                     .attributes = {.size = TOY_CHUNK_BYTES + 7}});
    run_plain((struct shoal_request){.operation = SHOAL_FSYNC, .file = file});
    transfer(file, SHOAL_READ, 0, READ_BYTES);
    run_plain((struct shoal_request){.operation = SHOAL_RELEASE, .file = file});
}

static int entry_look(void *context, const struct shoal_entry *entry) {
    uint32_t *sum = context;

    assert(entry->name_bytes > 0 && entry->name_bytes <= SHOAL_NAME_BYTES_MAX);
    *sum += crc32c(0, entry->name, entry->name_bytes);
    *sum += entry->attributes ? entry->attributes->mode : 0;
    return 0;
}

static void directory_list(void) {
    struct shoal_request opened = {
        .operation = SHOAL_OPEN, .ino = SHOAL_INO_ROOT, .flags = SHOAL_OPEN_DIRECTORY};
    uint32_t sum = 0;

    if (run(&opened) < 0) {
        return;
    }
    struct shoal_request listing = {.operation = SHOAL_READDIR,
                                    .file = opened.file,
                                    .plus = 1,
                                    .entry = entry_look,
                                    .entry_context = &sum};
    (void)run(&listing);
    run_plain((struct shoal_request){.operation = SHOAL_RELEASE, .file = opened.file});
}

static void links_use(void) {
    struct shoal_request link = of_name(SHOAL_SYMLINK, "link");
    char target[] = "../elsewhere";

    link.data = target;
    link.size = sizeof target - 1;
    run_plain(link);
    link = of_name(SHOAL_READLINK, "");
    link.ino = 101;
    link.size = LINK_BYTES;
    link.data = malloc(link.size);
    assert(link.data);
    int64_t r = run(&link);
    assert(r <= LINK_BYTES);
    free(link.data);
}

static void names_use(void) {
    struct shoal_request moved = of_name(SHOAL_RENAME, "a");

    moved.new_ino = SHOAL_INO_ROOT;
    moved.new_name = "b";
    moved.new_name_bytes = 1;
    run_plain(of_name(SHOAL_LOOKUP, "a"));
    run_plain(of_name(SHOAL_MKDIR, "d"));
    run_plain(moved);
    run_plain(of_name(SHOAL_UNLINK, "a"));
    run_plain((struct shoal_request){.operation = SHOAL_LAYOUT_GET, .ino = SHOAL_INO_ROOT});
}

static void everywhere_ask(void) {
    run_plain((struct shoal_request){.operation = SHOAL_STATFS});
    run_plain((struct shoal_request){.operation = SHOAL_SYNC});
}

static void time_pass(void) {
    for (int i = 0; i < STARTS_TICKS; i++) {
        tick();
    }
}

static void file_make_and_use(void) {
    struct shoal_file *file = file_make("a");

    if (file) {
        file_use(file);
    }
}

/* By the bits of the input's first byte. */
static void (*const uses[])(void) = {file_make_and_use, directory_list, links_use,
                                     names_use,         everywhere_ask, time_pass};

static void use_all(unsigned which) {
    for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
        if (which & 1U << i) {
            uses[i]();
        }
    }
}

void fuzz_client_answers(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    unsigned which = (unsigned)wire_take_number(&cursor, 1);

    client_begin(fuzz_rest(&cursor), NULL);
    if (it.started == 0) {
        use_all(which);
    }
    client_finish();
}

static void seed_uses(const struct fuzz_seeds *seeds, uint8_t which) {
    static uint8_t space[SEED_BYTES];
    struct buffer out = {space, 0, sizeof space};

    wire_give_number(&out, which, 1);
    client_begin((struct bytes){NULL, 0}, &out);
    assert(it.started == 0);
    use_all(which);
    client_finish();
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

void seed_client_answers(const struct fuzz_seeds *seeds) {
    for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
        seed_uses(seeds, (uint8_t)(1U << i));
    }
    seed_uses(seeds, (1U << ARRAY_SIZE(uses)) - 1);
}
