/* A cluster with small targets in a temporary directory, on the real outside. */
#pragma once
#include "unit.h"
#include "node/local_cluster.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct local_place {
    char path[64];
    struct local_cluster *cluster;
};

static inline void local_place_configure(const char *path) {
    struct config config;
    char name[128];
    char text[4096];

    config_default(&config);
    config.ost_count = 2;
    /* Rings are named by it, and another test may run beside this one. */
    assert_int_equal(getrandom(config.cluster_id, sizeof config.cluster_id, 0),
                     sizeof config.cluster_id);
    config.data_bytes_max = 128 * MIB;
    config.mdt_ring_bytes = MIB;
    config.ost_ring_bytes = MIB;
    config.ost_ring_data_bytes = 4 * MIB;
    config.disk_log_bytes = 16 * MIB;
    config.mdt_changes_bytes = 16 * MIB;
    config.ost_changes_bytes = 16 * MIB;
    config_print(&config, text, sizeof text);
    snprintf(name, sizeof name, "%s/%s", path, CONFIG_NAME);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void local_place_open(struct local_place *place) {
    const char *parent = getenv("TMPDIR");
    struct local_cluster_options options = {.directory = place->path, .origin = "test"};
    char problem[512];

    snprintf(place->path, sizeof place->path, "%.30s/test_local_XXXXXX", parent ? parent : "/tmp");
    assert_non_null(mkdtemp(place->path));
    local_place_configure(place->path);
    if (local_cluster_open(&options, &place->cluster, problem)) {
        fail_msg("%s", problem);
    }
}

static inline int local_place_remove(const char *path, const struct stat *attributes, int kind,
                                     struct FTW *at) {
    (void)attributes;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void local_place_close(struct local_place *place) {
    assert_int_equal(local_cluster_stop(place->cluster), 0);
    local_cluster_close(place->cluster);
    assert_int_equal(nftw(place->path, local_place_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
}
