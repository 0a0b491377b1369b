/* Nets for tests: a folder of Hugging Face's, opened, given memory, filled and ready to run. */
#ifndef SW_TEST_NET_CASE_H
#define SW_TEST_NET_CASE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/file.h"
#include "nn/net.h"

typedef struct net_case {
    sw_kernel *kernel;
    sw_step *step;
    sw_model *model;
    sw_net *net;
} net_case;

/* Open the folder; the test fails unless it can be run. */
void net_case_open(net_case *c, const char *folder, const sw_net_options *options, bool trains);
void net_case_close(net_case *c);

/* I32 [rows, columns] of the step. */
const sw_tensor *net_case_ids(net_case *c, const int32_t *values, uint64_t rows, uint64_t columns);

#endif
