/* The element types of the safetensors format: one table, the words exactly as the format writes them. */
#include "io/tensor_list.h"

#include <string.h>

#include "base/status.h"

typedef struct dtype_row {
    char name[8]; /* padded with NUL: compared as one word */
    uint32_t bits;
} dtype_row;

// clang-format off
static const dtype_row dtypes[] = {
    /*                      name       bits */
    [SW_DTYPE_UNKNOWN]  = { "?",       0    },
    [SW_DTYPE_F64]      = { "F64",     64   },
    [SW_DTYPE_F32]      = { "F32",     32   },
    [SW_DTYPE_F16]      = { "F16",     16   },
    [SW_DTYPE_BF16]     = { "BF16",    16   },
    [SW_DTYPE_F8_E4M3]  = { "F8_E4M3", 8    },
    [SW_DTYPE_F8_E5M2]  = { "F8_E5M2", 8    },
    [SW_DTYPE_F8_E8M0]  = { "F8_E8M0", 8    },
    [SW_DTYPE_F4]       = { "F4",      4    },
    [SW_DTYPE_I64]      = { "I64",     64   },
    [SW_DTYPE_I32]      = { "I32",     32   },
    [SW_DTYPE_I16]      = { "I16",     16   },
    [SW_DTYPE_I8]       = { "I8",      8    },
    [SW_DTYPE_U64]      = { "U64",     64   },
    [SW_DTYPE_U32]      = { "U32",     32   },
    [SW_DTYPE_U16]      = { "U16",     16   },
    [SW_DTYPE_U8]       = { "U8",      8    },
    [SW_DTYPE_BOOL]     = { "BOOL",    8    },
    [SW_DTYPE_C64]      = { "C64",     64   },
};
// clang-format on

_Static_assert(SW_COUNT(dtypes) == SW_DTYPE_COUNT_, "every dtype has its row");

const char *sw_dtype_name(sw_dtype dtype)
{
    return (size_t)dtype < SW_COUNT(dtypes) ? dtypes[dtype].name : NULL;
}

uint32_t sw_dtype_bits(sw_dtype dtype)
{
    return (size_t)dtype < SW_COUNT(dtypes) ? dtypes[dtype].bits : 0;
}

sw_dtype sw_dtype_of(const char *word, size_t length)
{
    char padded[sizeof dtypes[0].name] = {0};

    if (length == 0 || length >= sizeof padded || word[length - 1] == '\0')
        return SW_DTYPE_UNKNOWN;
    memcpy(padded, word, length);
    for (size_t i = SW_DTYPE_UNKNOWN + 1; i < SW_COUNT(dtypes); i++) {
        if (memcmp(dtypes[i].name, padded, sizeof padded) == 0)
            return (sw_dtype)i;
    }
    return SW_DTYPE_UNKNOWN;
}
