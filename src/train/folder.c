/* Writing folders (train/folder.h): the writer of src/checkpoint, with a store made by hand. */
#include "train/folder_saving.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/status.h"
#include "checkpoint/carry.h"
#include "checkpoint/format.h"
#include "checkpoint/target_file.h"
#include "model/config_edit.h"
#include "model/shards.h"

static const char config_name[] = SW_FOLDER_CONFIG;

void sw_folder_saving_clear(sw_folder_saving *s)
{
    sw_publish_drop(&s->publication);
    sw_target_destroy(s->target);
    sw_buffer_clear(&s->config);
    sw_free(s->store.extra_files);
    sw_free(s->store.tensors);
    sw_tensor_list_clear(&s->store.list);
}

static sw_status no_memory(const sw_folder_saving *s)
{
    return SW_FAIL(s->err, SW_E_NO_MEMORY, "", "no memory to write a checkpoint");
}

/* ---- what is written ---- */

static sw_status list_tensors(sw_folder_saving *s)
{
    const sw_folder *folder = s->folder;
    sw_tensor_list *list = &s->store.list;

    SW_TRY(sw_tensor_list_init(list, 0, s->err));
    s->store.tensors = sw_alloc_zero((size_t)folder->n_tensors + 1, sizeof *s->store.tensors);
    if (s->store.tensors == NULL)
        return no_memory(s);
    for (uint32_t i = 0; i < folder->n_tensors; i++) {
        const sw_folder_tensor *t = &folder->tensors[i];
        const sw_shape *shape = NULL;
        SW_TRY(sw_tensor_list_shape(list, t->dims, t->n_dims, &shape, s->err));
        SW_TRY(
            sw_tensor_list_add(list, t->name, strlen(t->name), folder->dtype, shape, UINT32_MAX, 0, s->err));
        s->store.tensors[i] = (sw_store_tensor){.name = t->name,
                                                .name_length = (uint32_t)strlen(t->name),
                                                .dtype = folder->dtype,
                                                .dtype_word = sw_dtype_name(folder->dtype),
                                                .shape = shape,
                                                .state_of = t->state_of};
        s->store.n_tensors++;
    }
    return SW_OK;
}

/* The small files of the origin without its config, which is written as it is now. */
static sw_status list_carried(sw_folder_saving *s)
{
    const sw_store *from = s->folder->origin->store;

    s->store.path = from->path;
    s->store.folder = from->folder;
    s->store.extra_files = sw_alloc_zero((size_t)from->n_extra_files + 1, sizeof *s->store.extra_files);
    if (s->store.extra_files == NULL)
        return no_memory(s);
    for (uint32_t i = 0; i < from->n_extra_files; i++) {
        if (strcmp(from->extra_files[i], config_name) != 0)
            s->store.extra_files[s->store.n_extra_files++] = from->extra_files[i];
    }
    return SW_OK;
}

static void drop_text(char **text)
{
    sw_free(*text);
}

/* The config with the dtype of what stands beside it; weights of F64 have no word in it that readers know. */
static sw_status edit_config(sw_folder_saving *s)
{
    const char *folder = s->folder->origin->store->folder;
    char *path SW_AUTO(drop_text) = sw_path_in(folder[0] == '\0' ? "." : folder, config_name);
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};
    const sw_config *config = &s->folder->origin->model->config;
    sw_config_edit edit = {0};

    if (path == NULL)
        return no_memory(s);
    SW_TRY(sw_map_text(&map, path, SW_CONFIG_MAX_BYTES, s->err));
    if (config->dtype != SW_DTYPE_F32)
        edit.dtype = SW_DTYPE_F32;
    return sw_config_edited(&s->config, map, path, config, &edit, s->err);
}

/* ---- writing ---- */

static sw_status write_parts(const sw_folder_saving *s, const sw_target_file *file, int fd, const char *path)
{
    for (uint32_t i = file->first_part; i < file->first_part + file->n_parts; i++) {
        const sw_target_part *part = &s->target->parts[i];
        SW_TRY(sw_disk_pwrite(fd, path, s->folder->tensors[part->tensor].data, part->n_bytes,
                              file->header_bytes + part->begin, s->err));
    }
    return SW_OK;
}

static sw_status write_file(const sw_folder_saving *s, uint32_t number)
{
    const sw_target_file *file = &s->target->files[number];
    char *path SW_AUTO(drop_text) = sw_path_in(s->publication.partial, file->name);
    int fd = -1;

    if (path == NULL)
        return no_memory(s);
    SW_TRY(sw_target_file_create(s->target, number, path, s->err));
    SW_TRY(sw_disk_open(&fd, path, s->err));
    sw_status status = write_parts(s, file, fd, path);
    if (status != SW_OK) {
        (void)close(fd);
        return status;
    }
    SW_TRY(sw_disk_close(&fd, path, s->err));
    return sw_target_file_seal(s->target, number, path, s->err);
}

static sw_status write_small(const sw_folder_saving *s)
{
    const char *folder = s->publication.partial;
    sw_buffer index SW_AUTO(sw_buffer_clear) = {0};
    uint64_t carried = 0;

    SW_TRY(sw_carry(s->target, folder, &carried, s->err));
    SW_TRY(sw_carry_write(folder, config_name, s->config.bytes, s->config.length, s->err));
    SW_TRY(sw_carry_write(folder, SW_STATE_NAME, s->folder->state->bytes, s->folder->state->length, s->err));
    if (s->target->n_files - s->target->n_state_files < 2)
        return SW_OK;
    SW_TRY(sw_target_index(&index, s->target, s->err));
    return sw_carry_write(folder, SW_INDEX_NAME, index.bytes, index.length, s->err);
}

sw_status sw_folder_saving_begin(sw_folder_saving *s)
{
    SW_TRY(list_tensors(s));
    SW_TRY(list_carried(s));
    return edit_config(s);
}

static sw_status write_folder(sw_folder_saving *s, const char *out, bool replace)
{
    SW_TRY(sw_folder_saving_begin(s));
    SW_TRY(sw_target_of_folder(&s->target, &s->store, 0, s->err));
    const sw_publish_choices choices = {.replace = replace,
                                        .need_bytes = sw_target_bytes(s->target) + sw_carry_bytes(&s->store) +
                                                      s->config.length + s->folder->state->length +
                                                      SW_FOLDER_SMALL_BYTES};
    SW_TRY(sw_publish_begin(&s->publication, out, &choices, s->err));
    for (uint32_t f = 0; f < s->target->n_files; f++)
        SW_TRY(write_file(s, f));
    SW_TRY(write_small(s));
    return sw_publish_end(&s->publication, s->err);
}

sw_status sw_folder_write(const sw_folder *folder, const char *out, bool replace, sw_error *err)
{
    sw_folder_saving s SW_AUTO(sw_folder_saving_clear) = {.folder = folder, .err = err};

    return write_folder(&s, out, replace);
}
