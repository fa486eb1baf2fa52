/* What somebody may do to a daemon who has a key, or only its address: each deed is a word.
 *
 *     attack KEY ADDRESS hello MIN MAX          greets with these versions
 *     attack KEY ADDRESS half N                 N connections that begin a message of 4 MiB
 *     attack KEY ADDRESS forge KEY2             messages that are not its own to send
 *     attack KEY ADDRESS capability             what a file's capability is not for
 *     attack KEY ADDRESS read                   what a key that only reads is not for
 *     attack KEY ADDRESS door ERROR             is a node itself, and refuses all with that number
 *     attack KEY ADDRESS noise SECONDS SEED     requests of any content, to all logs
 *     attack KEY ADDRESS sessions begin         begins as many as the manager's log has room for
 *     attack KEY ADDRESS sessions end           likewise, and ends some, until neither is taken
 *
 * Lines on standard output say what was answered: a name, then 0 or the name of an error. half
 * and door say "held", and hold what they have until standard input ends. */
#include "attack.h"
#include "base/address.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "base/prng.h"
#include "env/env_linux.h"
#include "keys/key_ring.h"
#include "keys/tls.h"
#include "layout/cluster_map.h"
#include "rpc/worker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINKS_MAX = 512,
    LOGS_OF_MAP_MAX = 64,
    NOISE_BYTES_MAX = 8192,
    HEAD_BYTES = 136,
    SESSIONS_MAX = 4096,
    ORIGIN_BYTES = 1800,
    BURST = 15 /* messages that a link takes at a time, less 1 */
};

/* Far longer than it takes until a storage target has heard that a session has ended. */
#define HEARD_NS (20 * NS_PER_S)

struct attack {
    struct link_target target;
    struct address address;
    struct key_file key;
    struct link links[LINKS_MAX];
    struct log_id logs[LOGS_OF_MAP_MAX];
    uint8_t kinds[LOGS_OF_MAP_MAX]; /* enum target_kind; 0 of those that no target serves */
    uint32_t log_count;
    uint8_t ticket[WIRE_TICKET_BYTES_MAX];
    struct bytes session_ticket;
    uint64_t session, incarnation, ended;
    uint64_t sequence;
    struct prng prng;
};

static uint8_t chunk_data[LINK_BULK_BYTES];
static struct cluster_map map;

static void fail(const char *what, int r) {
    fprintf(stderr, "attack: %s: %s\n", what, err_text(r));
    exit(1);
}

static struct tls_context *key_take(const char *path, struct key_file *file) {
    uint8_t text[KEY_FILE_BYTES_MAX];
    char problem[KEY_PROBLEM_BYTES];
    struct tls_context *context;
    FILE *from = fopen(path, "rb");
    size_t size = from ? fread(text, 1, sizeof text, from) : 0;
    int r = from ? key_file_parse((struct bytes){text, size}, file, problem) : -ERR_NOT_FOUND;

    r = r < 0 ? r : tls_context_call(file, &context);
    if (r < 0) {
        fail(path, r);
    }
    fclose(from);
    return context;
}

static void say_result(const char *what, int r) {
    printf("%s %s\n", what, r == 0 ? "0" : err_name(r));
    fflush(stdout);
}

/* Another process each time. */
static struct hello_request hello_of(struct attack *attack) {
    return (struct hello_request){.version_min = 1,
                                  .version_max = 1,
                                  .life_high = prng_next(&attack->prng),
                                  .life_low = prng_next(&attack->prng),
                                  .number = 1,
                                  .plain = true};
}

static void must_open(struct attack *attack, struct link *link) {
    const struct hello_request hello = hello_of(attack);
    int r = link_open(link, &attack->target, &hello);

    if (r < 0) {
        fail("greeting", r);
    }
}

static void hold(struct attack *attack) {
    uint8_t byte;

    (void)attack;
    printf("held\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

static int deed_hello(struct attack *attack, char **words) {
    struct hello_request hello = hello_of(attack);

    hello.version_min = (uint32_t)strtoul(words[0], NULL, 10);
    hello.version_max = (uint32_t)strtoul(words[1], NULL, 10);
    say_result("hello", link_open(&attack->links[0], &attack->target, &hello));
    return 0;
}

/* Of a link that goes on without TLS: each is asked for once. */
static int socket_find(void) {
    static bool found[4 * LINKS_MAX];
    struct sockaddr_storage address;

    for (int fd = 3; fd < (int)ARRAY_SIZE(found); fd++) {
        socklen_t size = sizeof address;

        if (!found[fd] && getpeername(fd, (struct sockaddr *)&address, &size) == 0 &&
            address.ss_family == AF_INET) {
            found[fd] = true;
            return fd;
        }
    }
    return -1;
}

/* A head that says that 4 MiB follow, and one byte of them. */
static void half_say(int fd) {
    uint8_t bytes[CONNECTION_PREFIX_BYTES + 256 + 1] = {CONNECTION_REQUEST};
    uint8_t *head = bytes + CONNECTION_PREFIX_BYTES;

    store_le32(bytes + 4, 256);
    store_le32(bytes + 8, LINK_BULK_BYTES);
    store_le16(head, HEAD_BYTES);
    store_le16(head + 2, OP_CHUNK_WRITE);
    store_le32(bytes + 12, crc32c(crc32c(0, bytes, 12), head, 256));
    if (write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) {
        fail("half a message", -ERR_IO);
    }
}

static int deed_half(struct attack *attack, char **words) {
    uint32_t count = (uint32_t)MIN(strtoul(words[0], NULL, 10), (unsigned long)LINKS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        must_open(attack, &attack->links[i]);
        half_say(socket_find());
    }
    hold(attack);
    return 0;
}

/* Requests. */

static struct call *call_of(struct attack *attack, uint16_t opcode, struct log_id log) {
    static struct call call;

    call = (struct call){.header = {.opcode = opcode,
                                    .log = log,
                                    .origin = log,
                                    .session = {attack->session},
                                    .incarnation = attack->incarnation}};
    if (wire_is_mutation(opcode)) {
        call.header.sequence = ++attack->sequence;
    }
    call.bulk_in = (struct buffer){.data = attack->links[0].bulk, .capacity = LINK_BULK_BYTES};
    return &call;
}

static void logs_learn(struct attack *attack, struct link *link) {
    struct call *call = call_of(attack, OP_MAP_GET, LOG_MEMBER);
    int r = link_ask(link, call, (struct bytes){NULL, 0});

    r = r < 0 ? r : cluster_map_decode((struct bytes){link->bulk, link->bulk_size}, &map);
    if (r < 0) {
        fail("the map", r);
    }
    attack->logs[attack->log_count++] = LOG_MANAGER;
    attack->logs[attack->log_count++] = LOG_MEMBER;
    for (uint32_t i = 0; i < cluster_map_log_places(&map) && attack->log_count < LOGS_OF_MAP_MAX;
         i++) {
        struct map_log log = cluster_map_log_at(&map, i);

        if (log.id.value != 0) {
            attack->kinds[attack->log_count] = log.kind;
            attack->logs[attack->log_count++] = log.id;
        }
    }
}

static int session_begin(struct attack *attack, struct link *link, struct bytes origin) {
    struct call *call;

    attack->incarnation = prng_next(&attack->prng) | 1;
    call = call_of(attack, OP_SESSION_BEGIN, LOG_MANAGER);
    call->request.session_begin =
        (struct session_begin_request){.incarnation = attack->incarnation, .origin = origin};
    int r = link_ask(link, call, (struct bytes){NULL, 0});
    if (r < 0) {
        return r;
    }
    attack->session = call->reply.session_begin.session;
    attack->ended = call->reply.session_begin.ended;
    memcpy(attack->ticket, link->bulk, MIN(link->bulk_size, sizeof attack->ticket));
    attack->session_ticket =
        (struct bytes){attack->ticket, MIN(link->bulk_size, sizeof attack->ticket)};
    return 0;
}

static int session_end(struct attack *attack, struct link *link) {
    struct call *call = call_of(attack, OP_SESSION_END, LOG_MANAGER);

    call->request.session_end = (struct session_end_request){.session = attack->session,
                                                             .incarnation = attack->incarnation,
                                                             .ticket = attack->session_ticket};
    return link_ask(link, call, (struct bytes){NULL, 0});
}

static void session_take(struct attack *attack, struct link *link) {
    int r = session_begin(attack, link, (struct bytes){(const uint8_t *)"attack", 6});

    if (r < 0) {
        fail("a session", r);
    }
}

static int attach(struct attack *attack, struct link *link, struct log_id log, uint64_t session) {
    struct call *call = call_of(attack, OP_SESSION_ATTACH, log);

    call->request.session_attach =
        (struct session_attach_request){.session = session,
                                        .incarnation = attack->incarnation,
                                        .ticket = attack->session_ticket,
                                        .ended = attack->ended};
    return link_ask(link, call, (struct bytes){NULL, 0});
}

static struct log_id log_of_kind(const struct attack *attack, uint8_t kind) {
    for (uint32_t i = 2; i < attack->log_count; i++) {
        if (attack->kinds[i] == kind) {
            return attack->logs[i];
        }
    }
    fail("no such target", -ERR_NOT_FOUND);
    return LOG_MANAGER;
}

/* Of members only: each by its number alone, as nothing behind it may be looked at. */
static void forge_members(struct attack *attack, struct link *link) {
    char what[64];

    for (uint16_t opcode = 0; opcode < OPCODE_COUNT; opcode++) {
        struct log_id log = opcode < OP_LOOKUP ? LOG_MANAGER : log_of_kind(attack, TARGET_OST);

        if (wire_name(opcode) && wire_from(opcode) == WIRE_MEMBER_ONLY) {
            snprintf(what, sizeof what, "member %s", wire_name(opcode));
            say_result(what, link_ask(link, call_of(attack, opcode, log), (struct bytes){0}));
        }
    }
}

/* A capability that nobody has signed, of a session that is attached and its own. */
static void forge_capability(struct attack *attack, struct link *link) {
    struct log_id log = log_of_kind(attack, TARGET_OST);
    struct capability capability = {.ino = {17},
                                    .generation = 1,
                                    .rights = RIGHT_READ | RIGHT_WRITE,
                                    .max_offset = UINT64_MAX,
                                    .session = attack->session,
                                    .session_incarnation = attack->incarnation};
    struct call *call = call_of(attack, OP_CHUNK_READ, log);

    call->request.chunk_read =
        (struct chunk_read_request){.capability = capability, .chunk_bytes = 1 << 20, .size = 4096};
    say_result("unsigned read", link_ask(link, call, (struct bytes){0}));
    call = call_of(attack, OP_CHUNK_WRITE, log);
    call->request.chunk_write = (struct chunk_write_request){
        .capability = capability, .chunk_bytes = 1 << 20, .size = 4096};
    call->checksums = &(uint32_t){0};
    call->checksum_count = 1;
    say_result("unsigned write", link_ask(link, call, (struct bytes){chunk_data, 4096}));
}

/* The last block of a chunk. */
static int write_by(struct attack *attack, struct link *link, const struct capability *capability,
                    uint64_t chunk, uint32_t chunk_bytes) {
    struct call *call = call_of(attack, OP_CHUNK_WRITE, log_of_kind(attack, TARGET_OST));
    uint32_t checksum = crc32c(0, chunk_data, BLOCK_BYTES);

    call->request.chunk_write = (struct chunk_write_request){.capability = *capability,
                                                             .chunk = chunk,
                                                             .chunk_bytes = chunk_bytes,
                                                             .offset = chunk_bytes - BLOCK_BYTES,
                                                             .size = BLOCK_BYTES};
    call->checksums = &checksum;
    call->checksum_count = 1;
    return link_ask(link, call, (struct bytes){chunk_data, BLOCK_BYTES});
}

/* Of a file that it has made itself. */
static struct create_reply file_make(struct attack *attack, struct link *link) {
    struct call *call = call_of(attack, OP_CREATE, log_of_kind(attack, TARGET_MDT));

    call->request.create = (struct create_request){.parent = {1},
                                                   .name = {(const uint8_t *)"attacked", 8},
                                                   .mode = 0644,
                                                   .open_flags = OPEN_READ | OPEN_WRITE};
    int r = link_ask(link, call, (struct bytes){0});
    if (r < 0) {
        fail("a file", r);
    }
    return call->reply.create;
}

/* Until it has heard of the session's end; 0: it never does. */
static int write_behind_end(struct attack *attack, struct link *link,
                            const struct create_reply *file) {
    uint64_t end_ns = env_now_ns(attack->target.env) + HEARD_NS;
    int r = 0;

    while (r == 0 && env_now_ns(attack->target.env) < end_ns) {
        r = write_by(attack, link, &file->capability, 0, file->layout.chunk_bytes);
    }
    return r;
}

/* What is signed, and then changed; and its own, as far as it goes and for as long as it lasts. */
static int deed_capability(struct attack *attack, char **words) {
    struct link *link = &attack->links[0];

    (void)words;
    must_open(attack, link);
    logs_learn(attack, link);
    session_take(attack, link);
    say_result("attach", attach(attack, link, log_of_kind(attack, TARGET_MDT), attack->session));
    say_result("attach", attach(attack, link, log_of_kind(attack, TARGET_OST), attack->session));
    const struct create_reply file = file_make(attack, link);
    const uint32_t chunk_bytes = file.layout.chunk_bytes;
    struct capability forged = file.capability;
    say_result("own write", write_by(attack, link, &file.capability, 0, chunk_bytes));
    forged.signature[0] ^= 1;
    say_result("other signature", write_by(attack, link, &forged, 0, chunk_bytes));
    forged = file.capability;
    forged.ino.value++;
    say_result("another file", write_by(attack, link, &forged, 0, chunk_bytes));
    forged = file.capability;
    forged.rights |= RIGHT_SYNC_FIRST;
    say_result("other rights", write_by(attack, link, &forged, 0, chunk_bytes));
    forged = file.capability;
    forged.session++;
    say_result("another session", write_by(attack, link, &forged, 0, chunk_bytes));
    uint64_t behind = file.capability.max_offset / chunk_bytes;
    say_result("beyond offset", write_by(attack, link, &file.capability, behind, chunk_bytes));
    forged = file.capability;
    forged.max_offset = UINT64_MAX;
    say_result("other offset", write_by(attack, link, &forged, behind, chunk_bytes));
    say_result("own write", write_by(attack, link, &file.capability, 0, chunk_bytes));
    say_result("end", session_end(attack, link));
    say_result("ended", write_behind_end(attack, link, &file));
    return 0;
}

/* The first connection's session, by another key's connection. */
static void forge_session(struct attack *attack, struct link *other) {
    struct log_id mdt = log_of_kind(attack, TARGET_MDT);
    struct log_id ost = log_of_kind(attack, TARGET_OST);
    struct call *call;

    say_result("ticket at mdt", attach(attack, other, mdt, attack->session));
    say_result("ticket at ost", attach(attack, other, ost, attack->session));
    call = call_of(attack, OP_READDIR, mdt);
    call->request.readdir.ino.value = 1;
    say_result("request at mdt", link_ask(other, call, (struct bytes){0}));
    say_result("end of session", session_end(attack, other));
}

static int deed_forge(struct attack *attack, char **words) {
    struct link_target there = attack->target;
    struct link *link = &attack->links[0];
    const struct hello_request hello = hello_of(attack);
    struct key_file other;

    must_open(attack, link);
    logs_learn(attack, link);
    session_take(attack, link);
    say_result("attach", attach(attack, link, log_of_kind(attack, TARGET_MDT), attack->session));
    say_result("attach", attach(attack, link, log_of_kind(attack, TARGET_OST), attack->session));
    say_result("other session", attach(attack, link, log_of_kind(attack, TARGET_MDT), 1));
    forge_members(attack, link);
    forge_capability(attack, link);
    there.tls = key_take(words[0], &other);
    int r = link_open(&attack->links[1], &there, &hello);
    if (r < 0) {
        fail("the other key", r);
    }
    forge_session(attack, &attack->links[1]);
    tls_context_free(there.tls);
    struct call *call = call_of(attack, OP_GETATTR, log_of_kind(attack, TARGET_MDT));
    call->request.getattr.ino.value = 1;
    say_result("own getattr", link_ask(link, call, (struct bytes){0}));
    return 0;
}

static int deed_read(struct attack *attack, char **words) {
    struct link *link = &attack->links[0];
    struct log_id mdt;
    struct call *call;

    (void)words;
    must_open(attack, link);
    logs_learn(attack, link);
    session_take(attack, link);
    mdt = log_of_kind(attack, TARGET_MDT);
    say_result("attach", attach(attack, link, mdt, attack->session));
    call = call_of(attack, OP_MKDIR, mdt);
    call->request.mkdir.parent.value = 1;
    call->request.mkdir.name = (struct bytes){(const uint8_t *)"made", 4};
    say_result("mkdir", link_ask(link, call, (struct bytes){0}));
    call = call_of(attack, OP_OPEN, mdt);
    call->request.open.ino.value = 1;
    call->request.open.open_flags = OPEN_READ | OPEN_WRITE;
    say_result("open", link_ask(link, call, (struct bytes){0}));
    call = call_of(attack, OP_REOPEN, mdt);
    call->request.reopen.ino.value = 1;
    call->request.reopen.open_flags = OPEN_READ;
    call->request.reopen.write_count = 1;
    say_result("reopen", link_ask(link, call, (struct bytes){0}));
    return 0;
}

/* Noise: numbers that are 0, small, all ones, or anything. */
static uint64_t number_draw(struct prng *prng) {
    uint64_t number = prng_next(prng);

    switch (prng_next(prng) % 4) {
    case 0:
        return 0;
    case 1:
        return number % 32;
    case 2:
        return UINT64_MAX;
    default:
        return number;
    }
}

/* A head whose fixed fields lead to an actor, and a body of drawn numbers with the length that is
 * right most times. */
static size_t noise_fill(struct attack *attack, uint8_t *head) {
    struct prng *prng = &attack->prng;
    struct log_id log = attack->logs[prng_next(prng) % attack->log_count];
    struct call *call = call_of(attack, OP_MAP_GET, log);
    struct buffer out = {.data = head, .capacity = NOISE_BYTES_MAX};
    uint16_t opcode = (uint16_t)(prng_next(prng) % OPCODE_COUNT);
    size_t body_bytes = prng_next(prng) % 600;

    call->header.sequence = 0;
    call->header.floor = prng_next(prng) % 8 ? 0 : number_draw(prng);
    call->header.term = prng_next(prng) % 2 ? 0 : number_draw(prng);
    call->header.epoch = number_draw(prng);
    call->bulk_in.capacity = prng_next(prng) % 3 ? 65536 : number_draw(prng);
    int r = frame_encode_request(call, prng_next(prng), NS_PER_S, &out);
    if (r < 0) {
        fail("a head", r);
    }
    size_t at = HEAD_BYTES;
    head[2] = (uint8_t)opcode;
    if (wire_is_mutation(opcode)) {
        uint64_t sequence = prng_next(prng) % 4 ? ++attack->sequence : number_draw(prng) | 1;

        memcpy(head + 48, &sequence, 8);
    }
    memcpy(head + at, &(uint32_t){(uint32_t)body_bytes}, 4);
    for (at += 4; body_bytes > 0; at += 8, body_bytes -= MIN(body_bytes, (size_t)8)) {
        memcpy(head + at, &(uint64_t){number_draw(prng)}, 8);
    }
    return at;
}

static int deed_noise(struct attack *attack, char **words) {
    uint64_t end_ns = env_now_ns(attack->target.env) + strtoull(words[0], NULL, 10) * NS_PER_S;
    struct link *link = &attack->links[0];
    uint8_t head[NOISE_BYTES_MAX + 8];
    uint64_t sent = 0, ended = 0;

    prng_init(&attack->prng, strtoull(words[1], NULL, 10));
    must_open(attack, link);
    logs_learn(attack, link);
    session_take(attack, link);
    for (uint32_t i = 2; i < attack->log_count; i++) {
        (void)!attach(attack, link, attack->logs[i], attack->session);
    }
    while (env_now_ns(attack->target.env) < end_ns) {
        if (link->is_over) {
            link_close(link);
            must_open(attack, link);
            ended++;
        }
        size_t size = noise_fill(attack, head);
        size_t bulk = prng_next(&attack->prng) % 8 ? 0 : prng_next(&attack->prng) % 9000;
        link_say(link, (struct bytes){head, size}, (struct bytes){chunk_data, bulk});
        link_listen(link, 200 * 1000);
        sent++;
    }
    printf("sent %llu, %llu times the connection ended\n", (unsigned long long)sent,
           (unsigned long long)ended);
    return 0;
}

static int deed_door(struct attack *attack, char **words) {
    struct link_target target = attack->target;
    struct key_file file = attack->key;
    struct key_ring *ring;
    int r = key_ring_new(&file, &ring);

    r = r < 0 ? r : tls_context_serve(ring, &target.tls);
    r = r < 0 ? r : links_refuse(&target, -(int)strtol(words[0], NULL, 10));
    if (r < 0) {
        fail("a door", r);
    }
    tls_context_free(target.tls);
    key_ring_free(ring);
    return 0;
}

/* Each has an origin of its own, or it would be the end of the one before. */
static struct bytes origin_draw(struct attack *attack) {
    static uint8_t origin[ORIGIN_BYTES] = "attack";

    store_le64(origin + ORIGIN_BYTES - 8, prng_next(&attack->prng));
    return (struct bytes){origin, sizeof origin};
}

/* Of which nobody hears; they go to disk together. */
static void sessions_burst(struct attack *attack, struct link *link) {
    uint8_t head[2 * ORIGIN_BYTES];

    for (uint64_t i = 0; i < BURST; i++) {
        struct call *call = call_of(attack, OP_SESSION_BEGIN, LOG_MANAGER);
        struct buffer out = {.data = head, .capacity = sizeof head};

        call->request.session_begin = (struct session_begin_request){
            .incarnation = prng_next(&attack->prng) | 1, .origin = origin_draw(attack)};
        call->header.message_class = wire_class(OP_SESSION_BEGIN);
        int r = frame_encode_request(call, UINT64_MAX - i, NS_PER_S, &out);
        if (r < 0) {
            fail("a head", r);
        }
        link_say(link, (struct bytes){head, out.size}, (struct bytes){NULL, 0});
    }
}

struct begun {
    uint64_t session, incarnation;
    uint8_t ticket[WIRE_TICKET_BYTES_MAX];
    size_t ticket_bytes;
};

static struct begun begun[SESSIONS_MAX];

/* Until one is refused, which it answers; with a burst before each of these. */
static int sessions_begin(struct attack *attack, struct link *link, bool in_bursts,
                          uint32_t *count) {
    while (*count < SESSIONS_MAX) {
        struct begun *one = &begun[*count];
        struct bytes origin = origin_draw(attack);

        if (in_bursts) {
            sessions_burst(attack, link);
        } else {
            origin = (struct bytes){origin.data + origin.size - 8, 8};
        }
        int r = session_begin(attack, link, origin);
        if (r < 0) {
            return r;
        }
        one->session = attack->session;
        one->incarnation = attack->incarnation;
        one->ticket_bytes = attack->session_ticket.size;
        memcpy(one->ticket, attack->ticket, sizeof attack->ticket);
        ++*count;
    }
    return 0;
}

/* Those that are left stay without a sign of life. */
static int deed_sessions(struct attack *attack, char **words) {
    bool ends = strcmp(words[0], "end") == 0;
    struct link *link = &attack->links[0];
    uint32_t count = 0;

    must_open(attack, link);
    int r = sessions_begin(attack, link, true, &count);
    /* One that is shorter may fit. */
    r = r < 0 ? sessions_begin(attack, link, false, &count) : 0;
    say_result("begin", r);
    for (r = 0; ends && r == 0 && count > 0;) {
        const struct begun *one = &begun[--count];

        attack->session = one->session;
        attack->incarnation = one->incarnation;
        attack->session_ticket = (struct bytes){one->ticket, one->ticket_bytes};
        r = session_end(attack, link);
    }
    say_result("end", r);
    printf("left %u\n", count);
    return 0;
}

static const struct {
    const char *name;
    int words;
    int (*run)(struct attack *attack, char **words);
} deeds[] = {
    {"hello", 2, deed_hello},       {"half", 1, deed_half},
    {"forge", 1, deed_forge},       {"noise", 2, deed_noise},
    {"read", 0, deed_read},         {"door", 1, deed_door},
    {"sessions", 1, deed_sessions}, {"capability", 0, deed_capability},
};

static int run(struct attack *attack, int count, char **words) {
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
        if (strcmp(words[0], deeds[i].name) == 0 && count == 1 + deeds[i].words) {
            return deeds[i].run(attack, words + 1);
        }
    }
    fprintf(stderr, "attack: no such deed: %s\n", words[0]);
    return 2;
}

int main(int argc, char **argv) {
    static struct attack attack;
    struct worker worker;
    uint64_t seed[1];

    if (argc < 4) {
        fprintf(stderr, "usage: attack KEY ADDRESS DEED [WORD...]\n");
        return 2;
    }
    int r = env_linux_new(&(struct env_linux_options){.root = "/"}, &attack.target.env);
    r = r < 0 ? r : env_thread_enter(attack.target.env);
    r = r < 0 ? r : address_parse(argv[2], &attack.address);
    if (r < 0) {
        fail(argv[2], r);
    }
    worker_init(&worker);
    worker_bind(&worker);
    attack.target.env->ops->random(attack.target.env, seed, sizeof seed);
    prng_init(&attack.prng, seed[0]);
    attack.target.address = &attack.address;
    attack.target.tls = key_take(argv[1], &attack.key);
    r = run(&attack, argc - 3, argv + 3);
    for (uint32_t i = 0; i < LINKS_MAX; i++) {
        link_close(&attack.links[i]);
    }
    worker_bind(NULL);
    env_thread_leave(attack.target.env);
    env_linux_free(attack.target.env);
    tls_context_free(attack.target.tls);
    return r;
}
