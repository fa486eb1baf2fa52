/* Noting what changes, and telling what was lost. */
#include "client/loss.h"
#include "client/client_internal.h"
#include <assert.h>

static void note_pair(struct ledger *ledger, const struct call *call, struct ino one,
                      struct ino other) {
    ledger_note(ledger, one, call->header.term, call->server_position);
    if (other.value != 0) {
        ledger_note(ledger, other, call->header.term, call->server_position);
    }
}

/* Names: the directory, and what the name is of. */
static bool note_names(struct ledger *ledger, const struct call *call) {
    const union request_body *asked = &call->request;
    const union reply_body *reply = &call->reply;

    switch (call->header.opcode) {
    case OP_CREATE:
        if (asked->create.unnamed) {
            ledger_note(ledger, reply->create.attributes.ino, call->header.term,
                        call->server_position);
        } else if (reply->create.created || (asked->create.open_flags & OPEN_TRUNCATE)) {
            note_pair(ledger, call, asked->create.parent, reply->create.attributes.ino);
        }
        return true;
    case OP_MKNOD:
        note_pair(ledger, call, asked->mknod.parent, reply->mknod.attributes.ino);
        return true;
    case OP_MKDIR:
        note_pair(ledger, call, asked->mkdir.parent, reply->mkdir.attributes.ino);
        return true;
    case OP_SYMLINK:
        note_pair(ledger, call, asked->symlink.parent, reply->symlink.attributes.ino);
        return true;
    case OP_LINK:
        note_pair(ledger, call, asked->link.parent, asked->link.ino);
        return true;
    case OP_UNLINK:
        note_pair(ledger, call, asked->unlink.parent, reply->unlink.ino);
        return true;
    case OP_RMDIR:
        note_pair(ledger, call, asked->rmdir.parent, reply->rmdir.ino);
        return true;
    case OP_RENAME:
        note_pair(ledger, call, asked->rename.parent, reply->rename.ino);
        note_pair(ledger, call, asked->rename.new_parent, reply->rename.replaced);
        return true;
    default:
        return false;
    }
}

static void note_one(struct ledger *ledger, const struct call *call) {
    const union request_body *asked = &call->request;
    struct ino none = {0};

    switch (call->header.opcode) {
    case OP_CHUNK_WRITE:
        ledger_note(ledger, asked->chunk_write.capability.ino, call->header.term,
                    call->reply.chunk_write.position);
        break;
    case OP_CHUNK_SPACE:
        ledger_note(ledger, asked->chunk_space.capability.ino, call->header.term,
                    call->reply.chunk_space.position);
        break;
    case OP_SYNC:
        ledger_note_synced(ledger, call->header.term, call->reply.sync.synced_position);
        break;
    case OP_SETATTR:
        note_pair(ledger, call, asked->setattr.ino, none);
        break;
    case OP_INLINE_WRITE:
        note_pair(ledger, call, asked->inline_write.ino, none);
        break;
    case OP_INLINE_CONVERT:
        note_pair(ledger, call, asked->inline_convert.ino, none);
        break;
    case OP_LAYOUT_SET:
        note_pair(ledger, call, asked->layout_set.ino, none);
        break;
    case OP_OPEN:
        if (asked->open.open_flags & OPEN_TRUNCATE) {
            note_pair(ledger, call, asked->open.ino, none);
        }
        break;
    case OP_SETTLE:
        if (asked->settle.size > 0 || asked->settle.wrote) {
            note_pair(ledger, call, asked->settle.ino, none);
        }
        break;
    default:
        break;
    }
}

void loss_note(struct ledger *ledger, const struct call *call) {
    if (call->result == 0 && !note_names(ledger, call)) {
        note_one(ledger, call);
    }
}

bool loss_is_unnamed(const struct open_file *file) {
    struct pool_version pool;

    return file->attributes.data_state == DATA_CHUNKED && layout_is_valid(&file->layout) &&
           file->size > 0 &&
           !cluster_map_pool(router_map(&file->shard->client->router), file->layout.pool_version,
                             &pool);
}

/* Neighbouring chunks lie on different chains, so no more chunks than chains need to be named. */
uint32_t loss_chunk_count(const struct open_file *file) {
    const struct cluster_map *map = router_map(&file->shard->client->router);
    const struct layout *layout = &file->layout;
    struct pool_version pool;

    if (file->attributes.data_state != DATA_CHUNKED || !layout_is_valid(layout) ||
        !cluster_map_pool(map, layout->pool_version, &pool)) {
        return 0;
    }
    uint64_t count = (file->size + layout->chunk_bytes - 1) / layout->chunk_bytes;

    return (uint32_t)MIN(count, layout_width(layout, &pool));
}

struct peer *loss_chunk_peer(const struct open_file *file, uint64_t chunk) {
    const struct router *router = &file->shard->client->router;
    struct peer *peer;
    uint32_t chain;

    if (router_chunk(router, &file->layout, chunk, &chain) || router_chain(router, chain, &peer)) {
        return NULL;
    }
    return peer;
}

/* Whether one server has lost something of the file. */
static bool check_peer(struct peer *peer, struct shoal_file *handle, bool tells) {
    struct ino ino = handle->file->ino;
    uint64_t loss = ledger_loss(&peer->ledger, ino, handle->seen, handle->opened);

    if (loss > 0 && tells) {
        ledger_tell(&peer->ledger, ino, loss);
    }
    return loss > 0;
}

int loss_check(struct shoal_file *handle, bool tells) {
    const struct open_file *file = handle->file;
    struct router *router = &file->shard->client->router;
    uint64_t now = atomic_load(&router->losses);
    uint32_t count = loss_chunk_count(file);
    struct peer *peer;
    bool lost =
        router_slot(router, ino_slot(file->ino), &peer) == 0 && check_peer(peer, handle, tells);

    assert(handle->opened <= now && handle->seen <= now);
    for (uint32_t i = 0; i < count; i++) {
        peer = loss_chunk_peer(file, i);
        lost = (peer && check_peer(peer, handle, tells)) || lost;
    }
    if (lost && tells) {
        handle->seen = now;
    }
    return lost ? -ERR_IO : 0;
}

int loss_tell_all(struct operation *operation) {
    struct shoal_client *client = operation->client;
    const struct shoal_request *asked = operation_request(operation);
    struct shoal_file *handle = asked->operation == SHOAL_FSYNC ? asked->file : NULL;
    uint64_t now = atomic_load(&client->router.losses);
    uint64_t told = atomic_exchange(&client->losses_told, now);
    bool lost = now > told;

    if (handle) {
        lost = now > handle->seen && (now > handle->opened || lost);
        handle->seen = now;
    }
    return lost ? -ERR_IO : 0;
}
