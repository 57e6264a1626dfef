/* broadcast.c - elementwise kernels over views with any strides. */
#include "ops/broadcast.h"

/* The operands of one call, each with a cursor and a buffer. */
typedef struct operands {
  int n, direct; /* direct: every operand in use is contiguous */
  const real *x[SL_KERNEL_IN];
  sl_cursor cursor[SL_KERNEL_IN];
  real buffer[SL_KERNEL_IN][SL_WALK_CHUNK];
} operands;

static void operands_start (operands *o, int n, const sl_view *const *x) {
  o->n = n;
  o->direct = 1;
  for (int k = 0; k < SL_KERNEL_IN; k++) {
    o->x[k] = NULL;
    o->cursor[k].at = NULL;
    if (k >= n || !x[k] || !x[k]->data) continue;
    sl_cursor_start (&o->cursor[k], x[k]);
    o->direct &= sl_cursor_contiguous (&o->cursor[k]);
  }
}

static void operands_read (operands *o, ptrdiff_t n) {
  for (int k = 0; k < o->n; k++)
    if (o->cursor[k].at)
      o->x[k] = sl_cursor_read (&o->cursor[k], n, o->buffer[k]);
}

/* All operands broadcast to the shape of 'shape'; absent ones stay NULL. */
static void broadcast_all (int n, const sl_view *const *x, const sl_view *shape,
                           sl_view *view, const sl_view **pointer) {
  for (int k = 0; k < n; k++) {
    pointer[k] = x[k] && x[k]->data ? &view[k] : NULL;
    if (pointer[k]) view[k] = sl_broadcast_to (x[k], shape->ndim, shape->dim);
  }
}

/* The axes of a result and the strides of two operands along them, joined
** where both operands allow it. */
typedef struct axes {
  int ndim;
  ptrdiff_t dim[SL_MAX_DIMS], stride[2][SL_MAX_DIMS];
} axes;

static void axes_of (const sl_view *const x[2], const sl_view *y, axes *a) {
  for (int i = 0; i < y->ndim; i++) a->dim[i] = y->dim[i];
  for (int k = 0; k < 2; k++) {
    const sl_view *v = x[k];
    const int missing = y->ndim - v->ndim;
    for (int i = 0; i < y->ndim; i++)
      a->stride[k][i] = i >= missing && v->dim[i - missing] == y->dim[i]
                            ? v->stride[i - missing]
                            : 0;
  }
  a->ndim = sl_collapse (y->ndim, a->dim, 2, a->stride);
}

int SL (sl_elementwise_pair) (sl_pair_kernel kernel, const sl_view *x,
                              const sl_view *y) {
  ptrdiff_t index[SL_MAX_DIMS] = { 0 };
  axes a;
  if (sl_view_count (y) == 0) return 1;
  axes_of ((const sl_view *[]){ x, x + 1 }, y, &a);
  const int last = a.ndim - 1, next = last > 0 ? last - 1 : 0;
  sl_pair p = { .rows = 1, .y = y->data };
  if (last < 0 || a.dim[last] < SL_PAIR_MIN) return 0;
  p.n = a.dim[last];
  if (last > 0) p.rows = a.dim[next];
  for (int k = 0; k < 2; k++) {
    const ptrdiff_t step = a.stride[k][last];
    if (step != 0 && step != 1) return 0;
    p.scalar[k] = step == 0;
    if (last > 0) p.row[k] = a.stride[k][next];
    p.x[k] = x[k].data;
  }
  if (p.scalar[0] && p.scalar[1]) return 0;
  for (;; p.y += p.rows * p.n) {
    int i = next - 1;
    kernel (&p);
    for (; i >= 0; i--) {
      const ptrdiff_t steps = ++index[i] < a.dim[i] ? 1 : 1 - a.dim[i];
      p.x[0] += steps * a.stride[0][i];
      p.x[1] += steps * a.stride[1][i];
      if (steps == 1) break;
      index[i] = 0;
    }
    if (i < 0) return 1;
  }
}

void SL (sl_elementwise) (sl_kernel kernel, int n, const sl_view *const *x,
                          const sl_view *y) {
  const ptrdiff_t count = (ptrdiff_t)sl_view_count (y);
  sl_view view[SL_KERNEL_IN];
  const sl_view *pointer[SL_KERNEL_IN];
  real *to = y->data;
  operands o;
  if (count == 0) return;
  broadcast_all (n, x, y, view, pointer);
  operands_start (&o, n, pointer);
  for (ptrdiff_t i = 0, step; i < count; i += step) {
    step = o.direct || count - i < SL_WALK_CHUNK ? count - i : SL_WALK_CHUNK;
    operands_read (&o, step);
    kernel (step, o.x, to + i);
  }
}

/* The next n values of the kernel, in 'buffer' or, without a kernel, in the
** operand itself. */
static const real *values (operands *o, sl_kernel kernel, ptrdiff_t n,
                           real *buffer) {
  operands_read (o, n);
  if (!kernel) return o->x[0];
  for (ptrdiff_t i = 0; i < n; i++) buffer[i] = 0;
  kernel (n, o->x, buffer);
  return buffer;
}

/* Target repeats no axis: one addition an element. */
static void accumulate_all (sl_kernel kernel, int n, const sl_view *const *x,
                            const sl_view *target, ptrdiff_t count) {
  real buffer[SL_WALK_CHUNK];
  sl_cursor to;
  operands o;
  operands_start (&o, n, x);
  sl_cursor_start (&to, target);
  const int whole = o.direct && sl_cursor_contiguous (&to);
  for (ptrdiff_t i = 0, step; i < count; i += step) {
    step = whole || count - i < SL_WALK_CHUNK ? count - i : SL_WALK_CHUNK;
    if (kernel && sl_cursor_contiguous (&to)) {
      operands_read (&o, step);
      kernel (step, o.x, to.at);
      sl_cursor_advance (&to, step);
    } else {
      sl_cursor_add (&to, step, values (&o, kernel, step, buffer));
    }
  }
}

/* Target repeats the last axis. Axes are in the order (kept, repeated): each
** target element is the sum of 'repeats' consecutive values. */
static void accumulate_rows (sl_kernel kernel, int n, const sl_view *const *x,
                             const sl_view *kept, ptrdiff_t count,
                             ptrdiff_t repeats) {
  real buffer[SL_WALK_CHUNK];
  sl_walk to;
  operands o;
  ptrdiff_t missing = repeats;
  double total = 0;
  operands_start (&o, n, x);
  sl_walk_start (&to, 1, &kept);
  for (ptrdiff_t i = 0, step; i < count; i += step) {
    const real *v;
    step = count - i < SL_WALK_CHUNK ? count - i : SL_WALK_CHUNK;
    v = values (&o, kernel, step, buffer);
    for (ptrdiff_t k = 0, run; k < step; k += run) {
      run = missing < step - k ? missing : step - k;
      total += sl_sum (run, v + k);
      missing -= run;
      if (missing > 0) continue;
      *to.at[0] += (real)total;
      sl_walk_next (&to);
      missing = repeats;
      total = 0;
    }
  }
}

/* Target keeps the last axis and repeats earlier ones. Axes are in the order
** (kept, repeated, last), the last with 'width' <= SL_WALK_CHUNK elements
** 'step' apart: rows are added to a row of doubles. */
static void accumulate_columns (sl_kernel kernel, int n,
                                const sl_view *const *x, const sl_view *kept,
                                ptrdiff_t width, ptrdiff_t step, size_t outer,
                                ptrdiff_t repeats) {
  double total[SL_WALK_CHUNK];
  real buffer[SL_WALK_CHUNK];
  sl_walk to;
  operands o;
  operands_start (&o, n, x);
  sl_walk_start (&to, 1, &kept);
  for (size_t p = 0; p < outer; p++, sl_walk_next (&to)) {
    for (ptrdiff_t j = 0; j < width; j++) total[j] = 0;
    for (ptrdiff_t r = 0, rows; r < repeats; r += rows) {
      const real *v;
      rows = repeats - r < SL_WALK_CHUNK / width ? repeats - r
                                                 : SL_WALK_CHUNK / width;
      v = values (&o, kernel, rows * width, buffer);
      for (ptrdiff_t k = 0; k < rows; k++)
        for (ptrdiff_t j = 0; j < width; j++)
          total[j] += (double)v[k * width + j];
    }
    for (ptrdiff_t j = 0; j < width; j++) to.at[0][j * step] += (real)total[j];
  }
}

void SL (sl_write_gradient) (int assigns, sl_kernel assign, sl_kernel add,
                             int n, const sl_view *const *x,
                             const sl_view *target, const sl_view *shape) {
  sl_walk w;
  if (assigns && target->data && sl_view_same_shape (target, shape) &&
      sl_view_contiguous (target)) {
    SL (sl_elementwise) (assign, n, x, target);
    return;
  }
  if (assigns && target->data)
    for (sl_walk_start (&w, 1, &target); w.left > 0; sl_walk_next (&w))
      *w.at[0] = 0;
  SL (sl_accumulate) (add, n, x, target, shape);
}

/* Join the axes that can be joined in all views at once. */
static void join (int n, sl_view *v) {
  ptrdiff_t dim[SL_MAX_DIMS], stride[SL_KERNEL_IN + 1][SL_MAX_DIMS];
  memcpy (dim, v[0].dim, sizeof dim);
  for (int k = 0; k < n; k++) memcpy (stride[k], v[k].stride, sizeof stride[k]);
  const int ndim = sl_collapse (v[0].ndim, dim, n, stride);
  for (int k = 0; k < n; k++) {
    v[k].ndim = ndim;
    memcpy (v[k].dim, dim, sizeof dim);
    memcpy (v[k].stride, stride[k], sizeof stride[k]);
  }
}

/* v with its axes in another order: new axis i is old axis order[i]. */
static sl_view reorder (const sl_view *v, const int *order) {
  sl_view out = { .data = v->data, .ndim = v->ndim };
  for (int i = 0; i < v->ndim; i++) {
    out.dim[i] = v->dim[order[i]];
    out.stride[i] = v->stride[order[i]];
  }
  return out;
}

/* 1: v repeats its elements along the axis. */
static int repeats_axis (const sl_view *v, int axis) {
  return v->stride[axis] == 0 && v->dim[axis] > 1;
}

void SL (sl_accumulate) (sl_kernel kernel, int n, const sl_view *const *x,
                         const sl_view *target, const sl_view *shape) {
  const ptrdiff_t count = (ptrdiff_t)sl_view_count (shape);
  sl_view view[SL_KERNEL_IN + 1]; /* view[0] is the target */
  const sl_view *pointer[SL_KERNEL_IN];
  int order[SL_MAX_DIMS], n_kept = 0, n_order = 0;
  size_t kept_count = 1;
  if (!target->data || count == 0) return;
  view[0] = sl_broadcast_to (target, shape->ndim, shape->dim);
  for (int k = 0; k < n; k++) view[k + 1] = (sl_view){ .data = NULL };
  broadcast_all (n, x, shape, view + 1, pointer);
  join (n + 1, view);
  const int ndim = view[0].ndim, last = ndim - 1;
  for (int i = 0; i < ndim; i++)
    if (!repeats_axis (&view[0], i) && i != last) order[n_order++] = i;
  n_kept = n_order;
  if (n_kept == ndim || (n_kept == last && !repeats_axis (&view[0], last))) {
    accumulate_all (kernel, n, pointer, &view[0], count);
    return;
  }
  for (int i = 0; i < ndim; i++)
    if (repeats_axis (&view[0], i) && i != last) order[n_order++] = i;
  order[last] = last;
  for (int k = 0; k <= n; k++) view[k] = reorder (&view[k], order);
  sl_view kept = view[0];
  kept.ndim = n_kept;
  for (int i = 0; i < n_kept; i++) kept_count *= (size_t)kept.dim[i];
  if (repeats_axis (&view[0], last)) {
    accumulate_rows (kernel, n, pointer, &kept, count,
                     count / (ptrdiff_t)kept_count);
    return;
  }
  const ptrdiff_t width = view[0].dim[last];
  const ptrdiff_t repeats = count / width / (ptrdiff_t)kept_count;
  for (ptrdiff_t j = 0; j < width; j += SL_WALK_CHUNK) {
    sl_view part[SL_KERNEL_IN + 1];
    for (int k = 0; k <= n; k++) {
      part[k] = view[k];
      if (!part[k].data) continue;
      part[k].dim[last] = width - j < SL_WALK_CHUNK ? width - j : SL_WALK_CHUNK;
      part[k].data = (real *)part[k].data + j * part[k].stride[last];
      if (k > 0) pointer[k - 1] = &part[k];
    }
    kept.data = part[0].data;
    accumulate_columns (kernel, n, pointer, &kept, part[0].dim[last],
                        part[0].stride[last], kept_count, repeats);
  }
}
