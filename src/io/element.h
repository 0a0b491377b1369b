/* One element of a tensor as text, for messages: its bits, and the number that they are where that is known.
 */
#ifndef SW_IO_ELEMENT_H
#define SW_IO_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "shardwright/model.h"

enum { SW_ELEMENT_TEXT = 64 };

/* "0x3fc0 (1.5)"; "0x7f" where the number is not known. At most 8 bytes, as they lie in the file. */
const char *sw_element_text(char text[SW_ELEMENT_TEXT], sw_dtype dtype, const uint8_t *bytes, size_t n_bytes);

#endif
