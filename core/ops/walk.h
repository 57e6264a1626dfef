/* walk.h - loops over views with any strides.
**
** sl_walk visits the positions of up to six views of one shape, last axis
** fastest (rows of softmax, batches of matmul). sl_cursor hands out one view in
** blocks of contiguous elements, as a pointer into a contiguous view and
** through a buffer from others, so that inner loops need one form only. Numeric
** code: include it from files that are compiled per precision. */
#ifndef SL_WALK_H
#define SL_WALK_H
#include "base/number.h"
#include "ops/op.h"
#include "ops/pair.h"
#include <sinklab/plugin.h>
#include <string.h>

enum { SL_WALK_VIEWS = 6, SL_WALK_CHUNK = 256 };

/* v broadcast to the shape 'dim': axes aligned at the end, stride 0 on the axes
** that repeat. */
static inline sl_view sl_broadcast_to (const sl_view *v, int ndim,
                                       const ptrdiff_t *dim) {
  sl_view out = { .data = v->data, .ndim = ndim };
  for (int i = 0; i < ndim; i++) {
    const int from = i - (ndim - v->ndim);
    out.dim[i] = dim[i];
    if (from >= 0 && v->dim[from] == dim[i]) out.stride[i] = v->stride[from];
  }
  return out;
}

/* v without 'axis' (0..ndim-1), at index 0 of it: a walk over the result visits
** the rows along that axis. */
static inline sl_view sl_drop_axis (const sl_view *v, int axis) {
  sl_view out = { .data = v->data, .ndim = v->ndim - 1 };
  for (int i = 0; i < out.ndim; i++) {
    out.dim[i] = v->dim[i + (i >= axis)];
    out.stride[i] = v->stride[i + (i >= axis)];
  }
  return out;
}

/* Drop axes of size 1 and join neighbouring axes that are contiguous in all n
** views (stride[k], one array a view). Returns the number of axes left. */
static inline int sl_collapse (int ndim, ptrdiff_t *dim, int n,
                               ptrdiff_t (*stride)[SL_MAX_DIMS]) {
  int last = -1;
  for (int i = 0; i < ndim; i++) {
    int joins = last >= 0;
    if (dim[i] == 1) continue;
    for (int k = 0; k < n && joins; k++)
      joins = stride[k][last] == stride[k][i] * dim[i];
    if (joins) {
      dim[last] *= dim[i];
    } else {
      dim[++last] = dim[i];
    }
    for (int k = 0; k < n; k++) stride[k][last] = stride[k][i];
  }
  return last + 1;
}

/* for (sl_walk_start (&w, n, views); w.left > 0; sl_walk_next (&w)) w.at[k]
** ... */
typedef struct sl_walk {
  size_t left;             /* positions still to visit, this one included */
  real *at[SL_WALK_VIEWS]; /* view k at this position; NULL: it has no data */
  int n, ndim;
  ptrdiff_t dim[SL_MAX_DIMS], index[SL_MAX_DIMS];
  ptrdiff_t stride[SL_WALK_VIEWS][SL_MAX_DIMS];
} sl_walk;

/* All views have the shape of v[0]; a view without data stays NULL. */
static inline void sl_walk_start (sl_walk *w, int n, const sl_view *const *v) {
  w->n = n;
  w->left = 1;
  for (int i = 0; i < v[0]->ndim; i++) {
    w->dim[i] = v[0]->dim[i];
    w->index[i] = 0;
    w->left *= (size_t)v[0]->dim[i];
  }
  for (int k = 0; k < n; k++) {
    w->at[k] = v[k]->data;
    for (int i = 0; i < v[0]->ndim; i++)
      w->stride[k][i] = v[k]->data ? v[k]->stride[i] : 0;
  }
  w->ndim = sl_collapse (v[0]->ndim, w->dim, n, w->stride);
}

static inline void sl_walk_next (sl_walk *w) {
  if (--w->left == 0) return;
  for (int i = w->ndim - 1;; i--) {
    if (++w->index[i] < w->dim[i]) {
      for (int k = 0; k < w->n; k++)
        if (w->at[k]) w->at[k] += w->stride[k][i];
      return;
    }
    for (int k = 0; k < w->n; k++)
      if (w->at[k]) w->at[k] -= w->stride[k][i] * (w->dim[i] - 1);
    w->index[i] = 0;
  }
}

/* One view, read or added to in row-major order, at most SL_WALK_CHUNK elements
** a call unless it is contiguous. */
typedef struct sl_cursor {
  real *at;
  int ndim;   /* after joining; at least 1 */
  int filled; /* a constant view: the buffer already holds it */
  ptrdiff_t dim[SL_MAX_DIMS], index[SL_MAX_DIMS], stride[1][SL_MAX_DIMS];
} sl_cursor;

static inline void sl_cursor_start (sl_cursor *c, const sl_view *v) {
  c->at = v->data;
  c->filled = 0;
  for (int i = 0; i < v->ndim; i++) {
    c->dim[i] = v->dim[i];
    c->stride[0][i] = v->stride[i];
    c->index[i] = 0;
  }
  c->ndim = sl_collapse (v->ndim, c->dim, 1, c->stride);
  if (c->ndim == 0) {
    c->ndim = 1;
    c->dim[0] = c->stride[0][0] = 1;
    c->index[0] = 0;
  }
}

static inline int sl_cursor_contiguous (const sl_cursor *c) {
  return c->ndim == 1 && c->stride[0][0] == 1;
}

/* Step over 'run' elements of the innermost axis, which has that many left. */
static inline void sl_cursor_advance (sl_cursor *c, ptrdiff_t run) {
  int i = c->ndim - 1;
  c->at += run * c->stride[0][i];
  c->index[i] += run;
  for (; i > 0 && c->index[i] == c->dim[i]; i--) {
    c->at += c->stride[0][i - 1] - c->dim[i] * c->stride[0][i];
    c->index[i] = 0;
    c->index[i - 1]++;
  }
}

/* Short runs are copied as two vectors of a constant size that may overlap.
**
** 'rows' runs of n elements: from places 'stride' apart, their elements 'step'
** apart, to places 'to_stride' apart. */
static inline void sl_copy_rows (ptrdiff_t rows, ptrdiff_t n, const real *from,
                                 ptrdiff_t stride, ptrdiff_t step,
                                 real *restrict to, ptrdiff_t to_stride) {
#define SL_TILE_ROWS(statement)                                         \
  for (ptrdiff_t r = 0; r < rows; r++, from += stride, to += to_stride) \
  statement
#define SL_PIECES(type, size)                                          \
  if (step == 0)                                                       \
    SL_TILE_ROWS ({                                                    \
      const type x = *from - (type){ 0 };                              \
      *(type *)to = *(type *)(to + n - (size)) = x;                    \
    })                                                                 \
  else                                                                 \
    SL_TILE_ROWS ({                                                    \
      const type x = *(const type *)from;                              \
      *(type *)(to + n - (size)) = *(const type *)(from + n - (size)); \
      *(type *)to = x;                                                 \
    })
  if (n == 1) {
    SL_TILE_ROWS (*to = *from;)
  } else if (n >= 4 && n <= 8 && step <= 1 && step >= 0) {
    SL_PIECES (sl_four, 4)
  } else if (n > 8 && n <= 16 && step <= 1 && step >= 0) {
    SL_PIECES (sl_eight, 8)
  } else if (step == 0) {
    SL_TILE_ROWS (for (ptrdiff_t i = 0; i < n; i++) to[i] = *from;)
  } else if (step == 1) {
    SL_TILE_ROWS (memcpy (to, from, (size_t)n * sizeof *to);)
  } else {
    SL_TILE_ROWS (for (ptrdiff_t i = 0; i < n; i++) to[i] = from[i * step];)
  }
#undef SL_PIECES
#undef SL_TILE_ROWS
}

/* The next n elements: where they lie, or copied into 'buffer' (SL_WALK_CHUNK
** reals that belong to this cursor until its last read). */
static inline const real *sl_cursor_read (sl_cursor *c, ptrdiff_t n,
                                          real *buffer) {
  const int last = c->ndim - 1;
  const ptrdiff_t step = c->stride[0][last];
  if (step == 1 && c->dim[last] - c->index[last] >= n) {
    const real *here = c->at;
    sl_cursor_advance (c, n);
    return here;
  }
  if (last == 0 && step == 0) {
    for (; c->filled < SL_WALK_CHUNK; c->filled++) buffer[c->filled] = *c->at;
    return buffer;
  }
  for (ptrdiff_t done = 0; done < n;) {
    const ptrdiff_t left = c->dim[last] - c->index[last];
    if (last > 0 && c->index[last] == 0 && n - done >= 2 * left) {
      /* whole rows of the last axis, as many as the axis before it has */
      const ptrdiff_t more = c->dim[last - 1] - c->index[last - 1];
      const ptrdiff_t rows = sl_min (more, (n - done) / left);
      sl_copy_rows (rows, left, c->at, c->stride[0][last - 1], step,
                    buffer + done, left);
      done += rows * left;
      c->at += (rows - 1) * c->stride[0][last - 1];
      c->index[last - 1] += rows - 1;
      sl_cursor_advance (c, left);
      continue;
    }
    const ptrdiff_t run = sl_min (left, n - done);
    sl_copy_rows (1, run, c->at, 0, step, buffer + done, 0);
    done += run;
    sl_cursor_advance (c, run);
  }
  return buffer;
}

/* Add x[0..n-1] to the next n elements (strides must not be 0: see
** broadcast.h). */
static inline void sl_cursor_add (sl_cursor *c, ptrdiff_t n, const real *x) {
  const int last = c->ndim - 1;
  const ptrdiff_t step = c->stride[0][last];
  for (ptrdiff_t done = 0; done < n;) {
    const ptrdiff_t left = c->dim[last] - c->index[last];
    const ptrdiff_t run = sl_min (left, n - done);
    const real *restrict from = x + done;
    real *restrict to = c->at;
    if (step == 1) {
      for (ptrdiff_t i = 0; i < run; i++) to[i] += from[i];
    } else {
      for (ptrdiff_t i = 0; i < run; i++) to[i * step] += from[i];
    }
    done += run;
    sl_cursor_advance (c, run);
  }
}

/* The n elements at x, 'step' apart, as a contiguous row: x, or a copy in
** 'room'. */
static inline const real *sl_row_read (ptrdiff_t n, const real *x,
                                       ptrdiff_t step, real *room) {
  if (step == 1 || n == 1) return x;
  for (ptrdiff_t i = 0; i < n; i++) room[i] = x[i * step];
  return room;
}

/* The sum of n consecutive elements, in double, in eight fixed lanes. */
static inline double sl_sum (ptrdiff_t n, const real *x) {
  double lane[8] = { 0 };
  ptrdiff_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; k++) lane[k] += (double)x[i + k];
  for (int k = 0; i < n; i++, k++) lane[k] += (double)x[i];
  return sl_fold_neighbours (lane);
}
#endif
