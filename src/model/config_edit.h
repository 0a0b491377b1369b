/*
 * A config.json as a document: what making a model of it needs beyond planning one. What an edit does not
 * concern stays as it is, in its order.
 */
#ifndef SW_MODEL_CONFIG_EDIT_H
#define SW_MODEL_CONFIG_EDIT_H

#include "base/buffer.h"
#include "model/config.h"

/* What is to be different. Zero in a field: nothing. */
typedef struct sw_config_edit {
    uint32_t layers; /* number of the decoder's layers, and of the entries in its lists of layers */
    sw_dtype dtype;  /* torch_dtype, or dtype where that is the config's word: F32, BF16 or F16 */
    bool drops_quantization;
} sw_config_edit;

/*
 * Append the edited text to `out`; the bytes of `map` themselves when nothing is different.
 *
 * config  of the same bytes
 * Returns SW_E_FORMAT when a list of layers is shorter than the new number, SW_E_NO_MEMORY.
 */
sw_status sw_config_edited(sw_buffer *out, sw_file_map map, const char *path, const sw_config *config,
                           const sw_config_edit *edit, sw_error *err);

/*
 * The deviation of the config's initialisation (initializer_range, init_std); *out is left as it is when
 * there is none. SW_E_FORMAT: it is no number, or below 0.
 */
sw_status sw_config_deviation(double *out, sw_file_map map, const char *path, const sw_config *config,
                              sw_error *err);

#endif
