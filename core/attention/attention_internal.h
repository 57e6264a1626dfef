/* attention_internal.h - one head of attention, in blocks of queries; numeric
** files.
**
** attention_op.c goes through the heads, attention_blocks.c through the blocks of
** a head; the two layouts of a block's matrices are in rows.c, which can do any
** visibility and any row plugin, and lanes.c, for plugins with a block kernel
** where all queries see the keys from the first one on. Keys are numbered from
** the first virtual key: the key of token j is virtual_keys + j. */
#ifndef SL_ATTENTION_INTERNAL_H
#define SL_ATTENTION_INTERNAL_H
#include "attention/host.h"
#include "ops/gemm.h"

/* A matrix: one head of (B, T, NH * width), (T, width). */
typedef struct sl_grid {
  const real *x;
  ptrdiff_t row, col; /* strides */
} sl_grid;

/* A gradient with contiguous rows. Rows from 'written' on are uninitialised: the
** first writer assigns, later ones add. */
typedef struct sl_gradient {
  real *x; /* NULL: not wanted */
  ptrdiff_t row;
  int written;
} sl_gradient;

/* The queries row .. row + queries - 1 and the keys lo .. hi - 1 that any of them
** sees. */
typedef struct sl_block {
  int row, queries; /* 0 queries: padding only */
  int lo, hi;
  int partial; /* 1: some key is seen by some queries only */
  /* 1: query i sees the keys 0 .. first - 1 and, if 'causal', the i next ones */
  int contiguous, first, causal;
  /* Query i sees the keys key_lo[i] .. key_hi[i] - 1; none past 'queries'. */
  int key_lo[SL_MAX_BLOCK_ROWS], key_hi[SL_MAX_BLOCK_ROWS];
  ptrdiff_t query_step, key_step; /* strides of the four matrices */
  real *scores, *weights, *dscores, *dweights;
  /* lanes only: key_hi as reals, (16); transposed queries, (D, 16); transposed
  ** output gradients, (V, 16) */
  const real *visible;
  real *q, *dout;
} sl_block;

/* lanes: sl_block.visible of the block at 'row' of a sequence of n valid tokens,
** which heads and sequences share. */
typedef struct sl_lane_keys {
  int row, n; /* n 0: not filled in */
  real keys[SL_QUERIES];
} sl_lane_keys;

typedef struct sl_head sl_head;

/* The kernels that depend on the layout of a block's matrices. The first two
** work on the keys j .. end - 1 of the block. */
typedef struct sl_layout {
  void (*scores) (sl_head *h, const sl_block *b, int j, int end);
  void (*grad_weights) (sl_head *h, const sl_block *b, int j, int end);
  /* W = plugin (S - slope |i - j|), 0 where a key is not visible. */
  void (*weights) (sl_head *h, const sl_block *b);
  /* dS = dW dW/dS, 0 where a key is not visible, and the gradient of parameters.
  ** Returns 0 if a query, an output gradient or a key is not finite. */
  int (*weights_backward) (sl_head *h, const sl_block *b);
  /* Show 'rows' rows of weights and scores to the observer. */
  void (*observe) (const sl_head *h, const sl_block *b, int rows);
} sl_layout;
extern const sl_layout SL (sl_layout_rows), SL (sl_layout_lanes);

/* One head of one sequence. */
struct sl_head {
  sl_hosted host;
  const sl_run *run;
  const sl_attention_attr *attr;
  const sl_attention_plan *p;
  const sl_layout *layout;
  ptrdiff_t out_row; /* row stride of 'out' */
  /* Valid from the choice of a key/value head on: */
  int keys;       /* valid tokens + virtual keys */
  sl_grid k, v;   /* (keys, D), (keys, V) */
  sl_grid kt, vt; /* rows only: their transposes; vt in backward */
  sl_gradient dk, dv;
  /* Valid from the choice of a head on: */
  sl_grid q, dout; /* (T, D), (T, V) */
  sl_gradient dq;
  real slope; /* ALiBi; 0: none */
  real *out;  /* (T, V) */
  sl_lane_keys lane_keys[SL_BLOCKS_PER_GROUP];
};

/* Forward writes all T rows of h->out; backward adds to dq, dk and dv, and to the
** gradient of the parameters. */
void SL (sl_attention_forward) (sl_head *h);
void SL (sl_attention_backward) (sl_head *h);

static inline real *sl_scratch (const sl_head *h, size_t offset) {
  return sl_at_scratch (h->run, offset);
}

static inline sl_grid sl_from (sl_grid m, ptrdiff_t row) {
  m.x += row * m.row;
  return m;
}

/* c (m, n) = alpha a (m, k) b (k, n), plus c if 'add' */
static inline void sl_product (const sl_head *h, ptrdiff_t m, ptrdiff_t n,
                               ptrdiff_t k, double alpha, sl_grid a, sl_grid b,
                               int add, real *c, ptrdiff_t c_row) {
  SL (sl_gemm)
  (m, n, k, (real)alpha, a.x, a.row, a.col, b.x, b.row, b.col, (real)add, c,
   c_row, sl_scratch (h, h->p->product));
}

/* 1 if n numbers are finite. */
int SL (sl_all_finite) (ptrdiff_t n, const real *x);

/* Rows of weights and scores, (rows, keys) each, for the observer. */
void SL (sl_observe_block) (const sl_head *h, const sl_block *b, int rows,
                            const real *weights, const real *scores);
#endif
