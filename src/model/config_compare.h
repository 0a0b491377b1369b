/*
 * Two config.json that ought to be of one model, such as that of a run and that of the model it began with.
 */
#ifndef SW_MODEL_CONFIG_COMPARE_H
#define SW_MODEL_CONFIG_COMPARE_H

#include "base/file.h"

/*
 * SW_E_FORMAT names the first key, in the order of `ours`, that has another value in `theirs`, and both; null
 * is as good as absent. What may differ: how weights are stored (dtype, quantisation), transformers_version,
 * and keys that begin with "_".
 */
sw_status sw_config_compare(sw_file_map ours, const char *our_path, sw_file_map theirs,
                            const char *their_path, sw_error *err);

#endif
