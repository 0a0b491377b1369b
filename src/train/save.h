/*
 * Checkpoints of training runs: a Hugging Face folder with the weights as they are trained (F32, or F64), the
 * config that says so, the small files of the model that the run began with; beside them the moments of the
 * optimizer and the scalars of the run. Of several ranks it is a sharded folder, written by all of them, and
 * all of this is collective.
 */
#ifndef SW_TRAIN_SAVE_H
#define SW_TRAIN_SAVE_H

#include "train/load.h"
#include "train/loop.h"

/* An existing checkpoint at `out` is exchanged for the new one if `replace`, and refused otherwise. */
sw_status sw_train_save(const sw_trainer *trainer, const sw_weights *origin, const char *out, bool replace,
                        sw_error *err);

/*
 * Whether sw_train_save() will be able to begin: to be asked before a long run, by the rank that writes. A
 * partial folder is made and removed. SW_E_ARGUMENT: what is there stays; SW_E_IO: no folder can be made.
 */
sw_status sw_train_save_check(const char *out, bool replace, sw_error *err);

/*
 * Whether the run in the folder `checkpoint` is one of `model`, which it began with, as far as their configs
 * say: a run that goes on must not be taken for one of another model. One that is no longer there is not
 * asked. SW_E_FORMAT names the key that differs.
 */
sw_status sw_train_resume_check(const char *checkpoint, const char *model, sw_error *err);

/*
 * Take up a run: moments, step and position of the checkpoint that the net was loaded from, which a run with
 * the same optimizer, seed, length of sequences and data wrote. SW_E_FORMAT: it is no such checkpoint, or
 * another run's.
 */
sw_status sw_train_resume(sw_trainer *trainer, const sw_weights *checkpoint, sw_error *err);

#endif
