/* kernels.h - what the numeric files of the attention layer share with infer. */
#ifndef SL_KERNELS_H
#define SL_KERNELS_H
#include "attention/attention.h"

enum {
  SL_MOST_ROWS = 32,      /* query rows of a block, at most */
  SL_RECOMPUTE_FROM = 256 /* default of sl_attention_attr.recompute_from */
};

/* The scratch of a product: sl_gemm_scratch of the variant that will run. */
typedef size_t (*sl_product_scratch) (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k);

/* Sizes of an attention op, and where its buffers lie in 'scratch' (in reals, each
** 64-byte aligned). */
typedef struct sl_attention_plan {
  int batch, t, heads, kv_heads, d, dv, params;
  int block;     /* query rows at a time */
  int recompute; /* 1: backward computes scores and weights again */
  size_t saved;  /* (batch, heads, 2, t, t): scores and weights; or 0 */
  size_t scratch;
  ptrdiff_t ld;  /* of kt and vt */
  size_t kt, vt; /* d x t, dv x t; used if there are several blocks */
  size_t dq, dk,
      dv_sum; /* t x d, t x d, t x dv; for gradients of odd strides */
  size_t scores, weights;   /* block x t each */
  size_t dscores, dweights; /* block x t each */
  size_t param, dparam;     /* params each */
  size_t row, product;      /* for the plugin: t reals; for sl_gemm */
} sl_attention_plan;

/* Fill p from attributes and input shapes; -1 and a sentence if they do not fit. */
int sl_attention_plan_of (const sl_attention_attr *a, int n_in,
                          const sl_view *in, sl_product_scratch product,
                          sl_attention_plan *p, sl_error *e);

/* The same for the mechanism op: one row at a time. */
typedef struct sl_mechanism_plan {
  int batch, heads, t, params;
  size_t scratch;
  size_t scores, weights, dscores, dweights; /* t each */
  size_t param, dparam, row;
} sl_mechanism_plan;
int sl_mechanism_plan_of (const sl_attention_attr *a, int n_in,
                          const sl_view *in, sl_mechanism_plan *p, sl_error *e);

int sl_attention_infer (sl_infer *q, sl_product_scratch product, sl_error *e);
int sl_mechanism_infer (sl_infer *q, sl_error *e);
int sl_rope_infer (sl_infer *q, sl_error *e);

/* Slope of ALiBi of head i (from 0) of 'heads'. */
double sl_alibi_slope (int heads, int i);

/* A number of valid tokens as stored in a tensor: NaN and less than 0 count as 0,
** more than t as t. */
int sl_valid_tokens (double length, int t);
#endif
