/* linear.c - products with weights that stay quantised. */
#include "lm/linear.h"
#include "base/isa.h"
#include "base/memory.h"
#include "base/number.h"
#include "lm/dequantize.h"
#include "lm/packed_rows.h"
#include <string.h>

SL_VARIANTS (const sl_packed_rows_functions, sl_packed_rows_kernels);

/* The most rows of w in one task. Each task packs all of x once more, so few
** tasks cost less; but a dequantised strip should stay in the L2 cache. */
enum { TASK_ROWS = 256, PLAIN_TASK_ROWS = 1024, STEP = 16 };

typedef struct job {
  const sl_packed_rows_functions *functions;
  sl_packed_rows all; /* the whole product */
  ptrdiff_t columns, size;
  char *scratch;
  size_t each; /* bytes of scratch per worker */
} job;

static void task (void *context, int index, int worker) {
  const job *j = context;
  sl_packed_rows p = j->all;
  const ptrdiff_t first = index * j->columns;
  p.columns = j->all.columns - first;
  if (p.columns > j->columns) p.columns = j->columns;
  p.w += (size_t)first * p.w_row;
  p.y = (char *)p.y + first * j->size;
  if (p.bias != NULL) p.bias = (const char *)p.bias + first * j->size;
  p.scratch = j->scratch + (size_t)worker * j->each;
  j->functions->multiply (&p);
}

/* Rows of w in a task; every worker gets the same number of tasks. */
static ptrdiff_t columns_of (const job *j, int workers) {
  const int plain = j->size == 4 ? SL_KIND_F32 : SL_KIND_F64;
  const ptrdiff_t most = j->all.kind == plain ? PLAIN_TASK_ROWS : TASK_ROWS;
  const ptrdiff_t out = j->all.columns;
  const size_t tasks = sl_round_up (sl_div_up (out, most), workers);
  return (ptrdiff_t)sl_round_up (sl_div_up (out, tasks), STEP);
}

static int run (sl_pool *pool, job *j, size_t size, sl_error *e) {
  const int workers = sl_pool_workers (pool);
  ptrdiff_t tasks;
  if (j->all.rows == 0 || j->all.columns == 0) return 0;
  j->columns = columns_of (j, workers);
  tasks = sl_div_up (j->all.columns, j->columns);
  j->each = j->functions->scratch (j->all.rows, j->columns, j->all.in);
  j->each = sl_round_up (j->each * size, 64);
  j->scratch = sl_alloc ((size_t)workers, j->each);
  if (j->scratch == NULL)
    return sl_fail (e, "linear: out of memory for %d buffers of %zu bytes",
                    workers, j->each);
  sl_pool_run (pool, (int)tasks, task, j);
  sl_free (j->scratch);
  return 0;
}

static int check (const sl_tensor *x, const sl_weight *w, const sl_tensor *bias,
                  sl_error *e) {
  char sx[SL_SHAPE_TEXT], sw[SL_SHAPE_TEXT];
  if (sl_weight_readable (w, e) < 0) return sl_fail_within (e, "linear");
  sl_shape_text (x->ndim, x->dim, sx, sizeof sx);
  sl_shape_text (w->ndim, w->dim, sw, sizeof sw);
  if (w->ndim != 2)
    return sl_fail (e,
                    "linear: the weight '%.100s' has shape %s; it must be "
                    "(out, in)",
                    w->name, sw);
  if (x->ndim < 1 || x->dim[x->ndim - 1] != w->dim[1])
    return sl_fail (e,
                    "linear: x has shape %s and the weight '%.100s' %s; the "
                    "last axis of x must be %td",
                    sx, w->name, sw, w->dim[1]);
  if (bias != NULL && (bias->ndim != 1 || bias->dim[0] != w->dim[0]))
    return sl_fail (e, "linear: the bias has shape %s; it must be (%td)",
                    sl_shape_text (bias->ndim, bias->dim, sx, sizeof sx),
                    w->dim[0]);
  if (bias != NULL && bias->storage->dtype != x->storage->dtype)
    return sl_fail (e, "linear: x is %s and the bias %s",
                    sl_dtype_name (x->storage->dtype),
                    sl_dtype_name (bias->storage->dtype));
  return 0;
}

/* t itself (retained), or a row-major copy. */
static sl_tensor *packed (const sl_tensor *t, sl_error *e) {
  const sl_view v = sl_tensor_view (t);
  sl_tensor *copy;
  if (sl_view_contiguous (&v))
    return sl_tensor_retain ((sl_tensor *)(uintptr_t)t);
  copy = sl_tensor_new (t->storage->dtype, t->ndim, t->dim, e);
  if (copy != NULL && sl_tensor_copy (copy, t, e) < 0) {
    sl_tensor_release (copy);
    return NULL;
  }
  return copy;
}

sl_tensor *sl_weight_linear (sl_pool *pool, sl_tensor *x, const sl_weight *w,
                             const sl_tensor *bias, sl_error *e) {
  const sl_dtype dtype = x->storage->dtype;
  ptrdiff_t dim[SL_MAX_DIMS], rows = 1;
  sl_tensor *px = NULL, *pb = NULL, *y = NULL;
  int status = check (x, w, bias, e);
  if (status < 0) return NULL;
  memcpy (dim, x->dim, sizeof dim);
  dim[x->ndim - 1] = w->dim[0];
  for (int i = 0; i < x->ndim - 1; i++) rows *= dim[i];
  px = packed (x, e);
  if (bias != NULL) pb = packed (bias, e);
  if (px != NULL && (pb != NULL || bias == NULL))
    y = sl_tensor_new (dtype, x->ndim, dim, e);
  if (y != NULL) {
    job j = {
      .functions = SL_PICK (sl_packed_rows_kernels, dtype == SL_F64),
      .size = (ptrdiff_t)sl_dtype_size (dtype),
      .all = { .rows = rows,
               .columns = w->dim[0],
               .in = w->dim[1],
               .x = sl_tensor_view (px).data,
               .bias = pb != NULL ? sl_tensor_view (pb).data : NULL,
               .w = w->data,
               .w_row = sl_weight_row_bytes (w),
               .kind = w->type->kind,
               .block = w->type->block,
               .bytes = w->type->bytes,
               .y = y->storage->data,
               .x_row = w->dim[1],
               .y_row = w->dim[0] },
    };
    status = run (pool, &j, sl_dtype_size (dtype), e);
  }
  sl_tensor_release (px);
  sl_tensor_release (pb);
  if (status == 0) return y;
  sl_tensor_release (y);
  return NULL;
}

sl_tensor *sl_weight_embedding (const sl_weight *w, const sl_tensor *ids,
                                sl_dtype dtype, sl_error *e) {
  const sl_view v = sl_tensor_view (ids);
  const size_t n = sl_view_count (&v);
  ptrdiff_t dim[SL_MAX_DIMS];
  char text[SL_SHAPE_TEXT];
  sl_tensor *y;
  char *at;
  if (sl_weight_readable (w, e) < 0) {
    sl_fail_within (e, "embedding");
    return NULL;
  }
  if (w->ndim != 2 || ids->ndim == SL_MAX_DIMS) {
    sl_fail (e,
             "embedding: the weight '%.100s' has shape %s, the ids %d axes; "
             "they must be (n, d) and at most %d",
             w->name, sl_shape_text (w->ndim, w->dim, text, sizeof text),
             ids->ndim, SL_MAX_DIMS - 1);
    return NULL;
  }
  memcpy (dim, ids->dim, sizeof dim);
  dim[ids->ndim] = w->dim[1];
  y = sl_tensor_new (dtype, ids->ndim + 1, dim, e);
  if (y == NULL) return NULL;
  at = y->storage->data;
  for (size_t i = 0; i < n; i++) {
    const double id = sl_view_get (&v, ids->storage->dtype, i);
    if (!(id >= 0 && id < (double)w->dim[0]) || id != (double)(ptrdiff_t)id) {
      sl_fail (e,
               "embedding: the id %.17g (number %zu) is not a whole number "
               "from 0 to %td, the last row of '%.100s'",
               id, i + 1, w->dim[0] - 1, w->name);
      sl_tensor_release (y);
      return NULL;
    }
    sl_weight_rows (w, (ptrdiff_t)id, 1, dtype, at);
    at += (size_t)w->dim[1] * sl_dtype_size (dtype);
  }
  return y;
}
