/* kernels.h - what numeric files of the attention layer share with shapes. */
#ifndef SL_KERNELS_H
#define SL_KERNELS_H
#include "attention/attention.h"

enum {
  SL_MOST_ROWS = 32,       /* query rows of a block, at most */
  SL_RECOMPUTE_FROM = 256, /* default of sl_attention_attr.recompute_from */
  SL_LANES_FROM = 8,       /* shorter sequences waste too many lanes */
  SL_LANES_TO = (1 << 24) - (1 << 16), /* an f32 counts so many keys */
  SL_BLOCKS_PER_GROUP = 4,             /* lanes: blocks of a team, at most */
  SL_TEAM_FROM = 8192, /* keys: fewer come fast enough for one block */
  SL_GATHER_FROM = 65  /* tokens: keys and values are read often enough */
};

/* The scratch of a product: sl_gemm_scratch of the variant that will run. */
typedef size_t (*sl_gemm_strided_scratch) (ptrdiff_t m, ptrdiff_t n,
                                           ptrdiff_t k);

/* Sizes of an attention op, and where its buffers lie in 'scratch' (in reals,
** each 64-byte aligned). */
typedef struct sl_attention_plan {
  int batch, t, heads, kv_heads, d, dv, params;
  int keys;            /* t + virtual keys */
  int lanes;           /* 1: [key][16 queries], 0: [query][key] */
  int block;           /* query rows at a time; lanes: 16 */
  int together;        /* blocks that take a tile of keys together; rows: 1 */
  int gathered;        /* lanes: k and v are copied, dk and dv summed apart */
  int recompute;       /* 1: backward computes scores and weights again */
  size_t saved_scores; /* of one head: t, lanes: its multiple of 16, x keys */
  size_t saved;        /* (batch, heads, 2, saved_scores): with weights; or 0 */
  size_t scratch;
  ptrdiff_t ld; /* of kt and vt */
  /* rows: transposed keys and values, d x keys, dv x keys, used if there are
  ** several blocks; lanes: queries and gradients, d x 16, dv x 16 a block */
  size_t kt, vt;
  size_t k, v;            /* keys x d, keys x dv, if gathered */
  size_t dq, dk, dv_sum;  /* t x d, keys x d, keys x dv; for odd strides */
  size_t scores, weights; /* together x block x keys each */
  /* the same, and block x keys: in a team a block's dscores take the place of
  ** the dweights of the block before, which nobody reads any more */
  size_t dscores, dweights;
  size_t param, dparam; /* params each */
  size_t row, product;  /* for the plugin: keys reals; for sl_gemm */
} sl_attention_plan;

/* Fill p, but for p->scratch, from attributes and inputs that shapes has taken:
** nothing is checked. */
void sl_attention_plan_again (const sl_attention_attr *a, const sl_view *in,
                              sl_attention_plan *p);

/* The same for the row_weights op: one row at a time. */
typedef struct sl_row_weights_plan {
  int batch, heads, t, params;
  size_t scratch;
  size_t scores, weights, dscores, dweights; /* t each */
  size_t param, dparam, row;
} sl_row_weights_plan;
int sl_row_weights_plan_of (const sl_attention_attr *a, int n_in,
                            const sl_view *in, sl_row_weights_plan *p,
                            sl_error *e);

/* Of the gate op: one token at a time. */
typedef struct sl_gate_plan {
  int batch, t, heads, params;
  int d;             /* width of a head */
  int width, shared; /* of z; width 0: there is none */
  size_t scratch;
  size_t o, z, dy, d_o, dz; /* d, width, d, d, width */
  size_t param, dparam;
} sl_gate_plan;
int sl_gate_plan_of (const sl_gate_attr *a, int n_in, const sl_view *in,
                     sl_gate_plan *p, sl_error *e);

/* Of the mixer op: one head of one sequence at a time. */
enum { SL_MIXER_INPUTS = SL_MAX_IN - 2 };
typedef struct sl_mixer_plan {
  int batch, t, heads, d_head, d_out, params;
  int inputs; /* of the plugin */
  struct {
    int width, shared;
    int input; /* of the op; -1: left out */
    size_t x, dx;
  } in[SL_MIXER_INPUTS];
  int value;    /* input of the op that holds the values; -1: none */
  size_t saved; /* of one head of one sequence */
  size_t scratch;
  size_t lo, hi;       /* t ints each */
  size_t out, dout;    /* t x d_out */
  size_t weights, own; /* t x t if the plugin has weights; as it planned */
  size_t param, dparam;
} sl_mixer_plan;
int sl_mixer_plan_of (const sl_mixer_attr *a, sl_dtype dtype, int n_in,
                      const sl_view *in, sl_mixer_plan *p, sl_error *e);

/* What all four ops ask: a mechanism of this shape ("row", ...), as many inputs
** as the flags say, and parameters (heads, *params) and lengths (batch) of the
** right shapes, the first of them at in[first]. */
typedef struct sl_mechanism_use {
  const char *op, *shape;
  const sl_mechanism *mechanism;
  int d_head, heads, has_param, has_length;
  ptrdiff_t batch;
} sl_mechanism_use;
int sl_check_use (const sl_mechanism_use *u, int first, int n_in,
                  const sl_view *in, int *params, sl_error *e);

/* A shape as an error names it, "(2, 16, 64)", in room for one; returns the
** text. */
typedef struct sl_shape_room {
  char text[SL_SHAPE_TEXT];
} sl_shape_room;
const char *sl_show_shape (const sl_view *v, sl_shape_room *room);

/* Reserve rows x columns reals, 64-byte aligned, at the end of a scratch; -1:
** more than a size_t holds. */
int sl_reserve (size_t *end, size_t rows, size_t columns, size_t *at);

/* sl_op.shapes of the ops; what depends on the variant that will run, its
** precision or the scratch of its products, is given. */
int sl_gate_shapes (sl_shape_query *q, sl_error *e);
int sl_mixer_shapes (sl_shape_query *q, sl_dtype dtype, sl_error *e);
int sl_attention_shapes (sl_shape_query *q, sl_gemm_strided_scratch product,
                         sl_error *e);
int sl_row_weights_shapes (sl_shape_query *q, sl_error *e);
int sl_rope_shapes (sl_shape_query *q, sl_error *e);

/* Slope of ALiBi of head i (from 0) of 'heads'. */
double sl_alibi_slope (int heads, int i);

/* A number of valid tokens as stored in a tensor: NaN and less than 0 count as
** 0, more than t as t. */
int sl_valid_tokens (double length, int t);
#endif
