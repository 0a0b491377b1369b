/*
 * Where a number went bad: after a loss or a gradient that is none, the first tensor in which it is not
 * finite, in the order of the work.
 */
#ifndef SW_TRAIN_DIAGNOSE_H
#define SW_TRAIN_DIAGNOSE_H

#include "train/feed.h"
#include "train/optimizer.h"
#include "train/ranks.h"

enum { SW_BAD_TENSOR_TEXT = 400 };

/*
 * "values of NAME", else "output of MODULE" of one more forward over `feed`, else "gradient of NAME"; "none
 * that is kept" when all of those are finite. Of several ranks the lowest that has one, and its number. The
 * step's tensors are lost. Collective over the ranks; failures of the step are this rank's.
 */
sw_status sw_diagnose(const sw_trained_list *list, sw_net *net, sw_step *step, const sw_feed *feed,
                      const sw_ranks *ranks, char text[SW_BAD_TENSOR_TEXT], sw_error *err);

#endif
