/* Structs of choices (base/options.h). */
#include "base/options.h"

#include <string.h>

#include "base/status.h"

enum { MOST_BYTES = 4096 }; /* more than any later version will have: the size was never set */

sw_status sw_options_read(void *known, const void *given, const sw_options_type *type, sw_error *err)
{
    size_t size = 0;

    if (given == NULL)
        return SW_OK;
    memcpy(&size, given, sizeof size);
    if (size < type->first_bytes || size > MOST_BYTES)
        return SW_FAIL(err, SW_E_ARGUMENT, type->begin, "%s: struct_size is %zu", type->name, size);
    memcpy(known, given, size < type->bytes ? size : type->bytes);
    return SW_OK;
}
