/* weight_types.c - the table of number formats. */
#include "lm/dequantize.h"
#include "lm/weights.h"
#include <string.h>

/* Names of types that are not read are here so that a file with one of them
** opens, and says which. */
static const sl_weight_type types[] = {
  { "F32", 0, 1, 4, SL_KIND_F32 },
  { "F16", 1, 1, 2, SL_KIND_F16 },
  { "Q4_0", 2, 32, 18, SL_KIND_Q4_0 },
  { "Q4_1", 3, 32, 20, SL_KIND_Q4_1 },
  { "Q5_0", 6, 32, 22, SL_KIND_Q5_0 },
  { "Q5_1", 7, 32, 24, SL_KIND_Q5_1 },
  { "Q8_0", 8, 32, 34, SL_KIND_Q8_0 },
  { "Q8_1", 9, 32, 36, -1 },
  { "Q2_K", 10, 256, 84, SL_KIND_Q2_K },
  { "Q3_K", 11, 256, 110, SL_KIND_Q3_K },
  { "Q4_K", 12, 256, 144, SL_KIND_Q4_K },
  { "Q5_K", 13, 256, 176, SL_KIND_Q5_K },
  { "Q6_K", 14, 256, 210, SL_KIND_Q6_K },
  { "Q8_K", 15, 256, 292, -1 },
  { "IQ2_XXS", 16, 256, 66, -1 },
  { "IQ2_XS", 17, 256, 74, -1 },
  { "IQ3_XXS", 18, 256, 98, -1 },
  { "IQ1_S", 19, 256, 50, -1 },
  { "IQ4_NL", 20, 32, 18, SL_KIND_IQ4_NL },
  { "IQ3_S", 21, 256, 110, -1 },
  { "IQ2_S", 22, 256, 82, -1 },
  { "IQ4_XS", 23, 256, 136, SL_KIND_IQ4_XS },
  { "I8", 24, 1, 1, -1 },
  { "I16", 25, 1, 2, -1 },
  { "I32", 26, 1, 4, -1 },
  { "I64", 27, 1, 8, -1 },
  { "F64", 28, 1, 8, SL_KIND_F64 },
  { "IQ1_M", 29, 256, 56, -1 },
  { "BF16", 30, 1, 2, SL_KIND_BF16 },
  { "TQ1_0", 34, 256, 54, SL_KIND_TQ1_0 },
  { "TQ2_0", 35, 256, 66, SL_KIND_TQ2_0 },
  { "MXFP4", 39, 32, 17, SL_KIND_MXFP4 },
  { "U8", -1, 1, 1, -1 },
  { "U16", -1, 1, 2, -1 },
  { "U32", -1, 1, 4, -1 },
  { "U64", -1, 1, 8, -1 },
  { "BOOL", -1, 1, 1, -1 },
  { "F8_E4M3", -1, 1, 1, -1 },
  { "F8_E5M2", -1, 1, 1, -1 },
  { "F8_E8M0", -1, 1, 1, -1 },
};
enum { TYPES = sizeof types / sizeof *types };

const sl_weight_type *sl_weight_type_named (const char *name) {
  for (int i = 0; i < TYPES; i++)
    if (strcmp (types[i].name, name) == 0) return &types[i];
  return NULL;
}

const sl_weight_type *sl_weight_type_numbered (uint32_t number) {
  for (int i = 0; i < TYPES; i++)
    if (types[i].number >= 0 && (uint32_t)types[i].number == number)
      return &types[i];
  return NULL;
}

int sl_weight_bytes (const sl_weight_type *type, int ndim, const ptrdiff_t *dim,
                     size_t *bytes, sl_error *e) {
  const ptrdiff_t row = ndim > 0 ? dim[ndim - 1] : 1;
  char text[SL_SHAPE_TEXT];
  size_t count;
  if (sl_shape_count (ndim, dim, &count) < 0)
    return sl_fail (e, "of shape %s, which is too large",
                    sl_shape_text (ndim, dim, text, sizeof text));
  if (row % type->block != 0)
    return sl_fail (
        e, "of shape %s, whose rows are not whole blocks of %d (%s)",
        sl_shape_text (ndim, dim, text, sizeof text), type->block, type->name);
  for (int i = 0; i < ndim; i++)
    if (dim[i] == 0) count = 0;
  /* a block is never larger than its numbers as f64: this fits */
  *bytes = count / (size_t)type->block * (size_t)type->bytes;
  return 0;
}

int sl_weight_readable (const sl_weight *w, sl_error *e) {
  char list[512];
  size_t n = 0;
  if (w->type->kind >= 0) return 0;
  list[0] = '\0';
  for (int i = 0; i < TYPES && n < sizeof list - 16; i++)
    if (types[i].kind >= 0) {
      const size_t k = strlen (types[i].name);
      memcpy (list + n, " ", 2);
      memcpy (list + n + 1, types[i].name, k + 1);
      n += k + 1;
    }
  return sl_fail (e, "the tensor '%.200s' is of type %s; read are%s", w->name,
                  w->type->name, list);
}
