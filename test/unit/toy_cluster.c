/* The toy servers; the contract is in toy_cluster.h. */
#include "toy_cluster.h"
#include "wire/wire_lives.h"
#include "base/crc32c.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct toy_kept *kept_find(struct toy_server *server, uint64_t sequence) {
    for (uint32_t i = 0; sequence > 0 && i < server->kept_count; i++) {
        if (server->kept[i].sequence == sequence) {
            return &server->kept[i];
        }
    }
    return NULL;
}

static int answer_lose(struct toy_server *server, const struct call *call, int result) {
    assert(server->kept_count < TOY_KEPT);
    server->kept[server->kept_count++] =
        (struct toy_kept){call->header.sequence, result, call->reply};
    server->lose_count--;
    return server->lose_result ? server->lose_result : -ERR_AWAY;
}

static int toy_result(struct toy_server *server, struct call *call) {
    uint16_t opcode = call->header.opcode;

    server->seen[opcode]++;
    server->sequences[opcode] = call->header.sequence;
    server->traces[opcode] = call->header.trace_id;
    if (opcode == server->fail_opcode && server->fail_count > 0) {
        server->fail_count--;
        return server->fail_result;
    }
    if (!server->attached && opcode != OP_SESSION_ATTACH && opcode != OP_REOPEN &&
        server != &server->cluster->manager) {
        return server->detached_result;
    }
    const struct toy_kept *kept = kept_find(server, call->header.sequence);
    if (kept) {
        call->reply = kept->reply;
        return kept->result;
    }
    memset(&call->reply, 0, sizeof call->reply);
    call->server_position = ++server->position;
    int r = server->handle(server, call);
    return opcode == server->lose_opcode && server->lose_count > 0 ? answer_lose(server, call, r)
                                                                   : r;
}

static void toy_hold(struct toy_server *server, struct call *call) {
    uint32_t i = server->held_count++;

    assert(i < TOY_HELD);
    server->held[i] = call;
    server->held_handled[i] = server->hold_answers;
    server->held_results[i] = server->hold_answers ? toy_result(server, call) : 0;
    server->held_count_max = MAX(server->held_count_max, server->held_count);
}

/* What comes when its time is up is refused, as over a link. */
static int toy_arrived(struct toy_server *server, struct call *call) {
    return call_time_left_ns(call) == 0 ? -ERR_TIMED_OUT : toy_result(server, call);
}

static void toy_step(struct actor *actor, struct message *first) {
    struct toy_server *server = CONTAINER_OF(actor, struct toy_server, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        if (server->hold || server->hold_answers) {
            toy_hold(server, call);
        } else {
            call_reply(call, toy_arrived(server, call));
        }
    }
}

void toy_release(struct toy_server *server, uint32_t count) {
    for (uint32_t left = MIN(count, server->held_count); left > 0; left--) {
        struct call *call = server->held[0];
        bool handled = server->held_handled[0];
        int result = server->held_results[0];
        size_t rest = --server->held_count;

        memmove(server->held, server->held + 1, rest * sizeof server->held[0]);
        memmove(server->held_handled, server->held_handled + 1, rest * sizeof(bool));
        memmove(server->held_results, server->held_results + 1, rest * sizeof(int));
        call_reply(call, handled ? result : toy_result(server, call));
    }
}

static void manager_starts(const struct toy_cluster *cluster, struct call *call) {
    const struct wire_start start = {
        .log = cluster_map_log_of(&cluster->map, cluster->mdt.id).value, .term = cluster->mdt.term};

    call->reply.log_starts = (struct log_starts_reply){.starts = cluster->starts,
                                                       .row_bytes = cluster->starts_row_bytes};
    call->bulk_in.size = sizeof start + cluster->starts_more_bytes;
    memset(call->bulk_in.data, 0xee, call->bulk_in.size);
    memcpy(call->bulk_in.data, &start, sizeof start);
}

static uint8_t toy_ticket(struct bytes ticket) {
    return ticket.size == 1 ? ticket.data[0] : 0;
}

static int manager_renew(struct toy_cluster *cluster, struct call *call) {
    if (cluster->ticket_key != toy_ticket(call->request.session_renew.ticket)) {
        memcpy(call->bulk_in.data, &cluster->ticket_key, 1);
        call->bulk_in.size = 1;
    }
    call->reply.session_renew.map_version = cluster->map.version;
    call->reply.session_renew.starts = cluster->starts;
    return 0;
}

static int manager_handle(struct toy_server *server, struct call *call) {
    struct toy_cluster *cluster = server->cluster;

    switch (call->header.opcode) {
    case OP_SESSION_BEGIN:
        call->reply.session_begin.session = TOY_SESSION + cluster->session_count++;
        call->reply.session_begin.starts = cluster->starts;
        return 0;
    case OP_SESSION_RENEW:
        return manager_renew(cluster, call);
    case OP_LOG_STARTS:
        manager_starts(cluster, call);
        return 0;
    case OP_SESSION_END:
        return 0;
    case OP_MAP_GET:
        call->reply.map_get.version = cluster->map.version;
        if (call->request.map_get.known_version < cluster->map.version) {
            cluster_map_encode(&cluster->map, &call->bulk_in);
        }
        return 0;
    default:
        return -ERR_NOT_SUPPORTED;
    }
}

struct toy_file *toy_file_find(struct toy_cluster *cluster, uint64_t ino) {
    for (int i = 0; i < TOY_FILES; i++) {
        if (cluster->files[i].attributes.ino.value == ino && ino != 0) {
            return &cluster->files[i];
        }
    }
    return NULL;
}

static struct toy_file *toy_name_find(struct toy_cluster *cluster, uint64_t parent,
                                      struct bytes name) {
    for (int i = 0; i < TOY_FILES; i++) {
        struct toy_file *file = &cluster->files[i];

        if (file->attributes.ino.value != 0 && file->parent == parent &&
            strlen(file->name) == name.size && memcmp(file->name, name.data, name.size) == 0) {
            return file;
        }
    }
    return NULL;
}

static void toy_change(struct toy_cluster *cluster, struct toy_file *file) {
    file->attributes.epoch = ++cluster->epoch;
    file->attributes.ctime_ns = (int64_t)env_wall_ns(cluster->env);
    file->attributes.truncate_seq = file->truncate_seq;
}

static struct toy_file *toy_file_make(struct toy_cluster *cluster, uint64_t parent,
                                      struct bytes name, uint32_t mode) {
    struct toy_file *file = cluster->files;

    while (file->attributes.ino.value != 0) {
        file++;
        assert(file < cluster->files + TOY_FILES);
    }
    *file = (struct toy_file){
        .attributes = {.ino = {cluster->next_counter++}, .mode = mode, .nlink = 1},
        .layout = {1, TOY_CHUNK_BYTES, (uint32_t)cluster->next_counter, STRIPE_ALL, 0},
        .parent = parent,
    };
    memcpy(file->name, name.data, MIN(name.size, sizeof file->name - 1));
    toy_change(cluster, file);
    return file;
}

static struct capability toy_capability(const struct toy_cluster *cluster,
                                        const struct toy_file *file) {
    return (struct capability){
        .ino = file->attributes.ino,
        .generation = file->attributes.data_state == DATA_CHUNKED ? 1 + file->other_chunks : 0,
        .rights = RIGHT_READ | RIGHT_WRITE,
        .max_offset = UINT64_MAX,
        .truncate_seq = file->truncate_seq,
        .key_number = cluster->key_number,
        .truncate_size = file->truncate_size,
        .session = TOY_SESSION,
    };
}

static void chunk_cut(struct toy_chunk *chunk, const struct capability *capability) {
    uint64_t start = chunk->chunk * TOY_CHUNK_BYTES;
    uint64_t keep = capability->truncate_size > start ? capability->truncate_size - start : 0;

    if (chunk->truncate_seq < capability->truncate_seq && keep < TOY_CHUNK_BYTES) {
        memset(chunk->data + keep, 0, TOY_CHUNK_BYTES - keep);
        chunk->length = MIN(chunk->length, (uint32_t)keep);
    }
    chunk->truncate_seq = MAX(chunk->truncate_seq, capability->truncate_seq);
}

/* All chunks are cut at once, as a group's queue would in the end. */
static void toy_truncate(struct toy_cluster *cluster, struct toy_file *file, uint64_t size) {
    struct capability capability;

    if (file->attributes.data_state == DATA_CHUNKED) {
        file->truncate_seq++;
        file->truncate_size = size;
        capability = toy_capability(cluster, file);
        for (int i = 0; i < TOY_CHUNKS; i++) {
            if (cluster->chunks[i].ino.value == file->attributes.ino.value) {
                chunk_cut(&cluster->chunks[i], &capability);
            }
        }
    } else if (size < sizeof file->data) {
        memset(file->data + size, 0, sizeof file->data - size);
    }
    file->attributes.size = size;
}

static void toy_open(struct toy_file *file, uint32_t flags) {
    file->write_opens += flags & OPEN_WRITE ? 1 : 0;
    file->read_opens += flags & OPEN_WRITE ? 0 : 1;
}

static int mdt_create(struct toy_cluster *cluster, struct call *call) {
    const struct create_request *asked = &call->request.create;
    struct create_reply *reply = &call->reply.create;
    struct toy_file *file = toy_name_find(cluster, asked->parent.value, asked->name);

    if (!(asked->open_flags & (OPEN_READ | OPEN_WRITE))) {
        return -ERR_INVALID;
    }
    if (file && asked->exclusive) {
        return -ERR_EXISTS;
    }
    if (!file) {
        file = toy_file_make(cluster, asked->parent.value, asked->name, 0100000 | asked->mode);
        reply->created = 1;
    } else if (asked->open_flags & OPEN_TRUNCATE) {
        toy_truncate(cluster, file, 0);
        toy_change(cluster, file);
    }
    toy_open(file, asked->open_flags);
    reply->attributes = file->attributes;
    reply->layout = file->layout;
    reply->capability = toy_capability(cluster, file);
    return 0;
}

static int mdt_open(struct toy_cluster *cluster, struct toy_file *file, struct call *call) {
    uint32_t flags = call->request.open.open_flags;

    if (flags == 0) {
        return -ERR_INVALID;
    }
    if (flags & OPEN_TRUNCATE) {
        toy_truncate(cluster, file, 0);
        toy_change(cluster, file);
    }
    toy_open(file, flags);
    call->reply.open.attributes = file->attributes;
    call->reply.open.layout = file->layout;
    call->reply.open.capability = toy_capability(cluster, file);
    return 0;
}

static int mdt_settle(struct toy_cluster *cluster, struct toy_file *file, struct call *call) {
    const struct settle_request *told = &call->request.settle;

    if (told->close) {
        uint32_t *opens = told->open_flags & OPEN_WRITE ? &file->write_opens : &file->read_opens;

        assert(*opens > 0);
        *opens -= 1;
    }
    file->blocks += told->blocks;
    file->blocks_told = told->blocks_told;
    if (told->wrote || told->size > 0) {
        file->settled++;
        toy_change(cluster, file);
    }
    if (told->truncate_seq == file->truncate_seq) {
        file->attributes.size = MAX(file->attributes.size, told->size);
    }
    if (told->wrote) {
        file->attributes.mtime_ns = file->attributes.ctime_ns;
    }
    call->reply.settle.attributes = file->attributes;
    return 0;
}

static int mdt_setattr(struct toy_cluster *cluster, struct toy_file *file, struct call *call) {
    const struct setattr_request *asked = &call->request.setattr;

    toy_change(cluster, file);
    if (asked->valid & SETATTR_SIZE) {
        toy_truncate(cluster, file, asked->size);
        file->attributes.mtime_ns = file->attributes.ctime_ns;
    }
    if (asked->valid & SETATTR_MODE) {
        file->attributes.mode = (file->attributes.mode & ~07777U) | asked->mode;
    }
    if (asked->valid & SETATTR_KILL_SUID) {
        file->attributes.mode &= ~06000U;
    }
    if (asked->valid & SETATTR_MTIME) {
        file->attributes.mtime_ns = asked->mtime_ns;
    }
    file->attributes.truncate_seq = file->truncate_seq;
    call->reply.setattr.attributes = file->attributes;
    call->reply.setattr.capability = toy_capability(cluster, file);
    return 0;
}

static int mdt_inline_read(const struct toy_cluster *cluster, struct toy_file *file,
                           struct call *call) {
    size_t size = MIN((size_t)file->attributes.size, (size_t)INLINE_BYTES_MAX);

    call->reply.inline_read.attributes = file->attributes;
    call->reply.inline_read.capability = toy_capability(cluster, file);
    if (file->attributes.data_state != DATA_CHUNKED) {
        memcpy(call->bulk_in.data, file->data, size);
        call->bulk_in.size = size;
    }
    return 0;
}

static int mdt_inline_write(struct toy_cluster *cluster, struct toy_file *file, struct call *call) {
    const struct inline_write_request *asked = &call->request.inline_write;
    uint64_t end = asked->offset + asked->data.size;

    if (file->attributes.data_state != DATA_CHUNKED) {
        assert(end <= INLINE_BYTES_MAX);
        memcpy(file->data + asked->offset, asked->data.data, asked->data.size);
        file->attributes.size = MAX(file->attributes.size, end);
        file->attributes.data_state = DATA_INLINE;
        toy_change(cluster, file);
        file->attributes.mtime_ns = file->attributes.ctime_ns;
    }
    call->reply.inline_write.attributes = file->attributes;
    call->reply.inline_write.capability = toy_capability(cluster, file);
    return 0;
}

/* That comes with a generation. */
static struct layout toy_layout(const struct toy_cluster *cluster, const struct toy_file *file) {
    return cluster->no_layouts ? (struct layout){0} : file->layout;
}

static int mdt_convert(struct toy_cluster *cluster, struct toy_file *file, struct call *call) {
    const struct inline_convert_request *asked = &call->request.inline_convert;
    struct inline_convert_reply *reply = &call->reply.inline_convert;
    bool begins = asked->stage == INLINE_CONVERT_BEGIN;

    assert(begins || asked->generation == 1);
    if (!begins && asked->inline_epoch != file->attributes.epoch) {
        return -ERR_CONFLICT;
    }
    if (begins && file->attributes.data_state == DATA_INLINE) {
        size_t size = MIN((size_t)file->attributes.size, (size_t)INLINE_BYTES_MAX);

        memcpy(call->bulk_in.data, file->data, size);
        call->bulk_in.size = size;
    } else if (file->attributes.data_state != DATA_CHUNKED) {
        file->attributes.data_state = DATA_CHUNKED;
        toy_change(cluster, file);
    }
    if (!begins) {
        file->attributes.data_state = DATA_CHUNKED;
        file->attributes.size = MAX(file->attributes.size, asked->size);
        toy_change(cluster, file);
    }
    reply->attributes = file->attributes;
    reply->capability = toy_capability(cluster, file);
    reply->capability.generation = 1; /* of what it writes now; counts once committed */
    reply->capability.rights |= cluster->inline_synced ? RIGHT_SYNC_FIRST : 0;
    reply->layout = toy_layout(cluster, file);
    return 0;
}

static int mdt_layout_set(struct toy_file *file, struct call *call) {
    const struct layout *asked = &call->request.layout_set.layout;

    file->layout.chunk_bytes = asked->chunk_bytes;
    file->layout.stripe_count = asked->stripe_count;
    call->reply.layout_set.layout = file->layout;
    return 0;
}

static void dirent_add(struct buffer *out, const struct toy_file *file, uint64_t cookie,
                       bool plus) {
    struct wire_dirent head = {
        .cookie = cookie,
        .ino = file->attributes.ino.value,
        .attribute_bytes = plus ? WIRE_ATTRIBUTES_BYTES : 0,
        .type = (uint8_t)(file->attributes.mode >> 12),
        .name_bytes = (uint8_t)strlen(file->name),
    };
    size_t used = sizeof head + head.name_bytes + head.attribute_bytes;

    head.entry_bytes = (uint16_t)((used + 7) / 8 * 8);
    memcpy(out->data + out->size, &head, sizeof head);
    memcpy(out->data + out->size + sizeof head, file->name, head.name_bytes);
    if (plus) {
        struct buffer attributes = {
            .data = out->data + out->size + sizeof head + head.name_bytes,
            .capacity = WIRE_ATTRIBUTES_BYTES,
        };
        wire_encode_attributes(&file->attributes, &attributes);
    }
    out->size += head.entry_bytes;
}

/* Four entries an answer, so that a listing takes several. */
static int mdt_readdir(struct toy_cluster *cluster, struct call *call) {
    const struct readdir_request *asked = &call->request.readdir;
    struct readdir_reply *reply = &call->reply.readdir;
    int given = 0;

    reply->next_cookie = asked->cookie;
    for (uint64_t i = MAX(asked->cookie, (uint64_t)2) - 2; i < TOY_FILES; i++) {
        const struct toy_file *file = &cluster->files[i];

        if (file->attributes.ino.value == 0 || file->parent != asked->ino.value) {
            continue;
        }
        if (given++ == 4) {
            return 0;
        }
        reply->next_cookie = i + 3;
        dirent_add(&call->bulk_in, file, i + 3, asked->plus);
    }
    reply->end = 1;
    return 0;
}

static int mdt_handle_file(struct toy_cluster *cluster, struct toy_file *file, struct call *call) {
    switch (call->header.opcode) {
    case OP_GETATTR:
        call->reply.getattr.attributes = file->attributes;
        return 0;
    case OP_OPEN:
        return mdt_open(cluster, file, call);
    case OP_REOPEN:
        if (!cluster->mdt.attached) {
            file->read_opens = call->request.reopen.read_count;
            file->write_opens = call->request.reopen.write_count;
        }
        call->reply.reopen.capability = toy_capability(cluster, file);
        call->reply.reopen.epoch = file->attributes.epoch;
        call->reply.reopen.layout = toy_layout(cluster, file);
        return 0;
    case OP_SETTLE:
        return mdt_settle(cluster, file, call);
    case OP_SETATTR:
        return mdt_setattr(cluster, file, call);
    case OP_INLINE_READ:
        return mdt_inline_read(cluster, file, call);
    case OP_INLINE_WRITE:
        return mdt_inline_write(cluster, file, call);
    case OP_INLINE_CONVERT:
        return mdt_convert(cluster, file, call);
    case OP_LAYOUT_SET:
        return mdt_layout_set(file, call);
    default:
        return -ERR_NOT_SUPPORTED;
    }
}

/* What was answered in the term that the client knew has survived up to `survived`. */
static void attach_answer(struct toy_server *server, struct call *call) {
    bool same = call->request.session_attach.known_term == server->term;

    call->reply.session_attach =
        (struct session_attach_reply){.term = server->term,
                                      .recovered_position = same ? UINT64_MAX : server->survived,
                                      .life_low = server->life,
                                      .window = server->window ? server->window : RPC_WINDOW};
}

static int toy_attach(struct toy_server *server, struct call *call) {
    if (toy_ticket(call->request.session_attach.ticket) < server->ticket_least) {
        return -ERR_BAD_TICKET;
    }
    server->attached = true;
    attach_answer(server, call);
    return 0;
}

static int mdt_handle(struct toy_server *server, struct call *call) {
    struct toy_cluster *cluster = server->cluster;
    const union request_body *asked = &call->request;
    struct toy_file *file;

    switch (call->header.opcode) {
    case OP_SESSION_ATTACH:
        return toy_attach(server, call);
    case OP_SESSION_FLOOR:
        call->reply.session_floor.synced = server->position;
        return 0;
    case OP_SYNC:
        call->reply.sync.synced_position = server->position;
        return 0;
    case OP_STATFS:
        call->reply.statfs.files_total = 1000;
        return 0;
    case OP_READDIR:
        return mdt_readdir(cluster, call);
    case OP_CREATE:
        return mdt_create(cluster, call);
    case OP_LOOKUP:
        file = toy_name_find(cluster, asked->lookup.parent.value, asked->lookup.name);
        if (file) {
            call->reply.lookup.attributes = file->attributes;
        }
        return file ? 0 : -ERR_NOT_FOUND;
    default:
        /* Requests about one inode begin with its number. */
        file = toy_file_find(cluster, asked->getattr.ino.value);
        return file ? mdt_handle_file(cluster, file, call) : -ERR_NOT_FOUND;
    }
}

static struct toy_chunk *toy_chunk_find(struct toy_cluster *cluster, struct ino ino, uint64_t chunk,
                                        struct ino if_missing) {
    for (int i = 0; i < TOY_CHUNKS; i++) {
        if (cluster->chunks[i].ino.value == ino.value && cluster->chunks[i].chunk == chunk) {
            return &cluster->chunks[i];
        }
    }
    for (int i = 0; i < TOY_CHUNKS && if_missing.value != 0; i++) {
        if (cluster->chunks[i].ino.value == 0) {
            cluster->chunks[i].ino = ino;
            cluster->chunks[i].chunk = chunk;
            return &cluster->chunks[i];
        }
    }
    return NULL;
}

static uint32_t block_sum(const uint8_t *data, uint32_t offset, uint32_t size, uint32_t *at) {
    uint32_t part = MIN(BLOCK_BYTES - (offset + *at) % BLOCK_BYTES, size - *at);
    uint32_t sum = crc32c(0, data + *at, part);

    *at += part;
    return sum;
}

/* As if it had no holes. */
static uint32_t blocks_of(const struct toy_chunk *chunk) {
    return (chunk->length + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

static int ost_write(struct toy_server *server, struct call *call) {
    const struct chunk_write_request *asked = &call->request.chunk_write;
    struct ino ino = asked->capability.ino;
    struct toy_chunk *chunk = toy_chunk_find(server->cluster, ino, asked->chunk, ino);
    uint32_t at = 0;
    uint32_t i = 0;

    assert(chunk && call->bulk_out_count == 1 && call->bulk_out[0].size == asked->size);
    assert(asked->offset + asked->size <= TOY_CHUNK_BYTES);
    while (at < asked->size) {
        assert(i < call->checksum_count);
        assert(call->checksums[i++] ==
               block_sum(call->bulk_out[0].data, asked->offset, asked->size, &at));
    }
    chunk_cut(chunk, &asked->capability);
    call->reply.chunk_write.blocks_before = blocks_of(chunk);
    chunk->target = server->id;
    memcpy(chunk->data + asked->offset, call->bulk_out[0].data, asked->size);
    chunk->length = MAX(chunk->length, asked->offset + asked->size);
    call->reply.chunk_write.blocks = server->cluster->no_blocks ? 0 : blocks_of(chunk);
    call->reply.chunk_write.position = server->position;
    return 0;
}

static int ost_read(struct toy_server *server, struct call *call) {
    const struct chunk_read_request *asked = &call->request.chunk_read;
    struct toy_cluster *cluster = server->cluster;
    struct toy_chunk *chunk =
        toy_chunk_find(cluster, asked->capability.ino, asked->chunk, (struct ino){0});
    uint32_t at = 0;
    uint32_t i = 0;

    if (!chunk) {
        call->checksum_count = 0;
        return 0;
    }
    assert(chunk->target.value == server->id.value);
    chunk_cut(chunk, &asked->capability);
    call->bulk_in.size = asked->size;
    memcpy(call->bulk_in.data, chunk->data + asked->offset, asked->size);
    while (at < asked->size) {
        assert(i < call->checksum_count);
        call->checksums[i++] = block_sum(call->bulk_in.data, asked->offset, asked->size, &at);
    }
    call->checksum_count = i;
    if (cluster->damage > 0) {
        cluster->damage--;
        call->bulk_in.data[asked->size / 2] ^= 1;
    }
    return 0;
}

/* Holes are made as zeros; what is promised is counted. */
static int ost_space(struct toy_server *server, struct call *call) {
    const struct chunk_space_request *asked = &call->request.chunk_space;
    bool zeros = asked->what == SPACE_PUNCH || asked->what == SPACE_ZERO;
    struct toy_chunk *chunk =
        toy_chunk_find(server->cluster, asked->capability.ino, asked->chunk, (struct ino){0});

    assert(asked->size > 0 && asked->offset + asked->size <= TOY_CHUNK_BYTES && asked->call != 0);
    assert(call->checksum_count == 0);
    if (zeros && chunk) {
        chunk_cut(chunk, &asked->capability);
        memset(chunk->data + asked->offset, 0, asked->size);
    }
    server->cluster->promised_bytes += asked->what == SPACE_PROMISE ? asked->size : 0;
    server->cluster->promised_bytes -= asked->what == SPACE_UNDO ? asked->size : 0;
    call->reply.chunk_space.position = server->position;
    return 0;
}

/* All of a chunk is data, as far as it goes. */
static int ost_seek(struct toy_server *server, struct call *call) {
    const struct chunk_seek_request *asked = &call->request.chunk_seek;
    struct chunk_seek_reply *reply = &call->reply.chunk_seek;
    uint64_t limit = asked->chunk + (uint64_t)TOY_CHUNKS * asked->stride;

    for (uint64_t at = asked->chunk; at < limit; at += asked->stride) {
        const struct toy_chunk *chunk =
            toy_chunk_find(server->cluster, asked->capability.ino, at, (struct ino){0});
        uint64_t offset = at == asked->chunk ? asked->offset : 0;
        bool data = chunk && offset < chunk->length;
        bool hole = asked->what == WIRE_SEEK_HOLE;

        offset = hole && data ? chunk->length : offset;
        if (hole ? offset < TOY_CHUNK_BYTES : data) {
            *reply = (struct chunk_seek_reply){1, at * TOY_CHUNK_BYTES + offset};
            return 0;
        }
    }
    *reply = (struct chunk_seek_reply){0};
    return 0;
}

static int ost_handle(struct toy_server *server, struct call *call) {
    struct toy_cluster *cluster = server->cluster;
    const struct capability *capability = &call->request.chunk_read.capability;
    struct toy_file *file = toy_file_find(cluster, capability->ino.value);

    switch (call->header.opcode) {
    case OP_SESSION_ATTACH:
        return toy_attach(server, call);
    case OP_SESSION_FLOOR:
        call->reply.session_floor.synced = server->position;
        return 0;
    case OP_SYNC:
        call->reply.sync.synced_position = server->position;
        return 0;
    case OP_STATFS:
        call->reply.statfs.bytes_total = 1 << 20;
        return 0;
    case OP_CHUNK_READ:
    case OP_CHUNK_WRITE:
    case OP_CHUNK_SPACE:
    case OP_CHUNK_SEEK:
        assert(capability->session == TOY_SESSION && file && capability->generation > 0);
        if (cluster->key_turns > 0) {
            cluster->key_turns--;
            cluster->key_number++;
        }
        if (capability->truncate_seq < file->truncate_seq ||
            capability->key_number != cluster->key_number) {
            return -ERR_BAD_CAPABILITY;
        }
        return call->header.opcode == OP_CHUNK_READ    ? ost_read(server, call)
               : call->header.opcode == OP_CHUNK_WRITE ? ost_write(server, call)
               : call->header.opcode == OP_CHUNK_SPACE ? ost_space(server, call)
                                                       : ost_seek(server, call);
    default:
        return -ERR_NOT_SUPPORTED;
    }
}

static void server_init(struct toy_cluster *cluster, struct toy_server *server, uint32_t id,
                        int (*handle)(struct toy_server *server, struct call *call)) {
    server->cluster = cluster;
    server->id.value = id;
    server->handle = handle;
    server->detached_result = -ERR_UNKNOWN_SESSION;
    server->term = 1;
    server->survived = UINT64_MAX;
    actor_init(&server->actor, "toy", toy_step);
    int r = log_table_add(cluster->logs,
                          id == TOY_MANAGER ? LOG_MANAGER
                                            : cluster_map_first_log(&cluster->map, server->id),
                          &server->actor);
    assert(r == 0);
}

void toy_cluster_init(struct toy_cluster *cluster) {
    struct target_id osts[TOY_OSTS];

    *cluster = (struct toy_cluster){.next_counter = 100, .sim = sim_new(1)};
    cluster->env = sim_process_env(sim_process_new(cluster->sim, "client"));
    cluster->chunks = calloc(TOY_CHUNKS, sizeof *cluster->chunks);
    assert(cluster->chunks);
    worker_init(&cluster->worker);
    worker_bind(&cluster->worker);
    int r = log_table_new(64, &cluster->logs);
    assert(r == 0);
    server_init(cluster, &cluster->manager, TOY_MANAGER, manager_handle);
    server_init(cluster, &cluster->mdt, TOY_MDT, mdt_handle);
    for (uint32_t i = 0; i < TOY_OSTS; i++) {
        osts[i].value = TOY_OST + i;
        server_init(cluster, &cluster->osts[i], TOY_OST + i, ost_handle);
    }
    cluster_map_single(&cluster->map, (struct target_id){TOY_MDT}, osts, TOY_OSTS);
    struct rpc_options options = {
        .transport = &transport_inproc_ops,
        .transport_context = cluster->logs,
        .env = cluster->env,
        .resend_ns = 100 * NS_PER_MS,
        .logs_max = 16,
    };
    r = rpc_new(&options, &cluster->rpc);
    assert(r == 0);
    cluster->files[0] =
        (struct toy_file){.attributes = {.ino = INO_ROOT, .mode = 040755, .nlink = 2}};
}

void toy_second_mdt_add(struct toy_cluster *cluster) {
    struct cluster_map *map = &cluster->map;

    server_init(cluster, &cluster->second_mdt, TOY_SECOND_MDT, mdt_handle);
    int r = cluster_map_add_mdt(map, map->nodes[0].id, cluster->second_mdt.id);
    assert(r == 0);
    for (uint32_t slot = TOY_SECOND_SLOT; slot < SLOT_COUNT; slot++) {
        map->slot_groups[slot] = (uint16_t)(map->group_count - 1);
    }
    map->version++;
    cluster->next_counter = ino_make((struct slot){TOY_SECOND_SLOT}, cluster->next_counter).value;
}

void toy_cluster_deinit(struct toy_cluster *cluster) {
    rpc_free(cluster->rpc);
    log_table_free(cluster->logs);
    worker_bind(NULL);
    free(cluster->chunks);
    sim_free(cluster->sim);
}

static void note_passed(void *context) {
    *(bool *)context = true;
}

static bool is_passed(void *context) {
    return *(bool *)context;
}

void toy_cluster_pass(struct toy_cluster *cluster, uint64_t ns) {
    bool passed = false;

    sim_schedule(cluster->sim, NULL, ns, note_passed, &passed);
    sim_run_until(cluster->sim, UINT64_MAX, is_passed, &passed);
}

void toy_chunks_read(struct toy_cluster *cluster, uint64_t ino, uint64_t offset, void *data,
                     size_t size) {
    for (size_t i = 0; i < size; i++) {
        struct toy_chunk *chunk = toy_chunk_find(cluster, (struct ino){ino},
                                                 (offset + i) / TOY_CHUNK_BYTES, (struct ino){0});

        ((uint8_t *)data)[i] = chunk ? chunk->data[(offset + i) % TOY_CHUNK_BYTES] : 0;
    }
}

uint32_t toy_osts_seen(const struct toy_cluster *cluster, uint16_t opcode) {
    uint32_t sum = 0;

    for (int i = 0; i < TOY_OSTS; i++) {
        sum += cluster->osts[i].seen[opcode];
    }
    return sum;
}
