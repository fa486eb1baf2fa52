/* What is asked for, what workers and tiers deliver, and what both losses leave of the time. */

#include "unit.h"
#include "plan_defaults.h"
#include "planner/loading.h"

enum { UNET3D = 1, MI355 = 3 };

static struct data data;
static struct loading_inputs in;
static struct loading_outputs out;

static int reset(void **state) {
    static const char *const rows[][2] = {
        {"sample_size", "100MB"}, {"samples_per_file", "4"}, {"accepted", "90%"},
        {"batch_h100", "7"},      {"step_h100", "0.35s"},
    };

    (void)state;
    data_deinit(&data);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(data_set(&data, "preset.unet3d", rows[i][0], rows[i][1]), 0);
    }
    plan_defaults(&plan_loading, &data, &in);
    return 0;
}

static int forget(void **state) {
    (void)state;
    data_deinit(&data);
    return 0;
}

static void test_tokens(void **state) {
    (void)state;
    loading_plan(&data, &in, &out);
    assert_figure(out.bandwidth_needed, 3e6, 1e-12);
    in.fields = 8;
    loading_plan(&data, &in, &out);
    assert_figure(out.bandwidth_needed, 24e6, 1e-12);
    in.fields = 1;
    in.bytes_per_token = 4;
    loading_plan(&data, &in, &out);
    assert_figure(out.bandwidth_needed, 6e6, 1e-12);
    assert_figure(out.stalled, 0, 0);
    assert_non_null(strstr(out.verdict.text, "ok: loading keeps up"));
    /* More nodes for the same tokens ask for no more bytes. */
    in.nodes = 1000;
    loading_plan(&data, &in, &out);
    assert_figure(out.bandwidth_needed, 6e6, 1e-12);
    /* 6 operations a parameter and token, of which the GPUs reach a share. */
    in.tokens = 0;
    loading_plan(&data, &in, &out);
    assert_figure(out.token_rate, 0.4 * 989e12 * 1000 * in.gpus_per_node / (6 * 70e9), 1e-12);
    in.workload = choice_of(&plan_loading, "workload", "custom");
    in.custom_rate = 0;
    loading_plan(&data, &in, &out);
    assert_figure(out.stalled, 0, 0);
    assert_cannot(out.epoch, "nothing is loaded");
}

static void test_preset(void **state) {
    (void)state;
    in.workload = UNET3D;
    in.nodes = 1;
    loading_plan(&data, &in, &out);
    /* 8 x 7 / 0.35 s samples of 100 MB, 4 in a file, from 20 GB/s. */
    assert_figure(out.demand, 160, 1e-12);
    assert_figure(out.bandwidth_needed, 16e9, 1e-12);
    assert_figure(out.files_per_second, 40, 1e-12);
    assert_figure(out.stalled, 0, 0);
    assert_non_null(strstr(out.verdict.text, "keeps up"));
    assert_cannot(out.tokens_trained, "samples of this workload are no tokens");

    in.read_bandwidth = 8e9;
    loading_plan(&data, &in, &out);
    assert_figure(out.stalled, 0.5, 1e-12);
    assert_figure(out.loaded, 8e9, 1e-12);
    assert_non_null(strstr(out.verdict.text, "bound by the parallel file system"));
    assert_non_null(strstr(out.verdict.text, "does not accept it"));

    const char *unknown = "the presets say nothing of this workload on this accelerator";
    assert_int_equal(data_set(&data, "preset.unet3d", "step_h100", "0s"), 0);
    loading_plan(&data, &in, &out);
    assert_cannot(out.sample_rate, unknown);
    assert_int_equal(data_set(&data, "preset.unet3d", "sample_size", "-3B"), 0);
    loading_plan(&data, &in, &out);
    assert_cannot(out.sample_size, unknown);
    assert_int_equal(data_set(&data, "preset.unet3d", "sample_size", "100MB"), 0);

    in.accelerator = MI355;
    loading_plan(&data, &in, &out);
    assert_figure(out.sample_size, 100e6, 0);
    assert_cannot(out.bandwidth_needed, unknown);
    assert_cannot(out.useful, unknown);
    assert_non_null(strstr(out.verdict.text, unknown));
}

static void test_workers(void **state) {
    (void)state;
    in.workload = choice_of(&plan_loading, "workload", "custom");
    in.custom_size = 1e6;
    in.custom_rate = 1000;
    in.nodes = 1;
    in.gpus_per_node = 1;
    in.latency = 4e-3;
    in.stream_bandwidth = 1e9;
    in.workers = 1;
    in.prefetch = 1;
    loading_plan(&data, &in, &out);
    /* 5 ms a sample, one at a time: 200 a second of 1,000. */
    assert_figure(out.outstanding_needed, 5, 1e-12);
    assert_figure(out.worker_rate, 200, 1e-12);
    assert_figure(out.workers_needed, 5, 0);
    assert_figure(out.stalled, 0.8, 1e-12);
    assert_non_null(strstr(out.verdict.text, "short: too few reads in flight"));
    assert_non_null(strstr(out.verdict.text, "--workers 5"));
    in.workers = 5;
    loading_plan(&data, &in, &out);
    assert_figure(out.stalled, 0, 0);

    /* However many reads are in flight, a worker decodes one sample at a time. */
    in.decode = 2e-3;
    in.prefetch = 1e6;
    in.workers = 1;
    loading_plan(&data, &in, &out);
    assert_figure(out.worker_rate, 500, 1e-12);
    assert_figure(out.workers_needed, 2, 0);
}

static void test_more_never_stalls_longer(void **state) {
    double before = 1;

    (void)state;
    in.workload = UNET3D;
    for (in.read_bandwidth = 1e9; in.read_bandwidth < 1e15; in.read_bandwidth *= 3) {
        loading_plan(&data, &in, &out);
        assert_true(out.stalled.value <= before);
        before = out.stalled.value;
    }
    /* All from the parallel file system has to pass the NICs: 25 GB/s of 16 a node. */
    assert_string_equal(out.tier.text, "NICs of the nodes");
    assert_figure(out.stalled, 0, 0);
    in.link = 8e9;
    loading_plan(&data, &in, &out);
    assert_figure(out.stalled, 0.5, 1e-12);
}

static void test_tiers(void **state) {
    (void)state;
    in.nodes = 10;
    in.memory_share = 0.5;
    in.nvme_share = 0.3;
    in.object_share = 0.1;
    loading_plan(&data, &in, &out);
    assert_figure(out.parallel_share, 0.1, 1e-12);
    /* memory 1,000/0.5, NVMe 200/0.3, parallel 20/0.1, object 5/0.1, NICs 250/0.2 GB/s. */
    assert_figure(out.tiers_bandwidth, 50e9, 1e-12);
    assert_string_equal(out.tier.text, "object store");
    assert_figure(out.serial_bandwidth, 1e9 / (0.5 / 1000 + 0.3 / 200 + 0.1 / 20 + 0.1 / 5), 1e-12);
    in.object_share = 0;
    in.nvme_share = 0.4;
    in.read_bandwidth = 1e12;
    loading_plan(&data, &in, &out);
    assert_string_equal(out.tier.text, "NVMe of the nodes");

    /* Shares that only rounding makes more than 1 pass; others are told. */
    in.memory_share = 0.33;
    in.nvme_share = 0.56;
    in.object_share = 0.11;
    assert_true(in.memory_share + in.nvme_share + in.object_share > 1);
    loading_plan(&data, &in, &out);
    assert_figure(out.parallel_share, 0, 0);
    assert_null(out.useful.cannot);
    in.object_share = 0.12;
    loading_plan(&data, &in, &out);
    assert_cannot(out.parallel_share, "the shares add up to more than 100 %");
    assert_cannot(out.useful, "the shares add up to more than 100 %");
    in.object_share = 0;
    in.efficiency = 0;
    loading_plan(&data, &in, &out);
    assert_cannot(out.stalled, "the parallel file system's bandwidth is zero");
}

static void test_two_losses(void **state) {
    (void)state;
    in.measured_stall = 0.31;
    in.interval = 79;
    in.checkpoint_stall = 21;
    loading_plan(&data, &in, &out);
    assert_figure(out.useful, 0.69 * 0.79, 1e-12);
    assert_figure(out.useful_additive, 0.48, 1e-12);
    assert_figure(out.tokens_trained, 1.035e6, 1e-12);
    in.measured_stall = 1;
    loading_plan(&data, &in, &out);
    assert_figure(out.useful, 0, 0);
    assert_figure(out.useful_additive, 0, 0);
    assert_cannot(out.epoch, "nothing is loaded");
    in.interval = 0;
    in.checkpoint_stall = 0;
    loading_plan(&data, &in, &out);
    assert_cannot(out.useful, "there is neither training nor a checkpoint");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_tokens, reset),
        cmocka_unit_test_setup(test_preset, reset),
        cmocka_unit_test_setup(test_workers, reset),
        cmocka_unit_test_setup(test_more_never_stalls_longer, reset),
        cmocka_unit_test_setup(test_tiers, reset),
        cmocka_unit_test_setup(test_two_losses, reset),
    };

    return cmocka_run_group_tests(tests, NULL, forget);
}
