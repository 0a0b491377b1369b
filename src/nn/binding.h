/* Which parameter of a checkpoint fills which slot of a net: for the files of this folder. */
#ifndef SW_NN_BINDING_H
#define SW_NN_BINDING_H

#include "nn/net.h"

/* Fill net->parameters, net->stacks and all slots; the arena, settings and layers are there. */
sw_status sw_net_bind(sw_net *net, const sw_model *model, const sw_net_options *options, sw_error *err);

/* net->modules and those of each layer; slots are filled. */
sw_status sw_net_build_modules(sw_net *net, const sw_family *family, sw_error *err);

/* `format` in the net's arena. */
sw_status sw_net_text(const sw_net *net, const char **out, sw_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
