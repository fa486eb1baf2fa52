/* shoal.conf, an INI file read by inih. */
#include "node/config.h"
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number_row {
    const char *section;
    const char *name;
    size_t offset;
    uint64_t minimum;
    uint64_t maximum;
    uint64_t value;
    const char *comment;
};

#define SIZE_ROW(field, minimum, maximum, value, comment)                                          \
    {"sizes", #field, offsetof(struct config, field), minimum, maximum, value, comment}
#define LIMIT_ROW(field, minimum, maximum, value, comment)                                         \
    {"limits", #field, offsetof(struct config, field), minimum, maximum, value, comment}

static const struct number_row number_rows[] = {
    SIZE_ROW(mdt_ring_bytes, MIB, GIB, 32 * MIB, "shared memory for metadata records"),
    SIZE_ROW(ost_ring_bytes, MIB, GIB, 8 * MIB, "shared memory for each storage target's records"),
    SIZE_ROW(ost_ring_data_bytes, 256 * KIB, GIB, 32 * MIB, "... and for its small writes"),
    SIZE_ROW(disk_log_bytes, 8 * MIB, 1024 * GIB, 512 * MIB,
             "of each target, fixed when it is made"),
    SIZE_ROW(mdt_changes_bytes, 8 * MIB, 32 * GIB, 512 * MIB,
             "memory for metadata not in a checkpoint"),
    SIZE_ROW(ost_changes_bytes, 8 * MIB, 32 * GIB, 128 * MIB, "the same, of each storage target"),
    SIZE_ROW(base_memory_bytes, MIB, 1024 * GIB, 4 * GIB, "metadata below this is read in place"),
    SIZE_ROW(base_check_bytes, 64 * KIB, 1024 * GIB, 4 * GIB,
             "metadata below this is looked through by each start"),
    SIZE_ROW(cache_bytes, 0, 1024 * GIB, 64 * MIB, "cache of blocks, of each storage target"),
    SIZE_ROW(data_bytes_max, 16 * MIB, CONFIG_DATA_BYTES_MAX, 0,
             "data of each storage target grows up to this"),
    SIZE_ROW(keep_free_bytes, MIB, CONFIG_DATA_BYTES_MAX, 0,
             "data leaves as much free for logs and metadata"),
    LIMIT_ROW(open_files_max, 1024, 1048576, 65536, "files and directories open in the mount"),
    LIMIT_ROW(mount_requests_max, 0, 4096, 0,
              "requests of the mount at work, each with a buffer of 1 MiB; 0: 256, or 8 a CPU"),
    LIMIT_ROW(request_timeout_ms, 1000, 3600000, 120000,
              "what a node away for so long has answers EIO"),
    LIMIT_ROW(session_timeout_ms, 5000, 3600000, 30000, "a client silent for so long is evicted"),
    LIMIT_ROW(sessions_max, 16, 65536, 65536, "clients that may have a session at a time"),
    LIMIT_ROW(connections_max, 64, 65536, 4096,
              "connections of clients and other nodes, shared evenly"),
    LIMIT_ROW(slow_request_ms, 0, 3600000, 1000, "what takes longer gets a line in shoal.log"),
};

static uint64_t *number_at(struct config *config, const struct number_row *row) {
    return (uint64_t *)(void *)((char *)config + row->offset);
}

void config_default(struct config *config) {
    *config = (struct config){.format = CONFIG_FORMAT,
                              .ost_count = 4,
                              .mdt_count = 1,
                              .node = CONFIG_FIRST_NODE,
                              .first_target = CONFIG_FIRST_TARGET};
    for (size_t i = 0; i < ARRAY_SIZE(number_rows); i++) {
        *number_at(config, &number_rows[i]) = number_rows[i].value;
    }
}

struct parse {
    struct config *config;
    char *problem;
    bool has_format;
    bool has_id;
    bool has_node_key;
    bool has_mdts;
};

/* One that is too large for its type comes out as the largest, which is beyond all maxima. */
static bool parse_number(const char *text, uint64_t *ret_number) {
    char *end;

    *ret_number = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool parse_hex(const char *text, uint8_t *ret_bytes, size_t count) {
    if (strlen(text) != 2 * count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned byte;

        if (sscanf(text + 2 * i, "%2x", &byte) != 1) {
            return false;
        }
        ret_bytes[i] = (uint8_t)byte;
    }
    return true;
}

static int line_complain(struct parse *parse, const char *name, const char *value) {
    snprintf(parse->problem, 256, "%s: \"%.40s = %.80s\" has no meaning", CONFIG_NAME, name, value);
    return 0;
}

static int parse_row(struct parse *parse, const char *section, const char *name,
                     const char *value) {
    for (size_t i = 0; i < ARRAY_SIZE(number_rows); i++) {
        if (strcmp(number_rows[i].section, section) == 0 &&
            strcmp(number_rows[i].name, name) == 0) {
            uint64_t number;

            if (!parse_number(value, &number) || number < number_rows[i].minimum ||
                number > number_rows[i].maximum) {
                snprintf(parse->problem, 256,
                         "%s: %s must be a number%s, at least %" PRIu64 " and at most %" PRIu64,
                         CONFIG_NAME, name, strcmp(section, "sizes") == 0 ? " of bytes" : "",
                         number_rows[i].minimum, number_rows[i].maximum);
                return 0;
            }
            *number_at(parse->config, &number_rows[i]) = number;
            return 1;
        }
    }
    return line_complain(parse, name, value);
}

static const char *const encryption_words[] = {
    [CONFIG_ENCRYPTED] = "on", [CONFIG_PLAIN] = "off", [CONFIG_ENCRYPTED_ALWAYS] = "always"};

static int parse_encryption(struct parse *parse, const char *value) {
    for (uint32_t i = 0; i < ARRAY_SIZE(encryption_words); i++) {
        if (strcmp(value, encryption_words[i]) == 0) {
            parse->config->link_encryption = i;
            return 1;
        }
    }
    snprintf(parse->problem, 256, "%s: link_encryption takes on, off or always, not %.80s",
             CONFIG_NAME, value);
    return 0;
}

static const char *const mount_words[] = {
    [CONFIG_MOUNT_INSIDE] = "inside", [CONFIG_MOUNT_APART] = "apart"};

static const char *const channel_words[] = {
    [CONFIG_CHANNEL_DEV] = "dev", [CONFIG_CHANNEL_URING] = "uring", [CONFIG_CHANNEL_ANY] = "any"};

const char *config_channel_word(uint32_t channel) {
    return channel_words[channel];
}

int config_channel(const char *word, uint32_t *ret_channel) {
    for (uint32_t i = 0; i < ARRAY_SIZE(channel_words); i++) {
        if (strcmp(word, channel_words[i]) == 0) {
            *ret_channel = i;
            return 0;
        }
    }
    return -ERR_INVALID;
}

static int parse_mount(struct parse *parse, const char *name, const char *value) {
    struct config *config = parse->config;

    if (strcmp(name, "mount") == 0) {
        for (uint32_t i = CONFIG_MOUNT_INSIDE; i < ARRAY_SIZE(mount_words); i++) {
            if (strcmp(value, mount_words[i]) == 0) {
                config->mount = i;
                return 1;
            }
        }
        snprintf(parse->problem, 256, "%s: mount takes inside or apart, not %.80s", CONFIG_NAME,
                 value);
        return 0;
    }
    if (strcmp(name, "channel") == 0) {
        if (config_channel(value, &config->channel) == 0) {
            return 1;
        }
        snprintf(parse->problem, 256, "%s: channel takes any, dev or uring, not %.80s", CONFIG_NAME,
                 value);
        return 0;
    }
    if (strcmp(name, "tune") == 0) {
        config->leaves_machine = strcmp(value, "no") == 0;
        if (config->leaves_machine || strcmp(value, "yes") == 0) {
            return 1;
        }
        snprintf(parse->problem, 256, "%s: tune takes yes or no, not %.80s", CONFIG_NAME, value);
        return 0;
    }
    if (strcmp(name, "mount_point") != 0) {
        return line_complain(parse, name, value);
    }
    if (value[0] != '/' || strlen(value) >= sizeof config->mount_point) {
        snprintf(parse->problem, 256, "%s: mount_point takes the absolute path of a directory",
                 CONFIG_NAME);
        return 0;
    }
    snprintf(config->mount_point, sizeof config->mount_point, "%s", value);
    return 1;
}

int config_addresses(const char *text, struct address *ret_addresses, uint32_t address_max) {
    uint32_t count = 0;

    for (const char *at = text;; count++) {
        size_t size = strcspn(at, ",");
        char one[ADDRESS_TEXT_BYTES];

        if (count == address_max || size >= sizeof one) {
            return -ERR_INVALID;
        }
        memcpy(one, at, size);
        one[size] = '\0';
        if (address_parse(one, &ret_addresses[count]) < 0 ||
            ret_addresses[count].kind == ADDRESS_UNIX || ret_addresses[count].port == 0) {
            return -ERR_INVALID;
        }
        if (at[size] == '\0') {
            return (int)count + 1;
        }
        at += size + 1;
    }
}

bool config_address_is_one(const struct address *address) {
    static const uint8_t any[sizeof address->ip];

    return address->kind == ADDRESS_NAME || memcmp(address->ip, any, sizeof any) != 0;
}

static int parse_address(struct parse *parse, const char *name, const char *value,
                         char ret_text[ADDRESS_TEXT_BYTES]) {
    struct address address;

    if (config_addresses(value, &address, 1) != 1) {
        snprintf(parse->problem, 256, "%s: %s takes ADDRESS:PORT, as 10.0.0.1:7400, not %.80s",
                 CONFIG_NAME, name, value);
        return 0;
    }
    address_format(&address, ret_text);
    return 1;
}

static int parse_network(struct parse *parse, const char *name, const char *value) {
    struct config *config = parse->config;
    struct address addresses[CONFIG_JOIN_MAX];

    if (strcmp(name, "listen") == 0) {
        return parse_address(parse, name, value, config->listen);
    }
    if (strcmp(name, "advertise") == 0) {
        return parse_address(parse, name, value, config->advertise);
    }
    if (strcmp(name, "join") == 0) {
        if (strlen(value) >= sizeof config->join ||
            config_addresses(value, addresses, CONFIG_JOIN_MAX) < 0) {
            snprintf(parse->problem, 256,
                     "%s: join takes ADDRESS:PORT, up to %d with commas between, not %.80s",
                     CONFIG_NAME, CONFIG_JOIN_MAX, value);
            return 0;
        }
        snprintf(config->join, sizeof config->join, "%s", value);
        return 1;
    }
    if (strcmp(name, "key") == 0) {
        if (value[0] != '/' || strlen(value) >= sizeof config->key_path) {
            snprintf(parse->problem, 256, "%s: key takes the absolute path of a key file",
                     CONFIG_NAME);
            return 0;
        }
        snprintf(config->key_path, sizeof config->key_path, "%s", value);
        return 1;
    }
    return strcmp(name, "link_encryption") == 0 ? parse_encryption(parse, value)
                                                : line_complain(parse, name, value);
}

static int parse_line(void *context, const char *section, const char *name, const char *value) {
    struct parse *parse = context;
    struct config *config = parse->config;
    uint64_t number;

    if (strcmp(section, "network") == 0) {
        return parse_network(parse, name, value);
    }
    if (strcmp(section, "mount") == 0) {
        return parse_mount(parse, name, value);
    }
    if (strcmp(section, "cluster") != 0) {
        return parse_row(parse, section, name, value);
    }
    if (strcmp(name, "format") == 0 && parse_number(value, &number) && number > 0) {
        config->format = (uint32_t)MIN(number, (uint64_t)UINT32_MAX);
        parse->has_format = true;
        return 1;
    }
    if (strcmp(name, "id") == 0 && parse_hex(value, config->cluster_id, 16)) {
        parse->has_id = true;
        return 1;
    }
    if (strcmp(name, "name_hash_key") == 0) {
        return parse_hex(value, (uint8_t *)config->name_hash_key, 16) ||
               line_complain(parse, name, value);
    }
    if (strcmp(name, "node_key") == 0 && parse_hex(value, (uint8_t *)config->node_key, 16)) {
        parse->has_node_key = true;
        return 1;
    }
    if (strcmp(name, "node") == 0 && parse_number(value, &number) && number > 0 &&
        number <= UINT32_MAX) {
        config->node = (uint32_t)number;
        return 1;
    }
    if (strcmp(name, "first_target") == 0 && parse_number(value, &number) &&
        number >= CONFIG_FIRST_TARGET && number <= UINT32_MAX) {
        config->first_target = (uint32_t)number;
        return 1;
    }
    if (strcmp(name, "mdts") == 0 && parse_number(value, &number) && number <= CONFIG_MDTS_MAX) {
        config->mdt_count = (uint32_t)number;
        parse->has_mdts = true;
        return 1;
    }
    if (strcmp(name, "osts") == 0 && parse_number(value, &number) && number <= CONFIG_OSTS_MAX) {
        config->ost_count = (uint32_t)number;
        return 1;
    }
    return line_complain(parse, name, value);
}

static int roles_checked(const struct config *config, struct config *ret_config,
                         char problem[256]) {
    bool first = config_is_first(config);

    if (first ? config->mdt_count > 0 && config->ost_count > 0
              : config->mdts_by_manager || config->mdt_count + config->ost_count > 0) {
        *ret_config = *config;
        return 0;
    }
    snprintf(problem, 256, "%s: osts = %u, mdts = %u: %s", CONFIG_NAME, config->ost_count,
             config->mdt_count,
             first ? "the first node has at least one of each" : "a node has at least one of them");
    return -ERR_INVALID;
}

int config_parse(const char *text, struct config *ret_config, char problem[256]) {
    struct config config;
    struct parse parse = {.config = &config, .problem = problem};

    config_default(&config);
    problem[0] = '\0';
    int line = ini_parse_string(text, parse_line, &parse);
    if (parse.has_format && config.format > CONFIG_FORMAT) {
        snprintf(problem, 256, "it has format %u, this version reads up to %d: use a newer one",
                 config.format, CONFIG_FORMAT);
        return -ERR_NEWER_FORMAT;
    }
    if (parse.has_format && config.format < CONFIG_FORMAT) {
        snprintf(problem, 256,
                 "it has format %u, this version reads %d: start it by the version that made it, "
                 "and copy what is needed to a new one",
                 config.format, CONFIG_FORMAT);
        return -ERR_OLDER_FORMAT;
    }
    if (line != 0) {
        if (!problem[0]) {
            snprintf(problem, 256, "%s: line %d cannot be read", CONFIG_NAME, line);
        }
        return -ERR_INVALID;
    }
    if (config.disk_log_bytes < 8 * MAX(config.mdt_ring_bytes, config.ost_ring_bytes)) {
        snprintf(problem, 256, "%s: disk_log_bytes must be at least 8 times each ring's bytes",
                 CONFIG_NAME);
        return -ERR_INVALID;
    }
    if (config.listen[0] && !config.key_path[0]) {
        snprintf(problem, 256, "%s: listen needs key: make one with `shoal key new FILE`",
                 CONFIG_NAME);
        return -ERR_INVALID;
    }
    bool joins = config.join[0] && !parse.has_id && !parse.has_node_key;
    if (joins && parse.has_format) {
        config.node = 0; /* It has no numbers yet. */
        config.mdts_by_manager = !parse.has_mdts;
        return roles_checked(&config, ret_config, problem);
    }
    if (!parse.has_format || !parse.has_id) {
        snprintf(problem, 256, "%s lacks the cluster's format or id", CONFIG_NAME);
        return -ERR_NOT_OURS;
    }
    if (parse.has_node_key == config_is_first(&config) ||
        (!config_is_first(&config) && (!config.listen[0] || !config.join[0]))) {
        snprintf(problem, 256, "%s: a node that has joined has node_key, node, listen and join",
                 CONFIG_NAME);
        return -ERR_INVALID;
    }
    if (!parse.has_node_key) {
        memcpy(config.node_key, config.cluster_id, sizeof config.node_key);
    }
    return roles_checked(&config, ret_config, problem);
}

void config_keep_free(struct config *config, uint64_t file_system_bytes) {
    uint64_t part = MAX(file_system_bytes / 20 / MIB * MIB, (uint64_t)MIB);

    if (config->keep_free_bytes == 0) {
        config->keep_free_bytes = MIN((uint64_t)GIB, part);
    }
}

void config_data_max(struct config *config, uint64_t bytes) {
    uint64_t left = bytes > config->keep_free_bytes ? (bytes - config->keep_free_bytes) / 2 : 0;

    if (config->data_bytes_max == 0) {
        config->data_bytes_max =
            MIN(left / MAX(config->ost_count, 1U) / MIB * MIB, CONFIG_DATA_BYTES_MAX);
    }
}

static size_t print_hex(char *text, size_t size, const uint8_t *bytes, size_t count) {
    size_t at = 0;

    for (size_t i = 0; i < count && at < size; i++) {
        at += (size_t)snprintf(text + at, size - at, "%02x", bytes[i]);
    }
    return at;
}

/* In comments what is not set, so that one sees what could be. */
static size_t print_network(const struct config *config, char *text, size_t size) {
    int bytes = snprintf(
        text, size,
        "\n[network]\n; where other machines reach this node; needs key\n"
        "%slisten = %s\n; ... where that is another address than it listens at\n"
        "%sadvertise = %s\n; of nodes of the cluster that this one has joined\n"
        "%sjoin = %s\n; file of the members' key (`shoal key new FILE`)\n%skey = %s\n"
        "; on: links are encrypted, but those within a machine; off; always\n"
        "link_encryption = %s\n",
        config->listen[0] ? "" : ";", config->listen[0] ? config->listen : "10.0.0.1:7400",
        config->advertise[0] ? "" : ";",
        config->advertise[0] ? config->advertise : "192.0.2.1:7400", config->join[0] ? "" : ";",
        config->join[0] ? config->join : "10.0.0.2:7400", config->key_path[0] ? "" : ";",
        config->key_path[0] ? config->key_path : "/etc/shoal/members.key",
        encryption_words[config->link_encryption]);

    return bytes < 0 ? 0 : (size_t)bytes;
}

static size_t print_mount(const struct config *config, char *text, size_t size) {
    bool chosen = config->mount != CONFIG_MOUNT_DEFAULT;
    int bytes = snprintf(
        text, size,
        "\n[mount]\n; inside: by the daemon, faster, gone when it dies; apart: by a process\n"
        "; of its own, which waits for the daemon; not set: apart where the node listens\n"
        "%smount = %s\n; where `shoal up` mounts without --mount\n%smount_point = %s\n"
        "; dev: requests come by /dev/fuse; uring: by io_uring (Linux 6.14); any: if offered\n"
        "%schannel = %s\n; yes: sets the kernel's enable_uring for that, where it is N\n"
        "%stune = %s\n",
        chosen ? "" : ";", mount_words[chosen ? config->mount : CONFIG_MOUNT_INSIDE],
        config->mount_point[0] ? "" : ";",
        config->mount_point[0] ? config->mount_point : "/mnt/shoal",
        config->channel != CONFIG_CHANNEL_ANY ? "" : ";", config_channel_word(config->channel),
        config->leaves_machine ? "" : ";", config->leaves_machine ? "no" : "yes");

    return bytes < 0 ? 0 : (size_t)bytes;
}

/* Of one that has joined. */
static size_t print_node(const struct config *config, char *text, size_t size) {
    size_t at = 0;

    if (config_is_first(config)) {
        return 0;
    }
    at = (size_t)snprintf(text, size,
                          "; it has joined that cluster, under these numbers\nnode_key = ");
    at += print_hex(text + MIN(at, size), size - MIN(at, size), (const uint8_t *)config->node_key,
                    16);
    at += (size_t)snprintf(text + MIN(at, size), size - MIN(at, size),
                           "\nnode = %u\nfirst_target = %u\n", config->node, config->first_target);
    return at;
}

void config_print(const struct config *config, char *text, size_t size) {
    size_t at = (size_t)snprintf(text, size,
                                 "; Shoal keeps a cluster in this directory.\n"
                                 "[cluster]\nformat = %u\nosts = %u\nmdts = %u\nid = ",
                                 config->format, config->ost_count, config->mdt_count);

    at += print_hex(text + at, size - at, config->cluster_id, 16);
    at += (size_t)snprintf(text + at, size - at, "\nname_hash_key = ");
    at += print_hex(text + at, size - at, (const uint8_t *)config->name_hash_key, 16);
    at += (size_t)snprintf(text + at, size - at, "\n");
    at += print_node(config, text + MIN(at, size), size - MIN(at, size));
    at += print_network(config, text + MIN(at, size), size - MIN(at, size));
    at += print_mount(config, text + MIN(at, size), size - MIN(at, size));
    const char *section = "";

    for (size_t i = 0; i < ARRAY_SIZE(number_rows) && at < size; i++) {
        const struct number_row *row = &number_rows[i];
        uint64_t value = *number_at((struct config *)(uintptr_t)config, row);

        /* Left out, as it is not known yet. */
        if (value < row->minimum) {
            continue;
        }
        if (strcmp(section, row->section) != 0) {
            section = row->section;
            at += (size_t)snprintf(text + at, size - at, "\n[%s]\n", section);
            if (at >= size) {
                break;
            }
        }
        at += (size_t)snprintf(text + at, size - at, "; %s\n%s = %" PRIu64 "\n", row->comment,
                               row->name, value);
    }
}
