/*
 * Table of companions. The rows of one method stand together; the first row that fits name and method wins.
 * Stored forms: GPTQ qweight [in / pack, out], qzeros [groups, out / pack], scales [groups, out], g_idx [in];
 * AWQ qweight [in, out / pack], qzeros [groups, out / pack], scales [groups, out]; FP8 blocks
 * weight_scale_inv [ceil(out / rows), ceil(in / cols)]; MLX weight [out, in / pack], scales and biases [out,
 * groups].
 */
#include "plan/companion.h"

#include <string.h>

#include "base/status.h"

#define ANY   SW_QUANTIZATION_NONE
#define GPTQ  SW_QUANTIZATION_GPTQ
#define AWQ   SW_QUANTIZATION_AWQ
#define MLX   SW_QUANTIZATION_MLX
#define CT    SW_QUANTIZATION_COMPRESSED_TENSORS
#define ONE   SW_FACTOR_ONE
#define PACK  SW_FACTOR_PACK
#define GROUP SW_FACTOR_GROUP
#define ROWS  SW_FACTOR_BLOCK_ROWS
#define COLS  SW_FACTOR_BLOCK_COLS

// clang-format off
static const sw_companion companions[] = {
    /* suffix               method                out       in        weight  act order */
    { ".qweight",           GPTQ, 1, ONE,   0, PACK,  true,   false },
    { ".qzeros",            GPTQ, 1, PACK,  0, GROUP, false,  true  },
    { ".scales",            GPTQ, 1, ONE,   0, GROUP, false,  true  },
    { ".g_idx",             GPTQ, -1, ONE,   0, ONE,   false,  false },
    { ".qweight",           AWQ,  1, PACK,  0, ONE,   true,   false },
    { ".qzeros",            AWQ,  1, PACK,  0, GROUP, false,  false },
    { ".scales",            AWQ,  1, ONE,   0, GROUP, false,  false },
    { ".scales",            MLX,  0, ONE,   1, GROUP, false,  false },
    { ".biases",            MLX,  0, ONE,   1, GROUP, false,  false },
    { ".weight",            MLX,  0, ONE,   1, PACK,  true,   false },
    { ".weight_packed",     CT,    0, ONE,   1, PACK,  true,   false },
    { ".weight_scale",      CT,    0, ROWS,  1, COLS,  false,  true  },
    { ".weight_zero_point", CT,    0, PACK,  1, GROUP, false,  true  },
    { ".weight_g_idx",      CT,   -1, ONE,   0, ONE,   false,  false },
    { ".weight_shape",      CT,   -1, ONE,  -1, ONE,   false,  false },
    { ".weight_scale_inv",  ANY,  0, ROWS,  1, COLS,  false,  false },
    { ".weight_scale",      ANY,  0, ROWS,  1, COLS,  false,  false },
    { ".input_scale",       ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".weight_scale_2",    ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".weight_global_scale", ANY, -1, ONE,  -1, ONE,   false,  false }, /* NVFP4: one beside its block scales */
    { ".input_global_scale", ANY, -1, ONE,  -1, ONE,   false,  false },
    { ".output_scale",      ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".input_min",         ANY,  -1, ONE,  -1, ONE,   false,  false }, /* bounds of what is quantised or clipped */
    { ".input_max",         ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".output_min",        ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".output_max",        ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".clip_min",          ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".clip_max",          ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".kv_scale",          ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".k_scale",           ANY,  -1, ONE,  -1, ONE,   false,  false },
    { ".v_scale",           ANY,  -1, ONE,  -1, ONE,   false,  false },
};

static const char *const packed_names[] = {
    ".qweight", ".qzeros", ".g_idx", ".scales", ".weight_packed", ".weight_zero_point",
};
// clang-format on

static bool ends_with(const char *name, size_t length, const char *suffix)
{
    size_t n = strlen(suffix);
    return length > n && memcmp(name + length - n, suffix, n) == 0;
}

const sw_companion *sw_companion_of(const char *name, size_t length, sw_quantization_method method,
                                    size_t *stem_length)
{
    for (size_t i = 0; i < SW_COUNT(companions); i++) {
        const sw_companion *c = &companions[i];
        if (c->method != ANY && c->method != method)
            continue;
        if (ends_with(name, length, c->suffix)) {
            *stem_length = length - strlen(c->suffix);
            return c;
        }
    }
    return NULL;
}

bool sw_companion_fits(const sw_companion *companion, sw_dtype dtype)
{
    return !companion->is_weight || strcmp(companion->suffix, ".weight") != 0 || dtype == SW_DTYPE_U32 ||
           dtype == SW_DTYPE_I32;
}

bool sw_companion_is_packed_name(const char *name, size_t length)
{
    for (size_t i = 0; i < SW_COUNT(packed_names); i++) {
        if (ends_with(name, length, packed_names[i]))
            return true;
    }
    return false;
}
