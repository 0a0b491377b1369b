/*
 * Making a random-weight checkpoint of a config (shardwright/checkpoint.h, docs/reference/init.md): decide
 * what the config is to say, let the family's table say which parameters that means, lay them out as merge
 * does, fill them. The config that is written describes exactly what is written beside it.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status.h"
#include "checkpoint/carry.h"
#include "checkpoint/format.h"
#include "checkpoint/init_write.h"
#include "checkpoint/options.h"
#include "checkpoint/publish.h"
#include "model/config_edit.h"
#include "model/generate.h"
#include "model/shards.h"
#include "plan/report.h"
#include "shardwright/checkpoint.h"

#define LIST_MEMORY_LIMIT ((size_t)4 << 30)

enum { SMALL_FILES_BYTES = 1 << 20 }; /* room for what is small and not yet made */

/* One call. */
typedef struct making {
    sw_init_options init;
    sw_checkpoint_options options;
    const char *path; /* of the config */
    char *path_in_folder;
    sw_file_map map;
    sw_config given;
    sw_buffer text; /* of the config that is written, and what it says */
    sw_config config;
    sw_store store; /* no files: names, shapes and dtypes of what is made */
    sw_target *target;
    sw_publication publication;
    sw_error *err;
} making;

static void clear_making(making *m)
{
    sw_publish_drop(&m->publication);
    sw_target_destroy(m->target);
    sw_free(m->store.tensors);
    sw_tensor_list_clear(&m->store.list);
    sw_config_clear(&m->config);
    sw_buffer_clear(&m->text);
    sw_config_clear(&m->given);
    sw_file_map_close(&m->map);
    sw_free(m->path_in_folder);
}

static void clear_buffer(sw_buffer *buffer)
{
    sw_buffer_clear(buffer);
}

/* ---- options ---- */

static const double most_scale = 1000.0; /* weights far beyond overflow in the short floats, then in all */

static sw_status check_init(const sw_init_options *init, sw_error *err)
{
    bool is_written = init->dtype == SW_DTYPE_UNKNOWN || init->dtype == SW_DTYPE_F32 ||
                      init->dtype == SW_DTYPE_BF16 || init->dtype == SW_DTYPE_F16;

    if (!is_written)
        return SW_FAIL(err, SW_E_ARGUMENT, "give F32, BF16 or F16",
                       "no random weights are written in dtype %s",
                       sw_dtype_name(init->dtype) == NULL ? "?" : sw_dtype_name(init->dtype));
    if (!(init->scale >= 0.0 && init->scale <= most_scale))
        return SW_FAIL(err, SW_E_ARGUMENT, "give a number above 0 and up to 1000",
                       "the scale %g is no factor", init->scale);
    if (init->layers > SW_MAX_TENSORS)
        return SW_FAIL(err, SW_E_ARGUMENT, "", "%" PRIu32 " layers are more than %d", init->layers,
                       SW_MAX_TENSORS);
    return SW_OK;
}

static sw_status begin(making *m, const sw_init_options *init, const sw_checkpoint_options *options,
                       sw_checkpoint_result *result, sw_error *err)
{
    static const sw_options_type type = {"sw_init_options", "start from SW_INIT_OPTIONS_INIT",
                                         SW_END_OF(sw_init_options, scale), sizeof(sw_init_options)};

    m->err = err;
    m->init = (sw_init_options)SW_INIT_OPTIONS_INIT;
    SW_TRY(sw_checkpoint_begin(&m->options, options, result, err));
    SW_TRY(sw_options_read(&m->init, init, &type, err));
    return check_init(&m->init, err);
}

/* ---- the config ---- */

static sw_status read_config(making *m, const char *path)
{
    m->path = path;
    if (sw_file_kind_of(path) == SW_FILE_FOLDER) {
        m->path_in_folder = sw_path_in(path, "config.json");
        if (m->path_in_folder == NULL)
            return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "%s: no memory", path);
        m->path = m->path_in_folder;
    }
    SW_TRY(sw_map_text(&m->map, m->path, SW_CONFIG_MAX_BYTES, m->err));
    SW_TRY(sw_config_read(&m->given, m->map, m->path, m->err));
    if (m->given.family != NULL && !m->given.is_family_nested)
        return SW_OK;
    return SW_FAIL(m->err, SW_E_FORMAT, "give the config of a known family (docs/adding-a-family.md)",
                   "%s: no family is known for architecture \"%s\" and model_type \"%s\": its parameters do "
                   "not follow from config.json",
                   m->path, m->given.architecture, m->given.model_type);
}

static bool is_quantised(const sw_config *config)
{
    return config->quantization.method != SW_QUANTIZATION_NONE;
}

/* The caller's dtype, else the config's, where that can be written and the config is not just silent. */
static sw_dtype choose_dtype(const making *m)
{
    sw_dtype said = m->given.dtype;

    if (m->init.dtype != SW_DTYPE_UNKNOWN)
        return m->init.dtype;
    if (is_quantised(&m->given) && m->given.torch_dtype[0] == '\0')
        return SW_DTYPE_BF16;
    return said == SW_DTYPE_F32 || said == SW_DTYPE_F16 ? said : SW_DTYPE_BF16;
}

static void say_unquantised(const making *m, sw_dtype dtype)
{
    const char *name = m->given.quantization.name;

    if (m->options.report == NULL)
        return;
    sw_report_add(m->options.report, SW_SEVERITY_NOTE, "init_unquantised", "", "",
                  "%.200s: describes weights quantised by \"%.60s\"; they are written in %s, and the config "
                  "beside them without its quantisation",
                  m->path, name[0] == '\0' ? "mlx" : name, sw_dtype_name(dtype));
}

/* The text that is written, and what it says when it is read again. */
static sw_status edit_config(making *m)
{
    sw_dtype dtype = choose_dtype(m);
    sw_config_edit edit = {.layers = m->init.layers, .drops_quantization = is_quantised(&m->given)};

    if (dtype != m->given.dtype)
        edit.dtype = dtype;
    SW_TRY(sw_config_edited(&m->text, m->map, m->path, &m->given, &edit, m->err));
    SW_TRY(sw_config_read(&m->config, sw_file_map_of(m->text.bytes, m->text.length), m->path, m->err));
    if (m->init.layers > 0 && m->config.attributes.value[SW_ATTR_LAYERS] != (int64_t)m->init.layers)
        return SW_FAIL(m->err, SW_E_FORMAT, "write the number into the config yourself",
                       "%s: its number of layers cannot be changed: no key that we know holds it", m->path);
    if (is_quantised(&m->given))
        say_unquantised(m, dtype);
    return SW_OK;
}

/* ---- parameters ---- */

static sw_status make_list(making *m)
{
    sw_store *store = &m->store;

    SW_TRY(sw_tensor_list_init(&store->list, LIST_MEMORY_LIMIT, m->err));
    sw_status status = sw_generate_tensors(&store->list, m->config.family, &m->config, m->err);
    if (status != SW_OK) {
        sw_error_context(m->err, "%.200s", m->path);
        return status;
    }
    store->tensors = sw_alloc_zero(store->list.n_tensors + 1, sizeof *store->tensors);
    if (store->tensors == NULL)
        return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for %zu tensors", store->list.n_tensors);
    store->path = m->path;
    store->n_tensors = (uint32_t)store->list.n_tensors;
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const sw_tensor_entry *t = &store->list.tensors[i];
        store->tensors[i] = (sw_store_tensor){.name = t->name,
                                              .name_length = t->name_length,
                                              .dtype = (sw_dtype)t->dtype,
                                              .dtype_word = sw_dtype_name((sw_dtype)t->dtype),
                                              .shape = t->shape,
                                              .state_of = UINT32_MAX};
    }
    return SW_OK;
}

static uint64_t count_elements(const sw_store *store)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < store->n_tensors; i++)
        n += store->tensors[i].shape->elems;
    return n;
}

/* ---- writing ---- */

static sw_status write_all(making *m, const char *out, sw_checkpoint_result *result)
{
    sw_buffer index SW_AUTO(clear_buffer) = {0};
    double deviation = -1.0;

    SW_TRY(sw_config_deviation(&deviation, m->map, m->path, &m->given, m->err));
    sw_init_scale scale = sw_init_scale_of(&m->config, deviation, m->init.scale > 0.0 ? m->init.scale : 1.0);
    SW_TRY(sw_target_of_folder(&m->target, &m->store, m->options.max_shard_bytes, m->err));
    if (m->target->n_files > 1)
        SW_TRY(sw_target_index(&index, m->target, m->err));
    uint64_t bytes = sw_target_bytes(m->target) + m->text.length + index.length;
    const sw_publish_choices choices = {.replace = m->options.replace,
                                        .no_sync = m->options.no_sync,
                                        .need_bytes = bytes + SMALL_FILES_BYTES};
    SW_TRY(sw_publish_begin(&m->publication, out, &choices, m->err));
    const char *folder = m->publication.partial;
    SW_TRY(sw_init_write(m->target, &m->store, &scale, m->init.seed, folder, &m->options, m->err));
    SW_TRY(sw_carry_write(folder, "config.json", m->text.bytes, m->text.length, m->err));
    if (m->target->n_files > 1)
        SW_TRY(sw_carry_write(folder, SW_INDEX_NAME, index.bytes, index.length, m->err));
    SW_TRY(sw_publish_end(&m->publication, m->err));
    if (result != NULL) {
        *result = (sw_checkpoint_result){
            .elements = count_elements(&m->store), .bytes_written = bytes, .files = m->target->n_files};
        result->covered = result->elements;
    }
    return SW_OK;
}

sw_status sw_checkpoint_init(const char *config_path, const char *out, const sw_init_options *init,
                             const sw_checkpoint_options *options, sw_checkpoint_result *result,
                             sw_error *err)
{
    making m SW_AUTO(clear_making) = {0};

    SW_TRY(begin(&m, init, options, result, err));
    SW_NEED(config_path, err);
    SW_NEED(out, err);
    SW_TRY(read_config(&m, config_path));
    SW_TRY(edit_config(&m));
    SW_TRY(make_list(&m));
    return write_all(&m, out, result);
}
