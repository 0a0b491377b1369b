/*
 * Cases of tests/parity/data in other sizes: their own are uneven on purpose and small, so that few meshes
 * can cut them. Everything else in the config stays, so a resized case computes what its case does.
 */
#ifndef SW_TEST_RESIZED_H
#define SW_TEST_RESIZED_H

#include "base/buffer.h"

/*
 * Members of the case's config, without the outer braces, in sizes that 2, 4 and 8 ranks can cut: 8 heads of
 * the same width in up to 4 groups, 8 experts. The test fails unless it can be read. Clear the buffer.
 */
sw_buffer resized_config(const char *folder);

#endif
