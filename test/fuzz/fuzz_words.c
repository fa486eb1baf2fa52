/* Texts that people write: what is read prints as a text that reads as the same. */
#include "base/address.h"
#include "cmd/verb.h"
#include "front/fuse/mount_table.h"
#include "fuzz.h"
#include "host/doctor_files.h"
#include "node/config.h"
#include <stdio.h>

enum { UNTOUCHED = 0xa5, CONFIG_TEXT_BYTES = 16384, WORD_BYTES = 1024 };

static void check_untouched(const void *output, size_t size) {
    for (size_t i = 0; i < size; i++) {
        assert(((const uint8_t *)output)[i] == UNTOUCHED);
    }
}

void fuzz_address(struct bytes in) {
    char text[WORD_BYTES], printed[ADDRESS_TEXT_BYTES], again[ADDRESS_TEXT_BYTES];
    struct address address, same;

    fuzz_string(in, text, sizeof text);
    memset(&address, UNTOUCHED, sizeof address);
    int r = address_parse(text, &address);
    if (r < 0) {
        assert(r == -ERR_INVALID);
        check_untouched(&address, sizeof address);
        return;
    }
    assert(memchr(address.name, '\0', sizeof address.name));
    address_format(&address, printed);
    r = address_parse(printed, &same);
    assert(r == 0 && address_is(&address, &same));
    assert(address_is_near(&address) == address_is_near(&same));
    address_format(&same, again);
    assert(strcmp(printed, again) == 0);
}

void seed_address(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "127.0.0.1:7400");
    fuzz_seed_text(seeds, "[::1]:7400");
    fuzz_seed_text(seeds, "[2001:db8::ffff:10.0.0.1]:65535");
    fuzz_seed_text(seeds, "Storage-1.example.org:7400");
    fuzz_seed_text(seeds, "unix:/run/shoal/socket");
}

void fuzz_config(struct bytes in) {
    static char text[CONFIG_TEXT_BYTES], printed[CONFIG_TEXT_BYTES], again[CONFIG_TEXT_BYTES];
    char problem[256];
    struct config config, same;

    fuzz_string(in, text, sizeof text);
    memset(&config, UNTOUCHED, sizeof config);
    memset(problem, UNTOUCHED, sizeof problem);
    int r = config_parse(text, &config, problem);
    if (r < 0) {
        assert(problem[0] && memchr(problem, '\0', sizeof problem));
        check_untouched(&config, sizeof config);
        return;
    }
    assert(config.ost_count <= CONFIG_OSTS_MAX);
    assert(config.ost_count > 0 ||
           (!config_is_first(&config) && (config.mdt_count > 0 || config.mdts_by_manager)));
    if (config.node == 0) {
        return; /* It is to join; it is printed when it has. */
    }
    config_keep_free(&config, GIB);
    config_data_max(&config, 1000 * GIB);
    config_print(&config, printed, sizeof printed);
    r = config_parse(printed, &same, problem);
    assert(r == 0);
    config_print(&same, again, sizeof again);
    assert(strcmp(printed, again) == 0);
}

void seed_config(const struct fuzz_seeds *seeds) {
    static char text[CONFIG_TEXT_BYTES];
    struct config config;

    config_default(&config);
    config.cluster_id[3] = 7;
    config_keep_free(&config, 100 * GIB);
    config_data_max(&config, 100 * GIB);
    config_print(&config, text, sizeof text);
    fuzz_seed_text(seeds, text);
    memcpy(config.listen, "10.0.0.1:7400", 14);
    memcpy(config.key_path, "/etc/shoal/key", 15);
    config.link_encryption = CONFIG_PLAIN;
    config_print(&config, text, sizeof text);
    fuzz_seed_text(seeds, text);
    memcpy(config.join, "10.0.0.2:7400", 14);
    config.node = 2;
    config.node_key[0] = 9;
    config.ost_count = 0;
    config_print(&config, text, sizeof text);
    fuzz_seed_text(seeds, text);
}

/* Words of a request at the control socket, and of a command line. */
void fuzz_size_word(struct bytes in) {
    char text[64], printed[64];
    unsigned long long bytes = 1, count = 1, again;

    fuzz_string(in, text, sizeof text);
    if (verb_parse_count(text, &count)) {
        snprintf(printed, sizeof printed, "%llu", count);
        assert(verb_parse_count(printed, &again) && again == count);
        assert(verb_parse_bytes(text, &bytes) && bytes == count);
    } else if (verb_parse_bytes(text, &bytes)) {
        assert(bytes % 1024 == 0);
        snprintf(printed, sizeof printed, "%llu", bytes);
        assert(verb_parse_bytes(printed, &again) && again == bytes);
    } else {
        assert(bytes == 1 && count == 1);
    }
}

void seed_size_word(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "4096");
    fuzz_seed_text(seeds, "1023T");
    fuzz_seed_text(seeds, "18446744073709551614");
}

/* The line is cut up in place: every word lies in it and ends in it. */
void fuzz_mount_line(struct bytes in) {
    char text[4096];
    struct mount_line line;

    fuzz_string(in, text, sizeof text);
    const size_t size = strlen(text);
    if (!mount_line_parse(text, &line)) {
        return;
    }
    char *const words[] = {line.device, line.mount_point, line.type, line.source};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        assert(words[i] >= text && words[i] + strlen(words[i]) <= text + size);
    }
}

void seed_mount_line(const struct fuzz_seeds *seeds) {
    fuzz_seed_text(seeds, "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw");
    fuzz_seed_text(seeds, "99 1 0:5 / /a\\040b\\134c rw shared:1 master:2 - fuse.shoal shoal rw");
}

/* What is refused leaves the output alone; what is taken prints as the very same text. */
void fuzz_doctor_kept(struct bytes in) {
    static char text[DOCTOR_KEPT_BYTES_MAX], printed[DOCTOR_KEPT_BYTES_MAX];
    static struct doctor_kept kept;

    fuzz_string(in, text, sizeof text);
    memset(&kept, UNTOUCHED, sizeof kept);
    int r = doctor_kept_parse(text, strlen(text), &kept);
    if (r < 0) {
        assert(r == -ERR_MALFORMED || r == -ERR_NEWER_FORMAT);
        check_untouched(&kept, sizeof kept);
        return;
    }
    assert(kept.count <= DOCTOR_CHANGES_MAX);
    size_t size = doctor_kept_print(&kept, printed);
    assert(size == strlen(text) && memcmp(text, printed, size) == 0);
}

void seed_doctor_kept(const struct fuzz_seeds *seeds) {
    static char text[DOCTOR_KEPT_BYTES_MAX];
    static struct doctor_kept kept = {
        .rows = {{DOCTOR_HALT_POLL, "0", "200000", ""},
                 {DOCTOR_HALT_POLL_START, "50000", "200000", ""},
                 {DOCTOR_READ_AHEAD, "128", "1024", "/mnt/a\\040b"}},
    };

    for (kept.count = 0; kept.count <= 3; kept.count++) {
        (void)doctor_kept_print(&kept, text);
        fuzz_seed_text(seeds, text);
    }
}

void fuzz_doctor_mount(struct bytes in) {
    char text[4096];
    struct doctor_mount mount;

    fuzz_string(in, text, sizeof text);
    const size_t size = strlen(text);
    if (!doctor_mount_parse(text, &mount)) {
        return;
    }
    const char *const words[] = {mount.place, mount.options, mount.kind, mount.super_options};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        assert(words[i] > text && words[i] + strlen(words[i]) <= text + size);
        assert(words[i][0] && !strpbrk(words[i], " \n"));
    }
    (void)doctor_option_is(mount.options, "ro");
    assert(!doctor_option_is(mount.super_options, "no,option"));
}

void seed_doctor_mount(const struct fuzz_seeds *seeds) {
    seed_mount_line(seeds);
}
