/*
 * A checkpoint as a net that can run: its tensors are converted to what the net computes with, or left where
 * they are when that is what they hold already and nothing will write to them.
 */
#ifndef SW_TRAIN_LOAD_H
#define SW_TRAIN_LOAD_H

#include "apply/cp_form.h"
#include "nn/net.h"
#include "shardwright/comm.h"
#include "shardwright/plan.h"
#include "train/weights.h"

typedef struct sw_load_options {
    sw_dtype dtype;     /* F32, or F64: everything in it; BF16: matrices that are stored so stay so */
    bool trains;        /* with gradients; not with BF16 */
    uint32_t positions; /* that will be used; 0: all of the config */
    sw_report *report;  /* gets each tensor that does not fit; may be NULL */
    /* This rank's part of the net; both are borrowed as long as it lives. NULL: the whole. */
    const sw_plan *plan;
    sw_comm *comm;
    sw_cp_form cp_form; /* of attention over cp, where the plan names none */
} sw_load_options;

/*
 * The net borrows from `weights` unless it trains. SW_E_FORMAT: a config that cannot be run, tensors that are
 * missing, too many, misshapen, or of a type that no product reads: how many and the first, all of them in
 * the report. Collective over the ranks of `comm`, which read no more than their parts.
 */
sw_status sw_load(sw_net **out, const sw_weights *weights, const sw_load_options *options,
                  const sw_kernel *kernel, sw_error *err);

/*
 * The parameters of a net that has memory of its own for them: of the whole one, or, when a plan was applied
 * to it, of this rank's part. Local.
 */
sw_status sw_load_parameters(const sw_net *net, const sw_weights *weights, const sw_kernel *kernel,
                             sw_error *err);

uint64_t sw_parameter_elems(const sw_parameter *parameter);

#endif
