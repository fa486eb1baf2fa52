/* What needs no open file: names, links, permission. One question, one answer, on the spot; of a
 * name whose inode another server has, that one is asked then. Where that one is lost for good the
 * name is still found, by its type alone: it could not be removed through a kernel otherwise, which
 * looks it up before. */
#include "client/client_internal.h"

enum { LINK_TARGET_BYTES_MAX = 4095 };

/* Fills the call; answers its opcode. */
static uint16_t name_fill(struct operation *operation, struct call *call) {
    struct shoal_request *asked = operation_request(operation);
    struct credentials who = operation_who(operation);
    struct ino ino = {asked->ino};
    struct bytes name = {(const uint8_t *)asked->name, asked->name_bytes};
    struct ino new_ino = {asked->new_ino};
    struct bytes new_name = {(const uint8_t *)asked->new_name, asked->new_name_bytes};

    switch (asked->operation) {
    case SHOAL_LOOKUP:
        call->request.lookup = (struct lookup_request){ino, name, who};
        return OP_LOOKUP;
    case SHOAL_MKNOD:
        call->request.mknod = (struct mknod_request){ino, name, who, asked->mode, asked->rdev};
        return OP_MKNOD;
    case SHOAL_MKDIR:
        call->request.mkdir = (struct mkdir_request){ino, name, who, asked->mode};
        return OP_MKDIR;
    case SHOAL_SYMLINK:
        call->request.symlink =
            (struct symlink_request){ino, name, who, {asked->data, asked->size}};
        return OP_SYMLINK;
    case SHOAL_READLINK:
        call->request.readlink.ino = ino;
        call->bulk_in = (struct buffer){.data = asked->data, .capacity = asked->size};
        return OP_READLINK;
    case SHOAL_LINK:
        call->request.link = (struct link_request){ino, new_ino, new_name, who};
        return OP_LINK;
    case SHOAL_UNLINK:
        call->request.unlink = (struct unlink_request){ino, name, who};
        return OP_UNLINK;
    case SHOAL_RMDIR:
        call->request.rmdir = (struct rmdir_request){ino, name, who};
        return OP_RMDIR;
    case SHOAL_RENAME:
        call->request.rename =
            (struct rename_request){ino, name, new_ino, new_name, who, asked->flags};
        return OP_RENAME;
    default:
        call->request.access = (struct access_request){ino, who, asked->mode};
        return OP_ACCESS;
    }
}

static void name_finish(struct operation *operation) {
    const struct call *call = &operation->errand.call;

    switch (call->header.opcode) {
    case OP_LOOKUP:
        operation_finish_attributes(operation, &call->reply.lookup.attributes);
        return;
    case OP_MKNOD:
        operation_finish_attributes(operation, &call->reply.mknod.attributes);
        return;
    case OP_MKDIR:
        operation_finish_attributes(operation, &call->reply.mkdir.attributes);
        return;
    case OP_SYMLINK:
        operation_finish_attributes(operation, &call->reply.symlink.attributes);
        return;
    case OP_LINK:
        operation_finish_attributes(operation, &call->reply.link.attributes);
        return;
    case OP_READLINK:
        operation_finish(operation, (int64_t)call->bulk_in.size);
        return;
    default:
        operation_finish(operation, 0);
        return;
    }
}

enum { NAME_SEND, NAME_ANSWERED, NAME_ELSEWHERE };

static void elsewhere_ask(struct operation *operation) {
    struct ino ino = operation->errand.call.reply.lookup.attributes.ino;

    operation->attributes = operation->errand.call.reply.lookup.attributes;
    operation->stage = NAME_ELSEWHERE;
    operation_ask(operation, ino);
}

/* No rights, and no link: whatever is asked about it fails. */
static void lost_finish(struct operation *operation) {
    operation->attributes.generation = 1;
    attributes_out(&operation->attributes, &operation_request(operation)->attributes);
    operation_finish(operation, 0);
}

/* Its inode is gone: so is the name by now, or it has another one. */
static void elsewhere_answered(struct operation *operation) {
    if (operation->result == -ERR_STALE) {
        operation->stage = NAME_SEND;
        operation->result = 0;
        op_name_step(operation);
    } else if (operation->result == -ERR_TARGET_LOST) {
        lost_finish(operation);
    } else if (operation->result) {
        operation_finish(operation, operation->result);
    } else {
        operation_finish_attributes(operation, &operation->errand.call.reply.getattr.attributes);
    }
}

void op_name_step(struct operation *operation) {
    struct shoal_request *asked = operation_request(operation);
    struct ino ino = {asked->operation == SHOAL_LINK ? asked->new_ino : asked->ino};

    if (operation->stage == NAME_ELSEWHERE) {
        elsewhere_answered(operation);
    } else if (operation->stage == NAME_SEND) {
        if (asked->operation == SHOAL_SYMLINK && asked->size > LINK_TARGET_BYTES_MAX) {
            operation_finish(operation, -ERR_NAME_TOO_LONG);
            return;
        }
        operation->stage = NAME_ANSWERED;
        uint16_t opcode = name_fill(operation, operation_prepare(operation));
        operation_call(operation, opcode, ino);
    } else if (operation->result) {
        operation_finish(operation, operation->result);
    } else if (operation->errand.call.header.opcode == OP_LOOKUP &&
               operation->errand.call.reply.lookup.elsewhere) {
        elsewhere_ask(operation);
    } else {
        name_finish(operation);
    }
}
