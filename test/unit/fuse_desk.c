/* A front without a kernel. */
#include "fuse_desk.h"
#include "memory_shoal_tree.h"
#include <stdlib.h>
#include <string.h>

static uint64_t now_ns;

void desk_pass(uint64_t time_ns) {
    now_ns += time_ns;
}

static uint64_t desk_now_ns(struct env *env) {
    (void)env;
    return now_ns += 1000;
}

static void desk_reply_keep(struct front_channel *channel, struct fuse_request *request) {
    struct desk *desk = CONTAINER_OF(channel, struct desk, channel);
    const struct abi_out_header *out = request_reply(request);

    desk->reply_count++;
    desk->reply.error = out->error;
    desk->reply.unique = out->unique;
    desk->reply.bytes = request->body_bytes + request->data_bytes;
    memcpy(desk->reply.body, out + 1, request->body_bytes);
    if (request->data_bytes > 0)
        memcpy(desk->reply.body + request->body_bytes, request->data, request->data_bytes);
    if (out->bytes != sizeof(*out) + desk->reply.bytes)
        abort();
}

static void desk_forget(struct front_channel *channel, uint64_t ino) {
    struct desk *desk = CONTAINER_OF(channel, struct desk, channel);

    (void)ino;
    desk->forget_count++;
}

static void desk_ahead(struct front_channel *channel, unsigned thread_index) {
    struct desk *desk = CONTAINER_OF(channel, struct desk, channel);

    (void)thread_index;
    desk->ahead_count++;
}

static void desk_wake(struct front_channel *channel) {
    (void)channel;
}

struct desk *desk_new(void) {
    struct desk *desk = memory_need(calloc(1, sizeof(*desk)));
    const struct memory_shoal_options memory = {.mode = MEMORY_SHOAL_INLINE, .root_mode = 0777};
    struct front_options options = {
        .env = &desk->env,
        .channel = &desk->channel,
        .requests = {.requests_max = 4, .write_bytes_max = DESK_WRITE_BYTES_MAX},
        .handles_max = DESK_HANDLES_MAX,
        .entry_timeout_ns = NS_PER_S,
        .attributes_timeout_ns = NS_PER_S / 2,
        .thread_count = 1,
        .memory_bytes = 1 << 30,
    };

    desk->env_ops.now_ns = desk_now_ns;
    desk->env.ops = &desk->env_ops;
    desk->channel = (struct front_channel){
        .reply = desk_reply_keep,
        .forget_attributes = desk_forget,
        .ahead = desk_ahead,
        .wake = desk_wake,
    };
    desk->client = memory_shoal_new(&memory);
    options.client = desk->client;
    if (front_init(&desk->front, &options) < 0)
        abort();
    desk->front.features = (struct features){
        .minor = ABI_MINOR_MAX,
        .write_bytes_max = DESK_WRITE_BYTES_MAX,
        .direct = true,
        .parallel_writes = true,
    };
    desk->request = memory_need(request_pool_take(&desk->front.requests));
    return desk;
}

void desk_free(struct desk *desk) {
    struct shoal_file *file;
    uint32_t at = 0;

    while (handle_evict(&desk->front.handles, &at, &file)) {
        struct shoal_request request = {.operation = SHOAL_RELEASE, .file = file};

        (void)shoal_run(desk->client, &request);
    }
    front_deinit(&desk->front);
    memory_shoal_free(desk->client);
    free(desk);
}

static uint8_t *lay(uint8_t *at, const void *data, size_t bytes) {
    if (bytes > 0)
        memcpy(at, data, bytes);
    return at + bytes;
}

size_t desk_lay(struct desk *desk, const struct desk_request *request) {
    struct abi_in_header header = {
        .opcode = request->opcode,
        .unique = 4242,
        .nodeid = request->nodeid ? request->nodeid : SHOAL_INO_ROOT,
        .uid = desk->uid,
        .gid = desk->gid,
        .pid = desk->pid,
    };
    uint8_t *start = (uint8_t *)(uintptr_t)request_header(desk->request);
    uint8_t *at = start + sizeof(header);

    at = lay(at, request->body, request->body_bytes);
    if (request->name)
        at = lay(at, request->name, strlen(request->name) + 1);
    if (request->new_name)
        at = lay(at, request->new_name, strlen(request->new_name) + 1);
    at = lay(at, request->data, request->data_bytes);
    header.bytes = (uint32_t)(at - start);
    memcpy(start, &header, sizeof(header));
    return header.bytes;
}

void desk_run_bytes(struct desk *desk, size_t bytes) {
    desk->reply.error = 1;
    desk->reply.bytes = 0;
    if (!fuse_request_run(desk->request, bytes))
        abort();
}

int desk_run(struct desk *desk, const struct desk_request *request) {
    desk_run_bytes(desk, desk_lay(desk, request));
    return desk->reply.error;
}

int desk_create(struct desk *desk, const char *name, uint32_t mode, uint64_t *ret_handle) {
    const struct abi_create_in in = {.flags = 2, .mode = mode};
    int r = desk_run(desk, &(struct desk_request){
                               .opcode = 35, .body = &in, .body_bytes = sizeof(in), .name = name});

    if (r == 0)
        *ret_handle = ((struct abi_create_out *)(void *)desk->reply.body)->open.handle;
    return r;
}

int desk_open(struct desk *desk, uint64_t nodeid, uint32_t flags, struct abi_open_out *ret_open) {
    const struct abi_open_in in = {.flags = flags};
    int r =
        desk_run(desk, &(struct desk_request){
                           .opcode = 14, .nodeid = nodeid, .body = &in, .body_bytes = sizeof(in)});

    if (r == 0)
        memcpy(ret_open, desk->reply.body, sizeof(*ret_open));
    return r;
}

int desk_write(struct desk *desk, const struct abi_write_in *in, const void *data) {
    return desk_run(desk, &(struct desk_request){.opcode = 16,
                                                 .nodeid = 2,
                                                 .body = in,
                                                 .body_bytes = sizeof(*in),
                                                 .data = data,
                                                 .data_bytes = in->size});
}

int desk_release(struct desk *desk, uint64_t handle) {
    const struct abi_handle_in in[2] = {{.handle = handle}};

    return desk_run(
        desk, &(struct desk_request){.opcode = 18, .nodeid = 2, .body = in, .body_bytes = 24});
}

uint64_t desk_ino(struct desk *desk, const char *name) {
    if (desk_run(desk, &(struct desk_request){.opcode = 1, .name = name}) < 0)
        return 0;
    return ((struct abi_entry_out *)(void *)desk->reply.body)->nodeid;
}
