/* find.c - operations by name and by number. */
#include "base/isa.h"
#include "ops/op.h"
#include <string.h>

SL_VARIANTS (const sl_op_list, sl_ops);

static const sl_op_list *core_ops (sl_dtype dtype) {
  return SL_PICK (sl_ops, dtype == SL_F64);
}

enum { MAX_LISTS = 8, MAX_NAMES = 256 };

/* Grows at start-up only, before other threads exist. */
static const sl_op_list *(*picks[MAX_LISTS]) (sl_dtype dtype) = { core_ops };
static int n_picks = 1;

int sl_op_add_list (const sl_op_list *(*pick) (sl_dtype dtype)) {
  for (int i = 0; i < n_picks; i++)
    if (picks[i] == pick) return 0;
  if (n_picks == MAX_LISTS) return -1;
  picks[n_picks++] = pick;
  return 0;
}

const sl_op *sl_op_at (sl_dtype dtype, int i) {
  for (int k = 0; k < n_picks; k++)
    for (const sl_op *const *op = picks[k](dtype)->ops; *op != NULL; op++)
      if (i-- == 0) return *op;
  return NULL;
}

const sl_op *sl_op_find (sl_dtype dtype, const char *name, sl_error *e) {
  const char *known[MAX_NAMES];
  size_t n = 0;
  for (int i = 0; i < n_picks; i++)
    for (const sl_op *const *op = picks[i](dtype)->ops; *op != NULL; op++) {
      if (strcmp ((*op)->name, name) == 0) return *op;
      if (n < MAX_NAMES) known[n++] = (*op)->name;
    }
  sl_fail_unknown (e, name, n, known, "no operation is called '%s'", name);
  return NULL;
}

int sl_op_dtype (const sl_op *op) {
  for (int d = SL_F32; d <= SL_F64; d++)
    for (int i = 0; i < n_picks; i++)
      for (const sl_op *const *o = picks[i]((sl_dtype)d)->ops; *o != NULL; o++)
        if (*o == op) return d;
  return -1;
}
