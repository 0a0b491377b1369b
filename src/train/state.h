/* The scalars of a training run as a JSON object (docs/reference/training.md, "Checkpoints"). */
#ifndef SW_TRAIN_STATE_H
#define SW_TRAIN_STATE_H

#include "base/buffer.h"
#include "train/loop.h"

typedef struct sw_train_state {
    uint64_t step;     /* done */
    uint64_t position; /* sequences taken */
    uint64_t seed;
    uint64_t seq_len;
    uint64_t n_tokens; /* of the data */
    sw_optimizer_kind optimizer;
} sw_train_state;

sw_train_state sw_train_state_of(const sw_trainer *trainer);

/* SW_E_NO_MEMORY */
sw_status sw_train_state_put(sw_buffer *out, const sw_trainer *trainer, sw_error *err);

/* Keys that are not known are passed over; a state without an optimizer is of AdamW. SW_E_FORMAT: one is
 * missing or no number, or the optimizer is none that is known. */
sw_status sw_train_state_read(sw_train_state *out, const char *text, size_t length, const char *path,
                              sw_error *err);

#endif
