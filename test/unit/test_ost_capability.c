/* An OST that has keys: what an MDT has signed is good, nothing else changes or shows a byte; and
 * who has no ticket does not attach. */
#include "unit.h"
#include "keys/signer.h"
#include "ost_world.h"
#include "wire/capability.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 128 * 1024, SIZE = 9000 };

/* The MDT's ring and the OST's, of one members' key, and an OST whose chunk holds `data`. */
struct bench {
    struct key_ring *mdt;
    struct key_ring *ost;
    struct signer signer;
    struct ost_world *world;
    struct ost_place place;
};

static uint8_t data[SIZE];
static char problem[256];

static struct key_ring *ring_of(uint8_t number) {
    struct secret secret;
    struct key_file file;
    struct key_ring *ring;

    memset(&secret, number, sizeof secret);
    key_file_make(&secret, &file);
    assert_int_equal(key_ring_new(&file, &ring), 0);
    return ring;
}

static void sign(struct signer *signer, struct capability *capability) {
    uint8_t bytes[CAPABILITY_SIGNED_BYTES];
    uint8_t tag[TAG_BYTES];
    struct key_use use = signer_use(signer);

    capability->key_name = use.name.value;
    capability->key_number = use.number;
    capability_signed_bytes(capability, bytes);
    signer_sign(signer, use, (struct bytes){bytes, sizeof bytes}, tag);
    memcpy(capability->signature, tag, sizeof capability->signature);
}

/* A write of data with the capability as it is signed, and then spoiled. */
static int bench_write(struct bench *bench, void (*spoil)(struct capability *capability)) {
    struct ost_call *call = ost_call_get(bench->world, OP_CHUNK_WRITE);

    call->call.header.sequence = bench->world->next_sequence++;
    ost_call_write(call, &bench->place, data);
    struct capability *capability = &call->call.request.chunk_write.capability;
    sign(&bench->signer, capability);
    if (spoil) {
        spoil(capability);
    }
    return ost_call_run(call);
}

static int bench_read(struct bench *bench, const struct capability *capability) {
    struct ost_call *call = ost_call_get(bench->world, OP_CHUNK_READ);

    ost_call_read(call, &bench->place);
    if (capability) {
        call->call.request.chunk_read.capability = *capability;
    } else {
        sign(&bench->signer, &call->call.request.chunk_read.capability);
    }
    int r = ost_call_run(call);
    if (r == 0) {
        assert_memory_equal(ost_call_data(call), data, SIZE);
    }
    return r;
}

static struct capability bench_capability(struct bench *bench) {
    struct ost_call *call = ost_call_get(bench->world, OP_CHUNK_READ);

    ost_call_read(call, &bench->place);
    call->busy = false;
    struct capability capability = call->call.request.chunk_read.capability;
    sign(&bench->signer, &capability);
    return capability;
}

static struct ost_counters counters(const struct bench *bench) {
    struct ost_counters now;

    ost_counters_get(bench->world->ost, &now);
    return now;
}

static int set_up(void **state) {
    struct bench *bench = calloc(1, sizeof *bench);

    bench->mdt = ring_of(1);
    bench->ost = ring_of(1);
    signer_init(&bench->signer, bench->mdt, SIGNER_OF_CAPABILITIES, 1);
    bench->world = ost_world_new(1);
    bench->world->options.keys = bench->ost;
    assert_int_equal(ost_world_open(bench->world, problem), 0);
    ost_world_attach(bench->world);
    bench->place = (struct ost_place){.ino = {17},
                                      .generation = 1,
                                      .chunk = 2,
                                      .chunk_bytes = CHUNK,
                                      .offset = 100,
                                      .size = SIZE};
    memset(data, 'd', sizeof data);
    assert_int_equal(bench_write(bench, NULL), 0);
    *state = bench;
    return 0;
}

static int tear_down(void **state) {
    struct bench *bench = *state;

    ost_world_free(bench->world);
    signer_deinit(&bench->signer);
    key_ring_free(bench->mdt);
    key_ring_free(bench->ost);
    free(bench);
    return 0;
}

static void spoil_ino(struct capability *capability) {
    capability->ino.value++;
}
static void spoil_generation(struct capability *capability) {
    capability->generation++;
}
static void spoil_rights(struct capability *capability) {
    capability->rights |= RIGHT_SYNC_FIRST;
}
static void spoil_max_offset(struct capability *capability) {
    capability->max_offset--;
}
static void spoil_truncate_seq(struct capability *capability) {
    capability->truncate_seq++;
}
static void spoil_truncate_size(struct capability *capability) {
    capability->truncate_size++;
}
static void spoil_session(struct capability *capability) {
    capability->session++;
}
static void spoil_incarnation(struct capability *capability) {
    capability->session_incarnation++;
}
static void spoil_map_version(struct capability *capability) {
    capability->map_version++;
}
static void spoil_key_number(struct capability *capability) {
    capability->key_number++;
}
static void spoil_key_name(struct capability *capability) {
    capability->key_name++;
}
static void spoil_signature(struct capability *capability) {
    capability->signature[0] ^= UINT64_C(1) << 63;
}
static void spoil_signature_end(struct capability *capability) {
    capability->signature[1] ^= 1;
}
static void spoil_all(struct capability *capability) {
    capability->key_number = 0;
    capability->key_name = 0;
    memset(capability->signature, 0, sizeof capability->signature);
}

/* Whoever changes anything in a capability, to reach another file, or more of one, gets nothing. */
static void test_each_field_is_signed(void **state) {
    static const struct {
        const char *what;
        void (*spoil)(struct capability *capability);
    } rows[] = {
        {"another file", spoil_ino},
        {"another generation", spoil_generation},
        {"other rights", spoil_rights},
        {"another end", spoil_max_offset},
        {"another truncation", spoil_truncate_seq},
        {"its size", spoil_truncate_size},
        {"another session", spoil_session},
        {"another incarnation", spoil_incarnation},
        {"another map version", spoil_map_version},
        {"another number of the key", spoil_key_number},
        {"an unknown key", spoil_key_name},
        {"another signature", spoil_signature},
        {"the end of one", spoil_signature_end},
        {"not signed", spoil_all},
    };
    struct bench *bench = *state;
    struct ost_counters before = counters(bench);

    memset(data, 'x', sizeof data);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int r = bench_write(bench, rows[i].spoil);

        if (r != -ERR_BAD_CAPABILITY) {
            printf("%s: %d\n", rows[i].what, r);
        }
        assert_int_equal(r, -ERR_BAD_CAPABILITY);
    }
    assert_int_equal(counters(bench).writes, before.writes);
    assert_int_equal(counters(bench).free_blocks, before.free_blocks);
    memset(data, 'd', sizeof data);
    assert_int_equal(bench_read(bench, NULL), 0);
}

static void test_what_is_signed_has_bounds(void **state) {
    struct bench *bench = *state;
    struct capability capability = bench_capability(bench);

    capability.max_offset = 2 * CHUNK + 100 + SIZE;
    sign(&bench->signer, &capability);
    assert_int_equal(bench_read(bench, &capability), 0);
    capability.max_offset--;
    sign(&bench->signer, &capability);
    assert_int_equal(bench_read(bench, &capability), -ERR_BAD_CAPABILITY);
    capability.max_offset++;
    capability.rights = RIGHT_WRITE;
    sign(&bench->signer, &capability);
    assert_int_equal(bench_read(bench, &capability), -ERR_BAD_CAPABILITY);
    /* Well signed, and the session's no longer. */
    capability = bench_capability(bench);
    assert_int_equal(ost_world_ended(bench->world, OST_SESSION), 0);
    assert_int_equal(bench_read(bench, &capability), -ERR_FENCED);
}

static void test_a_stranger_signs_nothing(void **state) {
    struct bench *bench = *state;
    struct key_ring *stranger = ring_of(2);
    struct capability capability = bench_capability(bench);
    struct signer signer;

    signer_init(&signer, stranger, SIGNER_OF_CAPABILITIES, 1);
    sign(&signer, &capability);
    assert_int_equal(bench_read(bench, &capability), -ERR_BAD_CAPABILITY);
    signer_deinit(&signer);
    /* A tag of another purpose by the right key. */
    signer_init(&signer, bench->mdt, "session", 1);
    sign(&signer, &capability);
    assert_int_equal(bench_read(bench, &capability), -ERR_BAD_CAPABILITY);
    signer_deinit(&signer);
    key_ring_free(stranger);
}

struct attachment {
    uint64_t session;
    struct bytes ticket;
    const struct identity *identity;
    uint64_t life;
};

static int attach(struct bench *bench, struct attachment attachment) {
    struct ost_call *call = ost_call_get(bench->world, OP_SESSION_ATTACH);

    call->call.identity = attachment.identity;
    call->call.life[0] = attachment.life;
    call->call.request.session_attach =
        (struct session_attach_request){.session = attachment.session,
                                        .incarnation = OST_INCARNATION,
                                        .node = 1,
                                        .ticket = attachment.ticket};
    return ost_call_run(call);
}

static uint64_t position(const struct bench *bench) {
    return kv_position(ost_kv(bench->world->ost));
}

/* Who has heard of a session, or even has its ticket, does not get in by another connection. */
static void test_a_session_attaches_by_its_own_ticket(void **state) {
    static const struct identity laptop = {.kind = IDENTITY_MOUNT, .serial = 17};
    static const struct identity reader = {.kind = IDENTITY_MOUNT, .serial = 17, .read_only = true};
    static const struct identity member = {.kind = IDENTITY_MEMBER};
    struct bench *bench = *state;
    uint64_t before = position(bench);
    struct bytes ticket = ost_world_ticket(bench->world, 70, &laptop);
    const struct attachment bad[] = {{70, {NULL, 0}, &laptop, 0},
                                     {71, ticket, &laptop, 0},
                                     {70, ticket, &reader, 0},
                                     {70, ticket, &member, 0},
                                     {70, ticket, NULL, 0},
                                     {70, {ticket.data, ticket.size - 1}, &laptop, 0},
                                     {70, {ticket.data + 1, ticket.size - 1}, &laptop, 0}};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(attach(bench, bad[i]), -ERR_BAD_TICKET);
    }
    assert_int_equal(position(bench), before);
    assert_int_equal(attach(bench, (struct attachment){70, ticket, &laptop, 0}), 0);
    ticket = ost_world_ticket(bench->world, 72, &member);
    key_ring_number_set(bench->ost, 9);
    assert_int_equal(attach(bench, (struct attachment){72, ticket, NULL, 0}), 0);
}

static int read_from(struct bench *bench, uint64_t life, const struct identity *identity) {
    struct ost_call *call = ost_call_get(bench->world, OP_CHUNK_READ);

    ost_call_read(call, &bench->place);
    sign(&bench->signer, &call->call.request.chunk_read.capability);
    call->call.life[0] = life;
    call->call.identity = identity;
    return ost_call_run(call);
}

/* Numbers, incarnation and capability of a session are not enough: its requests come from the
 * process that has attached it, by the key that it has proven there. */
static void test_a_session_s_requests_come_from_who_attached_it(void **state) {
    static const struct identity laptop = {.kind = IDENTITY_MOUNT, .serial = 17};
    static const struct identity phone = {.kind = IDENTITY_MOUNT, .serial = 18};
    struct bench *bench = *state;
    struct bytes ticket = ost_world_ticket(bench->world, OST_SESSION, &laptop);
    const struct attachment own = {OST_SESSION, ticket, &laptop, 5};
    const struct attachment moved = {OST_SESSION, ticket, &laptop, 6};

    assert_int_equal(read_from(bench, 5, &laptop), -ERR_UNKNOWN_SESSION);
    assert_int_equal(attach(bench, own), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_from(bench, 5, &laptop), 0);
        assert_int_equal(read_from(bench, 5, &phone), -ERR_UNKNOWN_SESSION);
        assert_int_equal(read_from(bench, 5, NULL), -ERR_UNKNOWN_SESSION);
        assert_int_equal(read_from(bench, 6, &laptop), -ERR_UNKNOWN_SESSION);
        assert_int_equal(read_from(bench, 0, NULL), -ERR_UNKNOWN_SESSION);
        ost_world_crash(bench->world, false);
        assert_int_equal(ost_world_open(bench->world, problem), 0);
        /* From its row it is known that it lives, and not to whom it belongs. */
        assert_int_equal(read_from(bench, 5, &laptop), -ERR_UNKNOWN_SESSION);
        assert_int_equal(attach(bench, own), 0);
    }
    assert_int_equal(attach(bench, moved), 0);
    assert_int_equal(read_from(bench, 6, &laptop), 0);
    assert_int_equal(read_from(bench, 5, &laptop), -ERR_UNKNOWN_SESSION);
}

/* A number is raised to take back what was given: once on each node in turn nobody notices, twice
 * and what is remembered is worth nothing either. */
static void test_numbers_go_out_of_use(void **state) {
    struct bench *bench = *state;
    struct capability old = bench_capability(bench);

    assert_int_equal(bench_read(bench, &old), 0);
    key_ring_number_set(bench->ost, 2);
    assert_int_equal(bench_read(bench, &old), 0);
    key_ring_number_set(bench->mdt, 3);
    assert_int_equal(bench_read(bench, NULL), 0);
    key_ring_number_set(bench->ost, 3);
    assert_int_equal(bench_read(bench, &old), -ERR_BAD_CAPABILITY);
    assert_int_equal(bench_read(bench, NULL), 0);
    assert_int_equal(counters(bench).capabilities_refused, 1);
}

/* One HMAC for many requests with one capability; and what is remembered is exactly that one. */
static void test_known_ones_cost_no_hash(void **state) {
    struct bench *bench = *state;
    struct capability known = bench_capability(bench);
    struct capability other = known;
    uint64_t before = counters(bench).capabilities_checked;

    for (int i = 0; i < 50; i++) {
        assert_int_equal(bench_read(bench, &known), 0);
    }
    assert_int_equal(counters(bench).capabilities_checked, before + 1);
    other.max_offset--;
    assert_int_equal(bench_read(bench, &other), -ERR_BAD_CAPABILITY);
    other = known;
    other.signature[1]++;
    assert_int_equal(bench_read(bench, &other), -ERR_BAD_CAPABILITY);
    assert_int_equal(bench_read(bench, &known), 0);
    assert_int_equal(counters(bench).capabilities_checked, before + 3);
}

/* More files than are remembered: each is still judged by its own signature. */
static void test_more_than_are_known(void **state) {
    struct bench *bench = *state;

    for (uint64_t turn = 0; turn < 3; turn++) {
        for (uint64_t i = 0; i < 200; i++) {
            struct capability capability = bench_capability(bench);

            capability.map_version = i;
            sign(&bench->signer, &capability);
            assert_int_equal(bench_read(bench, &capability), 0);
            capability.map_version += 1000;
            assert_int_equal(bench_read(bench, &capability), -ERR_BAD_CAPABILITY);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_field_is_signed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_signed_has_bounds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_stranger_signs_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_session_attaches_by_its_own_ticket, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_session_s_requests_come_from_who_attached_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_numbers_go_out_of_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_known_ones_cost_no_hash, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_more_than_are_known, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
