/* attention_internal.h - what the two ways of the attention op share; numeric files.
**
** Rows (rows.c): scores [query][key], any visibility, any row plugin. Lanes
** (lanes.c): scores [key][16 queries], for plugins with a block pair, where all
** queries see the keys from the first one on. Each does one head of one
** sequence. Keys are numbered from the first virtual key: the key of token j is
** virtual_keys + j. */
#ifndef SL_ATTENTION_INTERNAL_H
#define SL_ATTENTION_INTERNAL_H
#include "attention/kernels.h"
#include "ops/gemm.h"

/* One head of (B, T, heads * width), T x width. */
typedef struct sl_grid {
  const real *x;
  ptrdiff_t row, col; /* strides */
} sl_grid;

/* A gradient to add to: rows of adjacent elements. From row 'written' on there
** is nothing yet: what comes first assigns. */
typedef struct sl_sum {
  real *x; /* NULL: not wanted */
  ptrdiff_t row;
  int written;
} sl_sum;

/* lanes: what the 16 queries from 'row' on see, if there are n valid tokens:
** heads and sequences have it in common. */
typedef struct sl_lanes_seen {
  int row, n; /* n 0: of no sequence yet */
  real keys[SL_QUERIES];
} sl_lanes_seen;

/* One sequence and head, and everything that its blocks need. */
typedef struct sl_head {
  const sl_run *run;
  const sl_attention_attr *attr;
  const sl_attention_plan *p;
  const sl_row_kernel *row;
  const sl_block_kernel *block; /* NULL: rows only */
  sl_call call;
  int sequence, head, n; /* n: valid tokens */
  int keys;              /* n + virtual keys */
  const real
      *first_key; /* rows: first visible key of query i at i * first_key_step;
                     ** NULL: no limit */
  ptrdiff_t first_key_step;
  sl_grid q, k, v;
  sl_grid kt, vt; /* rows: the transposes */
  sl_grid dout;   /* backward */
  sl_sum dq, dk, dv;
  real slope;                              /* ALiBi; 0: none */
  sl_lanes_seen seen[SL_BLOCKS_PER_GROUP]; /* of each block of a team */
  real *out;                               /* T x V, rows 'out_row' apart */
  ptrdiff_t out_row;
} sl_head;

/* Forward writes all T rows of h->out; backward adds to dq, dk, dv, whose rows
** are written in order, and to the dparam of the scratch. */
void SL (sl_rows_forward) (sl_head *h);
void SL (sl_rows_backward) (sl_head *h);
void SL (sl_lanes_forward) (sl_head *h);
void SL (sl_lanes_backward) (sl_head *h);

static inline real *sl_scratch (const sl_head *h, size_t offset) {
  return (real *)h->run->scratch + offset;
}

static inline sl_grid sl_from (sl_grid m, ptrdiff_t row) {
  m.x += row * m.row;
  return m;
}

/* Where the saved scores of this head begin; its weights lie behind them. */
static inline real *sl_saved (const sl_head *h) {
  const size_t index =
      (size_t)h->sequence * (size_t)h->p->heads + (size_t)h->head;
  return (real *)h->run->saved + 2 * index * h->p->saved_scores;
}

/* Rows row .. row + rows - 1 of the weights and scores go to the observer:
** matrices with rows of all keys, and what each row sees of them. */
void SL (sl_observe) (const sl_head *h, int row, int rows, const real *weights,
                      const real *scores, const int *lo, const int *hi);
#endif
