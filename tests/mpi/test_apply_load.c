/* Loading: each rank has read its own bytes, and all of them together are the checkpoint. */
#include "rank_case.h"

#include "apply/apply.h"
#include "apply/copies.h"
#include "apply/load.h"
#include "apply/parts.h"
#include "net_case.h"
#include "scratch.h"
#include "shardwright/checkpoint.h"

static sw_mesh *mesh;
static sw_comm *comm;
static sw_model *model;
static sw_plan *plan;
static sw_net *net;
static sw_kernel *kernel;
static char folder[512];

static void open_net(const char *name, const char *axes, uint32_t ep, sw_dtype dtype)
{
    sw_source_shards *shards = NULL;
    sw_error err = {0};

    (void)snprintf(folder, sizeof folder, "%s/tests/parity/data/%s", SW_SOURCE_DIR, name);
    if (sw_mesh_create(&mesh, axes, ep, &err) != SW_OK || sw_comm_create(&comm, mesh, NULL, &err) != SW_OK ||
        sw_model_open(&model, folder, &err) != SW_OK ||
        sw_plan_create(&plan, model, mesh, NULL, &err) != SW_OK ||
        sw_net_create(&net, model, &(sw_net_options){.dtype = dtype}, &err) != SW_OK ||
        sw_apply(&net, 1, plan, comm, &(sw_apply_options){0}, &shards, &err) != SW_OK ||
        sw_net_allocate(net, false, &err) != SW_OK ||
        sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_source_shards_destroy(shards);
}

static void close_net(void)
{
    sw_kernel_destroy(kernel);
    sw_net_destroy(net);
    sw_plan_destroy(plan);
    sw_model_close(model);
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
}

/* What a whole net read, in the parts of this rank; the bytes of those in the file. */
static uint64_t compare(sw_dtype dtype)
{
    net_case whole;
    uint64_t bytes = 0;

    net_case_open(&whole, folder, &(sw_net_options){.dtype = dtype}, false);
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *mine = &net->parameters[i];
        size_t width = sw_elem_bytes(mine->dtype);
        size_t n = (size_t)sw_tensor_elems(mine->tensor);
        char *wanted = sw_alloc_zero(n + 1, width);
        assert_int_equal(sw_part_take(sw_applied_parameter_at(net, i),
                                      sw_tensor_data(whole.net->parameters[i].tensor), width, wanted, NULL),
                         SW_OK);
        assert_memory_equal(sw_tensor_data(mine->tensor), wanted, n * width);
        bytes += n * sw_dtype_bits(mine->stored) / 8;
        sw_free(wanted);
    }
    net_case_close(&whole);
    return bytes;
}

static void loads(const char *name, const char *axes, uint32_t ep, sw_dtype dtype)
{
    uint64_t n_bytes = 0;
    sw_error err = {0};

    open_net(name, axes, ep, dtype);
    if (sw_apply_load(net, folder, kernel, &n_bytes, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_int_equal(n_bytes, compare(dtype));
    close_net();
}

static void each_rank_reads_its_bytes_and_no_others(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() <= 2, "is for 1 and 2 ranks");
    const char *axes = sw_test_ranks() == 2 ? "tp=2" : "";
    loads("llama", axes, 0, SW_DTYPE_F32);
    loads("gpt2", axes, 0, SW_DTYPE_F64);
    loads("gpt_bigcode", axes, 0, SW_DTYPE_F32);
    if (sw_test_ranks() == 2) {
        loads("mixtral", "ep=2", 0, SW_DTYPE_F32);
        loads("gpt_oss", "dp=2", 2, SW_DTYPE_F32);
    }
}

/* ---- sharded folders ---- */

/* A copy of this rank's own, of a mesh of its own. */
static void shard(const char *name, const char *axes, uint32_t ep)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_mesh *of = NULL;
    sw_plan *by = NULL;
    sw_model *from = NULL;
    sw_error err = {0};

    options.no_sync = true;
    (void)snprintf(folder, sizeof folder, "%s/tests/parity/data/%s", SW_SOURCE_DIR, name);
    scratch_remove("sharded");
    if (sw_mesh_create(&of, axes, ep, &err) != SW_OK || sw_model_open(&from, folder, &err) != SW_OK ||
        sw_plan_create(&by, from, of, NULL, &err) != SW_OK ||
        sw_checkpoint_shard(folder, by, scratch("sharded"), &options, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_plan_destroy(by);
    sw_model_close(from);
    sw_mesh_destroy(of);
}

static void loads_sharded(const char *name, const char *of, uint32_t ep_of, const char *axes, uint32_t ep)
{
    uint64_t n_bytes = 0;
    sw_error err = {0};

    print_message("    %s cut over %s, ep=%u, on %s, ep=%u\n", name, of, ep_of, axes, ep);
    shard(name, of, ep_of);
    open_net(name, axes, ep, SW_DTYPE_F32);
    if (sw_apply_load(net, scratch("sharded"), kernel, &n_bytes, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_int_equal(n_bytes, compare(SW_DTYPE_F32));
    close_net();
}

static void shards_of_any_mesh_are_read_on_any_other_and_no_byte_too_many(void **state)
{
    sw_test_need(sw_test_ranks() == 2 || sw_test_ranks() == 4, "is for 2 and 4 ranks");
    (void)scratch_setup(state);
    if (sw_test_ranks() == 2) {
        loads_sharded("llama", "tp=2", 0, "tp=2", 0);
        loads_sharded("gpt2", "tp=2", 0, "cp=2", 0);
        loads_sharded("llama", "pp=2", 0, "tp=2", 0);
        loads_sharded("mixtral", "tp=2", 2, "ep=2", 0);
        loads_sharded("mixtral", "ep=3", 0, "tp=2", 2);
    } else {
        loads_sharded("llama", "tp=2", 0, "cp=2,tp=2", 0);
        loads_sharded("gpt_oss", "ep=2", 0, "dp=2,cp=2", 2);
    }
    (void)scratch_teardown(state);
}

static void a_shard_that_is_damaged_on_one_rank_is_named_on_all(void **state)
{
    static const char name[] = "sharded/dense-pp0-tp1.safetensors";
    sw_error err = {0};

    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    (void)scratch_setup(state);
    shard("llama", "tp=2", 0);
    if (sw_test_rank() == 1) {
        sw_buffer file = scratch_read(name);
        uint64_t header = 0;
        memcpy(&header, file.bytes, sizeof header);
        file.bytes[sizeof header + header] ^= 1; /* of the first tensor, which is cut */
        scratch_bytes(name, file.bytes, file.length);
        sw_buffer_clear(&file);
    }
    open_net("llama", "tp=2", 0, SW_DTYPE_F32);
    assert_int_equal(sw_apply_load(net, scratch("sharded"), kernel, NULL, &err), SW_E_FORMAT);
    if (strstr(err.what, name) == NULL || strstr(err.what, "has not the checksum") == NULL)
        fail_msg("%s", err.what);
    if (sw_test_rank() == 0)
        scratch_remove(name);
    assert_int_equal(sw_apply_load(net, scratch("sharded"), kernel, NULL, &err), SW_E_FORMAT);
    if (strstr(err.what, name) == NULL)
        fail_msg("%s", err.what);
    assert_int_equal(err.rank, 0);
    close_net();
    (void)scratch_teardown(state);
}

/* ---- refusals ---- */

static void a_folder_of_another_model_fails_on_all_ranks_with_one_message(void **state)
{
    char other[512];
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() <= 2, "is for 1 and 2 ranks");
    open_net("llama", sw_test_ranks() == 2 ? "tp=2" : "", 0, SW_DTYPE_F32);
    (void)snprintf(other, sizeof other, "%s/tests/parity/data/gpt2", SW_SOURCE_DIR);
    /* Only the last rank has it: the others must not go on. */
    const char *path = sw_test_rank() == sw_test_ranks() - 1 ? other : folder;
    assert_int_equal(sw_apply_load(net, path, kernel, NULL, &err), SW_E_FORMAT);
    if (strstr(err.what, "gpt2: model.embed_tokens.weight is missing") == NULL)
        fail_msg("%s", err.what);
    (void)snprintf(other, sizeof other, "%s/tests/parity/data/granite", SW_SOURCE_DIR);
    assert_int_equal(sw_apply_load(net, other, kernel, NULL, &err), SW_E_FORMAT);
    if (strstr(err.what, "has another shape than its parameter") == NULL &&
        strstr(err.what, "is missing") == NULL)
        fail_msg("%s", err.what);
    close_net();
}

/* One number of rank 1 is another one, or none is; the account, NULL: it is all the same. */
static void other_numbers(const char *name, bool differs, const char *what)
{
    sw_error err = {0};

    open_net("llama", "tp=2", 0, SW_DTYPE_F32);
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        bool is_other = differs && strcmp(p->fqn, name) == 0 && sw_test_rank() == 1;
        for (uint64_t k = 0; k < sw_tensor_elems(p->tensor); k++)
            number_set(p->dtype, sw_tensor_data(p->tensor), k, is_other && k == 3 ? 2 : 1);
    }
    sw_status status = sw_apply_compare_copies(net, &err);
    assert_int_equal(status, what == NULL ? SW_OK : SW_E_FORMAT);
    if (what != NULL)
        assert_string_equal(err.what, what);
    close_net();
}

static void copies_that_differ_are_named_on_all_ranks(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    other_numbers("model.norm.weight", false, NULL);
    other_numbers("model.norm.weight", true, "model.norm.weight: ranks 0 and 1 have read different values");
    other_numbers("model.layers.0.mlp.up_proj.weight", true, NULL); /* each rank has its own rows */
}

static void a_net_without_memory_is_not_loaded(void **state)
{
    const sw_net_options options = {.dtype = SW_DTYPE_F32};
    sw_error err = {0};

    (void)state;
    (void)snprintf(folder, sizeof folder, "%s/tests/parity/data/llama", SW_SOURCE_DIR);
    assert_int_equal(sw_model_open(&model, folder, &err), SW_OK);
    assert_int_equal(sw_net_create(&net, model, &options, &err), SW_OK);
    assert_int_equal(sw_apply_load(net, folder, NULL, NULL, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "the net is not ready to be loaded");
    sw_net_destroy(net);
    sw_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_reads_its_bytes_and_no_others),
        cmocka_unit_test(shards_of_any_mesh_are_read_on_any_other_and_no_byte_too_many),
        cmocka_unit_test(a_shard_that_is_damaged_on_one_rank_is_named_on_all),
        cmocka_unit_test(a_folder_of_another_model_fails_on_all_ranks_with_one_message),
        cmocka_unit_test(copies_that_differ_are_named_on_all_ranks),
        cmocka_unit_test(a_net_without_memory_is_not_loaded),
    };
    return SW_MPI_MAIN("apply_load", tests);
}
