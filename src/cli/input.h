/* What several commands read from their command line. */
#ifndef SW_CLI_INPUT_H
#define SW_CLI_INPUT_H

#include "cli/option.h"
#include "shardwright/mesh.h"
#include "shardwright/plan.h"

/* Rows of a table for the mesh; sw_input_mesh() reads them. */
#define SW_OPTION_MESH                                                                                       \
    {                                                                                                        \
        "mesh", 'm', "AXES", "axis sizes: pp, dp, cp, ep, tp, such as dp=4,cp=2,tp=8"                        \
    }
#define SW_OPTION_EP                                                                                         \
    {                                                                                                        \
        "ep", 0, "N", "experts over N of the dp*cp*tp ranks of a stage (TP-extend-EP)"                       \
    }
/* Rows for the override file and what it may name; sw_input_overrides() reads them. */
#define SW_OPTION_OVERRIDES                                                                                  \
    {                                                                                                        \
        "overrides", 0, "FILE", "YAML file of overrides and role rules"                                      \
    }
#define SW_OPTION_PLUGIN                                                                                     \
    {                                                                                                        \
        "plugin", 0, "FILE", "shared library of functions that overrides may name"                           \
    }

/* The mesh of --mesh (which must be given) and --ep. */
sw_status sw_input_mesh(sw_mesh **out, const sw_arguments *arguments, uint32_t mesh_row, uint32_t ep_row,
                        sw_error *err);

/* The overrides of --overrides, which may name what --plugin brings; NULL when neither is given. */
sw_status sw_input_overrides(sw_overrides **out, const sw_arguments *arguments, uint32_t row,
                             uint32_t plugin_row, sw_error *err);

#endif
